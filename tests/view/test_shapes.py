"""Shapes enclose the volume that they should, and stand where a file or a model says.

Oracles: volumes in closed form (the divergence theorem on the triangles gives that of the mesh), scipy's rotations.
"""

from collections import Counter

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim.data import arm7
from lgsim.formats import FileError, FileWarning
from lgsim.multibody.topology import ROOT
from lgsim.view import Box, Capsule, Cylinder, Ellipsoid, Mesh, Sphere, read_visuals, skeleton
from lgsim.view.shapes import pose_between

SOLIDS = {
    "box": (Box((1.0, 2.0, 0.5)), 1.0),
    "sphere": (Sphere(0.4), 4 / 3 * np.pi * 0.4**3),
    "ellipsoid": (Ellipsoid((0.2, 0.5, 0.3)), 4 / 3 * np.pi * 0.2 * 0.5 * 0.3),
    "cylinder": (Cylinder(0.3, 0.8), np.pi * 0.3**2 * 0.8),
    "capsule": (Capsule(0.3, 0.8), np.pi * 0.3**2 * 0.8 + 4 / 3 * np.pi * 0.3**3),
}

ROBOT = """<robot name="r">
  <material name="red"><color rgba="1 0 0 0.5"/></material>
  <link name="a">
    <visual><origin xyz="1 2 3" rpy="0.3 -0.4 0.5"/><geometry><box size="1 2 3"/></geometry>
      <material name="red"/></visual>
    <visual><geometry><cylinder radius="0.1" length="0.4"/></geometry>
      <material name="own"><color rgba="0 0.5 0 1"/></material></visual>
  </link>
  <link name="b"><visual><geometry><sphere radius="0.2"/></geometry></visual>
    <visual><geometry><capsule radius="0.2" length="1"/></geometry><material name="nowhere"/></visual></link>
  <link name="c"/>
  <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
  <joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>
</robot>"""

TETRAHEDRON = """solid t
{}endsolid t
"""
CORNERS = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)


def volume(mesh):
    a, b, c = (mesh.vertices[mesh.faces[:, k]] for k in range(3))
    return np.sum(a * np.cross(b, c)) / 6


def write_tetrahedron(path):
    """A tetrahedron of volume 1/6 as an STL file."""
    facets = ""
    for corners in CORNERS:
        lines = "".join("vertex {} {} {}\n".format(*POINTS[k]) for k in corners)
        facets += f"facet normal 0 0 0\nouter loop\n{lines}endloop\nendfacet\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(TETRAHEDRON.format(facets))


def with_mesh(name, scale="1 1 1"):
    return (
        f'<robot name="r"><link name="a"><visual><geometry><mesh filename="{name}" scale="{scale}"/></geometry>'
        "</visual></link></robot>"
    )


@pytest.mark.parametrize("name", SOLIDS)
def test_surface_is_closed_and_encloses_the_volume(name):
    solid, expected = SOLIDS[name]
    mesh = solid.triangles()
    # inscribed in the true surface, with some forty corners around
    assert 0.975 * expected < volume(mesh) <= expected * (1 + 1e-12)
    # points on sharp edges stand there several times; each edge is walked once in either direction
    _, same = np.unique(np.round(mesh.vertices, 9), axis=0, return_inverse=True)
    faces = same.reshape(-1)[mesh.faces]
    edges = Counter((int(f[k]), int(f[(k + 1) % 3])) for f in faces for k in range(3))
    assert all(count == 1 and edges[b, a] == 1 for (a, b), count in edges.items())
    assert all(len(set(map(int, face))) == 3 for face in faces)


def test_rod_runs_from_one_point_to_the_other():
    start, end = np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.7, -0.1])
    pose, half = pose_between(start, end), np.linalg.norm(end - start) / 2
    np.testing.assert_allclose(pose[:3, :3] @ pose[:3, :3].T, np.eye(3), atol=1e-15)
    assert np.linalg.det(pose[:3, :3]) == pytest.approx(1.0)
    np.testing.assert_allclose(pose[:3, 3] + half * pose[:3, 2], end, atol=1e-15)
    np.testing.assert_allclose(pose[:3, 3] - half * pose[:3, 2], start, atol=1e-15)


def test_primitives_of_a_file():
    found = read_visuals(text=ROBOT)
    assert list(found) == ["a", "b"]
    box, cylinder = found["a"]
    sphere, capsule = found["b"]
    assert (box.geometry, box.color) == (Box((1.0, 2.0, 3.0)), (1.0, 0.0, 0.0, 0.5))
    assert (cylinder.geometry, cylinder.color) == (Cylinder(0.1, 0.4), (0.0, 0.5, 0.0, 1.0))
    assert (sphere.geometry, capsule.geometry) == (Sphere(0.2), Capsule(0.2, 1.0))
    assert sphere.color == capsule.color
    np.testing.assert_allclose(box.pose[:3, :3], Rotation.from_euler("xyz", [0.3, -0.4, 0.5]).as_matrix(), atol=1e-15)
    np.testing.assert_array_equal(box.pose[:3, 3], [1, 2, 3])
    np.testing.assert_array_equal(sphere.pose, np.eye(4))


