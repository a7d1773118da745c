"""The Jacobians of inverse and forward dynamics against Pinocchio, and plain AD where that is no oracle."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics import forward_dynamics_derivatives, inverse_dynamics_derivatives
from lgsim.dynamics.forward_dynamics import forward_dynamics
from lgsim.dynamics.inverse_dynamics import inverse_dynamics, newton_euler
from tests.dynamics.machines import lanes
from tests.dynamics.test_inverse_dynamics import largest, wrenches
from tests.multibody import trees
from tests.multibody.twin import Twin

# Pinocchio differentiates as if a joint's columns did not depend on its own coordinates, which those of a composite do.
COMPOSITE = {"screws", "floating"}
ALWAYS = ["floating chain"]


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(ALWAYS, sorted(set(trees.CASES) - COMPOSITE - set(ALWAYS))))
def test_equal_pinocchio(name):
    model = trees.build(*trees.CASES[name], armature=True)
    twin, external = Twin(model), wrenches(model)
    q, v, a = trees.state(model)
    theirs = (twin.q(q), twin.v(v), twin.v(a), twin.forces(external))
    found = inverse_dynamics_derivatives(model, q, v, a, external)
    dq, dv, _ = pin.computeRNEADerivatives(twin.pin, twin.data, *theirs)
    assert largest(found.tau, twin.back(pin.rnea(twin.pin, twin.data, *theirs))) < 1e-12
    assert largest(found.dq, twin.matrix(dq)) < 1e-12
    assert largest(found.dv, twin.matrix(dv)) < 1e-12
    M = pin.crba(twin.pin, twin.data, theirs[0])
    M = twin.matrix(np.triu(M) + np.triu(M, 1).T)
    assert largest(found.da, M) < 1e-12
    limit = max(1e-12, 1e-15 * np.linalg.cond(M))
    pin.computeABADerivatives(twin.pin, twin.data, *theirs)
    found = forward_dynamics_derivatives(model, q, v, a, external)
    assert largest(found.a, np.asarray(forward_dynamics(model, q, v, a, external))) < limit
    assert largest(found.dq, twin.matrix(twin.data.ddq_dq)) < limit
    assert largest(found.dv, twin.matrix(twin.data.ddq_dv)) < limit
    assert largest(found.dtau, np.linalg.inv(M)) < limit


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["screws"], ["floating"]))
def test_equal_the_derivatives_of_the_recursion(name):
    model = trees.build(*trees.CASES[name], armature=True)
    external = wrenches(model)
    q, v, a = trees.state(model)

    def torque(dq, v, a):
        return newton_euler(model, model.retract(q, dq), v, a, external)

    right = jax.jit(jax.jacfwd(torque, (0, 1, 2)))(jnp.zeros(model.nv), v, a)
    found = inverse_dynamics_derivatives(model, q, v, a, external)
    assert largest(found.tau, np.asarray(inverse_dynamics(model, q, v, a, external))) < 1e-12
    for ours, wanted in zip(found[1:], right, strict=True):
        assert largest(ours, np.asarray(wanted)) < 1e-12
    solved = forward_dynamics_derivatives(model, q, v, found.tau, external)
    assert largest(solved.a, np.asarray(a)) < 1e-11
    M = np.asarray(found.da)
    for ours, wanted in zip(solved[1:3], found[1:3], strict=True):
        assert largest(ours, -np.linalg.solve(M, np.asarray(wanted))) < 1e-11


@pytest.mark.parametrize("name", lanes(["two roots"], ["floating chain"]))
def test_batches_are_single_states(name):
    model = trees.build(*trees.CASES[name])
    q, v, tau = trees.state(model, batch=(3,))
    found = forward_dynamics_derivatives(model, q, v, tau)
    one = jax.jit(forward_dynamics_derivatives)
    for i in range(3):
        for ours, wanted in zip(found, one(model, q[i], v[i], tau[i]), strict=True):
            assert largest(ours[i], np.asarray(wanted)) < 1e-12


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute tree"], dtype=jnp.float32)
    twin = Twin(model)
    q, v, tau = trees.state(model)
    found = forward_dynamics_derivatives(model, q, v, tau)
    pin.computeABADerivatives(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(tau))
    assert found.dq.dtype == jnp.float32
    assert largest(found.dq, twin.matrix(twin.data.ddq_dq)) < 1e-4
    assert largest(found.dv, twin.matrix(twin.data.ddq_dv)) < 1e-4


def test_a_second_call_gives_the_same():
    """Buffers of derivatives that are not cleared add up (pinocchio #607)."""
    model = trees.build(["revolute", "prismatic"], [-1, 0])
    q, v, tau = trees.state(model)
    first, second = (forward_dynamics_derivatives(model, q, v, tau) for _ in range(2))
    chex.assert_trees_all_equal(first, second)


def test_orientation_of_a_slide_with_an_offset():
    """A slide turns nothing, wherever it sits (genesis #3087); what hangs on it feels the turned axis."""
    model = trees.build(["prismatic", "prismatic"], [-1, 0])
    q, v, _ = trees.state(model)
    a = jnp.zeros(2)
    found = inverse_dynamics_derivatives(model, q, v, a)
    np.testing.assert_allclose(found.dq, 0.0, atol=1e-13)  # no rotation: forces depend on accelerations alone
    np.testing.assert_allclose(found.dv, 0.0, atol=1e-13)
    axes = [np.asarray(model.placements[0])[:3, :3] @ np.asarray(model.axes[0])]
    axes.append(np.asarray(model.placements[0] @ model.placements[1])[:3, :3] @ np.asarray(model.axes[1]))
    masses = np.asarray(model.inertias[:, 0])
    right = np.array([[masses.sum(), masses[1] * axes[0] @ axes[1]], [masses[1] * axes[0] @ axes[1], masses[1]]])
    np.testing.assert_allclose(found.da, right, rtol=1e-12)
