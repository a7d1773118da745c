"""Cost of a step: relative to forward dynamics and MK4 with both lowerings, by length, compile time, gradient."""

import harness

import jax
import jax.numpy as jnp
import robots

import lgsim
from cases.variational.machines import free, machine
from cases.variational.motions import SECOND, in_turns, timed
from lgsim import VariationalTree

BATCH, DT = 1024, 1e-3


def end(method, steps):
    """The state after some steps."""

    def run(model, q, v, dt):
        return lgsim.rollout(model, q, v, dt=dt, steps=steps, save_every=steps, method=method)[1:3]

    return run


def batched(f, *where):
    return lgsim.tiled_vmap(f, in_axes=where)


def beside_forward_dynamics(report):
    """A step of two iterations relative to forward dynamics and to a step of MK4, with and without Programs."""
    model, _, _ = machine("arm of 7")
    q, v, tau = robots.state(model, BATCH)
    dt, rows, steps = jnp.asarray(DT), [], 40 if report.quick else 100
    lowerings = {"Programs": True} if report.quick else {"Programs": True, "XLA only": False}
    for lowering, native in lowerings.items():
        programs = {}
        with lgsim.llvm_lowering(native):
            dynamics, _ = harness.compiled(batched(lgsim.forward_dynamics, None, 0, 0, 0), model, q, v, tau)
            programs["dynamics"] = lambda f=dynamics: f(model, q, v, tau)
            for name, method in {"MK4": lgsim.MK4, "variational": SECOND}.items():
                step, _ = harness.compiled(batched(end(method, steps), None, 0, 0, None), model, q, v, dt)
                programs[name] = lambda f=step: f(model, q, v, dt)
        seconds = in_turns(programs, 5 if report.quick else 25)
        one = seconds["dynamics"] / BATCH
        mk4, ours = (seconds[name] / BATCH / steps for name in ("MK4", "variational"))
        rows.append([lowering, 1e6 * one, 1e6 * mk4, 1e6 * ours, ours / one, ours / mk4])
        report.bound(f"a step relative to forward dynamics, {lowering}", ours / one, at_most=5)
        report.bound(f"a step relative to steps of MK4, {lowering}", ours / mk4, at_most=1)
        if native:
            report.figure("a step of two iterations", ours / mk4, "MK4 steps")
    report.table(
        f"A step of two iterations, arm of 7, batch {BATCH}, µs per state",
        ["lowering", "forward dynamics", "MK4", "variational", "relative to dynamics", "relative to MK4"],
        rows,
    )


def growth(report):
    """A step of a chain by its length, one state: by XLA only, and by Programs up to the length that they take."""
    steps, dt, rows = 100, jnp.asarray(1e-4), []
    # a Program has no loops; above MOST statements, between 50 and 100 links, XLA compiles the step
    all_lengths = {"Programs": (25, 50), "XLA only": (25, 200) if report.quick else (25, 50, 100, 200)}
    for lowering, lengths in all_lengths.items():
        programs = {}
        with lgsim.llvm_lowering(lowering == "Programs"):
            for length in lengths:
                model = free(robots.robot(f"chain{length}", "float64"))
                start = model.neutral(), jnp.zeros(length)
                program, _ = harness.compiled(end(SECOND, steps), model, *start, dt)
                programs[length] = lambda f=program, m=model, x=start: f(m, *x, dt)
        seconds = in_turns(programs, 9 if report.quick else 25)
        each = {length: 1e6 * seconds[length] / steps / length for length in lengths}
        rows += [[lowering, n, each[n] * n, each[n], each[n] / each[25]] for n in lengths]
        last = lengths[-1]
        report.bound(f"time per link, {last} links relative to 25, {lowering}", each[last] / each[25], at_most=1.15)
    columns = ["lowering", "links", "a step", "a link", "relative to 25 links"]
    report.table("A step of two iterations of a chain, µs", columns, rows)


def compiling(report):
    """Seconds to compile a rollout of 200 steps and its gradient, and the cost of the gradient."""
    rows = []
    for name in ("arm of 7",) if report.quick else ("arm of 7", "Panda", "ANYmal"):
        model, q, v = machine(name)
        torques = jnp.zeros((200, model.nv))

        def loss(model, q, v, torques, method):
            found = lgsim.rollout(model, q, v, dt=DT, steps=200, save_every=200, torques=torques, method=method)
            return jnp.sum(found.q[-1] ** 2) + jnp.sum(found.v[-1] ** 2)

        def value(model, q, v, torques):
            return loss(model, q, v, torques, VariationalTree())

        # CPU seconds, which equal wall time on an idle core
        (forward, _), one = timed(harness.compiled, value, model, q, v, torques)
        (backward, _), two = timed(harness.compiled, jax.grad(value, (1, 2, 3)), model, q, v, torques)
        seconds = in_turns(
            {
                name: lambda f=f, x=(model, q, v, torques): f(*x)
                for name, f in {"forward": forward, "gradient": backward}.items()
            },
            9 if report.quick else 25,
        )
        ratio = seconds["gradient"] / seconds["forward"]
        rows.append([name, one, two, 1e3 * seconds["forward"], 1e3 * seconds["gradient"], ratio])
        report.bound(f"{name}: s to compile a rollout", one, at_most=5)
        report.bound(f"{name}: s to compile its gradient", two, at_most=15)
        report.bound(f"{name}: gradient of 200 steps in forward", ratio, at_most=4)
    report.table(
        "200 steps of three iterations, one state",
        ["system", "compile, s", "gradient's", "forward, ms", "gradient, ms", "ratio"],
        rows,
    )
