"""Contact forces' derivatives in closed form against forward mode and differences of the forces themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.contacts.contact_derivatives import contact_derivatives
from lgsim.dynamics.contacts.contact_forces import contact_forces
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.multibody import ModelBuilder, contacts, joints
from lgsim.multibody.contacts.planes import Plane
from lgsim.multibody.contacts.spheres import Sphere
from tests.dynamics.contact_machines import LAW, each_pair, pair, touching_state
from tests.integrators.engines import default
from tests.multibody import trees

MORE = {**LAW, "stribeck": 0.3, "torsion": 0.02, "rolling": 0.005}


def check(model, q, v, tolerance=1e-12):
    """By forward mode through the kinematics, column by column, joint forces by inverse dynamics."""
    zero = jnp.zeros(model.nv, q.dtype)

    def worth(change):
        still = model.replace(gravity=jnp.zeros(3, q.dtype))
        return -inverse_dynamics(still, q, zero, zero, change)

    def moved(dq, dv):
        return contact_forces(model, model.retract(q, dq), v + dv).wrenches

    right = [jax.vmap(worth, -1, -1)(x) for x in jax.jacfwd(moved, (0, 1))(zero, zero)]
    for found, expected in zip(contact_derivatives(model, q, v), right, strict=True):
        assert np.abs(expected).max() > 1
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


@pytest.mark.slow
@each_pair
def test_every_pair(kinds):
    model = pair(*kinds, MORE)
    check(model, *touching_state(model))


def arm(joint, world=True):
    """A tree with a joint of a kind in its middle, contacts of two kinds on it, the ground and itself."""
    rng = np.random.default_rng(3)
    builder = ModelBuilder()
    for name, parent, kind in (
        ("base", "world", joints.Free()), ("mid", "base", joint), ("hand", "mid", joints.Revolute()),
        ("other", "base", joints.Prismatic()),
    ):  # fmt: skip
        builder.add_body(name, parent, kind, placement=trees.pose(rng), **trees.body(rng))
    builder.add_frame("palm", "hand", trees.pose(rng)).add_frame("slope", "world", trees.pose(rng))
    builder.add_contact("ground", "palm", contacts.sphere(3.0), against="slope", **LAW)
    builder.add_contact("floor", "other", contacts.sphere(5.0), **LAW)
    palm, other = contacts.capsule(2.0, 1.0), contacts.round_surface(2.0)
    builder.add_contact("self", "palm", palm, other, against="other", **MORE)
    return builder.build()


@pytest.mark.slow
@pytest.mark.parametrize(
    "joint",
    default(
        [joints.Revolute(), joints.Universal(), joints.Spherical(), joints.Planar(), joints.Helical()],
        [joints.Spherical(), joints.Helical()],
    ),
    ids=repr,
)
def test_trees(joint):
    model = arm(joint)
    q = model.random(jax.random.key(1)).at[:3].multiply(0.1)
    v = jnp.asarray(np.random.default_rng(2).normal(size=model.nv))
    assert contact_forces(model, q, v).normal.min() > 0
    check(model, q, v, 1e-11)


@pytest.mark.slow
def test_machines_that_mimic():
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    builder.add_body("a", "world", joints.Revolute(), placement=trees.pose(rng), **trees.body(rng))
    builder.add_body("b", "a", joints.Revolute(), placement=trees.pose(rng), mimic=("a", 2.0, 0.1), **trees.body(rng))
    builder.add_contact("c", "b", contacts.box(1.0, 2.0, 3.0), contacts.plane(3.0), **LAW)
    model = builder.build()
    check(model, jnp.array([0.3]), jnp.array([0.7]))


@pytest.mark.slow
def test_they_are_differentiable_themselves():
    """Second derivatives, which gradients through linearly implicit steps take, against differences."""
    model = pair(Sphere, Plane, MORE)
    q, v = touching_state(model)
    rng = np.random.default_rng(0)
    dq, dv = jnp.asarray(rng.normal(size=(2, model.nv)))

    def value(s):
        return jnp.concatenate(contact_derivatives(model, model.retract(q, s * dq), v + s * dv)).ravel()

    h = 1e-6
    right = (value(h) - value(-h)) / (2 * h)
    slope = jax.jvp(value, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(slope, right, rtol=0, atol=1e-6 * np.abs(right).max())
    weights = jnp.asarray(rng.normal(size=right.size))
    pulled = jax.grad(lambda s: weights @ value(s))(0.0)
    np.testing.assert_allclose(pulled, weights @ slope, rtol=1e-10)
