"""Solids from files: URDF, SDF and MJCF texts of one machine against solids added by hand and against MuJoCo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import geometry
from lgsim.formats import read_mjcf, read_sdf, read_urdf
from lgsim.formats.solids.mesh_files import read_mesh
from lgsim.formats.xml import FileError
from lgsim.view.urdf_visuals import read_visuals
from tests.formats.test_file_contacts import CORNERS, MJCF, READERS, SDF, URDF, each, write_mesh


def by_hand(model):
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]], (0.1, 0, 0.2)
    return model.add_solids([
        ("base 0", "base", geometry.Box((0.2, 0.4, 0.6)), pose),
        ("base 1", "base", geometry.Cylinder(0.3, 1.0), None),
        ("foot", "foot", geometry.Sphere(0.05), None),
    ])  # fmt: skip


def test_solids_are_those_of_the_file():
    """In all three formats; links that a joint joins never meet; without being asked for there are none."""
    names = {"mjcf": ["trunk", "geom2", "ball"]}
    for kind, read in READERS.items():
        plain, _ = read()
        assert plain.solid_names == () and plain.solids is None
        model, report = read(solids=["base", "foot"])
        right = by_hand(plain)
        assert list(model.solid_names) == names.get(kind, ["base 0", "base 1", "foot"])
        for leaf in ("solids", "solid_poses"):
            np.testing.assert_allclose(getattr(model, leaf), getattr(right, leaf), atol=1e-12)
        assert [solid.geometry for solid in model.topology.solids] == [s.geometry for s in right.topology.solids]
        assert model.solid_pairs() == ((), ()), "the two links are neighbors"
        assert not any("solid" in finding.text for finding in report.ignored) or kind == "mjcf"
        _, few = read(solids="foot")
        left = [str(finding) for finding in few.ignored if "is no solid of the model" in finding.text]
        assert len(left) == (3 if kind == "mjcf" else 2)
        assert read(solids=True)[0].solid_names[-1] == model.solid_names[-1]


def test_neighbors_of_what_stands_still_never_meet():
    """The base of an arm is fixed to the world, with which everything else could meet."""
    fixed, _ = read_urdf(text=URDF, solids=True)
    assert fixed.topology.exclusions and ("base 1", "foot") not in set(zip(*fixed.solid_pairs(), strict=True))


WORLD = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1" pos="0 0 -1"/>
 <geom name="post" type="capsule" size="0.1 0.3" pos="0.8 0 0.3"/>
 <geom name="hill" type="ellipsoid" size="0.1 0.2 0.3" pos="0 0.9 0.1" euler="20 0 30"/>
 <body name="a"><joint type="ball" name="ja"/><geom name="ga" type="box" size="0.05 0.1 0.2" pos="0.1 0 0" mass="1"/>
  <body name="b" pos="0.4 0 0"><joint name="jb" axis="0 1 0"/><geom name="gb" type="sphere" size="0.07" mass="1"/>
   <body name="c" pos="0.4 0 0.1"><joint name="jc" axis="0 0 1"/>
    <geom name="gc" type="capsule" size="0.05 0.1" mass="1"/>
    <geom name="gd" type="sphere" size="0.05" pos="0.3 0 0" mass="1" contype="2" conaffinity="2"/>
    <geom name="ge" type="sphere" size="0.05" pos="0 0.3 0" mass="1" contype="0" conaffinity="0"/>
   </body></body></body></worldbody>
 <contact><exclude body1="a" body2="c"/><pair geom1="gd" geom2="post"/></contact></mujoco>"""


