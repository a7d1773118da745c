"""Stops that follow from a machine's own masses: how fast, how far, how much they take, and where there are none."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import rollout, simulate, with_stops
from lgsim.simulation.stops import CONTACT_TIME, RESTITUTION, resolved_contact_time
from tests.multibody import trees

STILL = (0.0, 0.0, 0.0)


def slide(gravity=STILL, **numbers):
    """A cart of 2 kg on a rail from -1 to 1 m."""
    numbers = {"lower": -1.0, "upper": 1.0, "mass": 2.0} | numbers
    return lgsim.ModelBuilder(gravity=gravity).add_body("cart", "world", joints.Prismatic(), **numbers).build()


def bounce(model, speed, dt=1e-5):
    """(depth, time beyond the limit, speed after it) of the cart that arrives at its upper limit."""
    steps = round(3 * CONTACT_TIME / dt)
    out = rollout(model, jnp.ones(1), jnp.array([speed]), dt=dt, steps=steps)
    q, v = np.asarray(out.q[:, 0]), np.asarray(out.v[:, 0])
    back = int(np.argmax((q < 1) & (v < 0)))
    return q.max() - 1, back * dt, v[-1]


def impact(speed, limit):
    """(depth, speed after) of Hunt and Crossley's integral, m = 2, for a motor of the speed limit."""
    a = brentq(lambda x: np.log((1 + x) / (1 - x / 2)) - 1.5 * x, 0.5, 1.9) / limit
    omega = np.pi / CONTACT_TIME
    into = speed / a - np.log1p(a * speed) / a**2
    after = brentq(lambda w: -w / a - np.log1p(-a * w) / a**2 - into, 1e-12, (1 - 1e-12) / a)
    return np.sqrt(2 * into) / omega, after


def test_a_slow_contact_lasts_the_contact_time():
    """The closed form of a spring: half a period, and ``v/omega`` deep."""
    model = with_stops(slide())
    np.testing.assert_allclose(model.limit_stiffness, 2.0 * (np.pi / 0.02) ** 2, rtol=1e-14)
    depth, time, after = bounce(model, 1e-4)
    np.testing.assert_allclose([time, depth, after], [CONTACT_TIME, 1e-4 * CONTACT_TIME / np.pi, -1e-4], rtol=1e-3)
    slower = with_stops(slide(), 0.1)
    np.testing.assert_allclose(slower.limit_stiffness * 25, model.limit_stiffness, rtol=1e-14)


@pytest.mark.parametrize("limit", [4.0, 0.25])
@pytest.mark.parametrize("share", [0.3, 1.0, 5.0])
def test_depth_and_loss_of_an_impact(limit, share):
    """At the velocity limit half of the speed is left, whatever the limit; the rest is the integral of the motion."""
    depth, _, after = bounce(with_stops(slide(velocity_limit=limit)), share * limit)
    deep, left = impact(share * limit, limit)
    np.testing.assert_allclose([depth, -after], [deep, left], rtol=1e-5)
    assert depth < share * limit * CONTACT_TIME / np.pi
    if share == 1.0:
        np.testing.assert_allclose(-after, RESTITUTION * limit, rtol=1e-5)


@pytest.mark.parametrize("limit", [0.0, np.inf])
def test_without_a_velocity_limit_it_is_that_of_one_meter_a_second(limit):
    _, _, after = bounce(with_stops(slide(velocity_limit=limit)), 1.0)
    np.testing.assert_allclose(after, -0.5, rtol=1e-5)


@pytest.mark.quick
def test_a_hinge_stays_near_its_limits():
    """A hinge of +-0.1 rad that falls to 0.71 rad without stops; with them no farther than v contact_time/pi."""
    rod = {"axis": [0, 1, 0], "mass": 1.0, "center": [0, 0, -0.5], "inertia": 0.02 * np.eye(3)}
    rod = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), lower=-0.1, upper=0.1, **rod).build()
    start = jnp.array([0.0]), jnp.array([3.0])
    free = simulate(rod, *start, duration=2.0, dt=1e-3)
    assert np.abs(free.q).max() > 0.7
    held = simulate(with_stops(rod), *start, duration=2.0, dt=1e-3)
    beyond = np.abs(held.q).max() - 0.1
    assert 0.005 < beyond < 3.0 * CONTACT_TIME / np.pi
    assert held.energy.max() < held.energy[0] + 1e-4 and held.result == ""
    # the summary sees it
    assert [use.kind for use in held.limit_uses] == ["position"] and held.summary().warnings


