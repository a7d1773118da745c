"""Energy, center of mass and momentum: against Pinocchio, and their balances."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.energy import kinetic_energy, potential_energy, spring_energy
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.kinematics import forward_kinematics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.dynamics.momentum import (
    center_of_mass,
    center_of_mass_jacobian,
    center_of_mass_velocity,
    centroidal_momentum,
    centroidal_momentum_matrix,
    centroidal_momentum_matrix_rate,
    centroidal_momentum_rate,
)
from tests.dynamics.machines import close, lanes, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", lanes(["floating chain"], ["two roots", "revolute chain", "screws", "groups", "floating", "one free body"])
)
def test_momentum_equals_pinocchio(case):
    model = trees.build(*trees.CASES[case], armature=True)
    twin = Twin(model)
    q, v, a = trees.state(model)
    P, D, Q = twin.pin, twin.data, twin.q(q)
    close(centroidal_momentum_matrix(model, q), twin.back(pin.computeCentroidalMap(P, D, Q)))
    right = pin.computeCentroidalMomentumTimeVariation(P, D, Q, twin.v(v), twin.v(a))
    close(centroidal_momentum_rate(model, q, v, a), right.vector)


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(["floating chain"], ["two roots", "screws", "one free body"]))
def test_energy_and_center_equal_pinocchio(case):
    model = trees.build(*trees.CASES[case])  # the peer's kinetic energy has the armature of some joints only
    twin = Twin(model)
    q, v, _ = trees.state(model)
    P, D, Q, V = twin.pin, twin.data, twin.q(q), twin.v(v)
    close(kinetic_energy(model, q, v), pin.computeKineticEnergy(P, D, Q, V))
    close(potential_energy(model, q), pin.computePotentialEnergy(P, D, Q))
    close(center_of_mass(model, q), pin.centerOfMass(P, D, Q))
    close(centroidal_momentum(model, q, v), pin.computeCentroidalMomentum(P, D, Q, V).vector)


def test_velocity_and_jacobian_of_the_center_equal_pinocchio():
    model = trees.build(*trees.CASES["floating chain"])
    twin = Twin(model)
    q, v, _ = trees.state(model)
    pin.centerOfMass(twin.pin, twin.data, twin.q(q), twin.v(v))
    close(center_of_mass_velocity(model, q, v), twin.data.vcom[0])
    close(center_of_mass_jacobian(model, q), twin.back(pin.jacobianCenterOfMass(twin.pin, twin.data, twin.q(q))))


@pytest.mark.parametrize("case", lanes(["floating chain"], ["revolute tree", "two free bodies"]))
def test_rate_of_the_matrix_equals_pinocchio(case):
    """Machines without joints that Pinocchio composes of others: it leaves out how their screws move in each other."""
    model = trees.build(*trees.CASES[case])
    twin = Twin(model)
    q, v, _ = trees.state(model)
    pin.centerOfMass(twin.pin, twin.data, twin.q(q), twin.v(v))  # the next call reads the velocity that this one leaves
    right = pin.computeCentroidalMapTimeVariation(twin.pin, twin.data, twin.q(q), twin.v(v))
    close(centroidal_momentum_matrix_rate(model, q, v), twin.back(right))


MACHINES = {"mimic": mimicking(), "screws": trees.build(*trees.CASES["screws"], armature=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["mimic"], ["screws"]))
def test_matrix_and_its_rate(name):
    """``h = A v``, ``h' = A a + A' v``, and A' is the derivative of A."""
    model = MACHINES[name]
    q, v, a = trees.state(model)
    A, rate = centroidal_momentum_matrix(model, q), centroidal_momentum_matrix_rate(model, q, v)
    close(A @ v, centroidal_momentum(model, q, v))
    close(A @ a + rate @ v, centroidal_momentum_rate(model, q, v, a))
    step = 1e-6
    ahead, behind = (centroidal_momentum_matrix(model, model.retract(q, s * v)) for s in (step, -step))
    close(rate, (ahead - behind) / (2 * step), 1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(["floating chain"], ["revolute tree"]))