@pytest.mark.slow
@pytest.mark.oracle
def test_geoms_are_as_far_as_mujoco_says_and_meet_whom_they_meet_there():
    mujoco = pytest.importorskip("mujoco")
    model, report = read_mjcf(text=WORLD, solids=True)
    assert set(model.solid_names) == {"floor", "post", "hill", "ga", "gb", "gc", "gd"}
    assert any("is an ellipsoid; the convex hull of 20 points" in finding.text for finding in report.assumed)
    pairs = {frozenset(pair) for pair in zip(*model.solid_pairs(), strict=True)}
    world = [{a, b} for a in ("ga", "gb", "gc") for b in ("floor", "post", "hill")]
    assert pairs == {frozenset(pair) for pair in [*world, {"gd", "post"}]}
    peer = mujoco.MjModel.from_xml_string(WORLD)
    data = mujoco.MjData(peer)
    q = model.retract(model.neutral(), jnp.array([0.3, -0.5, 0.4, 0.7, -0.2]))
    data.qpos[:] = np.asarray(q)
    mujoco.mj_kinematics(peer, data)
    places = {name: mujoco.mj_name2id(peer, mujoco.mjtObj.mjOBJ_GEOM, name) for name in model.solid_names}
    names = [sorted(pair) for pair in pairs if "hill" not in pair]
    found = lgsim.distance(model, q, *zip(*names, strict=True))
    right = [mujoco.mj_geomDistance(peer, data, places[a], places[b], 10.0, None) for a, b in names]
    np.testing.assert_allclose(found, right, atol=1e-8)
    # of a hull that takes the ellipsoid in
    hill = lgsim.distance(model, q, "hill", "gb")
    inner = mujoco.mj_geomDistance(peer, data, places["hill"], places["gb"], 10.0, None)
    assert inner - 0.05 < float(hill) <= inner + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mesh.obj", "text.stl", "binary.stl"])
def test_meshes_become_hulls_or_capsules_that_hold_them(tmp_path, name):
    write_mesh(tmp_path / name)
    text = URDF.replace('<sphere radius="0.05"/>', f"<mesh filename='{name}' scale='0.1 0.1 0.2'/>")
    (tmp_path / "r.urdf").write_text(text)
    points = CORNERS * [0.1, 0.1, 0.2]
    for meshes, holds in (({}, 8), ({"vertices": 5}, 5), ({"capsules": 1}, 1), ({"capsules": 2}, 2)):
        model, report = read_urdf(tmp_path / "r.urdf", True, solids="foot", solid_meshes=meshes)
        kinds = [solid.geometry for solid in model.topology.solids]
        assert (len(kinds[0].at) if "capsules" not in meshes else len(kinds)) == holds
        assert any("is a mesh; " in finding.text for finding in report.assumed)
        probe = model.add_solids([(f"p{i}", "foot", geometry.Sphere(0.0), shift(p)) for i, p in enumerate(points)])
        names = [f"p{i}" for i in range(8)]
        each_of = [lgsim.distance(probe, probe.neutral(), names, solid) for solid in model.solid_names]
        assert np.max(np.min(each_of, axis=0)) < 1e-6
    own = {"foot": {"capsules": 2}}
    assert len(read_urdf(tmp_path / "r.urdf", True, solids=own)[0].solid_names) == 2


def shift(p):
    T = np.eye(4)
    T[:3, 3] = p
    return T


def test_triangles_of_mesh_files(tmp_path):
    for name in ("text.stl", "binary.stl"):
        write_mesh(tmp_path / name)
        mesh = read_mesh(tmp_path / name)
        assert len(mesh.vertices) == 8 and mesh.faces.shape == (6, 3)
        np.testing.assert_array_equal(mesh.vertices[mesh.faces[1]], CORNERS[[1, 3, 2]])
    (tmp_path / "quad.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1/1 2/2 3/3 -1/4\n")
    np.testing.assert_array_equal(read_mesh(tmp_path / "quad.obj").faces, [[0, 1, 2], [0, 2, 3]])
    (tmp_path / "bad.obj").write_text("v 0 0 0\nf 1 2 3\n")
    with pytest.raises(ValueError, match="expected faces of 1 vertices, got '1 2 3'"):
        read_mesh(tmp_path / "bad.obj")


def test_planes_and_unknown_shapes_of_sdf():
    """A plane is the half-space below it; what is no solid is left out, or refused where it is named."""
    plane = "<plane><normal>0 1 0</normal><size>1 1</size></plane>"
    model, _ = read_sdf(text=SDF.replace("<sphere><radius>0.05</radius></sphere>", plane), solids="foot")
    assert model.topology.solids[0].geometry == geometry.HalfSpace()
    ball = model.add_solid("ball", "foot", geometry.Sphere(0.1), shift([0.3, 0.5, 0.7]))
    assert float(lgsim.distance(ball, ball.neutral(), "ball", "foot")) == pytest.approx(0.4)
    field = SDF.replace("<sphere><radius>0.05</radius></sphere>", "<heightmap/>")
    model, report = read_sdf(text=field, solids=True)
    assert model.solid_names == ("base 0", "base 1")
    assert any("is a heightmap, which distances do not support" in finding.text for finding in report.ignored)
    with pytest.raises(FileError, match="is a heightmap, which distances do not support"):
        read_sdf(text=field, solids=["foot"])


