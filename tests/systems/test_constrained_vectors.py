"""Systems of vectors with constraints: their numbers beside those of the same systems in other coordinates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems.quaternion_body import free_rigid_body_quaternion

import lgsim
from lgsim.systems import (
    double_spherical_pendulum_constrained,
    free_rigid_body,
    spherical_pendulum,
)
from tests.systems.checks import solve


@pytest.mark.slow
def test_the_pendulum_is_that_of_angular_velocities():
    problem = double_spherical_pendulum_constrained()
    x, v = (np.asarray(part).reshape(2, 3) for part in problem.initial)
    q, rates = np.diff(x, axis=0, prepend=0), np.diff(v, axis=0, prepend=0)
    other = spherical_pendulum(directions=q, angular_velocities=np.cross(q, rates))
    for name in ("energy", "vertical_momentum"):
        values = [float(p.invariants[name](p.initial, p.args)) for p in (problem, other)]
        np.testing.assert_allclose(*values, rtol=1e-14)
    np.testing.assert_allclose(
        float(problem.invariants["energy"](problem.initial, problem.args)), -5.86956023591465, rtol=1e-14
    )
    np.testing.assert_allclose(
        problem.field.energy(problem.initial, problem.args),
        problem.invariants["energy"](problem.initial, problem.args),
        rtol=1e-14,
    )
    end = solve(problem, 0.3, 60, method=lgsim.MK6, drift=1e-9)
    q = np.asarray(solve(other, 0.3, 60, drift=1e-9))[:, :3]
    np.testing.assert_allclose(end[0].reshape(2, 3), np.cumsum(q, axis=0), rtol=0, atol=1e-9)


@pytest.mark.slow
def test_the_multipliers_are_the_forces_in_the_rods():
    """At rest and hanging the rods carry the weights below them, by their lengths."""
    problem = double_spherical_pendulum_constrained(
        masses=(2.0, 3.0), lengths=(1.0, 0.5), positions=[[0, 0, -1.0], [0, 0, -1.5]], velocities=np.zeros((2, 3))
    )
    method = lgsim.methods.VariationalTrapezoid
    found = jax.jit(lambda y: method.multipliers(problem.field, 0.0, y, 0.01, problem.args))(problem.initial)
    np.testing.assert_allclose(found, np.tile([5 * 9.81 / 1.0, 3 * 9.81 / 0.5], (2, 1)), rtol=1e-10)


def test_the_quaternion_is_the_body():
    omega = (0.4, 1.5, -0.7)
    problem, other = free_rigid_body_quaternion(angular_velocity=omega), free_rigid_body(angular_velocity=omega)
    for name in ("kinetic_energy", "angular_momentum"):
        values = [p.invariants[name](p.initial, p.args) for p in (problem, other)]
        np.testing.assert_allclose(*values, rtol=1e-14)
    turned = free_rigid_body_quaternion(
        attitude=lgsim.quaternion.exp(jnp.array([0.3, -0.2, 0.9])), angular_velocity=omega
    )
    assert np.all(np.isfinite(np.asarray(turned.invariants["angular_momentum"](turned.initial, turned.args))))


@pytest.mark.usefixtures("without_import_hook")
def test_bad_input_is_named():
    with pytest.raises(ValueError, match="lengths: expected numbers above zero"):
        double_spherical_pendulum_constrained(lengths=(1.0, 0.0))
    with pytest.raises(ValueError, match="positions, velocities: expected both for 3 masses"):
        double_spherical_pendulum_constrained(masses=(1.0, 1.0, 1.0), lengths=(1.0, 1.0, 1.0))
    with pytest.raises(ValueError, match=r"positions: expected shape \(2, 3\)"):
        double_spherical_pendulum_constrained(positions=np.zeros((2, 2)))
