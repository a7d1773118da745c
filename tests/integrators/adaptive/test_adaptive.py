"""Adaptive steps on manifolds: tolerance, dense output and failures."""

import subprocess
import sys
from functools import cache

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from systems.three_body import three_body

import lgsim
from lgsim import actions
from lgsim.integrators import adaptive
from lgsim.integrators.adaptive import Event, solve
from lgsim.integrators.adaptive.solver import GroupSolver
from lgsim.systems import euler_poisson
from tests.integrators import problems
from tests.integrators.problems import body_derivative, flat

EMBEDDED = [name for name, method in lgsim.METHODS.items() if method.embedded_order is not None]
EVERY_METHOD = pytest.mark.parametrize("name", EMBEDDED)


def settings(problem, **more):
    return {"t0": problem.t0, "t1": problem.t0 + problem.time, "args": problem.args, **more}


@cache
def body_trajectory():
    """The free body of ``problems`` as a function of time, by scipy on plain matrices."""
    body = problems.free_body()
    inertia = np.asarray(body.args)
    found = solve_ivp(
        lambda t, y: body_derivative(t, y, inertia),
        (0.0, 4.0),
        flat(body.initial),
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
        t_eval=np.linspace(0.0, 4.0, 65),
    )
    return found.t, found.y.T


def gap(y):
    """How far rotations are from being orthogonal."""
    return np.abs(np.swapaxes(y, -1, -2) @ y - np.eye(3)).max()


def rows(ys):
    """All entries of each saved state."""
    return np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(ys)], axis=1)


# Tolerance.


@pytest.mark.repeats
@EVERY_METHOD
def test_error_is_proportional_to_the_tolerance(name):
    """Against Jacobi's closed form, over four decades and more; the state stays on the group."""
    problem, tolerances = problems.free_body(), np.array([1e-4, 1e-5, 1e-6, 1e-7, 1e-8])
    errors = []
    for tolerance in tolerances:
        found = solve(
            lgsim.METHODS[name],
            problem.action,
            problem.field,
            problem.initial,
            **settings(problem, rtol=tolerance, atol=1e-3 * tolerance, max_steps=10**5),
        )
        assert found.result == adaptive.RESULTS.successful and found.message == ""
        assert float(found.t) == problem.t0 + problem.time
        assert gap(np.asarray(found.y[0])) < 8 * np.sqrt(int(found.accepted)) * np.finfo(float).eps
        errors.append(np.abs(flat(found.y) - problem.final).max())
    slope = np.polyfit(np.log(tolerances), np.log(errors), 1)[0]
    assert 0.9 < slope < 1.1
    assert np.all(errors < 50 * tolerances)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("name", "case"), [("MK54", "heavy top"), ("MK54", "pendulum"), ("CF43", "product"), ("CF32a", "pendulum")]
)
def test_other_manifolds(name, case):
    """Translations from either side, products, and an orbit that no group element can be read off."""
    problem = problems.PROBLEMS[case]()
    found = solve(
        lgsim.METHODS[name], problem.action, problem.field, problem.initial, **settings(problem, rtol=1e-8, atol=1e-9)
    )
    assert np.abs(flat(found.y) - problem.final).max() < 1e-6


@pytest.mark.slow
def test_three_bodies():
    """The chain of Park and Chung against scipy on its entries."""
    problem = three_body()

    @jax.jit
    def derivative(y):
        pose, z = y[:16].reshape(4, 4), y[16:]
        xi = problem.field(0.0, (pose, z), problem.args)
        return jnp.concatenate([(pose @ lgsim.se3.hat(xi[:6])).ravel(), xi[6:]])

    oracle = solve_ivp(
        lambda t, y: np.asarray(derivative(y)), (0, 2), flat(problem.initial), method="DOP853", rtol=1e-12, atol=1e-12
    )
    found = solve(lgsim.MK54, problem.action, problem.field, problem.initial, t1=2.0, args=problem.args, rtol=1e-9)
    assert np.abs(flat(found.y) - oracle.y[:, -1]).max() < 1e-8


