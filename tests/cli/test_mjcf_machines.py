"""What the commands say of MJCF files: ties, what is left out, bases, parts of joints."""

import pytest

from tests.cli.machines import lgsim

pytest.importorskip("mujoco")

BODY = '<body name="{}" pos="0 0 .3"><joint name="{}" axis="0 1 0"/><geom size=".02" mass="1"/>{}</body>'
FOUR_BAR = f"""<mujoco><worldbody>{BODY.format("a", "j1", BODY.format("b", "j2", ""))}{BODY.format("c", "j3", "")}
</worldbody><equality><connect body1="b" body2="c" anchor=".3 0 0"/></equality></mujoco>"""
FLYERS = """<mujoco><worldbody>
<body name="torso" pos="0 0 1"><freejoint name="root"/><geom size=".1" mass="3"/>
  <body name="abdomen" pos="0 0 .2"><joint name="abdomen_z" axis="0 0 1"/><joint name="abdomen_y" axis="0 1 0"/>
  <geom size=".05" mass="1"/></body></body>
<body name="ball" pos="1 0 1"><freejoint name="fly"/><geom size=".1" mass="1"/></body></worldbody></mujoco>"""
SHORT = ("--duration", "0.01", "--no-step-check")


@pytest.mark.slow
def test_a_machine_with_ties_that_are_no_loops_is_not_simulated_as_a_tree(tmp_path):
    file, out = tmp_path / "four.xml", tmp_path / "run.npz"
    file.write_text(FOUR_BAR.replace('<connect body1="b" body2="c" anchor=".3 0 0"/>', '<joint joint1="j1"/>'))
    result = lgsim("simulate", file, *SHORT, "--out", out)
    assert result.exit_code == 2 and not out.exists()
    assert "four.xml:2: equality 'equality0': it fixes a single joint" in result.stderr
    result = lgsim("simulate", file, *SHORT, "--out", out, "--ignore-equalities")
    assert result.exit_code == 0 and out.exists()
    assert "equality 'equality0' is not represented" in result.stderr
    assert lgsim("info", file).exit_code == 0


def test_info_shows_loops(tmp_path):
    file = tmp_path / "four.xml"
    file.write_text(FOUR_BAR)
    shown = lgsim("info", file)
    assert shown.exit_code == 0
    assert "1 loop, 3 rows" in shown.stdout and "spherical" in shown.stdout and "equality0.a" in shown.stdout


@pytest.mark.slow
def test_what_is_left_out_is_said_in_one_line(tmp_path):
    file = tmp_path / "flyers.xml"
    file.write_text(FLYERS)
    result = lgsim(
        "simulate", file, *SHORT, "--out", tmp_path / "run.npz", "--q", "abdomen_y=0.2", "--v", "abdomen_z=1"
    )
    assert result.exit_code == 0
    assert "3 geoms can collide; contacts are not represented; details: lgsim info" in result.stderr
    result = lgsim("info", file)
    assert "3 moving bodies on 2 floating bases" in result.stdout
    file.write_text(FLYERS.replace('<freejoint name="fly"/>', '<joint name="fly" type="slide"/>'))
    assert "3 moving bodies on a fixed base and a floating base" in lgsim("info", file).stdout
