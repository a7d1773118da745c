"""SDF files with models in models, included models, worlds, old versions and inertias from geometry."""

import re
from pathlib import Path

import numpy as np
import pytest

import lgsim
from lgsim.formats import FileError, read_sdf
from lgsim.formats.solids.solid_inertia import solid_parameters
from lgsim.multibody.geometry import Box, Capsule, Cylinder, Ellipsoid, HalfSpace, Mesh, Sphere
from lgsim.multibody.joints import Universal
from lgsim.scenarios.machine import read_machine
from tests.dynamics.machines import close
from tests.formats.cassie import euler
from tests.formats.test_sdf import joint, link, model_of, poses_of, sdf

WHEEL = f"""<pose>9 9 9 0 0 0</pose>{link("rim")}{link("tire", "<pose>0 0 0.1 0 0 0</pose>")}
  <frame name="hub" attached_to="rim"><pose>0 0.5 0 0 0 0.3</pose></frame>
  {joint("spin", "revolute", "rim", "tire", "<axis><xyz expressed_in='__model__'>0 1 0</xyz></axis>")}"""


def files(folder, **texts):
    for name, text in texts.items():
        path = folder / name / "model.sdf"
        path.parent.mkdir()
        path.write_text(text)
    return folder


@pytest.mark.parametrize("way", ["nested", "included", "merged"])
def test_a_model_in_a_model(way, tmp_path):
    """By hand: the wheel's hub is put where the pose says, and its own axis turns with it."""
    pose = '<pose relative_to="arm">1 2 3 0 0 1.2</pose>'
    if way == "nested":
        here = WHEEL.replace("<pose>9 9 9 0 0 0</pose>", pose)
        inner = f'<model name="left" placement_frame="hub">{here}</model>'
    else:
        mark = ' merge="true"' if way == "merged" else ""
        inner = f"""<include{mark}><uri>model://wheel</uri><name>left</name>{pose}
          <placement_frame>hub</placement_frame></include>"""
    files(tmp_path, wheel=sdf(WHEEL), car=sdf(
        f"""{link("arm", "<pose>0 0 5 0.4 0 0</pose>")}{inner}
        {joint("mount", "fixed", "arm", "rim" if way == "merged" else "left::rim", "")}
        {joint("lift", "prismatic", "world", "arm", "<axis/>")}"""
    ))  # fmt: skip
    model, report = read_sdf(tmp_path / "car" / "model.sdf")
    scope = "" if way == "merged" else "left::"
    assert model.joint_names == ("lift", f"{scope}spin")
    found = poses_of(model, 0.0, 0.7)
    hub = euler(0, 0, 5, 0.4, 0, 0) * euler(1, 2, 3, 0, 0, 1.2)
    close(found[f"{scope}hub"], hub.homogeneous)
    rim = hub * euler(0, 0.5, 0, 0, 0, 0.3).inverse()
    close(found[f"{scope}tire"], (rim * euler(0, 0, 0.1, 0, 0, 0) * euler(0, 0, 0, 0, 0.7, 0)).homogeneous)
    assert not [finding for finding in report if "merge" in str(finding) or "include" in str(finding)]


def test_two_wheels_keep_their_names_apart(tmp_path):
    include = "<include><uri>wheel</uri><name>{}</name><pose>{} 0 0 0 0 0</pose></include>"
    car = link("arm") + include.format("a", 1) + include.format("b", -1)
    car += joint("A", "fixed", "arm", "a::rim", "") + joint("B", "fixed", "arm", "b::rim", "")
    model, report = read_sdf(files(tmp_path, wheel=sdf(WHEEL + "<odd/>"), car=sdf(car)) / "car" / "model.sdf")
    assert set(model.joint_names) == {"root_joint", "a::spin", "b::spin"}
    poses = poses_of(model, *np.asarray(model.neutral()))
    close(poses["b::tire"][:3, 3] - poses["a::tire"][:3, 3], np.array([-2.0, 0, 0]))
    assert [str(x) for x in report if x.text == "<odd>"] == 2 * ["5: in model 'm' of model.sdf <odd>"]


WORLD = f"""<sdf version="1.9"><world name="w"><gravity>0 0 -3</gravity><physics name="p"/>
  <model name="ground"><static>true</static><pose>0 0 1 0 0 0</pose>
    {link("slab")}{link("post", "<pose>1 0 0 0 0 0</pose>")}</model>
  <model name="robot"><pose>0 2 0 0 0 0</pose>
    {link("base")}{link("arm")}{joint("swing", "revolute", "base", "arm")}</model>
  MORE</world></sdf>"""


