"""Costs of closed kinematic loops: accelerations, derivatives, steps with projection, compilation."""

import harness

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from cases.loops.machines import Peer, machine, states, tree

NAMES = ("Cassie", "Delta")
QUICK = NAMES[:1]
"""The robot of a quick run, which measures compile times."""


def names(report):
    """The robots of a run."""
    return QUICK if report.quick else NAMES


def tiled(f, *axes):
    return lgsim.tiled_vmap(f, in_axes=axes)


@contextmanager
def without_lowered_programs():
    """Use a cache without programs of earlier processes."""
    before = os.environ.get("LGSIM_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LGSIM_CACHE_DIR"] = folder
        yield
    os.environ.pop("LGSIM_CACHE_DIR")
    if before is not None:
        os.environ["LGSIM_CACHE_DIR"] = before


def accelerations(report):
    """Accelerations with loops, compared with Pinocchio and with the tree; seconds to compile both, by robot."""
    rows, batch, compiling = [], 1024, {}
    for name in names(report):
        model, given, peer = machine(name), states(name, batch), Peer(name)
        bare = tree(model)
        with without_lowered_programs():
            closed, first = harness.compiled(tiled(lgsim.forward_dynamics, None, 0, 0, 0), model, *given)
            alone, second = harness.compiled(tiled(lgsim.forward_dynamics, None, 0, 0, 0), bare, *given)
        compiling[name] = {"closed": first, "tree": second}
        few = peer.states(*(x[:128] for x in given))
        seconds = harness.interleave(
            {
                "lgsim": lambda f=closed, m=model, x=given: f(m, *x),
                "tree": lambda f=alone, m=bare, x=given: f(m, *x),
                "Pinocchio": peer.accelerations(few),
            },
            9 if report.quick else 41,
            clock=time.process_time,
        )
        one = peer.states(*(x[:1] for x in given))
        theirs = np.array(peer.accelerations(one)())
        ours = np.asarray(closed(model, *given)[0])
        gap = np.abs(ours - theirs).max() / np.abs(theirs).max()
        us = {key: 1e6 * s / (128 if key == "Pinocchio" else batch) for key, s in seconds.items()}
        rows.append(
            [
                name,
                us["lgsim"],
                us["tree"],
                us["Pinocchio"],
                us["lgsim"] / us["Pinocchio"],
                us["lgsim"] / us["tree"],
                gap,
            ]
        )
        report.bound(f"{name}: accelerations, parts of Pinocchio", us["lgsim"] / us["Pinocchio"], at_most=0.9)
        report.bound(f"{name}: closed in tree", us["lgsim"] / us["tree"], at_most=4)
        # one proximal step is not converged: Pinocchio's own error
        report.bound(f"{name}: difference from Pinocchio", gap, at_most=1e-4)
        report.figure(f"{name} accelerations", us["lgsim"] / us["Pinocchio"], "x Pinocchio")
    report.table(
        f"Accelerations, batch {batch}, µs per state",
        ["mechanism", "lgsim", "its tree", "Pinocchio", "ratio", "closed / tree", "difference"],
        rows,
    )
    return compiling


def derivatives(report):
    """All derivatives with respect to q, v and tau."""
    rows, batch = [], 256
    # XLA compiles this program: the lower level compiles in half the time and runs within 3 % of the other one
    options = {"xla_backend_optimization_level": 1} if report.quick else None
    for name in names(report):
        model, given, peer = machine(name), states(name, batch), Peer(name)
        derivatives = tiled(lgsim.forward_dynamics_derivatives, None, 0, 0, 0)
        program, _ = harness.compiled(derivatives, model, *given, options=options)
        few = peer.states(*(x[:64] for x in given))
        seconds = harness.interleave(
            {"lgsim": lambda f=program, m=model, x=given: f(m, *x), "Pinocchio": peer.derivatives(few)},
            9 if report.quick else 41,
            clock=time.process_time,
        )
        ours, theirs = 1e6 * seconds["lgsim"] / batch, 1e6 * seconds["Pinocchio"] / 64
        rows.append([name, ours, theirs, ours / theirs])
        report.bound(f"{name}: derivatives, parts of Pinocchio", ours / theirs, at_most=0.8)
    report.table(
        f"Accelerations with all derivatives, batch {batch}, µs per state",
        ["mechanism", "lgsim", "Pinocchio", "ratio"],
        rows,
    )


