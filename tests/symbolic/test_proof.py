"""Identities of mechanics proved on machines with symbols; what is wrong is not proved."""

import jax
import jax.numpy as jnp
import pytest

from lgsim import symbolic
from lgsim.dynamics import (
    bias_forces,
    coriolis_matrix,
    forward_dynamics,
    inverse_dynamics,
    kinetic_energy,
    mass_matrix,
    potential_energy,
    square_factors,
    torque_regressor,
)
from tests.symbolic import machines

pytest.importorskip("sympy")


def rate(machine, q, v):
    return jax.jvp(lambda q: mass_matrix(machine, q), (q,), (machine.rate(q, v),))[1]


def skew(machine, q, v):
    N = rate(machine, q, v) - 2 * coriolis_matrix(machine, q, v)
    return N + N.T


def not_skew(machine, q, v):
    N = rate(machine, q, v) + 2 * coriolis_matrix(machine, q, v)
    return N + N.T


def inverse_dynamics_by_parts(machine, q, v, a):
    return mass_matrix(machine, q) @ a + bias_forces(machine, q, v) - inverse_dynamics(machine, q, v, a)


def power(machine, q, v, a):
    """The rate of the energy is the power of the joint forces."""
    along = machine.rate(q, v)
    energy = jax.jvp(
        lambda q, v: kinetic_energy(machine, q, v) + potential_energy(machine, q), (q, v), (along, a)
    )[1]  # fmt: skip
    return energy - inverse_dynamics(machine, q, v, a) @ v


def regressor(machine, q, v, a):
    return torque_regressor(machine, q, v, a) @ machine.inertias.ravel() - inverse_dynamics(machine, q, v, a)


def factors(machine, q):
    """Propositions 1 and 2 of Ploen and Park 1999."""
    L, omega, Y = square_factors(machine, q)
    M, identity = mass_matrix(machine, q), jnp.eye(machine.nv)
    D = jnp.diag(omega)
    inverse = Y.T @ jnp.diag(1 / omega) @ Y
    return L @ D @ L.T - M, Y @ L - identity, inverse @ M - identity


def inverse(machine, q, v, a):
    return forward_dynamics(machine, q, v, inverse_dynamics(machine, q, v, a)) - a


@pytest.mark.repeats
@pytest.mark.parametrize("machine", [machines.double_pendulum, machines.cart_pole, machines.three_joints])
@pytest.mark.parametrize("identity", [skew, inverse_dynamics_by_parts])
def test_identities_of_a_chart_hold(identity, machine):
    proof = symbolic.prove(identity, machine())
    assert proof, proof
    assert "proved" in repr(proof)


@pytest.mark.repeats
@pytest.mark.parametrize("machine", [machines.three_joints, machines.with_mimic, machines.helical])
def test_power_is_the_rate_of_the_energy(machine):
    assert symbolic.prove(power, machine())


@pytest.mark.slow
@pytest.mark.parametrize("identity", [inverse_dynamics_by_parts, power, regressor, skew])
@pytest.mark.parametrize("machine", [machines.free_body, pytest.param(machines.floating, marks=pytest.mark.exhaustive)])
def test_identities_in_global_coordinates_hold(identity, machine):
    assert symbolic.prove(identity, machine())


def test_forces_are_linear_in_the_parameters():
    assert symbolic.prove(regressor, machines.three_joints())


@pytest.mark.repeats
@pytest.mark.parametrize("machine", [machines.double_pendulum, machines.planar_arm, machines.spatial_arm])
def test_square_factors_of_ploen_and_park(machine):
    assert symbolic.prove(factors, machine(), division=True)


def test_forward_dynamics_is_the_inverse_of_inverse_dynamics():
    assert symbolic.prove(inverse, machines.cart_pole(), division=True)


def test_what_is_wrong_is_not_proved():
    proof = symbolic.prove(not_skew, machines.double_pendulum())
    assert not proof
    assert proof.remainders
    assert "not so" in repr(proof)
    assert not symbolic.prove(lambda m, q: mass_matrix(m, q)[0, 1], machines.double_pendulum())
    assert not symbolic.prove(lambda m, q: factors(m, q)[0] + 1, machines.double_pendulum(), division=True)
