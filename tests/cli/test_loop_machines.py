"""SDF files and files of loops on the command line and in scenarios."""

import pytest

from tests.cli.machines import lgsim

INERTIAL = "<inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
ARMS = f"""<robot name="r"><link name="base"/><link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>
<joint name="ja" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/></joint>
<joint name="jb" type="continuous"><parent link="base"/><child link="b"/><axis xyz="0 1 0"/>
<origin xyz="1 0 0"/></joint></robot>"""
LOOPS = """
[[loop]]
name = "bar"
frame_a = "a"
placement_a = { xyz = [0, 0, 0.5] }
frame_b = "b"
placement_b = { xyz = [0, 0, 0.5] }
length = 1.0
"""
SDF = """<sdf version="1.9"><model name="m"><link name="base"/><link name="arm"/>
<joint name="j" type="revolute"><parent>base</parent><child>arm</child><axis/></joint></model></sdf>"""


@pytest.fixture
def arms(tmp_path):
    (tmp_path / "arms.urdf").write_text(ARMS)
    (tmp_path / "loops.toml").write_text(LOOPS)
    return tmp_path


def test_info_of_a_machine_with_a_file_of_loops(arms):
    shown = lgsim("info", arms / "arms.urdf", "--loops", arms / "loops.toml")
    assert shown.exit_code == 0
    assert "1 loop, 1 row" in shown.stdout and "rod" in shown.stdout and "length 1" in shown.stdout
    (arms / "loops.toml").write_text(LOOPS.replace('"b"', '"c"'))
    wrong = lgsim("info", arms / "arms.urdf", "--loops", arms / "loops.toml")
    assert wrong.exit_code == 2
    assert "loops.toml:6: loop[1].frame_b: frame 'c': there is no such frame" in wrong.stderr


@pytest.mark.slow
def test_simulate_and_scenarios_take_files_of_loops(arms):
    out = arms / "run.npz"
    words = ("--duration", "0.01", "--no-step-check", "--out", out)
    result = lgsim("simulate", arms / "arms.urdf", "--loops", arms / "loops.toml", *words)
    assert result.exit_code == 0, result.stderr
    (arms / "run.toml").write_text(
        '[machine]\nfile = "arms.urdf"\nloops = "loops.toml"\n[time]\nduration = 0.01\ndt = 0.001\n'
    )
    planned = lgsim("simulate", arms / "run.toml", "--no-step-check", "--out", out)
    assert planned.exit_code == 0, planned.stderr
    (arms / "loops.toml").write_text("[[loop]]\n")
    wrong = lgsim("simulate", arms / "run.toml", "--no-step-check", "--out", out)
    assert wrong.exit_code == 2 and "machine.loops: " in wrong.stderr and "loops.toml:1: loop[1]" in wrong.stderr


def test_info_of_sdf_files(tmp_path):
    file = tmp_path / "m.sdf"
    file.write_text(SDF)
    shown = lgsim("info", file)
    assert shown.exit_code == 0 and "root_joint" in shown.stdout and "floating base" in shown.stdout
    wrong = lgsim("info", file, "--floating-base")
    assert wrong.exit_code == 2 and "expected a URDF or MJCF file" in wrong.stderr
