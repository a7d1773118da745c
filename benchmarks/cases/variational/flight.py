"""In free flight: a satellite with a long boom, and a quadruped in flight."""

import jax
import jax.numpy as jnp
import numpy as np
import robots

import lgsim
from cases.variational.energy import METHODS, drift, momenta, trend
from cases.variational.machines import energy_along, free, machine
from cases.variational.motions import FOURTH, follow, program, timed
from cases.variational.peer import INTEGRATORS, Peer
from lgsim import VariationalTree

STEP = 20e-3
HOUR = 3600.0
SWING_TIME = 100.0


def satellite(report):
    """Drifts over a million steps of 20 ms."""
    model, q, v = machine("satellite")
    calls, every = (2, 100) if report.quick else (100, 100)
    steps = 10_000
    rows, found = [], {}
    names = [name for name in METHODS if not report.quick or name in ("variational", "MK4")]
    for name in names:
        run, _ = program(model, METHODS[name], q, v, steps, every)
        count = calls // 10 if "dense" in name else calls  # of the dense run only the first tenth
        states, seconds = timed(follow, run, q, v, STEP, count * steps * STEP, steps)
        found[name] = *states, seconds / count / steps
    for name in INTEGRATORS:
        peer = Peer(model, name)
        states, seconds = timed(peer.motion, q, v, STEP, calls * steps, every)
        found[name] = *states, seconds / calls / steps
    drifts = {}
    for name, (q1, v1, cost) in found.items():
        energy, kinetic = energy_along(model, q1, v1)
        energy, top = np.asarray(energy), float(kinetic[0])
        linear, angular = (drift(p) for p in momenta(model, q1, v1))
        time = STEP * every * np.arange(len(energy))
        worst, slope = float(np.abs(energy - energy[0]).max() / top), abs(trend(time, energy, top))
        drifts[name] = linear, angular, worst
        rows.append([name, every * (len(energy) - 1), 1e6 * cost, linear, angular, worst, slope])
        if name == "variational":
            report.bound("satellite: linear momentum, relative", linear, at_most=1e-12 * max(1, calls / 10))
            report.bound("satellite: angular momentum, relative", angular, at_most=1e-12 * max(1, calls / 10))
            report.bound("satellite: trend of the energy over the kinetic one", slope, at_most=1e-4)
    report.table(
        "A satellite with a boom of six segments on springs, steps of 20 ms: largest relative changes",
        ["method", "steps", "µs per step", "linear momentum", "angular momentum", "energy / kinetic", "its trend"],
        rows,
    )
    report.figure("satellite, energy drift", drifts["variational"][2] / drifts["MK4"][2], "of MK4's")
    report.figure("angular momentum", drifts["variational"][1] / drifts["MK4"][1], "of MK4's")


def attitude(report):
    """Attitude of the satellite after an hour, at equal cost."""
    model, q, v = machine("satellite")
    duration = 360.0 if report.quick else HOUR
    exact, apart = {}, {}
    run, _ = program(model, lgsim.MK8, q, v, 1000, 1000)
    for dt in (20e-3, 10e-3):
        exact[dt] = follow(run, q, v, dt, duration)[0][-1]
    true, rows = exact[10e-3], []
    apart["MK8"] = turned(true, exact[20e-3])
    budget = None
    for name in ("variational", "variational, order 4", "MK4", *INTEGRATORS):
        if name in INTEGRATORS:
            peer = Peer(model, name)

            def run(q, v, dt, peer=peer):
                states = peer.motion(q, v, float(dt), 1000, 1000)
                return tuple(x[1:] for x in states)

        else:
            run, _ = program(model, METHODS[name], q, v, 1000, 1000)
        timed(run, q, v, STEP)
        cost = min(timed(run, q, v, STEP)[1] for _ in range(5)) / 1000
        budget = cost / STEP if budget is None else budget
        # a whole number of calls, at a cost of at most a little more than that of order 2 at 20 ms
        calls = max(1, round(duration * budget / cost / 1000))
        dt = duration / calls / 1000
        end = follow(run, q, v, dt, duration)[0][-1]
        rows.append([name, 1e6 * cost, 1e3 * dt, turned(true, end), float(jnp.abs(model.difference(true, end)).max())])
    report.table(
        f"The satellite after {duration:g} s at the cost of order 2 at 20 ms (the truth, MK8 at 10 ms, is "
        f"{apart['MK8']:.1e} rad from itself at 20 ms)",
        ["method", "µs per step", "step, ms", "attitude, rad", "largest error of a joint, rad or m"],
        rows,
    )


def turned(q0, q1):
    """The angle between two attitudes of the base, rad."""
    s = jnp.abs(jnp.dot(q0[3:7], q1[3:7]))
    return float(2 * jnp.arctan2(jnp.sqrt(jnp.maximum(0, 1 - s**2)), s))


