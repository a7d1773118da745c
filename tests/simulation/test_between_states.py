"""Extremes and times of crossing between saved states: scipy's DOP853 with dense output, and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar

import lgsim
from lgsim import montecarlo as mc
from lgsim.multibody import joints
from tests.montecarlo import studies

INERTIA = 2.0 * 0.5**2 + 1e-3


def reference(q0, v0, end):
    """The pendulum of ``studies.pendulum`` by DOP853, dense."""

    def rate(t, y):
        return [y[1], (-0.1 * y[1] - 2.0 * 9.81 * 0.5 * np.sin(y[0])) / INERTIA]

    return solve_ivp(rate, (0, end), [q0, v0], method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True).sol


def extreme(sol, f, end, sign):
    """The largest value of sign f by scipy, from a dense grid."""
    t = np.linspace(0, end, 4001)
    i = int(np.argmax(sign * f(*sol(t))))
    found = minimize_scalar(lambda s: -sign * f(*sol(s)), bounds=(t[max(i - 1, 0)], t[min(i + 1, 4000)]),
                            method="bounded", options={"xatol": 1e-12})  # fmt: skip
    return sign * -found.fun, found.x


def angle(t, q, v, model):
    return q[0]


@pytest.fixture(scope="module")
def motion():
    return lgsim.simulate(studies.pendulum(), np.array([0.4]), np.array([4.0]), dt=1e-3, duration=1.6, save_every=40)


def test_extremes_of_a_trajectory_are_those_of_dop853(motion):
    """Saved each 0.04 s: the extremes lie between the states; interpolation has an error h^4 / 384 max |q''''|."""
    sol = reference(0.4, 4.0, 1.6)
    saved, errors = motion.q[:, 0], []
    for found, sign in ((motion.maximum(angle), 1), (motion.minimum(angle), -1)):
        value, time = extreme(sol, lambda q, v: q, 1.6, sign)
        assert abs(found[0] - value) < 2e-6 and abs(found[1] - time) < 1e-4
        errors.append(abs(sign * np.max(sign * saved) - value))
    assert max(errors) > 1e-4  # of the saved states
    # the fastest swing, by the cubic's velocity
    fast, when = motion.maximum(lambda t, q, v, model: jnp.abs(v[0]))
    value, time = extreme(sol, lambda q, v: np.abs(v), 1.6, 1)
    assert abs(fast - value) < 1e-4 and abs(when - time) < 5e-3


def test_times_of_crossing_are_those_of_dop853(motion):
    """Upward and downward roots by Brent's method; never is infinite."""
    sol = reference(0.4, 4.0, 1.6)
    t = np.linspace(0, 1.6, 4001)
    for value, rising in ((0.7, None), (0.7, True), (0.7, False), (-0.3, None), (-0.3, True), (0.4, False)):
        gap = sol(t)[0] - value
        up, down = (gap[:-1] < 0) & (gap[1:] >= 0), (gap[:-1] > 0) & (gap[1:] <= 0)
        hit = np.flatnonzero(up | down if rising is None else up if rising else down)
        found = motion.time_of(angle, value, rising=rising)
        if not len(hit):
            assert found == np.inf
        else:
            wanted = brentq(lambda s, value=value: sol(s)[0] - value, t[hit[0]], t[hit[0] + 1], xtol=1e-13)
            assert abs(found - wanted) < 2e-6
    assert motion.time_of(angle, 3.0) == np.inf
    with pytest.raises(ValueError, match="trajectory: expected at least 2 states, got 1"):
        motion[:1].maximum(angle)


def test_two_crossings_within_one_interval():
    """A ball thrown to 1.0 m passes 0.99 m twice within 0.1 s, between two states saved 0.3 s apart: closed form."""
    builder = lgsim.ModelBuilder()
    builder.add_body("ball", "world", joints.Prismatic(), joint_name="up", axis=[0, 0, 1], mass=1.0)
    speed = np.sqrt(2 * 9.81)
    run = lgsim.simulate(builder.build(), np.array([0.0]), np.array([speed]), dt=0.01, duration=0.9, save_every=30)
    late = (speed - np.sqrt(2 * 9.81 * 0.01)) / 9.81
    assert max(run.q[:, 0]) < 0.99
    np.testing.assert_allclose(run.maximum(angle), [1.0, speed / 9.81], rtol=1e-7)
    np.testing.assert_allclose(run.time_of(angle, 0.99), late, rtol=1e-9)
    down = run.time_of(angle, 0.99, rising=False)
    np.testing.assert_allclose(down, (speed + np.sqrt(2 * 9.81 * 0.01)) / 9.81, rtol=1e-9)
    # it starts at 0, and crosses it when it falls back, after the end
    assert run.time_of(angle) == np.inf


def test_extremes_on_a_group():
    """A ball that turns at a constant rate about a fixed axis, saved each 80 degrees: the largest height of a point."""
    builder = lgsim.ModelBuilder()
    builder.add_body("ball", "world", joints.Spherical(), mass=1.0, inertia=0.1 * np.eye(3))
    model = builder.build()
    run = lgsim.simulate(model, None, np.array([0.0, 1.4, 0.0]), dt=0.1, duration=3.0, save_every=10)

    def height(t, q, v, model):
        return lgsim.quaternion.Ad(q)[2, 0]  # -sin(angle)

    np.testing.assert_allclose(run.maximum(height), [-np.sin(4.2), 3.0], atol=1e-12)
    np.testing.assert_allclose(run.minimum(height), [-1.0, np.pi / 2 / 1.4], atol=2e-8)
    np.testing.assert_allclose(run.time_of(height, -0.5), np.pi / 6 / 1.4, rtol=1e-12)


def study(save_every, **more):
    run = mc.Rollout(studies.pendulum(), np.array([0.4]), dt=0.01, steps=120, save_every=save_every)
    outputs = {"low": mc.outputs.minimum(angle), "high": mc.outputs.maximum(angle),
               "when": mc.outputs.time_of(angle, -0.9, rising=False), "end": mc.outputs.final_q}  # fmt: skip
    return mc.Study({"v0": mc.Uniform(jnp.array([2.0]), jnp.array([6.0]))}, run, outputs, samples=64, tile=32, **more)


@pytest.mark.slow
def test_outputs_at_every_step():
    """Whatever save_every is; by DOP853 within the stated error of the steps; a speed too small never gets there."""
    coarse = mc.run(study(60, failures={"soon": lambda y: y["when"] < 0.9}))
    fine = mc.run(study(1), step_check=False)
    for name in ("low", "high", "when", "end"):
        np.testing.assert_allclose(coarse.column(name), fine.column(name), rtol=0, atol=1e-12)
    v0 = [float(coarse.study.sample(i).values["v0"][0]) for i in range(64)]
    wanted = np.full((64, 3), np.inf)
    for i, v in enumerate(v0):
        sol = reference(0.4, v, 1.2)
        wanted[i, :2] = extreme(sol, lambda q, v: q, 1.2, -1)[0], extreme(sol, lambda q, v: q, 1.2, 1)[0]
        t = np.linspace(0, 1.2, 2001)
        gap = sol(t)[0] + 0.9
        hit = np.flatnonzero((gap[:-1] > 0) & (gap[1:] <= 0))
        if len(hit):
            wanted[i, 2] = brentq(lambda s, sol=sol: sol(s)[0] + 0.9, t[hit[0]], t[hit[0] + 1], xtol=1e-13)
    found = np.stack([coarse.column(name) for name in ("low", "high", "when")], axis=1)
    assert 5 < np.isinf(wanted[:, 2]).sum() < 59
    np.testing.assert_allclose(found[:, :2], wanted[:, :2], rtol=0, atol=2e-7)
    np.testing.assert_allclose(found[:, 2], wanted[:, 2], rtol=0, atol=1e-6)
    error = np.abs(found[:, 0].mean() - wanted[:, 0].mean())
    stated = coarse.step_error.outputs["low"]["mean"].value
    assert coarse.step_error.resolved and error < 3 * float(stated) + 1e-12
    soon = coarse.failures("soon")
    assert (soon.count, soon.samples) == ((wanted[:, 2] < 0.9).sum(), 64) and coarse.running.diverged == 0


@pytest.mark.slow
def test_derivatives_of_extremes_and_times():
    """Of the largest height (1/2 v^2 / g) and of the time of a height, with respect to the speed: closed forms."""
    builder = lgsim.ModelBuilder()
    builder.add_body("ball", "world", joints.Prismatic(), joint_name="up", axis=[0, 0, 1], mass=1.0)
    run = mc.Rollout(builder.build(), dt=0.05, steps=40)

    @jax.jit
    def both(v):
        motion = run({"v0": v[None]})
        return jnp.stack([mc.outputs.maximum(angle)(motion), mc.outputs.time_of(angle, 0.3)(motion)])

    v = jnp.array(4.0)
    root = np.sqrt(16 - 2 * 9.81 * 0.3)
    np.testing.assert_allclose(both(v), [8 / 9.81, (4 - root) / 9.81], rtol=1e-10)
    wanted = [4 / 9.81, (1 - 4 / root) / 9.81]
    np.testing.assert_allclose(jax.jit(jax.jacrev(both))(v), wanted, rtol=1e-7)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(both))(v), wanted, rtol=1e-7)
