"""URDF files written with other numbers: what lgsim and Pinocchio read of them, what stays, what is said."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import FileError, read_urdf, write_urdf
from lgsim.multibody import inertia

FILE = """<?xml version="1.0" encoding="utf-8"?>
<!-- an arm with a tool -->
<robot name="arm">
  <link name="base"><inertial><mass value="9"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="upper">
    <inertial><origin xyz="0 .01 .2" rpy=".3 -.2 .1"/><mass value="2"/>
      <inertia ixx=".05" iyy=".04" izz=".02" ixy=".001" ixz="0.002" iyz="0"/></inertial>
    <visual><geometry><mesh filename="package://arm/upper.dae"/></geometry></visual>
  </link>
  <link name="fore"><inertial><origin xyz="0.01 -.02 .15"/><mass value="1.2"/>
    <inertia ixx=".02" iyy=".015" izz=".01" ixy="0" ixz="-.001" iyz="0"/></inertial></link>
  <link name="tool"><inertial><origin xyz="0 0 .05"/><mass value=".5"/>
    <inertia ixx=".001" iyy=".001" izz=".001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="slide"><inertial><mass value=".3"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="stand" type="fixed"><parent link="base"/><child link="column"/><origin xyz="0 0 1" rpy="0 0 .5"/></joint>
  <link name="column"/>
  <joint name="shoulder" type="revolute"><origin xyz=".1 0 0" rpy="0 .4 0"/><parent link="column"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="40" velocity="4"/><dynamics damping=".1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 .4"/>
    <axis xyz="0 1 0"/><limit lower="-2.5" upper="2.5" effort="15" velocity="5"/></joint>
  <joint name="weld" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0 0 .3" rpy=".2 0 1"/></joint>
  <joint name="rail" type="prismatic"><parent link="tool"/><child link="slide"/><origin xyz="0 .1 0"/>
    <axis xyz="1 0 0"/><limit lower="-1" upper="1" effort="15" velocity="5"/></joint>
</robot>
"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(FILE)
    return path


def changed(model, seed=0):
    """Other inertias of bodies that can exist, damping and friction."""
    rng = np.random.default_rng(seed)
    U = np.linalg.cholesky(np.asarray(inertia.pseudo_inertia(model.inertias)))
    middle = np.eye(4) + 0.1 * rng.normal(size=(len(U), 4, 4))
    pseudo = U @ middle @ middle.swapaxes(1, 2) @ U.swapaxes(1, 2)
    rows = inertia.from_pseudo_inertia(jnp.asarray(pseudo))
    return model.replace(inertias=rows, damping=rng.uniform(0, 1, model.nv), friction=rng.uniform(0, 1, model.nv))


def rows_near(found, expected):
    """To a few rounding units of the body's largest moments, which is what centers and axes through them allow."""
    for one, other in zip(np.asarray(found), np.asarray(expected), strict=True):
        for part in (slice(0, 1), slice(1, 4), slice(4, 10)):
            np.testing.assert_allclose(one[part], other[part], rtol=0, atol=1e-14 * max(abs(other[part]).max(), 1e-3))


def test_what_lgsim_reads_again(source, tmp_path):
    model = changed(read_urdf(source)[0])
    assert write_urdf(source, model, tmp_path / "new.urdf") == ()
    again, report = read_urdf(tmp_path / "new.urdf")
    assert not report.inertias
    rows_near(again.inertias, model.inertias)
    np.testing.assert_array_equal(again.damping, model.damping)
    np.testing.assert_array_equal(again.friction, model.friction)
    # the link without anything fixed to it holds the mass itself
    np.testing.assert_array_equal(again.inertias[0, 0], model.inertias[0, 0])
    np.testing.assert_array_equal(again.placements, model.placements)


