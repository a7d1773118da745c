"""The inertia that joints feel, and the joints that feel none."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.dynamics.joint_inertia import describe_missing_inertia, joint_inertia, joints_without_inertia
from lgsim.lie import se3
from lgsim.multibody import joints
from tests.multibody import trees


def pivots(M):
    """The D of ``M = L^T diag(D) L``, L unit lower triangular: minors that end at the last row, one by the next."""
    minors = [1.0, *(np.linalg.det(M[i:, i:]) for i in reversed(range(len(M))))]
    return (np.array(minors[1:]) / np.array(minors[:-1]))[::-1]


@pytest.mark.repeats
@pytest.mark.parametrize("kinds, parents", [
    (["revolute", "prismatic", "revolute", "helical"], [-1, 0, 1, 1]),
    (["free", "spherical", "planar"], [-1, 0, 0]),
    (["universal", "compound", "cylindrical"], [-1, 0, 1]),
])  # fmt: skip
def test_pivots_of_the_mass_matrix(kinds, parents):
    """The matrix is that of composite bodies, which Pinocchio's is compared with elsewhere: no line is shared."""
    model = trees.build(kinds, parents, armature=True)
    q, _, _ = trees.state(model)
    found = joint_inertia(model, q)
    M = np.asarray(lgsim.mass_matrix(model, q))
    np.testing.assert_allclose(found.felt, pivots(M), rtol=1e-9)
    assert np.all(found.rounding < 1e-12 * np.abs(M).max()) and joints_without_inertia(model, q) == ()


def rod(builder, name, parent, mass=1.0, joint=None, **more):
    """A link of a chain with its center of mass beyond the joint."""
    inertia = 0.01 * mass * np.eye(3)
    pose = np.eye(4)
    pose[:3, 3] = [0.0, 0.0, 0.5]
    more = {"axis": [0, 1, 0], "center": [0.1, 0.2, 0.3], "inertia": inertia, "placement": pose} | more
    return builder.add_body(name, parent, joint or joints.Revolute(), mass=mass, **more)


def chain(tip, dtype=None, links=3):
    builder = lgsim.ModelBuilder(dtype=dtype)
    for i in range(links):
        rod(builder, f"link{i}", f"link{i - 1}" if i else "world")
    tip(builder, f"link{links - 1}")
    return builder.build()


def turned(axis):
    """A point mass on the joint's own axis, in a frame that is turned: the zero is a sum of rounded numbers."""
    T = np.asarray(se3.exp(jnp.array([0.3, -0.2, 0.1, 0.7, -1.1, 0.4])))
    a = np.asarray(axis) / np.linalg.norm(axis)

    def tip(builder, parent):
        rod(builder, "tip", parent, joint=joints.Revolute(), axis=a, center=0.7 * a, inertia=np.zeros((3, 3)),
            placement=T)  # fmt: skip

    return tip


WITHOUT = {
    "massless": lambda b, p: rod(b, "tip", p, mass=0.0),
    "point mass on the axis": turned([1.0, 2.0, -0.3]),
    "massless ball": lambda b, p: rod(b, "tip", p, mass=0.0, joint=joints.Spherical(), axis=None),
    "point mass in a ball": lambda b, p: rod(
        b, "tip", p, joint=joints.Spherical(), axis=None, inertia=np.zeros((3, 3))
    ),
    "massless slide": lambda b, p: rod(b, "tip", p, mass=0.0, joint=joints.Prismatic()),
}


@pytest.mark.parametrize("case", WITHOUT)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_joints_that_feel_nothing(case, dtype):
    model = chain(WITHOUT[case], dtype)
    for q in (model.neutral(), model.retract(model.neutral(), jnp.full(model.nv, 0.3, model.dtype))):
        assert joints_without_inertia(model, q) == ("tip",)
    assert joints_without_inertia(model.replace(armature=1e-3), q) == ()