def projection(report):
    """A step of MK4 with and without projection."""
    rows, batch, steps = [], 256, 10
    for name in names(report):
        model, (q, v, _) = machine(name), states(name, batch)

        def motion(model, q, v):
            found = lgsim.rollout(model, q, v, dt=1e-3, steps=steps, save_every=steps)
            return found.q[-1], found.v[-1]

        def plain(model, q, v):
            """The same four stages on the constrained field without the final projection."""
            space = lgsim.simulation.state_space.StateSpace(model.topology)

            def step(y, _):
                def field(t, y, args):
                    return jnp.concatenate([y[model.nq :], acceleration(model, y[: model.nq], y[model.nq :])])

                return lgsim.MK4.step(space, field, jnp.zeros(()), y, jnp.asarray(1e-3), None)[0], None

            y, _ = jax.lax.scan(step, jnp.concatenate([q, v]), None, length=steps)
            return y

        def acceleration(model, q, v):
            return lgsim.forward_dynamics(model, q, v, lgsim.passive_forces(model, q, v))

        programs = {}
        for key, f in {"restored": motion, "plain": plain}.items():
            program, _ = harness.compiled(tiled(f, None, 0, 0), model, q, v)
            programs[key] = lambda f=program, m=model, q=q, v=v: f(m, q, v)
        seconds = harness.interleave(programs, 9 if report.quick else 41, clock=time.process_time)
        us = {key: 1e6 * s / batch / steps for key, s in seconds.items()}
        rows.append([name, us["restored"], us["plain"], us["restored"] / us["plain"]])
        report.bound(f"{name}: a step with restoration in one without", us["restored"] / us["plain"], at_most=1.5)
    report.table(
        f"A step of MK4, batch {batch}, µs per state", ["mechanism", "restored", "not restored", "ratio"], rows
    )


COMPILE = """
import sys, time, jax
jax.config.update("jax_enable_x64", True)
import lgsim
from cases.loops.machines import machine, tree
jax.jit(lambda x: x + 1).lower(1.0).compile()
model = machine(sys.argv[1])
model = model if sys.argv[2] == "closed" else tree(model)
q, still = model.neutral(), jax.numpy.zeros(model.nv)
start = time.process_time()
jax.jit(lambda m, *x: lgsim.forward_dynamics(m, *x)).lower(model, q, still, still).compile()
print(time.process_time() - start)
"""
"""Seconds to trace and compile accelerations in a process that has no lowered program at hand."""


def compiling(report, once):
    """Seconds to trace and compile accelerations, closed and of the tree.

    Each is measured in separate processes; a quick run takes the times of ``accelerations``.
    """
    rows = []
    for name in names(report):
        taken = once[name]
        if not report.quick:
            taken = {key: min(_compile(name, key) for _ in range(3)) for key in taken}
        rows.append([name, taken["closed"], taken["tree"], taken["closed"] / taken["tree"]])
        if name == "Cassie":  # the case of 18 rows on 21 joints is a figure only
            report.bound(f"{name}: compiling in that of its tree", taken["closed"] / taken["tree"], at_most=2.5)
    report.table("Tracing and compiling accelerations, s", ["mechanism", "closed", "its tree", "ratio"], rows)


def _compile(name, kind):
    with tempfile.TemporaryDirectory() as folder:
        paths = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", COMPILE, name, kind],
            env={**os.environ, "LGSIM_CACHE_DIR": folder, "PYTHONPATH": paths},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return float(run.stdout.splitlines()[-1])
