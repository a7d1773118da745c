"""Accuracy and speed of a landing by lgsim and by MuJoCo, each relative to its own finest steps."""

import harness

from functools import cache

import jax.numpy as jnp
import numpy as np

import lgsim
from cases.contact import quadruped
from cases.contact.motions import Peer, program

DURATION, DROP, SPEED = 0.3, 0.005, (0.3, 0.0, -0.2, 0.4, 0.0, 0.0)
"""s, m of the lowest foot above the ground, m/s and rad/s of the base: it slides and rolls as it comes down."""
LAW = {"stiffness": 1e5, "dissipation": 0.3, "slip_speed": 0.01}
SPRING, DAMPER = 80.0, 2.0
"""Of each joint of a leg, about the stand, N m/rad and N m s/rad."""
BATCH = 64
BEST = 600
"""Steps of 0.5 ms."""
FINE = {"MK4": 30_000, "Rodas4": 15_000}
"""Steps of the two motions that have to agree."""


@cache
def falling():
    """(model, initial q, initial v)."""
    model = quadruped.machine(LAW["slip_speed"]).replace_contact(quadruped.FEET, **LAW)
    rest = jnp.zeros(18).at[6:].set(jnp.asarray(quadruped.STAND))
    legs = jnp.arange(18) >= 6
    springs = {"stiffness": jnp.where(legs, SPRING, 0.0), "damping": jnp.where(legs, DAMPER, 0.0), "rest": rest}
    model = model.replace(**springs)
    q = model.neutral().at[7:].set(rest[6:])
    q = q.at[2].set(jnp.max(lgsim.contact_points(model, q).depth) + DROP)
    return model, q, jnp.zeros(18).at[:6].set(jnp.array(SPEED))


def ours(name, steps, batch=1):
    """The state (37,) at the end."""
    run, _ = program(name, batch)
    model, *state = falling()
    q, v = (jnp.broadcast_to(x, (batch, x.size)) for x in state)
    q, v = run(model, q, v, jnp.asarray(DURATION / steps), jnp.asarray(steps))
    return np.concatenate([q[0], v[0]])


def errors(report):
    """Largest error of the final state, rad, m, rad/s or m/s."""
    fine = {name: ours(name, steps // (3 if report.quick else 1)) for name, steps in FINE.items()}
    truth = fine["Rodas4"]
    apart = np.abs(fine["MK4"] - truth).max()
    report.bound("the two finest motions apart", apart, at_most=1e-7)
    cases = [("Rodas4", 300), ("Rodas4", BEST), ("Rodas4", 1200), ("MK4", 3000), ("MK4", 6000)]
    found = {case: np.abs(ours(*case) - truth).max() for case in cases}
    batch = 16 if report.quick else BATCH
    programs = {case: lambda case=case: ours(*case, batch=batch) for case in cases}
    seconds = harness.interleave(programs, 2 if report.quick else 9)
    rows = [
        [name, f"{1e3 * DURATION / steps:g} ms", found[name, steps], 1e3 * seconds[name, steps] / batch]
        for name, steps in cases
    ]
    model, q, v = falling()
    peer = Peer(model)

    def theirs(steps):
        q1, v1, taken = peer.run(q, v, DURATION / steps, steps)
        return np.concatenate([q1, v1]), taken

    best, cost = found["Rodas4", BEST], seconds["Rodas4", BEST] / batch
    exact = theirs(30_000 if report.quick else 600_000)[0]
    each = np.median([theirs(BEST)[1] for _ in range(21)]) / BEST
    equal = max(1, round(cost / each))
    for steps in dict.fromkeys((equal, BEST, 3000)):
        error = np.abs(theirs(steps)[0] - exact).max()
        rows.append(["MuJoCo implicitfast", f"{1e3 * DURATION / steps:.3g} ms", error, 1e3 * each * steps])
        if steps == equal:
            at_equal = error
    report.table(
        f"ANYmal lands from {1e3 * DROP:g} mm, state after {DURATION:g} s: a batch of {batch} (MuJoCo one by"
        " one; against its own finest steps)",
        ["method", "step", "error", "ms a motion"],
        rows,
    )
    report.figure("landing by Rodas4 at 0.5 ms", best)
    report.bound("landing by Rodas4 at 0.5 ms: error", best, at_most=1e-5)
    report.bound("MK4 at 0.1 ms: error in those of Rodas4 at 0.5 ms", found["MK4", 3000] / best, at_least=1)
    report.bound("MuJoCo at equal cost: error in that of Rodas4 at 0.5 ms", at_equal / best, at_least=1)