def test_power_balance(case):
    """The power of the joint forces is the rate of the energy, and v'Mv/2 its kinetic part."""
    model = trees.build(*trees.CASES[case], armature=True)
    q, v, a = trees.state(model)

    def energy(q, v):
        return kinetic_energy(model, q, v) + potential_energy(model, q)

    _, rate = jax.jit(lambda q, v, a: jax.jvp(energy, (q, v), (model.rate(q, v), a)))(q, v, a)
    close(inverse_dynamics(model, q, v, a) @ v, rate)
    close(v @ mass_matrix(model, q) @ v / 2, kinetic_energy(model, q, v))


def test_momentum_balance():
    """The rate of the momentum of a floating machine is gravity and all wrenches about the center of mass.

    Without them it is zero while the joints move (crocoddyl issue 979).
    """
    model = trees.build(*trees.CASES["floating chain"])
    q, v, a = trees.state(model)
    external = jnp.asarray(np.random.default_rng(5).normal(size=(model.topology.bodies, 6)))

    @jax.jit
    def balance(wrenches):
        # the base's acceleration that takes no force in the base
        tau, M = inverse_dynamics(model, q, v, a, wrenches), mass_matrix(model, q)
        free = a.at[:6].add(-jnp.linalg.solve(M[:6, :6], tau[:6]))
        T, c = forward_kinematics(model, q), center_of_mass(model, q)
        f = jnp.einsum("bij,bj->bi", T[:, :3, :3], wrenches[:, :3])
        n = jnp.einsum("bij,bj->bi", T[:, :3, :3], wrenches[:, 3:]) + jnp.cross(T[:, :3, 3] - c[None], f)
        weight = model.inertias[:, 0].sum() * model.gravity
        expected = jnp.concatenate([f.sum(0) + weight, n.sum(0)])
        return centroidal_momentum_rate(model, q, v, free), expected

    for wrenches in (external, 0 * external):
        close(*balance(wrenches))


def test_springs():
    model = trees.build(["revolute", "spherical"], [-1, 0])
    model = model.replace(stiffness=jnp.array([3.0, 1.0, 1.0, 1.0]), rest=jnp.array([0.5, 1.0, 1.0, 1.0]))
    q = model.neutral().at[0].set(2.5)
    np.testing.assert_allclose(spring_energy(model, q), 0.5 * 3.0 * 4.0, rtol=1e-15)


def test_far_from_the_worlds_origin():
    """The momentum about the center of mass does not depend on where the base is, to the last digit."""
    model = trees.build(*trees.CASES["floating chain"])
    q, v, a = trees.state(model)
    far = q.at[:3].add(1e9)
    np.testing.assert_array_equal(centroidal_momentum(model, far, v), centroidal_momentum(model, q, v))
    np.testing.assert_array_equal(centroidal_momentum_matrix(model, far), centroidal_momentum_matrix(model, q))
    np.testing.assert_array_equal(centroidal_momentum_rate(model, far, v, a), centroidal_momentum_rate(model, q, v, a))


@pytest.mark.slow
def test_batches_are_single_states():
    model = trees.build(["revolute", "prismatic"], [-1, 0])
    q, v, a = trees.state(model, batch=(2, 2))
    functions = [
        (kinetic_energy, (q, v)),
        (potential_energy, (q,)),
        (spring_energy, (q,)),
        (center_of_mass, (q,)),
        (center_of_mass_velocity, (q, v)),
        (center_of_mass_jacobian, (q,)),
        (centroidal_momentum, (q, v)),
        (centroidal_momentum_rate, (q, v, a)),
        (centroidal_momentum_matrix, (q,)),
        (centroidal_momentum_matrix_rate, (q, v)),
    ]
    for f, x in functions:
        np.testing.assert_allclose(f(model, *x)[1, 0], f(model, *(y[1, 0] for y in x)), rtol=1e-13, atol=1e-13)


@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute tree"], dtype=jnp.float32)
    twin = Twin(model)
    q, v, _ = trees.state(model)
    A, c = centroidal_momentum_matrix(model, q), center_of_mass(model, q)
    assert A.dtype == c.dtype == kinetic_energy(model, q, v).dtype == jnp.float32
    close(A, twin.back(pin.computeCentroidalMap(twin.pin, twin.data, twin.q(q))), 5e-6)
    close(c, pin.centerOfMass(twin.pin, twin.data, twin.q(q)), 2e-6)
