"""Rates of machines: eigenvalues against closed forms, the joint and the cause in words, the limits of methods."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions, joints
from lgsim.integrators.methods import METHODS
from lgsim.integrators.stability import amplification, largest_step, unstable
from lgsim.simulation.accuracy.stiffness import unstable_mode
from lgsim.simulation.equations_of_motion import equations_of_motion, state_space
from lgsim.simulation.fixed_steps import Steps
from lgsim.simulation.motion_field import motion_jacobian
from tests.integrators.engines import default
from tests.simulation.test_stiff_motion import MACHINES, control, machine, push, start, stiff_pendulum

INERTIA = 0.05 + 1.3 * 0.16


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
def test_jacobian_is_the_derivative_in_the_chart(name):
    model = machine(name)
    y, action, t = start(model), state_space(model), jnp.asarray(0.3)
    args = (model, control, push), None

    def rate(sigma):
        return action.dexpinv(sigma, equations_of_motion(t, action.move(sigma, y), args))

    found, inverse_mass, _ = jax.jit(lambda y: motion_jacobian(t, y, args))(y)
    right = jax.jit(jax.jacfwd(rate))(jnp.zeros(action.dim))
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-14 * np.abs(right).max())
    np.testing.assert_allclose(
        inverse_mass @ lgsim.mass_matrix(model, y[: model.nq]), np.eye(model.nv), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", default(METHODS, ["LieEuler", "MK4", "CF4", "CG4", "MK54"]))
def test_amplification_is_that_of_a_step(name):
    """Every explicit method, on y' = lambda y of complex numbers as a matrix."""
    method, modes = METHODS[name], np.array([-0.5 + 0.3j, 1.3j, -2.9, 0.4 - 2j], complex)

    @jax.jit
    @jax.vmap
    def step(z):
        A = jnp.array([[z[0], -z[1]], [z[1], z[0]]])
        return method.step(
            actions.Translation(2), lambda t, y, args: A @ y, jnp.zeros(()), jnp.array([1.0, 0.0]), jnp.ones(()), None
        )[0]

    found = np.asarray(step(jnp.stack([modes.real, modes.imag], axis=1)))
    np.testing.assert_allclose(found @ [1, 1j], amplification(method.tableau, modes), rtol=0, atol=1e-13)


def test_known_limits():
    """The real and the imaginary limit of RK4 (Hairer, Wanner II, IV.2), 2.7853 and 2.8284, and 5 % of growth."""
    damped, swinging = np.array([-1000 + 0j]), np.array([1000j, -1000j])
    assert abs(1000 * largest_step(lgsim.MK4.tableau, damped, 0.01) - 2.7853) < 0.04
    assert abs(1000 * largest_step(lgsim.MK4.tableau, swinging, 0.01) - 2.8284) < 0.04
    assert largest_step(lgsim.MK4.tableau, damped, 0.002) == float("inf")
    # a mode that grows by itself is not the method's fault
    assert not unstable(lgsim.MK4.tableau, np.array([30 + 0j]), 0.1).any()
    for name, method in lgsim.LINEARLY_IMPLICIT_METHODS.items() | lgsim.IMPLICIT_METHODS.items():
        assert not unstable(method.tableau, np.array([-1e9 + 0j, -1e4 + 1e4j]), 1.0).any(), name


def steps(model, control=None, method=lgsim.MK4):
    return Steps(model, control, None, None, method, 0.01)


CASES = {
    "damping 1e+04 on 0.26 kg m^2": (stiff_pendulum(1e4), None, 1e4 / INERTIA),
    "dry friction 0.5 N m at 0.001 rad/s, on 0.26 kg m^2": (
        stiff_pendulum(0.0, friction_speed=1e-3), None, 500 / INERTIA
    ),
    "damping 3e+03 of the control on 0.26 kg m^2": (stiff_pendulum(0.0), (0.0, 3e3), 3050 / INERTIA),
    "stiffness 1e+05 of the control on 0.26 kg m^2": (stiff_pendulum(0.0), (1e5, 0.0), np.sqrt(1e5 / INERTIA)),
    "stiffness 1e+05 on 0.26 kg m^2": (
        stiff_pendulum(0.0).replace(stiffness=jnp.array([1e5])), None, np.sqrt(1e5 / INERTIA)
    ),
}  # fmt: skip


@pytest.mark.parametrize("cause", CASES)
def test_rate_joint_and_cause(cause):
    """The closed form of the pendulum's rates; moving fast does not hide dry friction, which is steepest at rest."""
    model, gains, rate = CASES[cause]
    state = np.array([[0.2, 2.0]])

    def drive(t, q, v, model):
        return -gains[0] * q - gains[1] * v

    found = unstable_mode(steps(model, None if gains is None else drive), [0.5], state)
    assert abs(found.rate / rate - 1) < 0.03
    assert str(found) == f"rates up to {found.rate:.2g} 1/s at joint {model.joint_names[0]} ({cause})"
    assert found.time == 0.5 and 2.5 < found.rate * found.largest_step < 3
    assert unstable_mode(steps(model, method=lgsim.Rodas4), [0.5], state) is None


def test_what_moves_slowly_has_none():
    model = stiff_pendulum(0.1)
    state = np.array([[0.2, 0.3], [np.nan, 0.0]])
    assert unstable_mode(steps(model), [0.0, 0.1], state) is None
    assert unstable_mode(steps(model), [0.0], state[1:]) is None


def test_a_singular_mass_matrix():
    """In the singularity of a gimbal rounding makes inverse inertias negative: still a joint and a cause are named."""
    builder = lgsim.ModelBuilder()
    builder.add_body("outer", "world", joints.Revolute(), axis=[1, 0, 0])
    builder.add_body("inner", "outer", joints.Revolute(), axis=[0, 1, 0])
    builder.add_body(
        "body", "inner", joints.Revolute(), axis=[0, 0, 1], mass=1.0, center=[0.05, 0.02, 0.1],
        inertia=np.diag([0.02, 0.03, 0.04]),
    )  # fmt: skip
    model = builder.build()
    y = np.random.default_rng(0).normal(size=(8, 6))
    y[:, 1] = np.pi / 2 - 1e-9
    args = ((model, None, None), None)
    inverse = jax.jit(jax.vmap(lambda y: jnp.diag(motion_jacobian(jnp.asarray(0.0), y, args)[1])))(jnp.asarray(y))
    assert (inverse < 0).any()
    for state in y:
        found = unstable_mode(steps(model), [0.0], state[None])
        assert found is not None and found.joint in model.joint_names and " on -" not in found.cause
