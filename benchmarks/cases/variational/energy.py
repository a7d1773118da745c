"""Energy, momenta and convergence order over long times, compared with MK4, MKGauss2 and MuJoCo."""

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from cases.variational.machines import energy_along, energy_errors, every_joint, floating_tree, free, machine
from cases.variational.motions import EVERY, FOURTH, SECOND, STEPS, follow, program, timed
from cases.variational.peer import INTEGRATORS, Peer

STEP_LENGTHS = (2e-3, 5e-3, 10e-3)
AT_MOST = dict(zip(STEP_LENGTHS, (6e-4, 6e-3, 5e-2), strict=True))
METHODS = {
    "variational": SECOND, "variational, order 4": FOURTH, "MK4": lgsim.MK4,
    "MKGauss2, dense Newton": lgsim.IMPLICIT_METHODS["MKGauss2"],
}  # fmt: skip
NEAR_HANGING = (0.3, 2.6, 0.2, -0.5, 0.3, 0.6, 0.1)
HORIZONTAL = (0.0, np.pi / 2, 0.0, -np.pi / 2, 0.0, np.pi / 2, 0.0)
FAR = (0.3, -0.5, 0.2, -1.2, 0.4, 0.8, 0.1)
NEIGHBORS = 24
"""Neighboring initial states whose trends are averaged."""
LARGEST = ("Panda, 0.2 rad from hanging", "arm of 7, swinging")
"""The motions whose largest error has a bound."""
MEAN = ("arm of 7, from horizontal",)
"""The motions whose root mean square has a bound. While a wrist spins, the energy error of any step with this discrete
Lagrangian is of the order of (h w)^2, and the largest error of 1e5 states is such a moment."""


def arms(quick):
    """(model, q0, v0) of the motions by name."""
    model, still = free(lgsim.load_urdf(lgsim.data.arm7())), jnp.zeros(7)
    panda = {LARGEST[0]: machine("Panda")}
    starts = {LARGEST[1]: NEAR_HANGING, MEAN[0]: HORIZONTAL, "arm of 7, from high up": FAR}
    return panda if quick else panda | {name: (model, jnp.array(q), still) for name, q in starts.items()}


