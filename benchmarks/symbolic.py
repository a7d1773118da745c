"""Formulas and generated code: operation counts, C against lgsim, its time compared with Pinocchio's C++ and adam's
CasADi, exact formulas of the paper's systems, and a comparison with sympy.physics.mechanics, on one core.

    python benchmarks/symbolic.py --quick     fewer states and repeats
    python benchmarks/symbolic.py             all, and a record in benchmarks/results

Needs gcc and the extra `oracle` (pin, example-robot-data). A full run compiles Pinocchio from the headers of its wheel,
once, which takes minutes (see cases/symbolic/pinocchio_peer.py); adam's CasADi is measured if `adam-robotics` is
installed, which is not a dependency of lgsim.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import shutil
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import robots
from cases.symbolic import adam_peer, formulas, mechanics_peer, pinocchio_peer
from cases.symbolic.timed_code import TimedCode

import lgsim
from lgsim.symbolic import compile, shared_library
from lgsim.symbolic.shared_library import STRICT

try:
    import pinocchio  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/symbolic.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
if shutil.which("gcc") is None:
    sys.exit("benchmarks/symbolic.py: gcc is missing")

jax.config.update("jax_enable_x64", True)

FUNCTIONS = {
    "ID": lgsim.inverse_dynamics,
    "FD": lgsim.forward_dynamics,
    "M": lgsim.mass_matrix,
    "Jacobians of FD": lgsim.forward_dynamics_derivatives,
}
OPERATIONS = {"ID": 1169, "FD": 2676, "M": 1465, "Jacobians of FD": 7735}
ACCURACY = {"ID": 1e-14, "FD": 1e-14, "M": 1e-14, "Jacobians of FD": 1e-12}
PINOCCHIO = {"ID": 0.35, "FD": 0.3, "Jacobians of FD": 0.5}
ADAM = 2.5
CHAIN = {"ID": 274, "FD": 690}
LINE, FIFTY = 0.03, 10.0


def arm():
    return lgsim.load_urdf(lgsim.data.arm7())


def operations(report):
    """Operation counts of the 7-joint arm, with its parameters and with right angles rounded."""
    model, rows = arm(), []
    for name, f in FUNCTIONS.items():
        exact, rounded = compile(f, model, right_angles=False), compile(f, model)
        rows.append([name, exact.operations, rounded.operations, len(rounded.source) // 1024, OPERATIONS[name]])
        report.bound(f"operations, {name}", exact.operations, at_most=OPERATIONS[name])
    columns = ["function", "+ - * /", "right angles exact", "KiB of C", "bound"]
    report.table("Operations of the 7-joint arm", columns, rows)


def accuracy(report):
    """C without fast mathematics against lgsim, the largest difference relative to the largest value."""
    model, count, rows = arm(), 100 if report.quick else 1000, []
    states = robots.state(model, count)
    for name, f in FUNCTIONS.items():
        code = compile(f, model)
        given = states[: len(code.program.inputs)]
        call = getattr(shared_library(code, flags=STRICT), code.name)
        found = [call(*x) for x in zip(*map(np.asarray, given), strict=True)]
        want = jax.jit(jax.vmap(lambda *x, f=f: f(model, *x)))(*given)
        pairs = zip(zip(*found, strict=True), want, strict=True) if isinstance(want, tuple) else [(found, want)]
        error = max(np.abs(np.stack(a) - b).max() / np.abs(b).max() for a, b in pairs)
        rows.append([name, error, ACCURACY[name]])
        report.bound(f"C against lgsim, {name}", error, at_most=ACCURACY[name])
    report.table(f"C against lgsim in float64, {count} states", ["function", "relative error", "bound"], rows)


def speed(report):
    """One state of Panda by gcc -O3 -march=native -ffast-math."""
    model = robots.robot("Panda", "float64")
    states = robots.state(model, 128)
    codes = {name: compile(f, model) for name, f in FUNCTIONS.items()}
    timed = TimedCode(codes.values(), [np.asarray(x) for x in states])
    repeats = 15 if report.quick else 101
    theirs, how = pinocchio_peer.microseconds(model, robots.Twin(model), states, report.quick)
    rows = []
    for name, code in codes.items():
        us = 1e6 * timed.seconds(code.name, repeats)
        want = FUNCTIONS[name](model, *(x[-1] for x in states[: len(code.program.inputs)]))
        want = np.concatenate([np.ravel(x) for x in jax.tree.leaves(want)])
        error = np.abs(timed.last(code.name) - want).max() / np.abs(want).max()
        peer = theirs.get(code.name)
        rows.append([name, us, peer or "-", us / peer if peer else "-", PINOCCHIO.get(name, "-"), error])
        report.figure(name, us, "us")
        report.bound(f"Panda by fast mathematics, {name}", error, at_most=1e-11)
        if name in PINOCCHIO:
            report.bound(f"C / Pinocchio, {name}", us / peer, at_most=PINOCCHIO[name])
    columns = ["function", "C, µs", "Pinocchio, µs", "ratio", "bound", "error"]
    report.table(f"Panda, one state; Pinocchio by {how}; gcc took {timed.compiling:.1f} s", columns, rows)


def adam(report):
    """Inverse dynamics and bias forces of the arm, compared with adam's CasADi."""
    model = arm()
    try:
        made = adam_peer.functions(lgsim.data.arm7(), model.joint_names, np.asarray(model.gravity))
    except ImportError as missing:
        report.table("adam's CasADi", ["function", "speed-up"], [["ID", f"not measured: {missing.name} missing"]])
        return
    states = [np.asarray(x) for x in robots.state(model, 128)]
    codes = {"adam_bias": compile(lgsim.bias_forces, model), "adam_inverse": compile(lgsim.inverse_dynamics, model)}
    ours, theirs = TimedCode(codes.values(), states), adam_peer.TimedFunctions(made, states)
    repeats, rows = 15 if report.quick else 101, []
    for f in made:
        code = codes[f.name()]
        a, b = 1e6 * ours.seconds(code.name, repeats), 1e6 * theirs.seconds(f.name(), repeats)
        error = np.abs(ours.last(code.name) - theirs.last(f.name())).max() / np.abs(theirs.last(f.name())).max()
        rows.append([code.name, code.operations, f.n_instructions(), a, b, b / a, error])
        report.bound(f"adam against lgsim, {code.name}", error, at_most=1e-11)
    report.bound("adam's CasADi / C, ID", rows[-1][5], at_least=ADAM)
    columns = ["function", "operations", "CasADi's instructions", "C, µs", "CasADi's C, µs", "speed-up", "error"]
    report.table("adam's CasADi on the arm: ID is its bias forces and mass matrix", columns, rows)


