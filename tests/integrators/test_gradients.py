"""Derivatives through the loop: reverse mode, forward mode and differences on the group agree, whatever is stored."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import Product, RightTranslation, Translation
from tests.integrators.derivatives import Derivatives
from tests.integrators.engines import EXHAUSTIVE, default

ACTION = Product(RightTranslation(lgsim.SO3), Translation(3))
TIME = 1.0


def field(t, state, moments):
    """A rigid body with unequal inertia and a torque that depends on time, attitude and rates."""
    R, w = state
    torque = jnp.cross(moments * w, w) + R[0] * jnp.sin(3 * t) - 0.3 * w
    return jnp.concatenate([w, torque / moments])


Y0 = (lgsim.so3.exp(jnp.array([0.4, 0.2, -0.5])), jnp.array([0.8, 0.5, -0.6]))
ARGS = jnp.array([0.9, 2.0, 2.7])


def scalar(R, w):
    return jnp.sum(jnp.linspace(-1.0, 1.0, 9).reshape(3, 3) * R) + jnp.sum(w**2)


def objective(method, steps, checkpoint="step"):
    """A scalar of the final state, as a function of a tangent at the start, the parameters, t0 and dt."""

    def value(tangent, args, t0, dt):
        y0 = ACTION.move(tangent, Y0)
        settings = {"t0": t0, "dt": dt, "steps": steps, "save_every": steps, "checkpoint": checkpoint}
        R, w = lgsim.integrate(method, ACTION, field, y0, args=args, **settings).ys
        return scalar(R[-1], w[-1])

    return value


def at(steps):
    return jnp.zeros(6), ARGS, jnp.array(0.3), jnp.array(TIME / steps)


def flat(gradients):
    return np.concatenate([np.ravel(g) for g in gradients])


@pytest.mark.slow
@pytest.mark.parametrize("name", default(lgsim.METHODS))
def test_reverse_is_forward_is_difference(name):
    """After 1, 10 and 1000 steps: one program of 1000 steps, of which one saved state is looked at."""

    def value(tangent, args, t0, dt, index):
        y0 = ACTION.move(tangent, Y0)
        ys = lgsim.integrate(lgsim.METHODS[name], ACTION, field, y0, t0=t0, dt=dt, steps=1000, args=args).ys
        return scalar(*(leaf[index] for leaf in ys))

    derivatives = Derivatives(value)
    for steps, dt in ((1, 0.1), (10, 0.1), (1000, 1e-3)):
        derivatives.check((jnp.zeros(6), ARGS, jnp.array(0.3), jnp.array(dt)), (jnp.array(steps),), close=1e-9)


# What a policy keeps is no matter of the method, so these take the one that compiles quickest.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "steps", "policies"),
    [
        ("LieEuler", 29, ("step", 7, "recursive")),
        pytest.param("MK4", 29, ("step", 7, "recursive"), marks=EXHAUSTIVE),
        pytest.param("CF4", 24, (8,), marks=EXHAUSTIVE),
    ],
)
def test_checkpoint_policies_agree(name, steps, policies):
    values = {}
    for checkpoint in (None, *policies):
        function = objective(lgsim.METHODS[name], steps, checkpoint)
        values[checkpoint] = flat(jax.jit(jax.grad(function, (0, 1)))(*at(steps)))
    for found in values.values():
        assert np.max(np.abs(found - values[None])) < 1e-12 * np.max(np.abs(values[None]))


@pytest.mark.slow
def test_checkpoint_policies_agree_with_saved_states():
    def total(args, checkpoint, save_every):
        settings = {"dt": 0.05, "steps": 24, "save_every": save_every, "checkpoint": checkpoint}
        _, w = lgsim.integrate(lgsim.LieEuler, ACTION, field, Y0, args=args, **settings).ys
        return jnp.sum(w[:: 24 // save_every] ** 3)

    gradient = jax.jit(jax.grad(total), static_argnums=(1, 2))
    right = gradient(ARGS, None, 1)
    for save_every, checkpoint in ((6, "step"), (6, 4), (6, "recursive"), (1, "recursive")):
        found = gradient(ARGS, checkpoint, save_every)
        assert jnp.max(jnp.abs(found - right)) < 1e-12 * jnp.max(jnp.abs(right)), (save_every, checkpoint)


@pytest.mark.slow
def test_memory_of_reverse_mode_follows_the_policy():
    def temporary(checkpoint):
        program = jax.jit(jax.grad(objective(lgsim.LieEuler, 4096, checkpoint), (0, 1)))
        return program.lower(*at(4096)).compile().memory_analysis().temp_size_in_bytes

    stored, steps, blocks, recursive = (temporary(c) for c in (None, "step", 64, "recursive"))
    assert recursive < blocks < steps < stored
    assert recursive < steps / 20


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MK4", pytest.param("CG3", marks=EXHAUSTIVE)])
def test_second_order(name):
    function, inputs = objective(lgsim.METHODS[name], 5), at(5)
    hessian = jax.jit(jax.jacfwd(jax.grad(function)))(*inputs)
    assert jnp.all(jnp.isfinite(hessian))
    assert jnp.max(jnp.abs(hessian - hessian.T)) < 1e-10 * jnp.max(jnp.abs(hessian))
    h = 1e-4
    gradient = jax.jit(jax.grad(function))
    for k in range(6):
        e = h * jnp.eye(6)[k]
        column = (gradient(e, *inputs[1:]) - gradient(-e, *inputs[1:])) / (2 * h)
        assert jnp.max(jnp.abs(hessian[:, k] - column)) < 1e-6 * jnp.max(jnp.abs(hessian))


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("name", default(lgsim.METHODS, ("MK4", "CF43")))
def test_gradient_at_rest(name, dtype):
    """A body at rest: the attitude after one step moves with the velocity at the rate dt, not 0 and not NaN."""

    def attitude(w):
        action = RightTranslation(lgsim.SO3)
        run = lgsim.integrate(
            lgsim.METHODS[name], action, lambda t, y, w: w, jnp.eye(3, dtype=dtype), dt=0.25, steps=1, args=w
        )
        return lgsim.so3.vee(run.ys[-1])

    both = jax.jit(lambda w: (jax.jacfwd(attitude)(w), jax.jacrev(attitude)(w)))
    for slope in both(jnp.zeros(3, dtype)):
        assert jnp.allclose(slope, 0.25 * jnp.eye(3, dtype=dtype), rtol=0, atol=2 * np.finfo(dtype).eps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MK4", pytest.param("CF4", marks=EXHAUSTIVE)])
def test_gradient_at_rest_for_unit_quaternions(name):
    def attitude(w):
        action = RightTranslation(lgsim.UnitQuaternion)
        q0 = lgsim.quaternion.identity()
        run = lgsim.integrate(lgsim.METHODS[name], action, lambda t, y, w: w, q0, dt=0.1, steps=3, args=w)
        return lgsim.quaternion.log(run.ys[-1])

    assert jnp.allclose(jax.jit(jax.jacrev(attitude))(jnp.zeros(3)), 0.3 * jnp.eye(3), rtol=0, atol=1e-15)
