"""The choice of the step: the rule of the paper, and the history of the sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actions
from lgsim.integrators import adaptive
from lgsim.integrators.adaptive import ElementaryController, solve
from tests.integrators import problems
from tests.integrators.adaptive.test_adaptive import settings
from tests.integrators.problems import flat

LINE = actions.Translation(1)


def elementary_steps(method, problem, tolerance, dt):
    """The paper's algorithm word for word: the accepted steps and the number of rejected ones, up to the end."""
    step = jax.jit(lambda t, y, dt: method.step(problem.action, problem.field, t, y, dt, problem.args))
    t, y, accepted, rejected = problem.t0, problem.initial, [], 0
    end = problem.t0 + problem.time
    while t < end:
        h = min(dt, end - t)
        there, estimate = step(jnp.asarray(t), y, jnp.asarray(h))
        error = np.linalg.norm(np.ravel(estimate))
        dt = 0.85 * (tolerance / error) ** (1 / (method.embedded_order + 1)) * h
        if error < tolerance:
            accepted.append(h)
            t, y = t + h, there
        else:
            rejected += 1
    return np.array(accepted), rejected


@pytest.mark.slow
@pytest.mark.parametrize(("name", "case"), [("MK54", "free body"), ("CF32a", "pendulum"), ("CF43", "pendulum")])
def test_elementary_controller(name, case):
    """Celledoni et al. 2021, (33) with its algorithm: step by step the history of sizes, from a first step too long.

    The algorithm has no bound, so that of the controller is out of reach.
    """
    problem, method = problems.PROBLEMS[case](), lgsim.METHODS[name]
    expected, rejected = elementary_steps(method, problem, 1e-5, 0.5)
    found = solve(
        method, problem.action, problem.field, problem.initial,
        controller=ElementaryController(1e-5, shrink=1e-3), dt0=0.5, save_steps=True, max_steps=400,
        **settings(problem),
    )  # fmt: skip
    assert int(found.rejected) == rejected > 0
    assert found.step_sizes.shape == (int(found.accepted),) and len(expected) > 8
    np.testing.assert_allclose(found.step_sizes, expected, rtol=1e-7)
    assert np.ptp(expected) > 0.2 * expected.max()
    assert np.abs(flat(found.y) - problem.final).max() < 1e-3


def test_elementary_controller_at_the_ends_of_its_range():
    """No error lets the step grow by the bound, and one that is not finite shrinks it until the end is told."""

    def run(field, **more):
        return solve(lgsim.MK54, LINE, field, jnp.ones(1), controller=ElementaryController(1e-6), **more)

    free = run(lambda t, y, args: jnp.ones(1), t1=1000.0, dt0=0.01, save_steps=True, max_steps=20)
    np.testing.assert_allclose(free.step_sizes[:5], 0.01 * 10.0 ** np.arange(5), rtol=1e-9)
    stuck = run(lambda t, y, args: jnp.where(t < 0.5, 1.0, jnp.nan) * y, t1=1.0)
    assert stuck.result == adaptive.RESULTS.stalled and abs(float(stuck.t) - 0.5) < 1e-6
    with pytest.raises(ValueError, match=r"step_sizes: .*save_steps=True"):
        stuck.step_sizes  # noqa: B018
    for wrong, name in (
        ({"tolerance": 0.0}, "tolerance"),
        ({"safety": 1.0}, "safety"),
        ({"grow": 0.5}, "shrink, grow"),
    ):
        with pytest.raises(ValueError, match=f"{name}: expected"):
            ElementaryController(**{"tolerance": 1e-6, **wrong})


def test_a_number_is_no_controller(without_import_hook):
    with pytest.raises(TypeError, match=r"controller: expected a step controller .* got float"):
        solve(lgsim.MK54, LINE, lambda t, y, args: -y, jnp.ones(1), t1=1.0, controller=1e-6)


def jump_of_speed(t, y, switch):
    """Speed 1 before the switch, then 3."""
    return jnp.where(t < switch, 1, 3).astype(y.dtype)[None]


def end_of_jump(switch, y0=0.0, **given):
    y0 = jnp.full(1, y0, switch.dtype)
    return solve(lgsim.MK54, LINE, jump_of_speed, y0, args=switch, jump_times=jnp.stack([switch]), **given).y[0]


def test_steps_end_at_jumps(dtype):
    """The closed form 3 - 2 s, its derivative by the time of the jump, and the same backwards in time.

    No step is rejected, since none sees the jump.
    """
    switches = jnp.array([0.1, 0.3456789, 0.999], dtype)
    value, slope = jax.jit(jax.vmap(jax.value_and_grad(lambda s: end_of_jump(s, t1=1.0))))(switches)
    accuracy = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(value, 3 - 2 * switches, rtol=accuracy)
    np.testing.assert_allclose(slope, -2.0, rtol=accuracy)
    back = jax.vmap(lambda s: end_of_jump(s, 3 - 2 * s, t0=1.0, t1=0.0))(switches)
    np.testing.assert_allclose(back, 0.0, atol=accuracy)


@pytest.mark.parametrize("given", [[0.7, 0.4, 0.4, 5.0, -3.0, 0.0, 1.0], []], ids=["in any order", "none"])
def test_any_times_may_be_given_as_jumps(given):
    switch, y0 = jnp.array(0.4), jnp.zeros(1)
    run = solve(lgsim.MK54, LINE, jump_of_speed, y0, t1=1.0, args=switch, jump_times=given, save_steps=True)
    np.testing.assert_allclose(run.y[0], 2.2, rtol=1e-15 if given else 1e-4)
    assert (int(run.rejected) == 0) == bool(given)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"jump_times": [np.nan]}, "jump_times: expected finite times"),
        ({"jump_times": [[1.0]]}, r"jump_times: expected shape \(n,\), got \(1, 1\)"),
        (
            {"jump_times": [0.5], "controller": ElementaryController(1e-6)},
            "jump_times: not available with a controller",
        ),
    ],
)
def test_jumps_that_are_refused(given, words, without_import_hook):
    with pytest.raises(ValueError, match=words):
        solve(lgsim.MK54, LINE, jump_of_speed, jnp.zeros(1), t1=1.0, args=jnp.array(0.4), **given)