@each
def test_bad_names_and_numbers(read):
    with pytest.raises(FileError, match="solids: expected names with collision shapes, got 'fot'; did you mean 'foot'"):
        read(solids=["fot"])
    with pytest.raises(FileError, match="expected one of vertices, capsules for meshes, got 'vertex'"):
        read(solids={"foot": {"vertex": 3}})
    with pytest.raises(FileError, match="vertices: expected a positive integer, got 0"):
        read(solids=True, solid_meshes={"vertices": 0})
    with pytest.raises(FileError, match="expected one of vertices, capsules for meshes, got both"):
        read(solids=True, solid_meshes={"vertices": 5, "capsules": 1})


def test_the_arm_of_lgsim_has_solids_that_hold_its_looks():
    model, _ = read_urdf(lgsim.data.arm7(), solids=True)
    held = {}
    for i, solid in enumerate(model.topology.solids):
        held.setdefault(solid.frame, []).append((*np.asarray(model.solids[i]), np.asarray(model.solid_poses[i])))
    for link, drawn in read_visuals(lgsim.data.arm7()).items():
        for shape in drawn:
            at = shape.geometry.triangles().vertices @ shape.pose[:3, :3].T + shape.pose[:3, 3]
            outside = []
            for radius, length, T in held[link]:
                x = (at - T[:3, 3]) @ T[:3, :3]
                x[:, 2] -= np.clip(x[:, 2], -length / 2, length / 2)
                outside.append(np.linalg.norm(x, axis=1) - radius)
            assert np.max(np.min(outside, axis=0)) < 1e-9
    neutral = jnp.array([0.0, -0.4, 0, -2.0, 0, 1.6, 0.8])
    d = jax.jit(lambda q: lgsim.distance(model, q, *model.solid_pairs()))(neutral)
    close = {pair for pair, x in zip(zip(*model.solid_pairs(), strict=True), d, strict=True) if x < 0}
    assert not close


def test_the_world_of_mjcf_is_named_too():
    model, _ = read_mjcf(text=MJCF, solids=["world", "ball"])
    assert model.solid_names == ("floor", "ball")
    assert model.solid_pairs() == (("floor",), ("ball",))


PROPS = {
    "urdf": """<robot name="table"><link name="top"><inertial><mass value="3"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
      ixz="0" iyz="0"/></inertial><collision><origin xyz="0 0 .7"/><geometry><box size="2 1 .04"/></geometry>
      </collision></link></robot>""",
    "sdf": """<sdf version="1.9"><model name="table"><link name="top"><collision name="c"><pose>0 0 .7 0 0 0</pose>
      <geometry><box><size>2 1 .04</size></box></geometry></collision></link></model></sdf>""",
    "mjcf": """<mujoco><worldbody><body name="table"><geom name="top" type="box" size="1 .5 .02" pos="0 0 .7"/>
      </body></worldbody></mujoco>""",
}


@pytest.mark.parametrize("kind", PROPS)
def test_a_static_object_is_collision_geometry(kind):
    """Loaded with a floating base, attached and locked, as the error says; nothing moves with it."""
    read = {"urdf": read_urdf, "sdf": read_sdf, "mjcf": read_mjcf}[kind]
    if kind != "sdf":
        with pytest.raises(FileError, match=r"floating_base=True, got neither; Model.attach and Model.lock then fix"):
            read(text=PROPS[kind])
    floats = {} if kind == "sdf" else {"floating_base": True}
    table = read(text=PROPS[kind], solids=True, dtype=jnp.float64, **floats)[0]
    robot = read_urdf(text=URDF, solids=["foot"], dtype=jnp.float64)[0]
    both = robot.attach(table, "world", "table/")
    root = f"table/{table.joint_names[0]}"
    q = both.neutral().at[both.q_slices[root]].set(jnp.array([0.5, 0.2, 0.1, 1, 0, 0, 0]))
    scene = both.lock([root], q)
    place = np.eye(4)
    place[:3, 3] = 0.5, 0.2, 0.8
    wanted = robot.add_solid("top", "world", geometry.Box((2, 1, 0.04)), place)
    assert (scene.nv, scene.joint_names) == (robot.nv, robot.joint_names)
    q = robot.neutral() + 0.1
    found, right = (lgsim.distance(m, q, *m.solid_pairs()) for m in (scene, wanted))
    assert len(found) > 0
    np.testing.assert_allclose(found, right, atol=1e-12)
    np.testing.assert_allclose(lgsim.mass_matrix(scene, q), lgsim.mass_matrix(robot, q), atol=1e-12)