def test_a_carrier_without_inertia_of_its_own():
    """A massless link between two parallel joints at one place feels nothing; apart from each other both feel much."""

    def build(gap):
        place = np.eye(4)
        place[0, 3] = gap
        builder = lgsim.ModelBuilder().add_body("carrier", "world", joints.Revolute(), axis=[0.6, 0.0, 0.8])
        return builder.add_body("mass", "carrier", joints.Revolute(), axis=[0.6, 0.0, 0.8], placement=place, mass=2.0,
                                center=[0.3, 0.1, 0.0], inertia=0.1 * np.eye(3)).build()  # fmt: skip

    q = jnp.array([0.4, 1.3])
    assert joints_without_inertia(build(0.0), q) == ("carrier",)
    assert joints_without_inertia(build(1e-3), q) == ()


def test_a_floating_base_without_mass():
    """Six motions and one body on a hinge: all but one degree of freedom share its inertia."""
    builder = lgsim.ModelBuilder().add_body("base", "world", joints.Free())
    model = builder.add_body("arm", "base", joints.Revolute(), mass=1.0, center=[0.2, 0, 0.1],
                             inertia=0.01 * np.eye(3)).build()  # fmt: skip
    assert joints_without_inertia(model, model.neutral()) == ("base",)
    with_mass = model.replace(inertias=model.inertias.at[0].set(model.inertias[1]))
    assert joints_without_inertia(with_mass, model.neutral()) == ()


def test_gimbal_lock_of_a_compound_joint():
    """Three turns in one joint, the middle one by a quarter: the first and the last axis are one."""
    from lgsim.multibody.joint import Row

    kind = joints.Compound((Row(True, 2), Row(True, 1), Row(True, 2)))
    model = lgsim.ModelBuilder().add_body("wrist", "world", kind, mass=1.0, inertia=np.eye(3)).build()
    assert joints_without_inertia(model, jnp.zeros(3)) == ("wrist",)
    assert joints_without_inertia(model, jnp.array([0.3, 0.5, 0.0])) == ()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_light_links_and_long_chains_are_no_fault(dtype):
    """A thin rod about its own axis, a tool of a milligram, and forty links in a row."""
    thin = {"center": [0, 0, 0.5], "inertia": np.diag([1 / 12, 1 / 12, 2e-6]), "axis": [0, 0, 1]}
    for tip in (lambda b, p: rod(b, "tip", p, **thin), lambda b, p: rod(b, "tip", p, mass=1e-6)):
        model = chain(tip, dtype)
        assert joints_without_inertia(model, model.neutral()) == ()
    long = chain(lambda b, p: None, dtype, links=40)
    assert joints_without_inertia(long, long.neutral()) == ()


def test_followers_count_with_the_joint_that_they_follow():
    """A massless finger that mimics one with mass moves; two massless ones do not."""

    def hand(mass):
        builder = lgsim.ModelBuilder().add_body("palm", "world", joints.Revolute(), mass=1.0, center=[0.1, 0, 0])
        builder.add_body("first", "palm", joints.Prismatic(), mass=mass)
        return builder.add_body("second", "palm", joints.Prismatic(), mimic=("first", -1.0, 0.0)).build()

    assert joints_without_inertia(hand(0.1), jnp.zeros(2)) == ()
    assert joints_without_inertia(hand(0.0), jnp.zeros(2)) == ("first", "second")


def test_words():
    """One joint, two of them, none; and whether another configuration would help."""
    remedy = "give the link behind it mass and inertia, or the joint an armature"
    model = chain(WITHOUT["massless"])
    assert describe_missing_inertia(model, model.neutral()) == f"joint 'tip' moves without inertia: {remedy}"
    assert describe_missing_inertia(model.replace(armature=0.1), model.neutral()) == ""
    wrist = lgsim.ModelBuilder()
    for i, axis in enumerate(([0, 0, 1], [0, 1, 0], [0, 0, 1])):
        body = {"mass": 1.0, "inertia": np.eye(3)} if i == 2 else {}
        wrist.add_body(f"w{i}", f"w{i - 1}" if i else "world", joints.Revolute(), axis=axis, **body)
    text = describe_missing_inertia(wrist.build(), jnp.zeros(3))
    assert text == f"joint 'w0' moves without inertia in this configuration: {remedy}"
    two = lgsim.ModelBuilder().add_body("a", "world", joints.Prismatic()).add_body("b", "world", joints.Prismatic())
    text = describe_missing_inertia(two.build(), jnp.zeros(2))
    assert text.startswith("joints 'a', 'b' move without inertia: give the links behind them mass")