def test_pinocchio_reads_the_same_machine(source, tmp_path):
    """Its recursive Newton-Euler algorithm gives the inverse dynamics of the model that was written."""
    pinocchio = pytest.importorskip("pinocchio")
    model = changed(read_urdf(source)[0], seed=1)
    write_urdf(source, model, tmp_path / "new.urdf")
    peer = pinocchio.buildModelFromUrdf(str(tmp_path / "new.urdf"))
    assert list(peer.names)[1:] == list(model.joint_names)
    data, rng = peer.createData(), np.random.default_rng(0)
    for _ in range(5):
        q, v, a = rng.normal(size=(3, model.nv))
        expected = np.asarray(lgsim.inverse_dynamics(model, *map(jnp.asarray, (q, v, a))))
        np.testing.assert_allclose(pinocchio.rnea(peer, data, q, v, a), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(peer.damping if hasattr(peer, "damping") else model.damping, model.damping)


def test_only_the_numbers_change(source, tmp_path):
    """Without new numbers the text is the same; with some, comments, meshes, limits and other links are."""
    model, _ = read_urdf(source)
    path = tmp_path / "same.urdf"
    assert write_urdf(source, model, path) == ()
    assert path.read_text() == FILE
    write_urdf(source, model.replace(inertias=model.inertias.at[0].multiply(1.5)), path)
    text = path.read_text()
    for kept in ("<!-- an arm with a tool -->", "package://arm/upper.dae", 'effort="40"', 'xyz="0.01 -.02 .15"'):
        assert kept in text
    assert 'value="3.0"' in text and 'damping=".1"' in text


def test_files_are_written_over_themselves(source):
    model = changed(read_urdf(source)[0])
    write_urdf(source, model, source)
    rows_near(read_urdf(source)[0].inertias, model.inertias)


def test_a_light_body_takes_all_of_what_is_fixed_to_it(source, tmp_path):
    """Half a kilogram for forearm and tool, whose tool alone has as much: no forearm is left for the rest."""
    model, _ = read_urdf(source)
    light = model.replace(inertias=model.inertias.at[1].multiply(0.25))
    (remark,) = write_urdf(source, light, tmp_path / "new.urdf")
    assert "link 'fore' now has all of the mass of its body" in remark and "tool" in remark
    again, report = read_urdf(tmp_path / "new.urdf")
    assert not report.inertias
    rows_near(again.inertias, light.inertias)


def test_placements(source, tmp_path):
    """Joints that moved, one of them on a column that is fixed to the base."""
    model, _ = read_urdf(source)
    twist = 0.1 * jax.random.normal(jax.random.key(0), (3, 6))
    moved = model.replace(placements=model.placements @ lgsim.se3.exp(twist))
    assert write_urdf(source, moved, tmp_path / "new.urdf") == ()
    np.testing.assert_allclose(read_urdf(tmp_path / "new.urdf")[0].placements, moved.placements, rtol=0, atol=1e-15)


def test_a_pitch_of_a_right_angle(source, tmp_path):
    model, _ = read_urdf(source)
    turn = lgsim.se3.exp(jnp.array([0.0, 0, 0, 0, jnp.pi / 2, 0])) @ lgsim.se3.exp(jnp.array([0.0, 0, 0, 0.3, 0, 0]))
    moved = model.replace(placements=model.placements.at[1].set(turn))
    write_urdf(source, moved, tmp_path / "new.urdf")
    np.testing.assert_allclose(read_urdf(tmp_path / "new.urdf")[0].placements, moved.placements, rtol=0, atol=1e-15)


def test_what_urdf_has_no_place_for_is_said(source, tmp_path):
    model, _ = read_urdf(source)
    other = model.replace(armature=jnp.array([0.25, 0.0, 0.5]), gravity=jnp.array([0.0, 1.0, -9.7]))
    remarks = write_urdf(source, other, tmp_path / "new.urdf")
    assert remarks == (
        "armature of joints, which URDF cannot represent: shoulder 0.25, rail 0.5",
        "gravity, which URDF cannot represent: (0.0, 1.0, -9.7) m/s^2",
    )


def test_floating_machines(source, tmp_path):
    model = changed(read_urdf(source, floating_base=True)[0])
    model = model.replace(damping=model.damping.at[:6].set(0), friction=model.friction.at[:6].set(0))
    assert write_urdf(source, model, tmp_path / "new.urdf") == ()
    again, _ = read_urdf(tmp_path / "new.urdf", floating_base=True)
    rows_near(again.inertias, model.inertias)


def test_joints_of_several_freedoms_have_no_dynamics(tmp_path):
    path = tmp_path / "ball.urdf"
    path.write_text(
        '<robot name="b"><link name="a"/><link name="ball"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"'
        ' ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="socket" type="spherical"><parent link="a"/>'
        '<child link="ball"/></joint></robot>'
    )
    model, _ = read_urdf(path)
    (remark,) = write_urdf(path, model.replace(damping=0.5), tmp_path / "new.urdf")
    assert remark == "damping of joints, which URDF cannot represent: socket 0.5, socket 0.5, socket 0.5"


def test_faults(source, tmp_path):
    model, _ = read_urdf(source)
    source.write_text(FILE.replace('name="elbow"', 'name="knee"'))
    with pytest.raises(FileError, match=r"arm.urdf: expected the file of the model"):
        write_urdf(source, model, tmp_path / "new.urdf")
    source.write_text(FILE)
    with pytest.raises(ValueError, match="model: expected finite numbers"):
        write_urdf(source, replace(model, inertias=model.inertias * jnp.nan), tmp_path / "new.urdf")
    with pytest.raises(FileError, match="cannot be read"):
        write_urdf(tmp_path / "none.urdf", model, tmp_path / "new.urdf")
    assert not (tmp_path / "new.urdf").exists()


MIMIC = FILE.replace(
    "</robot>",
    """<link name="other"><inertial><origin xyz=".1 0 0"/><mass value=".4"/>
    <inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shadow" type="continuous"><parent link="slide"/><child link="other"/><origin xyz="0 0 .1" rpy="0 0 .3"/>
    <axis xyz="0 0 1"/><mimic joint="elbow" multiplier="-1.5" offset=".2"/></joint>
</robot>""",
)


@pytest.mark.parametrize("locked", [["elbow"], ["shoulder"], ["elbow", "rail"]])
def test_locked_joints_are_fixed_ones(locked, tmp_path):
    """What Pinocchio reads has the torques of the model with locked joints, with new inertias too; a mimic is locked
    with its joint.
    """
    pinocchio = pytest.importorskip("pinocchio")
    (tmp_path / "arm.urdf").write_text(MIMIC)
    whole, _ = read_urdf(tmp_path / "arm.urdf")
    q = np.array([0.4, -0.7, 0.15])
    for model in (whole.lock(locked, q), changed(whole.lock(locked, q))):
        model = model.replace(damping=0.0, friction=0.0)
        remarks = write_urdf(tmp_path / "arm.urdf", model, tmp_path / "new.urdf")
        assert all("now has all of the mass of its body" in remark for remark in remarks)
        again, _ = read_urdf(tmp_path / "new.urdf")
        assert (again.joint_names, again.body_names) == (model.joint_names, model.body_names)
        rows_near(again.inertias, model.inertias)
        for what in ("placements", "screws"):
            np.testing.assert_allclose(getattr(again, what), getattr(model, what), rtol=0, atol=1e-14)
        if "elbow" in locked:  # Pinocchio reads no mimic as lgsim does
            x, v, a = np.random.default_rng(1).normal(size=(3, model.nv))
            tau = np.asarray(lgsim.inverse_dynamics(model, *map(jnp.asarray, (x, v, a))))
            other = pinocchio.buildModelFromUrdf(str(tmp_path / "new.urdf"))
            found = pinocchio.rnea(other, other.createData(), x, v, a)
            np.testing.assert_allclose(found, tau, rtol=1e-11, atol=1e-12)


def test_a_locked_model_of_another_file_is_refused(source, tmp_path):
    model = read_urdf(source)[0].lock(["elbow"], np.zeros(3))
    source.write_text(FILE.replace('name="fore"', 'name="hand"').replace('link="fore"', 'link="hand"'))
    with pytest.raises(FileError, match="expected the file of the model, got one with other joints or bodies"):
        write_urdf(source, model, tmp_path / "new.urdf")
