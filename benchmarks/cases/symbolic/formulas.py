"""Exact arithmetic: the examples of Kwatny and Blankenship against tests/data, and algorithms in 50 digits.

Paper: H. G. Kwatny, G. L. Blankenship, Symbolic construction of models for multibody dynamics, IEEE Transactions on
Robotics and Automation 11(2), 1995.
"""

import inspect
import json
import time
from pathlib import Path

import jax
import numpy as np
import robots
import sympy
from systems import kwatny_blankenship

import lgsim
from lgsim import dynamics, symbolic
from lgsim.symbolic.coordinates import coordinates
from lgsim.symbolic.merge import merged

PAPER = json.loads((Path(__file__).parents[3] / "tests/data/kwatny_blankenship.json").read_text(encoding="utf-8"))
ARM = ["s2", "s1", "e", "t3", "t2", "t1"]
ORDER = [1, 0, 2, 5, 4, 3]  # the paper counts a joint's parameters from the child
RATES = [f"p{i}" for i in range(1, 7)]
OPERATIONS, MONOMIALS, SECONDS = 3700, 1500, 5.0
DIGITS = (lgsim.inverse_dynamics, lgsim.forward_dynamics, lgsim.mass_matrix, dynamics.coriolis_matrix)


def arm(report):
    """The 6-joint arm as exact formulas: their size, the time to derive them, and their values at the reference."""
    c = coordinates(kwatny_blankenship.six_joint_arm(), ARM, RATES)
    rows = []

    def velocity_terms(machine, q, v):
        return lgsim.bias_forces(machine, q, v) - lgsim.gravity_forces(machine, q)

    def made(f, *given):
        start = time.perf_counter()
        found = symbolic.evaluate(f, c.ring)(c.machine, c.q, *given)
        short = [merged(c.ring, x) for x in found.flat]
        seconds = time.perf_counter() - start
        return found, sum(len(x.p.terms()) for x in found.flat), sum(map(sympy.count_ops, short)), seconds

    M, terms, count, seconds = made(lgsim.mass_matrix)
    rows.append(["mass matrix", terms, count, seconds])
    report.bound("6-joint arm, operations of M", count, at_most=OPERATIONS)
    report.bound("6-joint arm, s to M", seconds, at_most=SECONDS)
    F, terms, count, seconds = made(velocity_terms, c.vectors[0])
    rows.append(["velocity terms", terms, count, seconds])
    report.bound("6-joint arm, monomials of the velocity terms", terms, at_most=MONOMIALS)
    report.bound("6-joint arm, s to the velocity terms", seconds, at_most=SECONDS)
    report.table("6-joint arm of the paper, exact", ["formula", "monomials", "operations, merged", "s"], rows)

    worst = 0.0
    for point in PAPER["arm"]["points"]:
        q, p = [point["q"][i] for i in ORDER], [point["p"][i] for i in ORDER]
        where = dict(zip([*c.q, *c.vectors[0]], map(sympy.Rational, [*q, *p]), strict=True))
        at = [_numbers(c.ring.expressions(x), where) for x in (M, F)]
        for found, expected in zip(at, (point["M_compound"], point["F_compound_Cp"]), strict=True):
            expected = np.array([[float(sympy.Rational(x)) for x in np.ravel(row)] for row in expected]).squeeze()
            worst = max(worst, np.abs(found[np.ix_(*[ORDER] * found.ndim)] - expected).max())
    report.bound("6-joint arm against the reference, all entries, both points", worst, at_most=1e-13)


def _numbers(expressions, where):
    return np.vectorize(lambda x: float(x.subs(where).evalf(30)), otypes=[float])(expressions)


def disk(report):
    """The free disk in quaternions, which equals Euler's equations term by term."""
    w1, w2, w3 = sympy.symbols("w1:4", real=True)
    found = symbolic.poincare(kwatny_blankenship.thin_disk(), p=["w1", "w2", "w3"])
    expected = sympy.diag(5, 5, 10), sympy.Matrix([5 * w2 * w3, -5 * w1 * w3, 0]), sympy.zeros(3, 1)
    differ = sum(a != b for a, b in zip((found.M, found.velocity_terms, found.F), expected, strict=True))
    rows = [["M", str(found.M.tolist())], ["velocity terms", str(found.velocity_terms.T.tolist()[0])]]
    report.table("Thin disk in a ball joint, in quaternions", ["formula", "entries"], rows)
    report.bound("disk, formulas that are not the expected ones", differ, at_most=0)


def digits(report):
    """float64 against the same algorithm in 50 digits, in units of round-off of the largest entry per joint."""
    model, rows = robots.chain(7, "float64"), []
    states = [np.asarray(x[0]) for x in robots.state(model, 1)]
    for f in DIGITS:
        given = states[: len(inspect.signature(f).parameters) - 1]
        exact = np.asarray(symbolic.evaluate(lambda *x, f=f: f(model, *x), symbolic.Digits(50))(*given), float)
        error = np.abs(jax.jit(f)(model, *given) - exact).max() / np.abs(exact).max()
        rows.append([f.__name__, error])
        report.bound(f"roundings a joint, {f.__name__}", error / (model.nv * np.finfo(float).eps), at_most=50)
    report.table("Seven joints in general position against 50 digits", ["function", "relative error"], rows)


PARTS = (arm, disk, digits)