def quadruped():
    """ANYmal in the air, its legs on springs of 5 N m/rad, its feet swinging: (model, q0, v0)."""
    model = free(robots.robot("ANYmal", "float64"))
    legs = jnp.where(jnp.arange(model.nv) < 6, 0.0, 1.0)
    model = model.replace(stiffness=5.0 * legs)
    rng = np.random.default_rng(0)
    v = jnp.asarray(rng.uniform(-1, 1, model.nv)) * jnp.where(legs > 0, 2.0, 0.3)
    return model, model.neutral(), v


def flight(report):
    """Motions of 100 s at 10 ms of a batch of 1024, and MuJoCo's RK4 at step sizes of equal accuracy."""
    model, q, v = quadruped()
    duration = 10.0 if report.quick else SWING_TIME
    batch = 1024
    exact = follow(program(model, lgsim.MK8, q, v, 1000, 1000)[0], q, v, 2e-3 if report.quick else 2.5e-3, duration)
    rng = np.random.default_rng(1)
    starts = v + 0.1 * jnp.asarray(rng.uniform(-1, 1, (batch, model.nv)))
    steps, ours = 50, {}
    # a third iteration of any of a thousand states would delay all of them
    for name, method in {"variational": VariationalTree(), "variational, order 4": FOURTH, "MK4": lgsim.MK4}.items():

        def end(model, q, v, dt, method=method):
            found = lgsim.rollout(model, q, v, dt=dt, steps=steps, save_every=steps, method=method)
            return found.q[-1], found.v[-1]

        run, _ = program(model, method, q, v)
        states = follow(run, q, v, 10e-3, duration)
        many = jax.jit(lgsim.tiled_vmap(end, in_axes=(None, None, 0, None)))
        timed(many, model, q, starts, 10e-3)
        cost = min(timed(many, model, q, starts, 10e-3)[1] for _ in range(5)) / batch / steps
        ours[name] = errors_of(model, states, exact), cost, 10e-3
    peer, theirs = Peer(model, "MuJoCo RK4"), {}
    rows_of = peer.start(jnp.broadcast_to(q, (64, model.nq)), starts[:64])
    for dt in (1.25e-3, 2.5e-3, 5e-3, 10e-3, 20e-3):
        count = round(duration / dt)
        states = peer.motion(q, v, dt, count, count // 1000 if count >= 1000 else 1)
        timed(peer.many, rows_of, dt, 50)
        cost = min(timed(peer.many, rows_of, dt, 50)[1] for _ in range(3)) / 64 / 50
        theirs[dt] = errors_of(model, states, exact), cost
    rows = []
    for name, ((place, energy), cost, dt) in ours.items():
        rows.append([name, 1e3 * dt, place, energy, 1 / (cost * duration / dt), *(
            equal(theirs, kind, error, cost * duration / dt, duration) for kind, error in enumerate((place, energy))
        )])  # fmt: skip
    for dt, ((place, energy), cost) in theirs.items():
        rows.append(["MuJoCo RK4", 1e3 * dt, place, energy, 1 / (cost * duration / dt), "", ""])
    report.table(
        f"ANYmal in flight with its feet swinging on springs, {duration:g} s, batch {batch}: motions per second on one "
        "core, and relative to MuJoCo's RK4 at the same error",
        ["method", "step, ms", "state, rad or m", "energy / kinetic", "motions/s", "at equal state", "at equal energy"],
        rows,
    )
    best = max(float(row[5]) for row in rows[:3])
    report.figure("flight of ANYmal", best, "x MuJoCo RK4 of the same error")
    report.bound("flight: throughput of variational steps in MuJoCo RK4's at equal accuracy", max(
        float(row[5]) for row in rows[:2]
    ), at_least=1)  # fmt: skip


def errors_of(model, states, exact):
    """(largest error of position at the end, largest change of energy over the largest kinetic one)."""
    energy, kinetic = (np.asarray(x) for x in energy_along(model, *states))
    place = float(jnp.abs(model.difference(exact[0][-1], states[0][-1])).max())
    return place, float(np.abs(energy - energy[0]).max() / kinetic.max())


def equal(theirs, kind, error, seconds, duration):
    """Speed-up over MuJoCo at the same error, by logarithmic interpolation between its step sizes."""
    steps = np.array(sorted(theirs))
    errors = np.log([theirs[dt][0][kind] for dt in steps])
    good = np.isfinite(errors)
    slope, offset = np.polyfit(np.log(steps[good]), errors[good], 1)
    dt = np.exp((np.log(error) - offset) / slope)
    cost = np.median([cost for _, cost in theirs.values()])
    return cost * duration / min(dt, steps[good][-1]) / seconds