def test_the_model_of_a_world_that_moves_has_plain_names():
    model, report = read_sdf(text=WORLD.replace("MORE", '<frame name="mark"><pose>0 0 7 0 0 0</pose></frame>'))
    assert model.joint_names == ("root_joint", "swing")
    poses = poses_of(model, *np.asarray(model.neutral()))
    close(poses["ground::post"], euler(1, 0, 1, 0, 0, 0).homogeneous)
    close(poses["mark"], euler(0, 0, 7, 0, 0, 0).homogeneous)
    assert "gravity" in str(report) and "its pose in the file is (0, 2, 0) m" in str(report)


def test_models_of_a_world_are_one_machine():
    """With a joint between them, one on the world and one free; a joint may close a loop across models."""
    other = f'<model name="box"><pose>0 5 0 0 0 0</pose>{link("lid")}</model>'
    third = f'<model name="free">{link("lid")}</model>'
    between = joint("slide", "prismatic", "robot::arm", "box::lid")
    model = read_sdf(text=WORLD.replace("MORE", other + third + between))[0]
    assert set(model.joint_names) == {"root_joint:robot::base", "robot::swing", "slide", "root_joint:free::lid"}
    poses = poses_of(model, *np.asarray(model.neutral()))
    close(poses["box::lid"][:3, 3] - poses["robot::arm"][:3, 3], np.array([0, 3.0, 0]))


def test_one_model_of_a_world(tmp_path):
    """By its name there, as if it were alone in a file; an included one is of the version of its own file."""
    old = "<include><uri>model://wheel</uri><name>left</name><pose>0 0 9 0 0 0</pose></include>"
    world = files(tmp_path, wheel=sdf(WHEEL), world=WORLD.replace("MORE", old)) / "world" / "model.sdf"
    assert read_sdf(world)[0].joint_names == (
        "root_joint:robot::base",
        "robot::swing",
        "root_joint:left::rim",
        "left::spin",
    )
    robot, left = (read_sdf(world, model=name)[0] for name in ("robot", "left"))
    assert (robot.joint_names, left.joint_names) == (("root_joint", "swing"), ("root_joint", "spin"))
    alone = read_sdf(text=sdf(WHEEL))[0]
    close(left.placements, alone.placements)
    with pytest.raises(FileError, match=r"model: expected the name of a model of the file, got 'rob'; .*'robot'"):
        read_sdf(world, model="rob")
    with pytest.raises(FileError, match="expected a model that is not static"):
        read_sdf(world, model="ground")
    assert read_machine(world, only="robot")[0].joint_names == robot.joint_names
    with pytest.raises(FileError, match="model: expected an SDF file, which may have several models, got 'robot'"):
        read_machine(lgsim.data.cart_pole(), only="robot")


@pytest.mark.parametrize(("version", "old"), [("1.3", ""), ("1.4", ""), ("1.5", "1"), ("1.5", "0"), ("1.5", "")])
def test_axes_of_old_versions(version, old):
    """Of the model up to version 1.4, of the joint from 1.5 unless the file says otherwise."""
    mark = f"<use_parent_model_frame>{old}</use_parent_model_frame>" if old else ""
    body = link("a") + link("b", "<pose>0 0 0 0 0 0.5</pose>")
    body += joint("j", "revolute", "a", "b", f"<axis><xyz>1 0 0</xyz>{mark}</axis>")
    body += joint("f", "fixed", "world", "a", "")
    found = poses_of(model_of(body, version), 0.7)["b"]
    turn, own = euler(0, 0, 0, 0.7, 0, 0), euler(0, 0, 0, 0, 0, 0.5)
    of_model = version < "1.5" or old == "1"
    close(found, (turn * own if of_model else own * turn).homogeneous)


@pytest.mark.parametrize("name", ["b", "world"])
def test_joints_of_old_versions_may_have_names_of_links(name):
    body = link("a") + link("b") + joint("f", "fixed", "world", "a", "") + joint(name, "revolute", "a", "b")
    model, report = read_sdf(text=sdf(body, "1.6"))
    assert model.joint_names == (f"{name}_joint",) and f"the name is '{name}_joint'" in str(report)
    with pytest.raises(FileError, match=r"the name is taken by|this one is reserved"):
        read_sdf(text=sdf(body, "1.7"))


