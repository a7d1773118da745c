"""Comparison of the discrete rotation vectors on ten systems: errors, iterations, cost."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import robots

import lgsim
from cases.variational.machines import TEN, energy_error, machine
from cases.variational.motions import EVERY, follow, program, timed
from lgsim import Newton, VariationalTree
from lgsim.dynamics import ROTATION_MAPS
from lgsim.dynamics.discrete.discrete_newton import trial


def position_error(model, q, ends):
    """The largest error of a joint, rad or m."""
    return float(np.abs(model.difference(ends, q)).max())


def iterations(model, name, q, v, dt, steps=200, most=30):
    """(mean, most) of the iterations from the extrapolated displacement that leave an error of 1e-12 of the step.

    Newton's method converges quadratically: iterations up to the first change of at most 1e-6 count.
    """
    change, small = trial(ROTATION_MAPS[name]), jnp.asarray(1e-8)

    def step(h, state, _):
        q, p, d, before = state

        def further(x):
            return (x[1] < most) & ~(x[2] <= 1e-6)

        def iterate(x):
            d, count, _ = x
            found = change(model, q, p, d, h, small)
            return d + found.change, count + 1, found.correction

        d1, count, _ = jax.lax.while_loop(further, iterate, (2 * d - before, 0, jnp.asarray(jnp.inf)))
        end = change(model, q, p, d1, h, small).p
        return (model.retract(q, d1), end, d1, d), count

    @jax.jit
    def run(q, v, h):
        start = q, lgsim.generalized_momentum(model, q, v), h * v, h * v
        return jax.lax.scan(partial(step, h), start, None, length=steps)[1]

    counts = np.asarray(run(q, v, jnp.asarray(dt)))
    return counts.mean(), counts.max()


def ten_robots(report):
    """Errors of each map on ten systems."""
    duration, dt, rows, failed, ratios = (
        (5.0 if report.quick else 20.0),
        5e-3,
        [],
        0,
        {name: [] for name in ROTATION_MAPS},
    )
    for machine_name in ("double pendulum",) if report.quick else TEN:
        model, q, v = machine(machine_name)
        joints = slice(6 if model.topology.floats else 0, None)
        fine, _ = program(model, lgsim.MK4, q, v, 4000, 4000)
        end = fine(q, v, 0.25e-3)[0][-1]
        mean, most = iterations(model, "quaternion", q, v, dt)
        for name in ROTATION_MAPS:
            run, _ = program(model, VariationalTree(name), q, v)
            states = follow(run, q, v, dt, duration)
            found = [np.asarray(x) for x in states]
            failed += not all(np.isfinite(x).all() for x in found)
            error = position_error(model, states[0][round(1 / dt / EVERY)], end)
            rates = np.abs(found[1][:, joints]).max(axis=0)
            ratios[name].append(error)
            rows.append(
                [machine_name, name, error, energy_error(model, *states), rates.max(), np.median(rates), mean, most]
            )
    report.table(
        f"Ten systems at rates of robots, steps of 5 ms: position at 1 s (MK4 at 0.25 ms), energy over {duration:g} s",
        ["system", "map", "error, rad or m", "energy / kinetic", "top rate, rad/s", "median joint's", "iterations",
         "most"],
        rows,
    )  # fmt: skip
    shares = {name: float(np.exp(np.mean(np.log(np.divide(x, ratios["quaternion"]))))) for name, x in ratios.items()}
    report.table(
        "Position errors relative to those of the map quaternion, geometric mean",
        list(shares),
        [list(shares.values())],
    )
    report.bound("motions of the ten systems that failed", failed, at_most=0)


def costs(report):
    """Cost of a step with each map, batch of 256."""
    rows = []
    for machine_name in ("arm of 7",) if report.quick else ("arm of 7", "ANYmal", "Talos"):
        model, _, _ = machine(machine_name)
        q, v, _ = robots.state(model, 256)
        cost = {}
        for name in ROTATION_MAPS:
            method = VariationalTree(name, newton=Newton(2, tolerance=1e-3))

            def end(model, q, v, dt, method=method):
                return lgsim.rollout(model, q, v, dt=dt, steps=50, save_every=50, method=method)[1:3]

            run = jax.jit(lgsim.tiled_vmap(end, in_axes=(None, 0, 0, None)))
            args = model, q, 0.3 * v, jnp.asarray(1e-3)
            timed(run, *args)
            cost[name] = min(timed(run, *args)[1] for _ in range(7)) / 256 / 50
        rows.append([machine_name, *(1e6 * x for x in cost.values())])
    report.table("A step of two iterations by map, batch 256, µs per state", ["system", *ROTATION_MAPS], rows)