def test_a_load_presses_it_its_force_by_the_stiffness():
    """Gravity on the cart along the rail, after all motion has died in a damper."""
    model = with_stops(slide((9.81, 0, 0), axis=[1, 0, 0], damping=200.0))
    out = rollout(model, jnp.ones(1), jnp.zeros(1), dt=1e-3, steps=400)
    np.testing.assert_allclose(out.q[-1, 0] - 1, 2 * 9.81 / model.limit_stiffness[0], rtol=1e-6)


def test_inertias_are_those_that_the_joints_feel():
    """``1/(M^-1)_ii``, by the definition: the acceleration of the joint under a force of its own alone."""
    model = trees.build(["revolute", "prismatic", "universal"], [-1, 0, 1]).replace(lower=-1.0, upper=1.0)
    found = with_stops(model)
    q, zero = model.neutral(), jnp.zeros(model.nv)
    still = model.replace(gravity=jnp.zeros(3))
    for i in range(model.nv):
        a = lgsim.forward_dynamics(still, q, zero, zero.at[i].set(1.0))
        np.testing.assert_allclose(found.limit_stiffness[i] * a[i], (np.pi / CONTACT_TIME) ** 2, rtol=1e-9)
    M = np.asarray(lgsim.mass_matrix(model, q))
    rates = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, np.diag(found.limit_stiffness))).real)
    assert rates.max() <= np.sqrt(model.nv) * np.pi / CONTACT_TIME


def test_a_ball_is_held_by_its_smallest_inertia():
    limit = {"lower": [0, 0, -0.3], "upper": [0.5, np.pi, 0.3], "inertia": np.diag([0.3, 0.2, 0.1])}
    model = lgsim.ModelBuilder().add_body("ball", "world", joints.Spherical(), mass=1.0, **limit).build()
    k = 0.1 * (np.pi / CONTACT_TIME) ** 2
    np.testing.assert_allclose(with_stops(model).limit_stiffness, [k, 0, k], rtol=1e-12)


def test_where_there_are_no_stops():
    """No limits, a length of zero, stops that are there already."""
    assert with_stops(slide(lower=-np.inf, upper=np.inf)).limit_stiffness[0] == 0
    assert with_stops(slide(lower=0.0, upper=0.0)).limit_stiffness[0] == 0
    own = with_stops(slide(limit_stiffness=7.0, limit_damping=3.0))
    assert (own.limit_stiffness[0], own.limit_damping[0]) == (7.0, 3.0)
    one_end = with_stops(slide(upper=np.inf))
    assert one_end.limit_stiffness[0] > 0
    # machines without limits need no mass matrix
    with_stops(slide(mass=0.0, lower=-np.inf, upper=np.inf))


@pytest.mark.float32
def test_dtype_follows_the_model(dtype):
    builder = lgsim.ModelBuilder(dtype=dtype)
    model = builder.add_body("cart", "world", joints.Prismatic(), mass=2.0, lower=-1.0, upper=1.0).build()
    assert with_stops(model).drives.dtype == dtype


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"contact_time: expected a positive number of seconds, got 0"):
        with_stops(slide(), 0.0)
    with pytest.raises(ValueError, match=r"contact_time: .* got nan"):
        with_stops(slide(), float("nan"))
    with pytest.raises(ValueError, match="model: joint 'cart' moves without inertia"):
        with_stops(slide(mass=0.0))


@pytest.mark.slow
def test_an_arm_stays_within_its_limits_and_gains_nothing():
    """Seven joints from the middle of their ranges, without friction and gravity: with stops they pass limits by less
    than a tenth of half a range, without by more than a half; what the stops take is never given back."""
    model = lgsim.load_urdf(lgsim.data.arm7()).replace(damping=0.0, friction=0.0, gravity=jnp.zeros(3))
    start = (model.lower + model.upper) / 2, jnp.asarray(2 * np.random.default_rng(0).normal(size=7))
    free, held = (simulate(machine, *start, duration=2.0, dt=1e-3) for machine in (model, with_stops(model)))
    parts = [max(use.part for use in motion.limit_uses if use.kind == "position") for motion in (free, held)]
    assert parts[0] > 1.5 and 1 < parts[1] < 1.1
    assert held.energy[-1] < 0.9 * held.energy[0] and held.energy.max() < held.energy[0] * (1 + 1e-6)


def test_steps_resolve_the_contact():
    """A cart that hits its stop at twice its velocity limit stays finite and bounces, at steps of 1, 5 and 50 ms."""
    for dt in (1e-3, 5e-3, 5e-2):
        time = resolved_contact_time(dt)
        assert time == max(CONTACT_TIME, 10 * dt)
        out = simulate(with_stops(slide(velocity_limit=2.0), time), jnp.ones(1), jnp.array([4.0]), duration=20 * time,
                       dt=dt)  # fmt: skip
        assert out.result == "" and np.abs(out.q).max() < 1 + 4.0 * time / np.pi
        assert np.abs(out.v[-1]) < 4.0