def test_the_frame_of_a_nested_model_has_two_names():
    nested = f'<model name="n"><pose>0 0 3 0 0 0</pose>{link("a")}</model>'
    body = nested + link("b", '<pose relative_to="n::__model__">1 0 0 0 0 0</pose>')
    model = model_of(body + joint("j", "revolute", "n::__model__", "b"))
    close(poses_of(model, *np.asarray(model.neutral()))["b"][:3, 3], np.array([1.0, 0, 0]))


def test_a_link_with_the_name_of_such_a_frame_is_kept():
    model = model_of(link("n") + link("n::__model__"))
    assert set(model.body_names) == {"n", "n::__model__"}


def test_two_hinges_in_one_joint():
    body = link("a") + link("b") + joint("f", "fixed", "world", "a", "")
    axes = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 1 0</xyz></axis2>"
    model = model_of(body + joint("j", "revolute2", "a", "b", axes), "1.4")
    assert isinstance(model.topology.joints[0], Universal)
    close(poses_of(model, 0.4, 0.9)["b"], (euler(0, 0, 0, 0, 0, 0.4) * euler(0, 0, 0, 0, 0.9, 0)).homogeneous)


def sampled(inside, half, count=400_000):
    """Mass, center and inertia about the origin by a lattice of points of a box, at density 1."""
    n = round(count ** (1 / 3))
    line = (np.arange(n) + 0.5) / n * 2 - 1
    x = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3) * half
    x = x[inside(x)]
    cell = np.prod(2 * np.asarray(half)) / n**3
    return cell * len(x), x.mean(axis=0), cell * (np.sum(x**2) * np.eye(3) - x.T @ x)


TETRAHEDRON = Mesh(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]]),
                   np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]), flat=True)  # fmt: skip


@pytest.mark.parametrize(
    ("solid", "half", "inside"),
    [
        (Box((1, 2, 3)), (0.5, 1, 1.5), lambda x: np.all(np.abs(x) <= [0.5, 1, 1.5], axis=1)),
        (Sphere(0.7), (0.7,) * 3, lambda x: np.sum(x**2, axis=1) < 0.49),
        (Ellipsoid((1, 2, 3)), (1, 2, 3), lambda x: np.sum((x / [1, 2, 3]) ** 2, axis=1) < 1),
        (Cylinder(0.5, 2.0), (0.5, 0.5, 1), lambda x: np.hypot(x[:, 0], x[:, 1]) < 0.5),
        (Capsule(0.5, 2.0), (0.5, 0.5, 1.5),
         lambda x: np.hypot(np.hypot(x[:, 0], x[:, 1]), np.maximum(np.abs(x[:, 2]) - 1, 0)) < 0.5),
        (TETRAHEDRON, (1, 1, 1), lambda x: np.all(x > 0, axis=1) & (x.sum(axis=1) < 1)),
    ],
)  # fmt: skip
def test_inertias_of_shapes(solid, half, inside):
    mass, center, inertia = sampled(inside, half)
    values = solid_parameters(solid, 1.0, np.eye(4))
    np.testing.assert_allclose(values[0], mass, rtol=0.03)
    np.testing.assert_allclose(values[1:4] / values[0], center, atol=0.01)
    # the faces of cells make the lattice's error
    np.testing.assert_allclose(values[[4, 6, 9]], np.diag(inertia), rtol=0.05)
    np.testing.assert_allclose(values[[5, 7, 8]], inertia[[0, 0, 1], [1, 2, 2]], atol=0.005 * inertia.max())


def test_inertias_of_shapes_have_closed_forms():
    """In any place and unit."""
    for unit in (1e-9, 1.0, 1e9):
        pose = euler(*(np.array([1.0, -2, 0.5]) * unit), 0.3, -0.8, 1.1).homogeneous
        faces = TETRAHEDRON.faces
        whole = solid_parameters(Mesh(TETRAHEDRON.vertices * unit, faces, flat=True), 6 / unit**3, pose)
        center = pose[:3, :3] @ np.full(3, unit / 4) + pose[:3, 3]
        second = unit**2 / 80 * (4 * np.eye(3) - 1)  # of the unit's corner with mass 1, about its center
        central = pose[:3, :3] @ (np.trace(second) * np.eye(3) - second) @ pose[:3, :3].T
        wanted = central + center @ center * np.eye(3) - np.outer(center, center)
        np.testing.assert_allclose(whole[:4], [1, *center], rtol=1e-12)
        np.testing.assert_allclose(whole[4:], wanted[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]], rtol=1e-11)


SHAPES = """<collision name="c"><pose>1 0 0 0 0 0</pose>{0}
    <geometry><box><size>1 2 3</size></box></geometry></collision>
  <collision name="d"><pose>-1 0 0 0 0 0</pose><geometry><sphere><radius>0.5</radius></sphere></geometry></collision>"""