def test_every_part_of_the_arm_hangs_on_a_frame_of_its_model():
    found, model = read_visuals(arm7()), lgsim.load_urdf(arm7())
    assert set(found) == {f"link{i}" for i in range(8)} <= set(model.frame_names)
    # link 0 is merged into the world, and keeps its frame
    assert "link0" not in model.body_names


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("parts/t.stl", "robot/urdf/parts/t.stl"),
        ("../parts/t.stl", "robot/parts/t.stl"),
        ("package://robot/parts/t.stl", "robot/parts/t.stl"),
        ("package://other_name/parts/t.stl", "robot/parts/t.stl"),
        ("package://elsewhere/t.stl", "listed/elsewhere/t.stl"),
        ("package://elsewhere/t.stl", "listed/share/elsewhere/t.stl"),
        ("file://{folder}/t.stl", "t.stl"),
    ],
)
def test_mesh_is_found_and_read(name, place, tmp_path, monkeypatch):
    pytest.importorskip("trimesh")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "listed"))
    write_tetrahedron(tmp_path / place)
    file = tmp_path / "robot" / "urdf" / "robot.urdf"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(with_mesh(name.format(folder=tmp_path), "2 1 1"))
    (shape,) = read_visuals(file)["a"]
    assert isinstance(shape.geometry, Mesh)
    assert volume(shape.geometry) == pytest.approx(2 / 6)


def test_mesh_in_inches_is_drawn_in_meters(tmp_path):
    pytest.importorskip("collada")
    trimesh = pytest.importorskip("trimesh")
    text = trimesh.creation.box((1.0, 1.0, 1.0)).export(file_type="dae").decode()
    (tmp_path / "box.dae").write_text(text.replace("</asset>", '<unit name="inch" meter="0.0254"/></asset>'))
    (shape,) = read_visuals(text=with_mesh(f"file://{tmp_path}/box.dae"))["a"]
    assert volume(shape.geometry) == pytest.approx(0.0254**3)


def test_mirrored_mesh_keeps_its_outside(tmp_path):
    pytest.importorskip("trimesh")
    write_tetrahedron(tmp_path / "t.stl")
    (shape,) = read_visuals(text=with_mesh(f"file://{tmp_path}/t.stl", "-1 1 1"))["a"]
    assert volume(shape.geometry) == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "there is no file 'package://x/t.stl'"), ("not a mesh", "cannot be read")]
)
def test_mesh_that_cannot_be_shown_is_a_remark(content, message, tmp_path):
    pytest.importorskip("trimesh")
    if content is not None:
        (tmp_path / "x").mkdir()
        (tmp_path / "x" / "t.stl").write_text(content)
    file = tmp_path / "robot.urdf"
    file.write_text(with_mesh("package://x/t.stl").replace("</robot>", '<link name="b"/></robot>'))
    with pytest.warns(FileWarning, match=f"robot.urdf: 1 meshes are not shown; the first one: line 1: .*{message}"):
        assert read_visuals(file) == {}


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        ("<sphere/>", "radius: expected a finite nonnegative number, got none"),
        ("<cylinder radius='1' length='-1'/>", "length: expected a finite nonnegative number"),
        ("<box size='1 2'/>", "size: expected 3 finite numbers"),
        ("<cone/>", "expected a <mesh>, got none"),
        ("<mesh/>", "expected an attribute 'filename'"),
    ],
)
def test_fault_in_a_geometry_has_its_line(geometry, message):
    text = f"<robot name='r'>\n<link name='a'><visual>\n<geometry>{geometry}</geometry></visual></link></robot>"
    with pytest.raises(FileError, match=rf"<text>:3: .*{message}"):
        read_visuals(text=text)


def test_file_that_is_no_robot_is_refused():
    with pytest.raises(FileError, match="expected <robot>"):
        read_visuals(text="<mujoco/>")


def test_skeleton_joins_the_joints_and_shows_the_inertias():
    mass, radii, turned = 3.0, np.array([0.1, 0.2, 0.4]), Rotation.from_euler("xyz", [0.3, 0.2, -0.5]).as_matrix()
    moments = (
        mass
        / 5
        * np.array([radii[1] ** 2 + radii[2] ** 2, radii[0] ** 2 + radii[2] ** 2, radii[0] ** 2 + radii[1] ** 2])
    )
    center = np.array([0.3, 0.1, 0.2])
    placement = np.eye(4)
    placement[:3, 3] = [0.6, 0.0, 0.8]
    builder = lgsim.ModelBuilder()
    inertia = turned @ np.diag(moments) @ turned.T
    builder.add_body("a", "world", lgsim.joints.Continuous(), mass=mass, center=center, inertia=inertia)
    builder.add_body("b", "a", lgsim.joints.Continuous(), placement=placement, mass=1.0, center=[0.0, 0.0, 0.5])
    shapes = skeleton(builder.build())
    # the world's joint stands on the world's origin: no rod
    assert set(shapes) == {"a", "b"}
    assert ROOT not in shapes
    ball, rod, ellipsoid = shapes["a"]
    assert isinstance(ball.geometry, Sphere)
    assert rod.geometry.length == pytest.approx(1.0)
    np.testing.assert_allclose(rod.pose[:3, 3], [0.3, 0.0, 0.4], atol=1e-15)
    np.testing.assert_allclose(rod.pose[:3, 2], [0.6, 0.0, 0.8], atol=1e-15)
    np.testing.assert_allclose(ellipsoid.geometry.radii, radii, rtol=1e-6)
    np.testing.assert_allclose(ellipsoid.pose[:3, 3], center, atol=1e-7)
    np.testing.assert_allclose(np.abs(ellipsoid.pose[:3, :3].T @ turned), np.eye(3), atol=1e-6)
    # the last body carries nothing: its rod ends at its center of mass, and a point has an ellipsoid that can be seen
    _, rod, ellipsoid = shapes["b"]
    assert rod.geometry.length == pytest.approx(0.5)
    assert min(ellipsoid.geometry.radii) > 0
    assert all(len(parts) == 2 for parts in skeleton(builder.build(), inertias=False).values())
