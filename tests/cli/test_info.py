"""``lgsim info`` and what every command has in common: help, version, usage errors."""

from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from lgsim.cli.exit_status import epilog
from tests.cli.machines import ARM, lgsim, refused

COMMANDS = ("info", "simulate", "optimize", "plot", "view", "compare", "convert", "generate")


def squeezed(text):
    return " ".join(text.split())


def test_machine_is_shown(files):
    result = lgsim("info", files / "arm.urdf")
    text = squeezed(result.stdout)
    assert result.exit_code == 0
    assert "2 moving bodies on a fixed base, 3 kg in total; 2 degrees of freedom (nq = 2, nv = 2)" in text
    assert "shoulder (continuous) → upper, 2 kg" in text
    assert "elbow (revolute) → fore, 1 kg" in text
    assert text.index("upper, 2 kg") < text.index("fore, 1 kg") < text.index("frames: tip")
    assert "frames: base" in text
    assert "elbow revolute 1 1 -2 … 1.5 rad 5 rad/s 10 N m" in text
    assert "shoulder continuous 0 0 none" in text
    assert "nothing to report" in text
    limits = "Position limits are not enforced by default; lgsim simulate --stops turns them into stops."
    assert limits in text and limits not in squeezed(lgsim("info", files / "ball.urdf").stdout)


def test_joints_of_many_numbers_followers_and_remarks(files):
    text = squeezed(lgsim("info", files / "ball.urdf").stdout)
    assert "socket spherical 0-3 0-2 none" in text
    assert "wheel continuous 4 3 none" in text
    assert "shadow (continuous, 2 × wheel +0.5) → last" in text
    assert "non-physical inertias: line 4: link 'odd'" in text


def test_floating_base(files):
    text = squeezed(lgsim("info", files / "arm.urdf", "--floating-base").stdout)
    assert "3 moving bodies on a floating base, 3 kg in total; 8 degrees of freedom (nq = 9, nv = 8)" in text
    assert "root_joint free 0-6 0-5 none" in text
    assert "link 'base' moves without mass of its own" in text


def test_links_without_extent(tmp_path):
    (tmp_path / "flat.urdf").write_text(ARM.replace('ixx=".01" iyy="0.01" izz=".01"', 'ixx="0" iyy="0" izz="0"'))
    text = squeezed(lgsim("info", tmp_path / "flat.urdf").stdout)
    assert "link 'fore' has all of its mass in a point" in text and "--physical nearest" in text


def test_mjcf_by_its_first_element(files):
    pytest.importorskip("mujoco")
    text = squeezed(lgsim("info", files / "slider.xml").stdout)
    assert (
        "1 moving body on a fixed base, 2 kg in total; 1 degree of freedom (nq = 1, nv = 1); gravity (0, 0, -3)" in text
    )
    assert "rail (prismatic) → cart, 2 kg" in text
    wrong = refused("info", files / "slider.xml", "--floating-base")
    assert "floating_base: expected a body of the world without a joint" in wrong


def test_names_are_no_markup(tmp_path):
    (tmp_path / "odd.urdf").write_text(ARM.replace("shoulder", "[red]:smile:"))
    assert "[red]:smile: (continuous) → upper" in lgsim("info", tmp_path / "odd.urdf").stdout


@pytest.mark.parametrize(
    "text, message",
    [
        ('<robot name="a"><link name="b">\n</robot>', "bad.urdf:2: not XML"),
        ("hello", "bad.urdf:1: not XML"),
        (ARM.replace("continuous", "wheel"), "bad.urdf:8: joint 'shoulder': type: expected one of revolute"),
        (ARM.replace('value="1.0"', 'value="-1"'), "bad.urdf:4: link 'fore'"),
        (None, "bad.urdf: the file cannot be read: No such file or directory"),
    ],
)
def test_bad_files(tmp_path, text, message):
    if text is not None:
        (tmp_path / "bad.urdf").write_text(text)
    assert message in refused("info", tmp_path / "bad.urdf")


def test_a_file_without_joints_has_a_floating_base(tmp_path):
    inertia = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    (tmp_path / "cup.urdf").write_text(f'<robot name="cup"><link name="cup">{inertia}</link></robot>')
    result = lgsim("info", tmp_path / "cup.urdf")
    assert "1 moving body on a floating base, 2 kg in total" in squeezed(result.stdout)
    assert "no joint of the file moves: this is the model of --floating-base" in squeezed(result.stderr)
    assert "or floating_base=True" in refused("simulate", tmp_path / "cup.urdf")


def test_a_run_and_a_folder_are_no_machines(tmp_path):
    assert "expected a robot's URDF, SDF or MJCF file, got the name of a run" in refused("info", tmp_path / "run.npz")
    assert f"{tmp_path}: the file cannot be read: Is a directory" in refused("info", tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_the_exit_codes(command):
    result = lgsim(command, "--help")
    assert result.exit_code == 0
    assert f"Usage: lgsim {command}" in result.stdout
    assert epilog(command) in squeezed(result.stdout) and "0 done; 1 a package is missing" in epilog(command)


def test_no_arguments_show_help():
    result = lgsim()
    assert result.exit_code == 0
    assert all(f" {command} " in result.stdout for command in COMMANDS)


def test_version():
    result = lgsim("--version")
    assert (result.exit_code, result.stdout) == (0, f"lgsim {version('lgsim')}\n")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("inf",), "No such command 'inf'. Did you mean 'info'?; see lgsim --help"),
        (("info",), "Missing argument 'FILE'; see lgsim info --help"),
        (("--bogus",), "No such option: --bogus; see lgsim --help"),
        (("simulate", "arm.urdf", "--dt", "fast"), "Invalid value for '--dt'"),
        (("simulate", "arm.urdf", "--save-every", "0"), "Invalid value for '--save-every'"),
    ],
)
def test_usage_errors_are_one_line(arguments, message):
    assert message in refused(*arguments)


def test_faults_of_lgsim_itself_keep_their_traceback(files, monkeypatch):
    from lgsim.cli.app import app
    from lgsim.scenarios import machine

    def broken(*args, **kwargs):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(machine, "read_urdf", broken)
    result = CliRunner().invoke(app, ["info", str(files / "arm.urdf")])
    assert isinstance(result.exception, ZeroDivisionError)


def test_ctrl_c_while_reading(files, monkeypatch):
    from lgsim.scenarios import machine

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(machine, "read_urdf", interrupted)
    assert refused("info", files / "arm.urdf", code=130) == "interrupted"