def chains(report):
    """Operation counts of chains in general position, and the time to generate C for 50 joints."""
    lengths, rows = [10, 30, 50] if report.quick else [5, 10, 20, 30, 40, 50], []
    for name, bound in CHAIN.items():
        counts, seconds = [], 0.0
        for n in lengths:
            model = robots.chain(n, jnp.float64)
            start = time.perf_counter()
            counts.append(compile(FUNCTIONS[name], model).operations)
            seconds = time.perf_counter() - start
        slope, offset = np.polyfit(lengths, counts, 1)
        away = float(np.max(np.abs(np.polyval([slope, offset], lengths) / counts - 1)))
        rows.append([name, counts[-1] / lengths[-1], bound, slope, away, seconds])
        report.bound(f"operations a joint of 50, {name}", counts[-1] / lengths[-1], at_most=bound)
        report.bound(f"departure from a line, {name}", away, at_most=LINE)
        report.bound(f"50 joints to C, {name}, s", seconds, at_most=FIFTY)
    columns = [
        "function",
        "operations a joint of 50",
        "bound",
        "one joint more",
        "departure from a line",
        "50 joints to C, s",
    ]
    report.table("Chains of 5 to 50 revolute joints in general position", columns, rows)


def mechanics(report):
    """Mass matrix and bias forces of a chain by sympy.physics.mechanics with ``cse``, and by lgsim."""
    rows, rng = [], np.random.default_rng(0)

    def both(model, q, v):
        return lgsim.mass_matrix(model, q), lgsim.bias_forces(model, q, v)

    for length in (4,) if report.quick else (2, 3, 4, 5, 6):
        made, seconds = mechanics_peer.chain(length)
        start = time.perf_counter()
        count, at = mechanics_peer.shared(*made)
        seconds += time.perf_counter() - start
        model = mechanics_peer.twin(length)
        start = time.perf_counter()
        code = compile(both, model)
        ours = time.perf_counter() - start
        q, v = rng.uniform(-1, 1, (2, length))
        pairs = list(zip(both(model, q, v), at(q, v), strict=True))
        error = max(np.abs(np.ravel(a) - np.ravel(b)).max() for a, b in pairs)
        rows.append([length, count, code.operations, count / code.operations, seconds, ours, error])
        report.bound(f"sympy against lgsim, {length} joints", error, at_most=1e-12)
    report.bound(f"operations, sympy / lgsim, {length} joints", rows[-1][3], at_least=1)
    columns = ["joints", "sympy with cse", "lgsim", "ratio", "sympy, s", "lgsim, s", "difference"]
    report.table("Operations of M and bias forces; chains about z, y, x, ...", columns, rows)


PARTS = (operations, accuracy, speed, adam, chains, mechanics, *formulas.PARTS)


def run(report):
    """All tables."""
    for part in PARTS:
        part(report)


if __name__ == "__main__":
    harness.main(run, "symbolic")