def arms_energy(report):
    """Energy errors of undriven arms by method and step."""
    duration = 10.0 if report.quick else 200.0
    names = [name for name in METHODS if not report.quick or name in ("variational", "MK4")]
    for title, (model, q, v) in arms(report.quick).items():
        rows, peak = [], 0.0
        for name in names:
            run, _ = program(model, METHODS[name], q, v)
            errors, cost = [], []
            for dt in STEP_LENGTHS:
                states, seconds = timed(follow, run, q, v, dt, duration)
                errors.append(energy_errors(model, *states))
                cost.append(seconds * dt / duration)
                if name == "MK4" and dt == STEP_LENGTHS[0]:
                    peak = float(jnp.abs(states[1]).max())
            rows.append(_energy_row(name, cost, errors))
            if name == "variational":
                _bound_energy(report, title, errors)
        for name in INTEGRATORS:
            peer, errors, cost = Peer(model, name), [], []
            for dt in STEP_LENGTHS:
                steps = STEPS * -(-round(duration / dt) // STEPS)
                states, seconds = timed(peer.motion, q, v, dt, steps, EVERY)
                errors.append(energy_errors(model, *states))
                cost.append(seconds / steps)
            rows.append(_energy_row(name, cost, errors))
        lengths = [f"{1e3 * dt:g} ms" for dt in STEP_LENGTHS]
        report.table(
            f"{title}: {duration:g} s without actuation or friction, joints at up to {peak:.0f} rad/s; the largest "
            "energy error over the peak kinetic energy, and the root mean square",
            ["method", "µs per step", *lengths, *(f"mean {length}" for length in lengths)],
            rows,
        )


def _energy_row(name, cost, errors):
    return [name, 1e6 * np.median(cost), *(largest for largest, _ in errors), *(mean for _, mean in errors)]


def _bound_energy(report, title, errors):
    """Bounds of the errors (largest, mean) of order 2 by step; motions in neither list have none."""
    for dt, (largest, mean) in zip(STEP_LENGTHS, errors, strict=True):
        name = f"{title}, {1e3 * dt:g} ms: energy error of order 2"
        if title in LARGEST:
            report.bound(name, largest, at_most=AT_MOST[dt])
        if title in MEAN:
            report.bound(f"{name}, root mean square", mean, at_most=AT_MOST[dt])


def crossing(report):
    """Number of steps beyond which variational steps have a smaller energy error than MK4 at equal cost."""
    rows, calls = [], 4 if report.quick else 1000
    cases = {"satellite": machine("satellite")} | arms(report.quick)
    kinds = {"order 2": SECOND, "order 4": FOURTH}
    for title, (model, q, v) in list(cases.items())[: 1 if report.quick else 2]:
        mk4, _ = program(model, lgsim.MK4, q, v)
        timed(mk4, q, v, 5e-3)
        for order, method in kinds.items():
            run, _ = program(model, method, q, v)
            timed(run, q, v, 5e-3)
            pairs = [(timed(run, q, v, 5e-3)[1], timed(mk4, q, v, 5e-3)[1]) for _ in range(9)]
            share = float(np.median([a / b for a, b in pairs]))
            for dt in (20e-3, 40e-3) if title == "satellite" else (10e-3, 20e-3):
                length = dt / share
                ours = _worst(model, *follow(run, q, v, dt, calls * STEPS * length))
                theirs = _worst(model, *follow(mk4, q, v, length, calls * STEPS * length))
                rows.append([title, order, 1e3 * dt, 1e3 * length, ours[-1], theirs[-1], _ahead(ours, theirs, calls)])
    report.table(
        f"Variational steps and MK4 at equal cost, {calls * STEPS:,} steps of MK4: the largest energy error over "
        "the kinetic energy, and the steps of MK4 from which the variational ones are ahead",
        ["system", "variational", "its step, ms", "MK4's, ms", "error", "MK4's", "ahead from"],
        rows,
    )


def _worst(model, q, v):
    """The largest energy error up to each state."""
    energy, kinetic = (np.asarray(x) for x in energy_along(model, q, v))
    change = np.abs(energy - energy[0]) / np.nanmax(kinetic)
    return np.maximum.accumulate(np.where(np.isfinite(change), change, np.inf))


def _ahead(ours, theirs, calls):
    """The number of MK4 steps after which ``ours`` stays smaller; extrapolated with MK4's mean rate."""
    places, steps = np.linspace(0, 1, 20_001), calls * STEPS
    ours, theirs = (x[np.round(places * (len(x) - 1)).astype(int)] for x in (ours, theirs))
    behind = np.flatnonzero(~(ours <= theirs)[1:])
    if len(behind) and behind[-1] == len(places) - 2:
        return f"about {steps * ours[-1] / theirs[-1]:.1g}, at MK4's rate"
    return f"{steps * places[behind[-1] + 1]:.2g}" if len(behind) else "the start"


@jax.jit
def momenta(model, q, v):
    """(linear, angular about the center of mass) along states."""
    found = jax.vmap(lambda q, v: lgsim.centroidal_momentum(model, q, v))(q, v)
    return found[:, :3], found[:, 3:]


def drift(p):
    """The largest change of a vector along states over its size."""
    p = np.asarray(p)
    return float(np.linalg.norm(p - p[0], axis=1).max() / np.linalg.norm(p[0]))


def trend(time, energy, scale):
    """Relative change over the run of a line fitted to the energies."""
    energy = np.asarray(energy)
    return float(np.polyfit(time, energy, 1)[0] * (time[-1] - time[0]) / scale)


def free_flight(report):
    """Momenta and energy of a floating tree over 1e5 steps of 10 ms."""
    model, q, v = floating_tree()
    steps = 10_000 if report.quick else 100_000
    run, _ = program(model, SECOND, q, v)
    found = []
    # the motion is chaotic: the fitted slope has either sign, and the mean over several starts has none
    for away in 1e-9 * np.random.default_rng(0).normal(size=(1 if report.quick else NEIGHBORS, model.nv)):
        states = follow(run, q, v + away, 0.01, steps * 0.01)
        energy, _ = energy_along(model, *states)
        slope = trend(0.01 * EVERY * np.arange(len(energy)), energy, float(energy[0]))
        swing = float((energy.max() - energy.min()) / energy[0])
        found.append([*(drift(p) for p in momenta(model, *states)), slope, swing])
    linear, angular, _, swing = np.max(found, axis=0)
    slopes = np.array(found)[:, 2]
    report.table(
        f"A floating tree with a ball joint, a revolute and a prismatic joint on a spring: {steps:,} steps of 10 ms, "
        f"{len(found)} starts within 1e-9",
        ["linear momentum", "angular momentum", "mean trend of the energy", "of one start, at most", "its oscillation"],
        [[linear, angular, abs(slopes.mean()), np.abs(slopes).max(), swing]],
    )
    for name, value in (("linear", linear), ("angular", angular)):
        report.bound(f"{name} momentum in free flight, relative", value, at_most=1e-12)
    if not report.quick:  # in a short run the oscillation hides the trend
        report.bound("trend of the energy over 1e5 steps, relative", abs(slopes.mean()), at_most=1e-6)


def orders(report):
    """Errors of a floating tree with all joint types at 1/16 s, against MK8."""
    model, q, v = every_joint()
    end = _end(lgsim.MK8)(model, q, v, jnp.asarray(1 / 1024), 64)
    rows = []
    for name, method, lengths in (
        ("quaternion", SECOND, (1 / 256, 1 / 512)),
        ("quaternion, order 4", FOURTH, (1 / 64, 1 / 128)),
    ):
        run, errors = _end(method), []
        for dt in lengths:
            found = run(model, q, v, jnp.asarray(dt), round(1 / 16 / dt))
            gap = jnp.concatenate([model.difference(end[0], found[0]), found[1] - end[1]])
            errors.append(float(jnp.abs(gap).max()))
        order = np.log2(errors[0] / errors[1])
        rows.append([name, *errors, order])
        expected = 4 if "4" in name else 2
        report.bound(f"order of {name}, difference from {expected}", abs(order - expected), at_most=0.1)
    report.table(
        "A floating tree with every kind of joint, springs, dampers, gravity: errors after 1/16 s",
        ["map", "error", "at half the step", "order"],
        rows,
    )


def _end(method):
    def run(model, q, v, dt, steps):
        found = lgsim.rollout(model, q, v, dt=dt, steps=steps, save_every=steps, method=method)
        return found.q[-1], found.v[-1]

    return jax.jit(run, static_argnums=4)