@pytest.mark.parametrize("mass", [None, 7.0])
def test_inertias_of_links_from_their_collision_geometry(mass):
    own = "<density>500</density>"
    inertial = f'<inertial auto="true"><density>200</density>{f"<mass>{mass}</mass>" if mass else ""}</inertial>'
    model = model_of(f'<link name="a">{inertial}{SHAPES.format(own)}</link>', "1.11")
    parts = [6 * 500.0, 200 * np.pi / 6]
    total = sum(parts)
    scale = 1 if mass is None else mass / total
    x = (parts[0] - parts[1]) / total
    xx = parts[0] * (4 + 9) / 12 + parts[1] * 0.1
    np.testing.assert_allclose(np.asarray(model.inertias[0])[:4], scale * np.array([total, x * total, 0, 0]), atol=1e-9)
    np.testing.assert_allclose(np.asarray(model.inertias[0])[4], scale * xx, rtol=1e-12)


def test_limits_that_cross_are_none():
    limit = "<axis><limit><lower>1</lower><upper>0</upper></limit></axis>"
    model, report = read_sdf(text=sdf(link("a") + link("b") + joint("j", "revolute", "a", "b", limit)))
    assert float(model.lower[model.v_slices["j"].start]) == -np.inf
    assert "has lower > upper, 1 and 0; no limits are assumed" in str(report)


OLD = """<gazebo version="1.0"><model name="m" static="false"><origin pose="0 0 1 0 0 0"/>
<link name="a" gravity="false" self_collide="true"><origin pose="1 2 3 .1 .2 .3"/><damping linear="1" angular="0"/>
<inertial mass="2"><origin pose=".1 0 0 0 .4 0"/><inertia ixx="1" ixy=".1" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
<collision name="c" laser_retro="0"><origin pose="0 0 1 0 0 0"/><geometry><box size="1 2 3"/></geometry></collision>
<collision name="d"><geometry><mesh filename="block.obj" scale="1 2 1"/></geometry></collision>
<visual name="v" cast_shadows="true"><geometry><box size="1 1 1"/></geometry></visual></link>
<link name="b"><origin pose="2 0 0 0 0 0"/><inertial mass="1"><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin pose="0 1 0 0 0 0"/><axis xyz="0 1 0">
<limit lower="-1" upper="2" effort="3" velocity="4"/><dynamics damping=".5" friction=".6"/></axis></joint>
</model></gazebo>"""
NEW = """<sdf version="1.4"><model name="m"><static>false</static><pose>0 0 1 0 0 0</pose>
<link name="a"><gravity>false</gravity><self_collide>true</self_collide><pose>1 2 3 .1 .2 .3</pose>
<velocity_decay><linear>1</linear><angular>0</angular></velocity_decay>
<inertial><mass>2</mass><pose>.1 0 0 0 .4 0</pose>
<inertia><ixx>1</ixx><ixy>.1</ixy><ixz>0</ixz><iyy>1</iyy><iyz>0</iyz><izz>1</izz></inertia></inertial>
<collision name="c"><pose>0 0 1 0 0 0</pose><geometry><box><size>1 2 3</size></box></geometry></collision>
<collision name="d"><geometry><mesh><uri>block.obj</uri><scale>1 2 1</scale></mesh></geometry></collision></link>
<link name="b"><pose>2 0 0 0 0 0</pose>
<inertial><mass>1</mass><inertia><ixx>1</ixx><iyy>1</iyy><izz>1</izz></inertia></inertial></link>
<joint name="j" type="revolute"><parent>a</parent><child>b</child><pose>0 1 0 0 0 0</pose><axis><xyz>0 1 0</xyz>
<limit><lower>-1</lower><upper>2</upper><effort>3</effort><velocity>4</velocity></limit>
<dynamics><damping>.5</damping><friction>.6</friction></dynamics></axis></joint></model></sdf>"""


def test_attributes_of_version_1_0_are_elements(tmp_path):
    """The same model in both ways of writing; of version 1.2 only the root is another one."""
    block = Path(__file__).parent / "specimens" / "block.obj"
    (tmp_path / "block.obj").write_bytes(block.read_bytes())
    found = []
    for name, text in (("old", OLD), ("new", NEW), ("1.2", NEW.replace("sdf version=\"1.4\"", "gazebo version=\"1.2\"")
                                                            .replace("</sdf>", "</gazebo>"))):  # fmt: skip
        path = tmp_path / f"{name}.sdf"
        path.write_text(text)
        found.append(read_machine(path, solids=["a"]))
    (old, report), (new, theirs), (middle, _) = found
    assert old == new == middle and old.topology.solids and float(old.damping[-1]) == 0.5
    assert "of version 1.0; attributes are read as elements of 1.3" in str(report)
    assert report.dropped == theirs.dropped
    with pytest.raises(FileError, match=":3: link 'a': <inertial>: <mass>: expected a finite"):
        read_sdf(text=OLD.replace('mass="2"', 'mass="-2"'))


