"""Defects of other libraries, in the dynamics as a whole: forward dynamics, its derivatives, frames of free bodies.

Those that one algorithm can have stand beside the tests of that algorithm, each with its citation.
"""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics import (
    center_of_mass,
    centroidal_momentum,
    forward_dynamics,
    forward_dynamics_derivatives,
    forward_kinematics,
    frame_jacobian,
    frame_twists,
)
from lgsim.lie import se3
from tests.dynamics.machines import close
from tests.multibody import trees
from tests.multibody.twin import Twin


@pytest.fixture(scope="module")
def derivatives():
    return jax.jit(forward_dynamics_derivatives)


@pytest.mark.slow
def test_massless_link_inside_a_tree(derivatives):
    """A link without mass or inertia that carries others (mujoco #1349, pinocchio #62): finite and right."""
    model = trees.build(["revolute"] * 4, [-1, 0, 1, 1])
    twin = Twin(model)
    twin.pin.inertias[twin.ids[1]] = pin.Inertia.Zero()
    twin.data = twin.pin.createData()
    model = model.replace(inertias=model.inertias.at[1].set(0))
    q, v, tau = trees.state(model)
    M = pin.crba(twin.pin, twin.data, twin.q(q))
    bound = max(1e-12, 1e-15 * np.linalg.cond(np.triu(M) + np.triu(M, 1).T))
    found = derivatives(model, q, v, tau)
    pin.computeABADerivatives(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(tau))
    close(found.a, twin.back(twin.data.ddq), bound)
    close(found.dq, twin.matrix(twin.data.ddq_dq), bound)
    close(found.dv, twin.matrix(twin.data.ddq_dv), bound)
    close(forward_dynamics(model, q, v, tau), twin.back(twin.data.ddq), bound)


def test_massless_leaf_held_by_its_armature(derivatives):
    """What the drive alone resists moves as the drive alone would, and does not disturb the rest (mujoco #1349)."""
    model = trees.build(["revolute"] * 4, [-1, 0, 1, 1])
    model = model.replace(inertias=model.inertias.at[3].set(0), armature=model.armature.at[3].set(0.5))
    q, v, tau = trees.state(model)
    found = derivatives(model, q, v, tau)
    np.testing.assert_allclose(found.a[3], tau[3] / 0.5, rtol=1e-13)
    np.testing.assert_allclose(found.dtau[3], [0, 0, 0, 2], rtol=0, atol=1e-13)
    chex.assert_tree_all_finite(found)
    turned = derivatives(model, q.at[3].add(1.0), v, tau)
    close(turned.a, found.a)


@pytest.mark.slow
def test_quaternions_of_any_length(derivatives):
    """Drake #10654, raisim #33: forces, Jacobians and derivatives are those of the direction, and differentiable.

    ``jax.grad`` finds nothing along the norm, and along the tangent what the explicit derivative says.
    """
    model = trees.build(["free", "spherical", "revolute"], [-1, 0, 1])
    q, v, tau = trees.state(model)
    scale = jnp.ones(model.nq).at[3:7].set(3.0).at[7:11].set(0.2)
    scaled = q * scale
    unit, other = derivatives(model, q, v, tau), derivatives(model, scaled, v, tau)
    for a, b in zip(other, unit, strict=True):
        close(a, b)
    jacobian = jax.jit(lambda q: frame_jacobian(model, q, "body2"))
    close(jacobian(scaled), jacobian(q))
    by_numbers = jax.jit(jax.jacfwd(lambda q: forward_dynamics(model, q, v, tau)))(scaled)
    rates = jax.vmap(lambda e: model.rate(scaled, e), out_axes=1)(jnp.eye(model.nv))
    close(by_numbers @ rates, unit.dq)
    for part in (slice(3, 7), slice(7, 11)):
        along = by_numbers[:, part] @ scaled[part]
        np.testing.assert_allclose(along, 0, rtol=0, atol=1e-12 * np.abs(by_numbers).max())


@pytest.mark.slow
def test_every_sample_of_a_batch_has_its_own_inertia(derivatives):
    """Differentiable-robot-model #31: a batch of inertias was the first one's; so too for gradients."""
    model = trees.build(["revolute"] * 4, [-1, 0, 1, 1])
    q, v, tau = trees.state(model)
    rng = np.random.default_rng(4)
    inertias = jnp.asarray(np.stack([np.asarray(model.inertias) * rng.uniform(0.5, 2, (4, 1)) for _ in range(3)]))

    def heft(inertias):
        return jnp.sum(forward_dynamics(model.replace(inertias=inertias), q, v, tau) ** 2)

    one = jax.jit(jax.value_and_grad(heft))
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(heft)))(inertias)
    for i, sample in enumerate(inertias):
        value, slope = one(sample)
        close(values[i], value)
        close(slopes[i], slope)
        found = derivatives(model.replace(inertias=sample), q, v, tau)
        close(jnp.sum(found.a**2), value)
    assert np.ptp(values) > 0.1 * np.abs(values).max()


@pytest.mark.slow
def test_calls_do_not_add_up(derivatives):
    """Pinocchio #607: derivatives kept what the call before had left, here of another state and other wrenches."""
    model = trees.build(["free", "spherical", "revolute"], [-1, 0, 1])
    q, v, tau = trees.state(model)
    first = derivatives(model, q, v, tau)
    derivatives(model, *trees.state(model, seed=1))
    forward_dynamics_derivatives(model, q, v, tau, jnp.ones((3, 6)))
    for again, before in zip(derivatives(model, q, v, tau), first, strict=True):
        np.testing.assert_array_equal(again, before)


@pytest.mark.slow
def test_velocity_of_a_free_body_is_that_of_its_origin():
    """Newton #1350, #2206: with the center of mass elsewhere, twist, Jacobian and motion speak of the same point."""
    model = trees.build(["free"], [-1])
    center = np.array([0.3, -0.2, 0.5])
    mass = float(model.inertias[0, 0])
    model = model.replace(inertias=model.inertias.at[0, 1:4].set(mass * center))
    q, v, _ = trees.state(model)
    twist, T = frame_twists(model, q, v)[0], forward_kinematics(model, q)[0]
    close(twist, v)
    close(frame_jacobian(model, q, "body0") @ v, v)
    along = lambda f: jax.jit(lambda q, v: jax.jvp(f, (q,), (model.rate(q, v),)))(q, v)  # noqa: E731
    _, moved = along(lambda q: forward_kinematics(model, q)[0])
    close(moved[:3, 3], T[:3, :3] @ v[:3])
    close(moved, T @ se3.hat(v))
    # the momentum is the mass times the velocity of the center of mass, which is another one
    _, speed = along(lambda q: center_of_mass(model, q))
    close(speed, T[:3, :3] @ (v[:3] + jnp.cross(v[3:], jnp.asarray(center))))
    close(centroidal_momentum(model, q, v)[:3], mass * speed)
    assert np.abs(speed - moved[:3, 3]).max() > 0.1
