"""Contacts from files: URDF, SDF and MJCF texts of one machine, and mesh files, against contacts added by hand."""

import struct

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import contacts
from lgsim.formats import read_mjcf, read_sdf, read_urdf
from lgsim.formats.xml import FileError

LAW = {"stiffness": 1e4, "friction": 0.8}
INERTIAL = "<inertial><mass value='2'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>"
URDF = f"""<robot name="r">
 <link name="base">{INERTIAL}
  <collision><origin xyz="0.1 0 0.2" rpy="0 0 1.5707963267948966"/><geometry><box size="0.2 0.4 0.6"/></geometry>
  </collision>
  <collision><geometry><cylinder radius="0.3" length="1"/></geometry></collision>
 </link>
 <link name="foot">{INERTIAL}
  <collision><geometry><sphere radius="0.05"/></geometry></collision>
 </link>
 <joint name="leg" type="prismatic"><parent link="base"/><child link="foot"/><origin xyz="0 0 -1"/><axis xyz="0 0 1"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
</robot>"""
SDF_INERTIAL = "<inertial><mass>2</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial>"
SDF = f"""<sdf version="1.8"><model name="r">
 <link name="base">{SDF_INERTIAL}
  <collision name="a"><pose>0.1 0 0.2 0 0 1.5707963267948966</pose>
   <geometry><box><size>0.2 0.4 0.6</size></box></geometry></collision>
  <collision name="b"><geometry><cylinder><radius>0.3</radius><length>1</length></cylinder></geometry></collision>
 </link>
 <link name="foot"><pose>0 0 -1 0 0 0</pose>{SDF_INERTIAL}
  <collision name="c"><geometry><sphere><radius>0.05</radius></sphere></geometry></collision>
 </link>
 <joint name="leg" type="prismatic"><parent>base</parent><child>foot</child><axis><xyz>0 0 1</xyz></axis></joint>
</model></sdf>"""
MJCF = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
 <body name="base"><freejoint name="root_joint"/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
  <geom name="trunk" type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2" euler="0 0 90"/>
  <geom type="cylinder" size="0.3 0.5"/>
  <body name="foot" pos="0 0 -1"><joint name="leg" type="slide" axis="0 0 1"/>
   <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
   <geom name="ball" type="sphere" size="0.05"/>
   <geom name="shown" type="sphere" size="0.1" contype="0" conaffinity="0"/>
  </body></body></worldbody></mujoco>"""

READERS = {
    "urdf": lambda **given: read_urdf(text=URDF, floating_base=True, **given),
    "sdf": lambda **given: read_sdf(text=SDF, **given),
    "mjcf": lambda **given: read_mjcf(text=MJCF, **given),
}
each = pytest.mark.parametrize("read", READERS.values(), ids=READERS.keys())


def by_hand(model):
    """What the files have: a box, a cylinder by its rims, a ball."""
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]], (0.1, 0, 0.2)
    turns = np.arange(8) * np.pi / 4
    rims = [(0.3 * np.cos(a), 0.3 * np.sin(a), z) for z in (-0.5, 0.5) for a in turns]
    model = model.add_frame("box", "base", pose).add_contact("base 0", "box", contacts.box(0.2, 0.4, 0.6), **LAW)
    model = model.add_contact("base 1", "base", contacts.vertices(rims), **LAW)
    return model.add_contact("foot", "foot", contacts.sphere(0.05), **LAW)


@each
def test_shapes_are_those_of_the_file(read):
    plain, _ = read()
    assert plain.contact_names == ()
    model, _ = read(contacts=["base", "foot"], contact_law=LAW)
    assert model.contact_names == ("base 0", "base 1", "foot")
    right, q = by_hand(plain), model.neutral().at[:3].set(jnp.array([0.1, 0.2, 0.05]))
    q = q.at[3:7].set(jnp.array([0.8, 0.36, 0.48, 0.0]))
    for found, expected in zip(lgsim.contact_points(model, q), lgsim.contact_points(right, q), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(model.contacts, right.contacts, rtol=1e-12)


@each
def test_numbers_are_given_once_or_by_name_and_the_report_says_what_is_left(read):
    model, report = read(
        contacts={"foot": {"friction": 0.3, "against": "base", "surface": contacts.plane(-2.0)}}, contact_law=LAW
    )
    assert model.contact_names == ("foot",) and model.topology.contacts[0].against == "base"
    assert model.contact_numbers("foot")["friction"] == 0.3 and model.contact_numbers("foot")["stiffness"] == 1e4
    left = [str(finding) for finding in report.ignored if "contact" in finding.text]
    assert len(left) == (3 if "geom" in left[0] else 2), "the box and the cylinder; in MJCF the floor too"
    _, whole = read(contacts="base", contact_law=LAW)
    assert any("8 points on each rim" in finding.text for finding in whole.assumed)


@each
def test_bad_names_and_numbers(read):
    with pytest.raises(
        FileError, match="contacts: expected names with collision shapes, got 'fot'; did you mean 'foot'"
    ):
        read(contacts=["fot"], contact_law=LAW)
    with pytest.raises(FileError, match=r"contact 'foot': stiffness: expected a number") as caught:
        read(contacts=["foot"])
    assert caught.value.line > 0
    with pytest.raises(FileError, match="did you mean 'friction'"):
        read(contacts=["foot"], contact_law=LAW | {"frction": 1.0})


def test_geoms_have_names_of_their_own():
    model, report = READERS["mjcf"](contacts=["ball", "trunk"], contact_law=LAW)
    assert model.contact_names == ("ball", "trunk")
    with pytest.raises(FileError, match="expected names with collision shapes, got 'shown'"):
        READERS["mjcf"](contacts=["shown"], contact_law=LAW)
    assert "ball" not in report.dropped
    text = MJCF.replace('type="sphere" size="0.05"', 'type="ellipsoid" size="0.05 0.1 0.2"')
    with pytest.raises(FileError, match="geom 'ball': expected a sphere, capsule, cylinder, box or mesh"):
        read_mjcf(text=text, contacts=["ball"], contact_law=LAW)


CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0, 3)], float)
FACES = [(0, 1, 2), (1, 3, 2), (4, 6, 5), (5, 6, 7), (0, 4, 1), (1, 4, 5)]


def write_mesh(path):
    if path.suffix == ".obj":
        path.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS) + "vn 0 0 1\nf 1 2 3\n")
    elif path.name.startswith("text"):
        facets = ("".join(f"vertex {x} {y} {z}\n" for x, y, z in CORNERS[list(face)]) for face in FACES)
        path.write_text("solid s\n" + "".join(f"facet\nouter loop\n{facet}endloop\nendfacet\n" for facet in facets))
    else:
        body = b"".join(struct.pack("<12fH", 0, 0, 1, *CORNERS[list(face)].ravel(), 0) for face in FACES)
        path.write_bytes(b"solid".ljust(80, b" ") + struct.pack("<I", len(FACES)) + body)


@pytest.mark.parametrize("name", ["mesh.obj", "text.stl", "binary.stl"])
def test_meshes_touch_by_their_vertices(tmp_path, name):
    write_mesh(tmp_path / name)
    mesh = f"<mesh filename='package://robot/{name}' scale='0.1 0.1 0.2'/>"
    (tmp_path / "r.urdf").write_text(URDF.replace('<sphere radius="0.05"/>', mesh))
    given = {"floating_base": True, "contacts": ["foot"]}
    model = lgsim.load_urdf(tmp_path / "r.urdf", contact_law=LAW | {"most": 8}, **given)
    at = np.array(model.topology.contacts[0].shape.at)
    np.testing.assert_allclose(np.unique(at, axis=0), np.unique(CORNERS * [0.1, 0.1, 0.2], axis=0), atol=1e-7)
    few = lgsim.load_urdf(tmp_path / "r.urdf", contact_law=LAW | {"most": 4}, **given)
    assert len(few.topology.contacts[0].shape.at) == 4


def test_bad_meshes_and_geometries(tmp_path):
    given = {"floating_base": True, "contacts": ["foot"], "contact_law": LAW}
    for mesh, message in (
        ("<mesh filename='no.stl'/>", r":8: .*there is no file 'no.stl'"),
        ("<mesh filename='a.dae'/>", ":8: .*expected an .stl or .obj file, got 'a.dae'"),
        ("<mesh filename='empty.obj'/>", "expected vertices, got none in 'empty.obj'"),
        ("<cone/>", "expected a sphere, capsule, cylinder, box or mesh"),
    ):  # fmt: skip
        for name in ("a.dae", "empty.obj"):
            (tmp_path / name).write_text("")
        (tmp_path / "r.urdf").write_text(URDF.replace('<sphere radius="0.05"/>', mesh))
        with pytest.raises(FileError, match=message):
            lgsim.load_urdf(tmp_path / "r.urdf", **given)
        assert lgsim.load_urdf(tmp_path / "r.urdf", floating_base=True).contact_names == ()


def test_collisions_of_sdf_lie_in_their_links():
    text = SDF.replace("<pose>0.1 0 0.2", "<pose relative_to='foot'>0.1 0 0.2")
    with pytest.raises(FileError, match="expected a pose in the frame of the link 'base', got one in 'foot'"):
        read_sdf(text=text, contacts=["base"], contact_law=LAW)
