"""Events that end an adaptive integration, time that runs backwards, and numbers that compile nothing."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipe, ellipk

import lgsim
from lgsim import actions
from lgsim.integrators import adaptive
from lgsim.integrators.adaptive import Event, solve
from tests.integrators.problems import flat

# Events: a pendulum, theta'' = -g sin(theta), on SO(2).

PENDULUM = actions.Product(actions.RightTranslation(lgsim.SO2), actions.Translation(1))


def swing(t, y, g):
    return jnp.concatenate([y[1], -g * y[0][1, :1]])


def sine(t, y, args):
    return y[0][1, 0]


def release(angle):
    return lgsim.so2.exp(angle[None]), jnp.zeros(1)


def time_to_bottom(angle, g, **more):
    """The time at which a pendulum that is released at an angle first hangs down, which is K(sin(angle/2))/sqrt(g)."""
    options = {"t1": 10.0, "args": g, "rtol": 1e-11, "atol": 1e-12, "events": Event(sine), **more}
    return solve(lgsim.MK54, PENDULUM, swing, release(angle), **options)


@pytest.mark.slow
def test_event_time_and_its_derivative():
    angle, g = 2.0, 9.81
    m = np.sin(angle / 2) ** 2
    quarter = ellipk(m) / np.sqrt(g)
    # dK/dm = (E - (1 - m) K) / (2 m (1 - m)),  dm/dangle = sin(angle) / 2
    by_angle = (ellipe(m) - (1 - m) * ellipk(m)) / (2 * m * (1 - m)) * np.sin(angle) / 2 / np.sqrt(g)

    reverse = jax.jit(jax.value_and_grad(lambda a, g: time_to_bottom(a, g).t, (0, 1)))
    time, (slope, slope_g) = reverse(jnp.array(angle), jnp.array(g))
    np.testing.assert_allclose(time, quarter, rtol=0, atol=1e-9)
    np.testing.assert_allclose([slope, slope_g], [by_angle, -quarter / g / 2], rtol=1e-7)

    def forward(a):
        return time_to_bottom(a, jnp.array(g), adjoint=diffrax.ForwardMode()).y[1][0]

    # at the bottom omega = -2 sqrt(g) sin(angle/2)
    rate, rate_slope = jax.jit(lambda a: jax.jvp(forward, (a,), (jnp.ones(()),)))(jnp.array(angle))
    np.testing.assert_allclose(rate, -2 * np.sqrt(g) * np.sin(angle / 2), rtol=1e-9)
    np.testing.assert_allclose(rate_slope, -np.sqrt(g) * np.cos(angle / 2), rtol=1e-7)


@pytest.mark.slow
def test_direction_order_and_batches_of_events():
    """Released at an angle, the sine falls through zero at a quarter of the period and rises at three quarters."""
    events = (Event(sine, rising=True), Event(lambda t, y, args: y[1][0] + 1.0, rising=False))
    quarter = [float(ellipk(np.sin(a / 2) ** 2)) for a in (0.5, 2.0)]

    @jax.jit
    @jax.vmap
    def run(angle):
        options = {"t1": 20.0, "args": jnp.ones(()), "rtol": 1e-9, "save_at": jnp.array([0.1, 1.0, 19.0])}
        return solve(lgsim.MK54, PENDULUM, swing, release(angle), events=events, **options)

    found = run(jnp.array([0.5, 2.0]))
    # omega never reaches -1 from 0.5 rad; from 2 rad it does before the bottom
    np.testing.assert_array_equal(found.event, [[True, False], [False, True]])
    np.testing.assert_allclose(found.t[0], 3 * quarter[0], rtol=0, atol=1e-7)
    assert found.t[1] < quarter[1]
    np.testing.assert_allclose(found.y[1][1], -1.0, rtol=0, atol=1e-12)
    assert np.all(np.isfinite(found.ts[:, :2])) and np.all(np.isinf(found.ts[:, 2]))
    assert jnp.all(found.result == adaptive.RESULTS.event_occurred)
    none = solve(lgsim.MK54, PENDULUM, swing, release(jnp.array(0.5)), t1=1.0, args=jnp.ones(()), events=events)
    assert none.result == adaptive.RESULTS.successful and not np.any(none.event) and float(none.t) == 1.0


def test_two_events_in_one_step():
    """A height is crossed and then another in one long step: the earlier one counts, whatever their order."""
    heights = (Event(lambda t, y, args: y[0] - 3.0), Event(lambda t, y, args: y[0] - 2.0))
    found = solve(
        lgsim.MK54,
        actions.Translation(1),
        lambda t, y, args: jnp.ones(1),
        jnp.zeros(1),
        t1=8.0,
        dt0=8.0,
        events=heights,
    )
    np.testing.assert_allclose(found.t, 2.0, rtol=1e-15)
    np.testing.assert_array_equal(found.event, [False, True])


@pytest.mark.slow
def test_backwards_in_time():
    """From the bottom back to the point of release: conditions and fields see the user's own time."""
    g, t1 = jnp.ones(()), 0.7
    forced = lambda t, y, g: jnp.concatenate([y[1], -g * y[0][1, :1] + 0.3 * jnp.cos(t)[None]])  # noqa: E731
    start = release(jnp.array(1.0))
    there = solve(lgsim.MK54, PENDULUM, forced, start, t1=t1, args=g, rtol=1e-10)
    back = solve(lgsim.MK54, PENDULUM, forced, there.y, t0=t1, t1=-2.0, args=g, rtol=1e-10, dense=True,
                 save_at=[0.5, 0.0], events=Event(lambda t, y, args: t + 0.25))  # fmt: skip
    np.testing.assert_allclose(flat(back.evaluate(0.0)), flat(start), rtol=0, atol=1e-6)
    np.testing.assert_allclose(back.ys[0][1], start[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(back.t, -0.25, rtol=1e-14)


@pytest.mark.slow
def test_new_numbers_compile_nothing():
    """Tolerances, times, states, parameters and the first step are data."""
    traced = []

    def field(t, y, g):
        traced.append(t)
        return swing(t, y, g)

    def run(angle, g, t1, rtol, dt0):
        y0, args = release(jnp.array(angle)), jnp.array(g)
        return solve(
            lgsim.CF32a, PENDULUM, field, y0, t1=t1, args=args, rtol=rtol, dt0=dt0, events=(Event(sine),)
        )  # fmt: skip

    first = run(1.0, 1.0, 1.0, 1e-4, 0.1)
    before = len(traced)
    second = run(0.7, 2.0, 1.2, 1e-5, 0.2)
    assert len(traced) - before == 1  # the check of shapes, which compiles nothing
    assert int(second.accepted) > int(first.accepted)