AUTO = "<link name='a'><inertial auto='true'/>{}</link>"
SHAPE = "<collision name='c'><geometry>{}</geometry></collision>"
ERRORS = {
    "two models": ('<sdf version="1.9"><model name="a"/>\n<world name="b"/></sdf>',
                   "<sdf>: expected one <model> or one <world>, got 2, the second one in line 2"),
    "a world at rest": (WORLD.split("<model")[0] + "</world></sdf>", "one model that is not static, got none"),
    "no file": (sdf("<include><uri>model://nowhere</uri></include>" + link("a")),
                "<include>: there is no file or folder 'model://nowhere'; further folders of models are those of"),
    "a download": (sdf("<include><uri>https://fuel.org/x</uri></include>" + link("a")), "download it"),
    "no URI": (sdf("<include/>" + link("a")), "<include>: expected a <uri>, got none"),
    "a name twice": (sdf(link("n") + f"<model name='n'>{link('a')}</model>"), "the name 'n' is taken by the"),
    "a nested name": (sdf(link("a") + f"<model name='n'>{link('b')}</model>" + joint("j", "ball", "a", "n::c")),
                      "expected the name of a link, joint or frame, got 'n::c'; did you mean 'n::b'?"),
    "an old root": ("<gazebo version='1.9'/>", "the root of versions 1.0 to 1.2, which the attribute 'version' names"),
    "no shape": (sdf(AUTO.format("")), "expected collision geometry with a volume and a density, got none"),
    "a plane": (sdf(AUTO.format(SHAPE.format("<plane/>"))), "expected a shape with a volume, got a HalfSpace"),
    "a height map": (sdf(AUTO.format(SHAPE.format("<heightmap/>"))), "expected a shape whose inertia is known,"),
    "a missing mesh": (sdf(AUTO.format(SHAPE.format("<mesh><uri>x.stl</uri></mesh>"))), "there is no file 'x.stl'"),
}  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_their_lines(case):
    text, message = ERRORS[case]
    with pytest.raises(FileError, match=re.escape(message)) as found:
        read_sdf(text=text)
    assert found.value.line is not None


def test_files_that_include_each_other_end(tmp_path):
    text = sdf(link("x") + "<include><uri>model://m</uri><name>n</name></include>")
    with pytest.raises(FileError, match="expected at most 32 models in each other"):
        read_sdf(files(tmp_path, m=text) / "m" / "model.sdf")


def test_errors_of_included_files_name_these(tmp_path):
    car = sdf(link("arm") + "<include><uri>model://wheel</uri></include>")
    folder = files(tmp_path, wheel=sdf("\n<link name='a'><pose>1</pose></link>"), car=car)
    with pytest.raises(FileError, match=r"wheel.model.sdf:2: link 'a': <pose>: expected 6"):
        read_sdf(folder / "car" / "model.sdf")


def test_a_folder_may_name_its_file_and_stand_elsewhere(tmp_path, monkeypatch):
    there = tmp_path / "elsewhere"
    there.mkdir()
    files(there, wheel="")
    (there / "wheel" / "model.sdf").rename(there / "wheel" / "other.sdf").write_text(sdf(WHEEL))
    (there / "wheel" / "model.config").write_text(
        '<model><sdf version="1.4">old.sdf</sdf><sdf version="1.10">other.sdf</sdf></model>'
    )
    monkeypatch.setenv("GZ_SIM_RESOURCE_PATH", str(there))
    model = lgsim.load_sdf(text=sdf("<include><uri>model://wheel</uri></include>"))
    assert model.joint_names == ("root_joint", "m::spin")


def test_half_spaces_have_no_inertia():
    with pytest.raises(ValueError, match="a shape with a volume"):
        solid_parameters(HalfSpace(), 1.0, np.eye(4))
    inward = Mesh(TETRAHEDRON.vertices, TETRAHEDRON.faces[:, ::-1], flat=True)
    with pytest.raises(ValueError, match="closed surface"):
        solid_parameters(inward, 1.0, np.eye(4))
