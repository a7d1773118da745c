"""Hamiltonians that depend on time: the fields that they make, against Radau on equations written down by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import lgsim
from lgsim.actions import Coadjoint, LeftTranslation

INERTIA, STEPS = jnp.array([1.0, 2.0, 3.0]), 200


def swelling(t, momentum, args):
    """A body whose moments of inertia grow."""
    return 0.5 * jnp.sum(momentum**2 / INERTIA) / (1 + 0.3 * jnp.sin(2 * t))


def exact(start, end=2.0):
    def slope(t, y):
        return np.cross(y, y / np.asarray(INERTIA)) / (1 + 0.3 * np.sin(2 * t))

    return solve_ivp(slope, (0, end), start, method="Radau", rtol=1e-11, atol=1e-12).y[:, -1]


def test_lie_poisson_field():
    start = jnp.array([1.0, 0.2, -0.6])
    field = lgsim.LiePoissonField(swelling, depends_on_time=True)
    run = lgsim.integrate(lgsim.MK4, Coadjoint(lgsim.SO3), field, start, dt=2.0 / STEPS, steps=STEPS, save_every=STEPS)
    np.testing.assert_allclose(run.ys[-1], exact(np.asarray(start)), atol=1e-8)


@pytest.mark.slow
def test_hamiltonian_field_of_a_body_momentum():
    start = jnp.array([1.0, 0.2, -0.6])  # at R = 1 the momentum in space and in the body are the same
    energy = lgsim.BodyMomentumHamiltonian(lgsim.SO3, lambda t, R, momentum, args: swelling(t, momentum, args))
    field = lgsim.HamiltonianField(lgsim.SO3, energy, depends_on_time=True)
    action = LeftTranslation(lgsim.Cotangent(lgsim.SO3))
    run = lgsim.integrate(lgsim.MK4, action, field, (jnp.eye(3), start), dt=2.0 / STEPS, steps=STEPS, save_every=STEPS)
    R, space = (y[-1] for y in run.ys)
    np.testing.assert_allclose(space, start, atol=1e-8)  # no torque: it is kept
    np.testing.assert_allclose(R.T @ space, exact(np.asarray(start)), atol=1e-8)
