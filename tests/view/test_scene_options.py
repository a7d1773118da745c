"""What a scene shows beside the machine: the ground, a followed frame, ghosts, the geoms of MJCF files."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import read_mjcf
from lgsim.view import Box, Capsule, Mesh, read_mjcf_visuals, to_html
from tests.view import motions

pytest.importorskip("viser")
pytest.importorskip("msgspec")
pytest.importorskip("zstandard")
from tests.view.test_scene import recording

MJCF = """<mujoco><asset><mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
<material name="blue" rgba="0 0 1 1"/></asset><worldbody><geom type="plane" size="1 1 1"/>
<geom type="box" size=".1 .2 .3" pos="1 0 0"/>
<body name="arm" pos="0 0 1"><joint name="j" axis="0 1 0"/>
  <geom type="capsule" fromto="0 0 0 .3 .1 .2" size=".02" material="blue"/>
  <geom type="sphere" size=".3" group="3"/><geom type="mesh" mesh="wedge" euler="10 20 30" pos=".1 .2 .3"/>
  <body name="hand" pos=".3 0 0"><geom type="box" size=".1 .02 .03" quat=".6 .8 0 0" rgba="1 0 0 .5"/></body>
</body></worldbody></mujoco>"""


def flight(count=11):
    """A body that flies away and falls."""
    model = (
        lgsim.ModelBuilder().add_body("ball", "world", lgsim.joints.Free(), mass=1.0, inertia=np.eye(3) / 100).build()
    )
    v = jnp.array([3.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    return lgsim.simulate(model, v0=v, duration=1.0, dt=0.1, step_check=False)


def test_a_followed_frame_stays_in_the_middle():
    motion = flight()
    page = to_html(motion, frames_per_second=10.0, follow="ball", trace=["ball"])
    way = motion.q[:, :3] - motion.q[0, :3]
    for name in ("/machine", "/trace", "/ghost"):
        moved = positions(page, name)
        np.testing.assert_allclose(moved[:, :2], -way[:, :2], atol=1e-6)
        assert not np.any(moved[:, 2])
    floor = positions(page, "/floor")
    np.testing.assert_allclose(floor[:, :2], -way[:, :2], atol=1e-6)


def positions(page, name):
    """The positions that the player gives to a node, in the order of time."""
    found = {}
    for moment, message in recording(page)["messages"]:
        if message["type"] == "SetPositionMessage" and message["name"] == name:
            found[moment] = message["position"]
    return np.array([found[moment] for moment in sorted(found)])


def test_the_ground_is_at_height_zero_or_where_it_is_said():
    """It lay at the lowest point of the run, so that what fell hung in the air at its start."""
    motion = motions.of_a_pendulum(11)
    for height in (0.0, -0.7):
        page = to_html(motion, floor=height)
        grids = [m for _, m in recording(page)["messages"] if m["type"] == "GridMessage"]
        assert len(grids) == 1
        placed = [m["position"] for _, m in recording(page)["messages"]
                  if m["type"] == "SetPositionMessage" and m["name"] == "/floor"]  # fmt: skip
        assert placed and height - 0.01 < placed[-1][2] <= height


def test_ghosts_are_seen_through():
    page = to_html(motions.of_a_pendulum(11), ghosts=3)
    meshes = [
        m for _, m in recording(page)["messages"] if m.get("name", "").startswith("/ghost/") and "Mesh" in m["type"]
    ]
    assert {m["name"].split("/")[2] for m in meshes} == {"0", "1", "2"}
    assert all(0 < m["props"]["opacity"] < 0.5 for m in meshes)


def test_options_name_what_is_wrong():
    motion = motions.of_a_pendulum(3)
    with pytest.raises(ValueError, match=r"follow: expected names of frames, .*; got 'nobody'"):
        to_html(motion, follow="nobody")
    with pytest.raises(ValueError, match="ghosts, floor: expected a nonnegative number"):
        to_html(motion, ghosts=-1)


def test_geoms_of_an_mjcf_file():
    """Each stands where MuJoCo has it; what its viewer hides is not shown."""
    mujoco = pytest.importorskip("mujoco")
    shapes = read_mjcf_visuals(text=MJCF)
    assert {name: [type(shape.geometry) for shape in found] for name, found in shapes.items()} == {
        "world": [Box], "arm": [Capsule, Mesh], "hand": [Box],
    }  # fmt: skip
    assert shapes["arm"][0].color == (0, 0, 1, 1) and shapes["hand"][0].color == (1, 0, 0, 0.5)
    assert shapes["world"][0].geometry.size == pytest.approx((0.2, 0.4, 0.6))
    model, _ = read_mjcf(text=MJCF)
    theirs = mujoco.MjModel.from_xml_string(MJCF)
    data = mujoco.MjData(theirs)
    data.qpos[:] = 0.4
    mujoco.mj_forward(theirs, data)
    frames = np.asarray(lgsim.forward_kinematics(model, jnp.array([0.4])))
    for name, geom in (("arm", 2), ("hand", 5)):
        T = frames[model.frame_names.index(name)] @ shapes[name][0].pose
        np.testing.assert_allclose(T[:3, 3], data.geom_xpos[geom], atol=1e-12)
        np.testing.assert_allclose(T[:3, :3], data.geom_xmat[geom].reshape(3, 3), atol=1e-12)
    T = frames[model.frame_names.index("arm")] @ shapes["arm"][1].pose
    wedge = shapes["arm"][1].geometry.vertices @ T[:3, :3].T + T[:3, 3]
    start = theirs.mesh_vertadr[0]
    own = theirs.mesh_vert[start : start + 4] @ data.geom_xmat[4].reshape(3, 3).T + data.geom_xpos[4]
    np.testing.assert_allclose(wedge, own, atol=1e-6)


def test_where_all_geoms_are_for_collisions_they_are_shown():
    pytest.importorskip("mujoco")
    body = '<body name="arm"><joint/><geom size=".1" group="3"/></body>'
    shapes = read_mjcf_visuals(text=f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    assert list(shapes) == ["arm"]
