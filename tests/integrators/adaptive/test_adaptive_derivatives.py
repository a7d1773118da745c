"""Derivatives through adaptive steps."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions
from lgsim.integrators.adaptive import ElementaryController, solve
from tests.integrators import problems
from tests.integrators.adaptive.test_adaptive_events import PENDULUM, release, swing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "controller", "dense"),
    [
        ("MK54", diffrax.PIDController(rtol=1e-10, atol=1e-11), True),
        pytest.param("CF43", ElementaryController(1e-11), False, marks=pytest.mark.exhaustive),
        pytest.param("CF32a", diffrax.PIDController(rtol=1e-9, atol=1e-10), False, marks=pytest.mark.exhaustive),
    ],
    ids=["MK54", "CF43", "CF32a"],
)
def test_gradients(name, controller, dense):
    """Reverse and forward mode against differences, of the end, of a saved state and of the dense output."""
    problem = problems.top()
    R, w = problem.initial
    weight = jnp.linspace(-1.0, 1.0, 9).reshape(3, 3)

    def value(x, adjoint):
        """A scalar of the motion, as a function of a rotation at the start, the rates and the weight."""
        y0 = R @ lgsim.so3.exp(x[:3]), w + x[3:6]
        args = problem.args._replace(weight_moment=problem.args.weight_moment * (1 + x[6]))
        found = solve(
            lgsim.METHODS[name], problem.action, problem.field, y0, t1=0.5, args=args, controller=controller,
            save_at=jnp.array([0.2]) if dense else None, dense=dense, adjoint=adjoint,
        )  # fmt: skip
        total = jnp.sum(weight * found.y[0]) + found.y[1][0]
        if dense:
            total = total + jnp.sum(found.ys[1] ** 2) + jnp.sum(weight * found.evaluate(0.3)[0])
        return total

    zero, h = jnp.zeros(7), 1e-3
    plain = jax.jit(lambda x: value(x, None))
    sides = jnp.stack([plain(k * h * e) for k in (1, -1, 2, -2) for e in jnp.eye(7)]).reshape(4, 7)
    differences = (8 * (sides[0] - sides[1]) - (sides[2] - sides[3])) / (12 * h)
    scale = np.abs(differences).max()
    reverse = jax.jit(jax.grad(plain))(zero)
    forward = jax.jit(jax.jacfwd(lambda x: value(x, diffrax.ForwardMode())))(zero)
    assert np.abs(reverse - differences).max() < 1e-6 * scale
    assert np.abs(forward - reverse).max() < 1e-11 * scale


@pytest.mark.slow
@pytest.mark.parametrize("controller", [None, ElementaryController(1e-6)], ids=["PID", "elementary"])
def test_gradient_at_rest(controller):
    """A body at rest, whose error is zero: the attitude moves with the velocity at the rate t1."""

    def attitude(w, adjoint):
        action = actions.RightTranslation(lgsim.SO3)
        settings = {"t1": 0.25, "max_steps": 16, "controller": controller, "adjoint": adjoint}
        return lgsim.so3.vee(solve(lgsim.MK54, action, lambda t, y, w: w, jnp.eye(3), args=w, **settings).y)

    forward = jax.jit(jax.jacfwd(lambda w: attitude(w, diffrax.ForwardMode())))(jnp.zeros(3))
    reverse = jax.jit(jax.jacrev(lambda w: attitude(w, None)))(jnp.zeros(3))
    for slope in (forward, reverse):
        np.testing.assert_allclose(slope, 0.25 * np.eye(3), rtol=0, atol=1e-14)


@pytest.mark.slow
def test_direct_adjoint_knows_both_modes():
    def end(g):
        return solve(
            lgsim.CF32a, PENDULUM, swing, release(jnp.array(1.0)), t1=0.5, args=g, rtol=1e-3, max_steps=16,
            adjoint=diffrax.DirectAdjoint(),
        ).y[1][0]  # fmt: skip

    forward, reverse = jax.jit(lambda g: (jax.jacfwd(end)(g), jax.grad(end)(g)))(jnp.ones(()))
    np.testing.assert_allclose(forward, reverse, rtol=1e-12)
    assert abs(forward) > 0.1


@pytest.mark.parametrize(
    "adjoint", [diffrax.BacksolveAdjoint(), diffrax.ImplicitAdjoint()], ids=lambda a: type(a).__name__
)
def test_adjoints_of_vector_spaces_are_refused(adjoint):
    with pytest.raises(ValueError, match=f"adjoint: {type(adjoint).__name__} .*R\\^n.*RecursiveCheckpointAdjoint"):
        solve(lgsim.MK54, PENDULUM, swing, release(jnp.array(1.0)), t1=1.0, args=jnp.ones(()), adjoint=adjoint)
