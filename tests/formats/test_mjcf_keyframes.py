"""Keyframes of MJCF files."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import FileError, load_actuators, load_keyframes, read_mjcf
from lgsim.formats.interop import mujoco as theirs
from lgsim.scenarios.study import load_motion
from tests.cli.machines import lgsim as command

mujoco = pytest.importorskip("mujoco")

FILE = """<mujoco><option timestep="1e-3"/><worldbody>
  <body name="base"><freejoint name="root"/><geom size="0.1" contype="0" conaffinity="0"/>
    <body name="arm" pos="0.1 0 0"><joint name="a" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0" contype="0"/>
      <body name="hand" pos="0.2 0 0"><joint name="b" type="ball"/><geom size="0.1" pos="0.1 0 0" contype="0"/>
      </body></body></body></worldbody>
  <actuator><motor joint="a" name="first"/><adhesion body="hand" name="glue" ctrlrange="0 1"/>
    <motor joint="a" name="last"/></actuator>
  <keyframe>
    <key name="home" qpos="1 2 3 0.5 0.5 -0.5 0.5 0.3 0 1 0 0" qvel="1 2 3 4 5 6 7 8 9 10" ctrl="1 2 3"/>
    <key qpos="0 0 1 2 0 0 0 0.7 1 0 0 0"/>
  </keyframe></mujoco>"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(FILE)
    return path


def test_keyframes_are_those_of_mujoco(file):
    """Poses and velocities of all bodies by MuJoCo; an actuator that is not represented is left out."""
    model, known = read_mjcf(file, dtype=jnp.float64)[0], mujoco.MjModel.from_xml_path(str(file))
    data, found = mujoco.MjData(known), load_keyframes(model, file)
    assert list(found) == ["home", "key1"]
    for i, (name, key) in enumerate(found.items()):
        mujoco.mj_resetDataKeyframe(known, data, i)
        mujoco.mj_forward(known, data)
        np.testing.assert_allclose(theirs.v_to(model, key.q, key.v), data.qvel, atol=1e-15, err_msg=name)
        for body in ("base", "arm", "hand"):
            T = lgsim.forward_kinematics(model, key.q)[model.frame_names.index(body)]
            np.testing.assert_allclose(T[:3, 3], data.body(body).xpos, atol=1e-15)
            np.testing.assert_allclose(T[:3, :3].ravel(), data.body(body).xmat, atol=1e-15)
    assert load_actuators(model, file).names == ("first", "last")
    np.testing.assert_array_equal(found["home"].command, [1, 3])


def test_the_command_and_files_start_there(file):
    model = read_mjcf(file, dtype=jnp.float64)[0]
    key = load_keyframes(model, file)["home"]
    out = file.with_name("run.npz")
    result = command("simulate", file, "--q", "home", "--duration", "0.01", "--out", out, "--no-step-check")
    assert result.exit_code == 0, result.stderr
    run = lgsim.Trajectory.load(out)
    np.testing.assert_allclose(run.q[0], key.q, atol=1e-15)
    np.testing.assert_allclose(run.v[0], key.v, atol=1e-15)
    scenario = file.with_name("motion.toml")
    text = """[machine]
file = "robot.xml"
[start]
keyframe = "home"
q = { a = -1.0 }
[time]
duration = 0.1
dt = 0.01"""
    scenario.write_text(text)
    start = load_motion(scenario).rollout
    np.testing.assert_allclose(start.q0, key.q.at[model.q_slices["a"]].set(-1.0), atol=1e-15)
    np.testing.assert_allclose(start.v0, key.v, atol=1e-15)
    scenario.write_text(text.replace('"home"', '"hom"'))
    with pytest.raises(ValueError, match=r"keyframe: expected the name of a keyframe, .*'home'"):
        load_motion(scenario)


def test_errors(file):
    model = lgsim.load_urdf(lgsim.data.cart_pole())
    with pytest.raises(
        ValueError, match=r"model: expected that of .*robot.xml, with nq = 12 and nv = 10, got one with 2"
    ):
        load_keyframes(model, file)
    with pytest.raises(FileError, match="<robot>: expected <mujoco>"):
        load_keyframes(model, lgsim.data.cart_pole())
