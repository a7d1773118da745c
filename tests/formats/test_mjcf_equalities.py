"""Equalities of MJCF files as loops, against the constraints that MuJoCo itself compiles and evaluates."""

import re

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.formats import FileError, read_mjcf
from lgsim.multibody import joints
from lgsim.multibody.loops import Coupling, JointTie
from tests.dynamics.machines import close

BODIES = """<worldbody>
<body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" ref="20"/><geom size=".1 .2 .3" type="box" pos=".1 0 0"/>
  <body name="b" pos=".5 .1 0" euler="10 20 30"><joint name="jb" axis="1 0 1"/><geom size=".1" pos="0 .1 0"/>
  <site name="sb" pos=".1 .2 .3" euler="5 6 7"/></body></body>
<body name="c" pos=".2 .4 .9"><freejoint name="jc"/><geom size=".1 .2 .1" type="box"/>
  <site name="sc" pos="-.1 .1 0" euler="-30 6 7"/></body>
<body name="d" pos="2 0 0"><joint name="jd" type="slide" axis="1 0 0" ref=".1"/><geom size=".1"/></body>
</worldbody>"""


def text_of(equalities, more=""):
    return f"<mujoco>{more}{BODIES}<equality>{equalities}</equality></mujoco>"


def states(model, count=4):
    """Configurations of MuJoCo's model, which are lgsim's."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        q = rng.normal(size=model.nq)
        q[5:9] /= np.linalg.norm(q[5:9])
        yield q


def residuals(model, q):
    """(MuJoCo's residuals of all equalities, the world's poses by the names of lgsim's frames)."""
    data = mujoco.MjData(model)
    data.qpos[:] = q
    mujoco.mj_forward(model, data)
    return np.array(data.efc_pos[: data.ne])


def rotation_residual(a, b):
    """The vector part of the quaternion between the frames: the three numbers of a weld, but for their signs."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(a[:3, :3].T @ b[:3, :3]).ravel())
    return quaternion[1:]


CONNECTS = {
    "bodies": '<connect name="tie" body1="b" body2="c" anchor=".1 .2 .3"/>',
    "a body and the world": '<connect name="tie" body1="b" anchor=".1 .2 .3"/>',
    "sites": '<connect name="tie" site1="sb" site2="sc"/>',
}


@pytest.mark.parametrize("case", CONNECTS)
def test_connects_are_balls_at_the_anchors(case):
    text = text_of(CONNECTS[case])
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    (loop,) = model.topology.loops
    assert (loop.name, loop.a, loop.b, loop.kind) == ("tie", "tie.a", "tie.b", JointTie(joints.Spherical()))
    for q in states(theirs):
        poses = poses_of(model, q)
        close(poses["tie.a"][:3, 3] - poses["tie.b"][:3, 3], residuals(theirs, q), 1e-12)


WELDS = {
    "bodies at their place": '<weld name="tie" body1="b" body2="c"/>',
    "bodies with an anchor": '<weld name="tie" body1="b" body2="c" anchor=".1 .2 .3"/>',
    "bodies at another place": '<weld name="tie" body1="b" body2="c" relpose=".1 .2 .3 1 1 1 -1" anchor=".3 0 .1"/>',
    "a body and the world": '<weld name="tie" body1="b" anchor="0 .1 0"/>',
    "sites": '<weld name="tie" site1="sb" site2="sc"/>',
}


@pytest.mark.parametrize("case", WELDS)
def test_welds_are_fixed_joints_between_their_frames(case):
    text = text_of(WELDS[case])
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    (loop,) = model.topology.loops
    assert (loop.name, loop.a, loop.b, loop.kind) == ("tie", "tie.a", "tie.b", JointTie(joints.Fixed()))
    for q in states(theirs):
        poses, found = poses_of(model, q), residuals(theirs, q)
        close(poses["tie.a"][:3, 3] - poses["tie.b"][:3, 3], found[:3], 1e-12)
        close(np.abs(rotation_residual(poses["tie.a"], poses["tie.b"])), np.abs(found[3:]), 1e-12)


def test_joints_are_couplings_from_their_references():
    text = text_of('<joint name="gear" joint1="jd" joint2="ja" polycoef=".1 .2 -.3 .4 .5"/>')
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    (loop,) = model.topology.loops
    assert (loop.a, loop.b, loop.kind) == ("ja", "jd", Coupling(4, turns=False))
    for q in states(theirs):
        x = q[model.q_slices["ja"].start]
        value = loop.kind.values(jnp.asarray(x), list(model.loops))[0]
        close(q[model.q_slices["jd"].start] - float(value), residuals(theirs, q), 1e-12)
    line = load(text_of('<joint name="gear" joint1="ja" joint2="jb" polycoef="0 2 0 0 0"/>'))
    assert line.topology.loops[0].kind == Coupling(1, turns=True)
    # ja counts from its reference of 20 degrees
    close(line.loops, np.array([np.deg2rad(20), 2.0]))


def tendons(*ties):
    fixed = "".join(f'<fixed name="t{i}">{joints}</fixed>' for i, joints in enumerate(ties))
    return f"<tendon>{fixed}</tendon>"


def of(joint, coefficient):
    return f'<joint joint="{joint}" coef="{coefficient}"/>'


@pytest.mark.parametrize(
    ("ties", "equality", "slope"),
    [
        ([of("ja", 0.5) + of("jd", -2)], '<tendon name="tie" tendon1="t0" polycoef=".3"/>', -2),
        ([of("jd", 3), of("ja", 0.4)], '<tendon name="tie" tendon1="t0" tendon2="t1" polycoef=".3 .7"/>', 3),
        ([of("jd", 3) + of("jb", 1), of("ja", 0.4) + of("jb", 2)],
         '<tendon name="tie" tendon1="t0" tendon2="t1" polycoef=".3 .5"/>', 3),
    ],
)  # fmt: skip
def test_equalities_of_tendons_with_two_joints_are_couplings(ties, equality, slope):
    """MuJoCo's residual is that of the coupling times the coefficient of its second joint, here jd."""
    text = text_of(equality, tendons(*ties))
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    (loop,) = model.topology.loops
    assert (loop.a, loop.b, loop.kind) == ("ja", "jd", Coupling(1, turns=False))
    for q in states(theirs):
        value = loop.kind.values(jnp.asarray(q[model.q_slices["ja"].start]), list(model.loops))[0]
        close(slope * (q[model.q_slices["jd"].start] - float(value)), residuals(theirs, q), 1e-12)


FIXED = {
    "a joint": (text_of('<joint name="tie" joint1="jd" polycoef=".3 1 2"/>'), 1),
    "a tendon": (text_of('<tendon name="tie" tendon1="t0" polycoef=".3"/>', tendons(of("jd", 3))), 3),
}


@pytest.mark.parametrize("case", FIXED)
def test_a_fixed_joint_is_a_coupling_that_does_not_depend_on_another_joint(case):
    text, scale = FIXED[case]
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    (loop,) = model.topology.loops
    assert (loop.b, loop.kind) == ("jd", Coupling(1, turns=False)) and model.loops[1] == 0
    for q in states(theirs):
        value = loop.kind.values(jnp.asarray(q[model.q_slices[loop.a].start]), list(model.loops))[0]
        close(scale * (q[model.q_slices["jd"].start] - float(value)), residuals(theirs, q), 1e-12)


def test_polynomials_of_tendons_with_one_joint_each():
    text = text_of('<tendon name="tie" tendon1="t0" tendon2="t1" polycoef=".3 .7 -.2 .4 .1"/>',
                   tendons(of("jd", 3), of("ja", 0.4)))  # fmt: skip
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    (loop,) = model.topology.loops
    assert (loop.a, loop.b, loop.kind) == ("ja", "jd", Coupling(4, turns=False))
    for q in states(theirs):
        value = loop.kind.values(jnp.asarray(q[model.q_slices["ja"].start]), list(model.loops))[0]
        close(3 * (q[model.q_slices["jd"].start] - float(value)), residuals(theirs, q), 1e-12)


def test_coupled_joints_of_one_body_are_joints_of_their_own():
    """Of three hinges through a point two are coupled; accelerations on the closed set are those of a hard tie."""
    text = """<mujoco><option gravity="1 2 -9"/><worldbody><body name="a"><joint name="x" axis="1 0 0"/>
<joint name="y" axis="0 1 0" ref="10"/><joint name="z" axis="0 0 1"/><joint name="s" type="slide" axis="1 1 0"/>
<geom type="box" size=".1 .2 .3" pos=".1 .2 .3"/><body name="b" pos="0 0 .3"><joint name="j" axis="0 1 0"/>
<geom size=".1" pos=".2 0 .1"/></body></body></worldbody>
<equality><joint name="tie" joint1="y" joint2="j" polycoef=".1 .5 .3 0 0"/></equality></mujoco>"""
    model, theirs = load(text), mujoco.MjModel.from_xml_string(text)
    assert model.joint_names == ("x", "y", "z+s", "j") and model.nq == theirs.nq
    data, rng = mujoco.MjData(theirs), np.random.default_rng(0)
    q, v = rng.normal(size=5), rng.normal(size=5)
    q[1] = np.deg2rad(10) + 0.1 + 0.5 * q[4] + 0.3 * q[4] ** 2
    slope, curve = 0.5 + 0.6 * q[4], 0.6 * v[4] ** 2
    v[1] = slope * v[4]
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(theirs, data)
    close(residuals(theirs, q), [0.0], 1e-12)
    mass = np.zeros((5, 5))
    for column, axis in zip(mass, np.eye(theirs.nv), strict=True):
        mujoco.mj_mulM(theirs, data, column, axis)
    row = np.array([[0, 1, 0, 0, -slope]])
    system = np.block([[mass, -row.T], [row, np.zeros((1, 1))]])
    wanted = np.linalg.solve(system, [*-data.qfrc_bias, curve])[:5]
    close(forward_dynamics(model, jnp.asarray(q), jnp.asarray(v), jnp.zeros(5)), wanted, 1e-9)


def test_equalities_that_are_not_active_are_no_loops():
    text = text_of('<connect name="tie" body1="b" body2="c" anchor="0 0 0" active="false"/>')
    model, report = read_mjcf(text=text)
    assert model.loop_names == () and "equality 'tie'" in str(report) and "is not active" in str(report)
    off = text_of(CONNECTS["bodies"], '<option><flag equality="disable"/></option>')
    assert load(off).loop_names == ()


def test_equalities_of_a_flex_are_refused():
    """They have no name and no joints."""
    flex = '<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" mass="1" radius=".01"/>'
    text = text_of('<flex flex="f"/>').replace("</worldbody>", f'<body name="g">{flex}</body></worldbody>')
    with pytest.raises(FileError, match="equality 'equality0': it is no connect or weld, and no equality of joints"):
        read_mjcf(text=text)


def test_what_is_left_out_is_in_the_report():
    text = text_of('<connect name="tie" body1="b" body2="c" anchor="0 0 0" solref="0.1 1"/>')
    model, report = read_mjcf(text=text)
    assert model.loop_names == ("tie",) and "solref, solimp and torquescale are not read" in str(report)
    assert "equality" not in report.dropped
    loose, report = read_mjcf(text=text, ignore_equalities=True)
    assert loose.loop_names == () and "equality 'tie' is not represented" in report.dropped


ERRORS = {
    "one body": (
        '<connect name="tie" body1="d" body2="fixed" anchor="0 0 0"/>',
        "equality 'tie': loop 'tie': both ends, 'tie.a' and 'tie.b', are on 'd'; expected frames of two bodies",
    ),
    "tendons of three joints": (
        '<tendon name="tie" tendon1="u" tendon2="w"/>', "'tie': it couples 3 joints, not two"
    ),
    "a polynomial of tendons": (
        '<tendon name="tie" tendon1="t" tendon2="u" polycoef="0 1 1"/>',
        "it is a polynomial of tendons of several joints",
    ),
    "a spatial tendon": ('<tendon name="tie" tendon1="s"/>', "it is an equality of spatial tendons"),
    "a fixed and a spatial tendon": (
        '<tendon name="tie" tendon1="t" tendon2="s"/>', "it is an equality of spatial tendons"
    ),
}  # fmt: skip
MORE = """<worldbody>
<body name="e"><joint name="e1" axis="1 0 0"/><joint name="e2" axis="0 1 0"/><geom size=".1"/></body>
</worldbody><tendon><fixed name="t"><joint joint="ja" coef="1"/></fixed>
<fixed name="u"><joint joint="ja" coef="1"/><joint joint="e1" coef="1"/></fixed>
<fixed name="w"><joint joint="jb" coef="1"/></fixed>
<spatial name="s"><site site="sb"/><site site="sc"/></spatial></tendon>"""


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    tie, message = ERRORS[case]
    text = text_of(tie, MORE).replace('ref=".1"/><geom size=".1"/>', 'ref=".1"/><geom size=".1"/><body name="fixed"/>')
    with pytest.raises(FileError, match=re.escape(message)):
        read_mjcf(text=text)


def load(text):
    return read_mjcf(text=text)[0]


def poses_of(model, q):
    found = np.asarray(forward_kinematics(model, jnp.asarray(q)))
    return dict(zip(model.frame_names, found, strict=True))
