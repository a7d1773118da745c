"""Regressors: against Pinocchio, and as derivatives of what they regress."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.regressor import energy_regressor, momentum_regressor, torque_regressor
from lgsim.multibody.inertia import PARAMETERS
from tests.dynamics.machines import close, lanes, mass_by_columns, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin


def in_order(twin, columns):
    """Pinocchio's columns, ten for each joint in its order, in the order of the model's bodies."""
    blocks = np.asarray(columns).reshape(*columns.shape[:-1], -1, 10)
    return blocks[..., [j - 1 for j in twin.ids], :].reshape(columns.shape)


@pytest.mark.slow
@pytest.mark.parametrize("case", lanes(["floating chain"], ["groups", "floating"]))
def test_equals_pinocchio(case):
    model = trees.build(*trees.CASES[case])
    twin = Twin(model)
    q, v, a = trees.state(model)
    Y = torque_regressor(model, q, v, a)
    pi = model.inertias.reshape(-1)
    close(Y @ pi, inverse_dynamics(model, q, v, a))
    expected = pin.computeJointTorqueRegressor(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(a))
    close(Y, in_order(twin, expected[twin.v_index]))
    kinetic, potential = energy_regressor(model, q, v)
    close(kinetic, in_order(twin, pin.computeKineticEnergyRegressor(twin.pin, twin.data, twin.q(q), twin.v(v))))
    close(potential, in_order(twin, pin.computePotentialEnergyRegressor(twin.pin, twin.data, twin.q(q))))


def test_order_of_the_parameters():
    V = jnp.array([0.3, -0.2, 0.5, 1.0, 2.0, 4.0])
    Phi = momentum_regressor(V)
    np.testing.assert_array_equal(Phi[:, PARAMETERS.index("m")], [0.3, -0.2, 0.5, 0, 0, 0])
    np.testing.assert_array_equal(Phi[3:, PARAMETERS.index("Iyz")], [0, 4, 2])
    np.testing.assert_array_equal(Phi[:3, PARAMETERS.index("mx")], [0, 4, -2])  # w x e_x


@pytest.mark.slow
def test_is_the_derivative_by_the_parameters():
    """With joints that mimic, where the peer refuses; the armature stays outside."""
    model = mimicking()
    q, v, a = jnp.array([0.4, -1.1]), jnp.array([0.3, 0.8]), jnp.array([-0.6, 1.2])
    torques = jax.jacfwd(lambda pi: inverse_dynamics(model.replace(inertias=pi.reshape(-1, 10)), q, v, a))
    close(torque_regressor(model, q, v, a), jax.jit(torques)(model.inertias.reshape(-1)))
    kinetic = energy_regressor(model, q, v).kinetic @ model.inertias.reshape(-1)
    bare = model.replace(armature=jnp.zeros(2))
    np.testing.assert_allclose(kinetic, 0.5 * v @ mass_by_columns(bare, q) @ v, rtol=1e-13)


def test_does_not_lose_digits_far_from_the_origin():
    model = trees.build(["free", "revolute"], [-1, 0])
    q, v, a = trees.state(model)
    near = torque_regressor(model, q, v, a)
    q = q.at[:3].add(jnp.array([1e6, -2e6, 3e6]))
    np.testing.assert_array_equal(torque_regressor(model, q, v, a), near)


@pytest.mark.slow
def test_batch_is_one_by_one():
    model = trees.build(["revolute", "prismatic"], [-1, 0])
    q, v, a = trees.state(model, batch=(2,))
    Y = torque_regressor(model, q, v, a)
    energies = energy_regressor(model, q, v)
    assert Y.shape == (2, model.nv, 20)
    for i in range(2):
        close(Y[i], torque_regressor(model, q[i], v[i], a[i]), 1e-14)
        for found, one in zip(energies, energy_regressor(model, q[i], v[i]), strict=True):
            close(found[i], one, 1e-14)