def test_steps_do_not_depend_on_the_place_on_the_group():
    """A free body that starts in another attitude takes the same steps."""
    problem = problems.free_body()
    turn = lgsim.so3.exp(jnp.array([0.3, -1.2, 0.7]))
    plain, turned = (
        solve(lgsim.MK54, problem.action, problem.field, (R, problem.initial[1]), **settings(problem, rtol=1e-7))
        for R in (problem.initial[0], turn)
    )
    assert int(plain.accepted) == int(turned.accepted) and int(plain.rejected) == int(turned.rejected) > 0
    np.testing.assert_allclose(turned.y[0], turn @ plain.y[0], rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.float32
@EVERY_METHOD
def test_float32(name):
    """Saved states, an event and tolerances in single precision."""
    problem, (_, exact) = problems.free_body(), body_trajectory()
    initial, args = jax.tree.map(lambda a: a.astype(jnp.float32), (problem.initial, problem.args))
    found = solve(
        lgsim.METHODS[name],
        problem.action,
        problem.field,
        initial,
        t1=2.0,
        args=args,
        rtol=1e-4,
        atol=1e-5,
        save_at=[1.0, 2.0],
        events=Event(lambda t, y, args: t - 1.5),
    )
    assert {leaf.dtype for leaf in jax.tree.leaves((found.t, found.y, found.ts, found.ys))} == {np.dtype("float32")}
    assert found.result == adaptive.RESULTS.event_occurred
    np.testing.assert_allclose(found.t, 1.5, rtol=0, atol=1e-6)
    np.testing.assert_allclose(flat(found.y), exact[24], rtol=0, atol=1e-3)
    np.testing.assert_allclose(rows(found.ys)[0], exact[16], rtol=0, atol=1e-3)
    assert np.isinf(found.ts[1])


# Between the steps.


@pytest.mark.repeats("CF32b")
@EVERY_METHOD
def test_dense_output_has_the_order_of_the_method(name):
    """Halved constant steps: the states between them are as good as those at their ends."""
    problem = problems.free_body()
    times, exact = body_trajectory()
    method, errors = lgsim.METHODS[name], []
    for steps in (24, 48, 96):
        found = solve(
            method,
            problem.action,
            problem.field,
            problem.initial,
            t1=4.0,
            args=problem.args,
            dt0=4.0 / steps,
            dense=True,
            max_steps=100,
            controller=diffrax.ConstantStepSize(),
        )
        assert int(found.accepted) == steps
        ys = found.evaluate(times)
        assert gap(np.asarray(ys[0])) < 1e-14 * steps
        errors.append(np.abs(rows(ys) - exact).max())
    orders = np.log2(np.divide(errors[:-1], errors[1:]))
    assert np.all(orders > method.order - 0.25)


@pytest.mark.slow
def test_saved_times_and_steps():
    problem = problems.free_body()
    times, exact = body_trajectory()

    def run(**more):
        return solve(lgsim.MK54, problem.action, problem.field, problem.initial, t1=4.0, args=problem.args, **more)

    saved = run(rtol=1e-8, save_at=times)
    np.testing.assert_array_equal(saved.ts, times)
    assert np.abs(rows(saved.ys) - exact).max() < 1e-7
    clipped = diffrax.ClipStepSizeController(diffrax.PIDController(rtol=1e-8, atol=1e-8), step_ts=times)
    landed = run(controller=clipped, save_at=times)
    assert np.abs(rows(landed.ys) - exact).max() < 1e-8
    stepped = run(rtol=1e-8, save_steps=True, dense=True, max_steps=200)
    count = int(stepped.accepted) + 1
    ts, ys = stepped.ts[:count], jax.tree.map(lambda a: a[:count], stepped.ys)
    assert float(ts[0]) == 0.0 and float(ts[-1]) == 4.0 and np.all(np.isinf(stepped.ts[count:]))
    np.testing.assert_allclose(rows(stepped.evaluate(ts)), rows(ys), rtol=0, atol=1e-14)
    np.testing.assert_allclose(flat(stepped.evaluate(1.0)), exact[16], rtol=0, atol=1e-7)
    assert np.all(np.isnan(flat(stepped.evaluate(4.5))))


class Turn(actions.Action):
    """Rotations acting on vectors, with nothing but the one verb that every method needs."""

    @property
    def dim(self):
        return 3

    def move(self, xi, y):
        return lgsim.so3.exp(xi) @ y


@pytest.mark.slow
def test_an_action_with_one_verb():
    """A vector turned at a changing rate about a fixed axis, by methods that need only ``move``."""
    axis = jnp.array([0.0, 0.6, 0.8])
    found = solve(
        lgsim.CF43,
        Turn(),
        lambda t, y, axis: axis * (1 + jnp.cos(3 * t)),
        jnp.array([1.0, 0.0, 0.0]),
        t1=3.0,
        args=axis,
        rtol=1e-9,
        dense=True,
    )
    times = np.linspace(0, 3, 31)
    angle = times + np.sin(3 * times) / 3
    exact = np.cos(angle)[:, None] * np.array([1.0, 0, 0]) + np.sin(angle)[:, None] * np.cross(axis, [1.0, 0, 0])
    np.testing.assert_allclose(found.evaluate(times), exact, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MK54", "CF43"])
def test_many_turns_in_one_step(name):
    """A constant spin is solved exactly, so steps grow over several turns; the way between is still known."""
    spin = jnp.array([0.0, 0.0, 5.0])
    found = solve(
        lgsim.METHODS[name],
        actions.RightTranslation(lgsim.SO3),
        lambda t, y, spin: spin,
        jnp.eye(3),
        t1=50.0,
        args=spin,
        dense=True,
        max_steps=64,
    )
    assert int(found.accepted) < 20  # steps of more than two turns
    times = np.linspace(0, 50, 101)
    ys = np.asarray(found.evaluate(times))
    np.testing.assert_allclose(ys[:, 1, 0], np.sin(5 * times), rtol=0, atol=1e-11)


@pytest.mark.slow
def test_orbits_are_kept():
    """The Casimirs of the coadjoint action, at saved points and between them."""
    problem = euler_poisson()
    found = solve(
        lgsim.MK54, problem.action, problem.field, problem.initial, t1=5.0, args=problem.args, rtol=1e-3, dense=True
    )
    mu = np.asarray(found.evaluate(np.linspace(0, 5, 50)))
    for casimir in (np.sum(mu[:, :3] ** 2, axis=1), np.sum(mu[:, :3] * mu[:, 3:], axis=1)):
        assert np.abs(casimir - casimir[0]).max() < 1e-13


# What goes wrong.

LINE = actions.Translation(1)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("field", "y0", "time"),
    [
        (lambda t, y, args: y**2, 1.0, 1.0),  # y = 1/(1 - t)
        (lambda t, y, args: jnp.where(t < 0.5, 1.0, jnp.nan) * y, 1.0, 0.5),
        (lambda t, y, args: jnp.nan * y, 1.0, 0.0),
    ],
    ids=["blow-up", "not a number later", "not a number"],
)
def test_failures_say_when(field, y0, time):
    found = solve(lgsim.MK54, LINE, field, jnp.array([y0]), t1=3.0, rtol=1e-7)
    assert found.result == adaptive.RESULTS.stalled
    np.testing.assert_allclose(found.t, time, rtol=0, atol=1e-6)
    assert np.all(np.isfinite(found.y))
    assert f"t = {float(found.t):.9g}: The step shrank" in found.message


def test_too_many_steps():
    found = solve(lgsim.MK54, LINE, lambda t, y, args: -y, jnp.ones(1), t1=100.0, max_steps=10)
    assert found.result == adaptive.RESULTS.max_steps_reached
    assert 0 < float(found.t) < 100 and int(found.accepted) + int(found.rejected) == 10
    assert "max_steps" in found.message


def test_wrong_arguments_are_named():
    def run(method=lgsim.MK54, **more):
        return solve(method, LINE, lambda t, y, args: -y, jnp.ones(1), **{"t1": 1.0, **more})

    with pytest.raises(ValueError, match=r"method: .* no error estimate.*MK54, CF32a, CF32b, CF43"):
        run(lgsim.MK4)
    with pytest.raises(ValueError, match=r"save_at: expected times in order from t0 = 0\.0 to t1 = 1\.0"):
        run(save_at=[0.5, 1.5])
    with pytest.raises(ValueError, match="save_at: expected None together with save_steps"):
        run(save_at=[0.5], save_steps=True)
    with pytest.raises(ValueError, match="rtol: expected a positive number"):
        run(rtol=0.0)
    with pytest.raises(
        ValueError, match=r"rtol, atol: expected a sum of at least 8\.9e-16, 4 rounding units of float64"
    ):
        run(rtol=1e-20, atol=1e-23)
    assert run(rtol=1e-20, atol=1e-9, max_steps=10_000).accepted > 0  # one of them may be out of play
    with pytest.raises(ValueError, match=r"at least 4\.8e-07, 4 rounding units of float32, got 1e-08 and 1e-09"):
        solve(lgsim.MK54, LINE, lambda t, y, args: -y, jnp.ones(1, jnp.float32), t1=1.0, rtol=1e-8, atol=1e-9)
    with pytest.raises(ValueError, match=r"events\[0\]: expected a condition with a scalar"):
        run(events=Event(lambda t, y, args: y))
    with pytest.raises(ValueError, match=r"evaluate: .*dense=True"):
        run().evaluate(0.5)
    with pytest.raises(TypeError, match=r"action: Munthe-Kaas .* needs dexpinv"):
        solve(lgsim.MK54, Turn(), lambda t, y, args: y, jnp.ones(3), t1=1.0)


def test_a_term_of_a_vector_space_is_refused():
    """``diffrax.ODETerm`` would broadcast an algebra vector to the state's shape."""
    with pytest.raises(ValueError, match="AlgebraTerm"):
        diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: jnp.ones(3)),
            GroupSolver(lgsim.MK54, actions.RightTranslation(lgsim.SO3)),
            0.0,
            1.0,
            0.1,
            jnp.eye(3),
        )


def test_without_diffrax():
    program = """
import sys
sys.modules["diffrax"] = None
import lgsim
try:
    import lgsim.integrators.adaptive
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'lgsim[adaptive]'" in found.stdout
