"""Work and precision: adaptive methods of lgsim, of diffrax with renormalization and of scipy in R^n."""

import harness

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from cases.manifolds.pendulum import chain
from cases.manifolds.study import MARKS, Page, by_scipy, distance, end, flat, in_space
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

import lgsim
from lgsim.actions import Action
from lgsim.integrators.adaptive import solve
from lgsim.systems import InitialValueProblem, heavy_top, pendulum_accelerations

OURS = ("MK54", "CF43", "CF32a", "CF32b")
MOST = 100_000  # steps


def top_rate(t, y, top):
    """(R', Omega') of the heavy top, written out."""
    R, omega = y
    columns = [R[:, 1] * omega[2] - R[:, 2] * omega[1], R[:, 2] * omega[0] - R[:, 0] * omega[2]]
    columns.append(R[:, 0] * omega[1] - R[:, 1] * omega[0])
    weight = top.weight_moment * jnp.cross(R.T @ top.up, top.arm)
    return jnp.stack(columns, axis=1), (jnp.cross(top.inertia * omega, omega) + weight) / top.inertia


def chain_rate(t, y, numbers):
    """(q', omega') of the chain, written out."""
    return jnp.concatenate([jnp.cross(y[:, 3:], y[:, :3]), pendulum_accelerations(y, numbers)], axis=-1)


class Renormalized(diffrax.AbstractWrappedSolver):
    """A diffrax solver whose states are projected onto the manifold after each step."""

    solver: diffrax.AbstractSolver
    action: Action

    term_structure = property(lambda self: self.solver.term_structure)
    interpolation_cls = property(lambda self: self.solver.interpolation_cls)
    term_compatible_contr_kwargs = property(lambda self: self.solver.term_compatible_contr_kwargs)

    def order(self, terms):
        return self.solver.order(terms)

    def error_order(self, terms):
        return self.solver.error_order(terms)

    def init(self, terms, t0, t1, y0, args):
        return self.solver.init(terms, t0, t1, y0, args)

    def step(self, terms, t0, t1, y0, args, solver_state, made_jump):
        y1, *others = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump)
        return self.action.project(y1), *others

    def func(self, terms, t0, y0, args):
        return self.solver.func(terms, t0, y0, args)


def by_lgsim(name: str, problem: InitialValueProblem, time: float) -> tuple[Callable, Callable]:
    """``run(tolerance)`` to (state, attempts), and the evaluations of so many attempts."""
    method = lgsim.METHODS[name]

    @jax.jit
    def run(tolerance):
        settings = {"t1": time, "args": problem.args, "rtol": tolerance, "atol": tolerance, "max_steps": MOST}
        found = solve(method, problem.action, problem.field, problem.initial, **settings)
        return found.y, found.accepted + found.rejected

    stages = evaluations_of(method, problem)
    return run, lambda attempts: stages * attempts + 2  # two to choose the first step


def evaluations_of(method: lgsim.Method, problem: InitialValueProblem) -> int:
    """Calls of the field in one step, counted while it runs op by op."""
    calls = []

    def field(t, y, args):
        calls.append(t)
        return problem.field(t, y, args)

    with jax.disable_jit():
        method.step(problem.action, field, jnp.zeros(()), problem.initial, jnp.asarray(0.01), problem.args)
    return len(calls)


def by_diffrax(name: str, problem: InitialValueProblem, rate: Callable, time: float) -> tuple[Callable, Callable]:
    """The same of a solver of diffrax."""
    solver = getattr(diffrax, name)()
    term = diffrax.ODETerm(rate)

    @jax.jit
    def run(tolerance):
        found = diffrax.diffeqsolve(
            term, Renormalized(solver, problem.action), 0.0, time, None, problem.initial, problem.args,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance), max_steps=MOST,
        )  # fmt: skip
        return jax.tree.map(lambda leaf: leaf[0], found.ys), found.stats["num_steps"]

    fresh = solver.tableau.num_stages - bool(solver.tableau.fsal)
    return run, lambda attempts: fresh * attempts + 2 + bool(solver.tableau.fsal)


def by_dop853(problem: InitialValueProblem, rate: Callable, time: float) -> tuple[Callable, Callable]:
    """The same of scipy, whose calls of the field are compiled."""
    space = in_space(problem)
    unravel = ravel_pytree(problem.initial)[1]
    compiled = jax.jit(lambda t, x: ravel_pytree(rate(t, unravel(x), problem.args))[0])
    start = np.asarray(space.initial)

    def run(tolerance):
        found = solve_ivp(
            lambda t, x: np.asarray(compiled(t, x)), (0.0, time), start, "DOP853",
            rtol=max(float(tolerance), 2.3e-14), atol=float(tolerance),
        )  # fmt: skip
        return found.y[:, -1], found.nfev

    return run, lambda evaluations: evaluations


def problems(quick: bool) -> dict[str, tuple[InitialValueProblem, Callable, float, int]]:
    """Problem, its rate written out, the time, and the steps of the reference by MK8."""
    found = {
        "heavy top": (heavy_top(), top_rate, 5.0, 4000),
        "pendulum, N = 2": (chain(2), chain_rate, 3.0, 8000),
        "pendulum, N = 20": (chain(20), chain_rate, 3.0, 16000),
    }
    return {name: case for name, case in found.items() if not quick or name == "heavy top"}


def measured(report: harness.Report, problem: InitialValueProblem, rate: Callable, time: float, exact: Any) -> dict:
    """(tolerances, errors, evaluations, seconds) of each solver."""
    ours = OURS[:1] if report.quick else OURS
    runs = {f"lgsim {name}": by_lgsim(name, problem, time) for name in ours}
    peers = ("Tsit5",) if report.quick else ("Tsit5", "Dopri8")
    runs |= {f"diffrax {name}, renormalized": by_diffrax(name, problem, rate, time) for name in peers}
    runs["scipy DOP853, in R^n"] = by_dop853(problem, rate, time)
    tolerances = 10.0 ** -np.arange(3, 10 if report.quick else 12, 2 if report.quick else 1)
    found = {}
    for name, (run, evaluations) in runs.items():
        low = "CF32" in name  # of order 3: the smallest tolerances take minutes
        curve = []
        for tolerance in tolerances[tolerances > 3e-9] if low else tolerances:
            state, attempts = run(tolerance)
            curve.append([tolerance, distance(state, exact), float(evaluations(int(attempts)))])
        calls = {k: (lambda run=run, row=row: run(row[0])) for k, row in enumerate(curve)}
        seconds = fastest(calls, 1 if report.quick else 15)
        found[name] = np.array([[*row, seconds[k]] for k, row in enumerate(curve)]).T
    return found


def fastest(calls: dict[int, Callable], turns: int) -> dict[int, float]:
    """Minimum seconds of a call over many turns: other load on the computer can only add to them."""
    samples = [harness.interleave(calls, 1) for _ in range(turns)]
    return {k: min(sample[k] for sample in samples) for k in calls}


def work_for(error: float, work: np.ndarray, errors: np.ndarray) -> float:
    """The work for an error, interpolated between runs; NaN outside of them."""
    order = np.argsort(errors)
    return float(np.exp(np.interp(np.log(error), np.log(errors[order]), np.log(work[order]), np.nan, np.nan)))


def work(report: harness.Report, page: Page) -> None:
    """Error against wall time and against evaluations."""
    curves = {}
    for case, (problem, rate, time, steps) in problems(report.quick).items():
        exact = end(lgsim.MK8, problem, time, steps)
        gap = distance(exact, by_scipy(problem, time).y[:, -1])
        report.bound(f"work-precision, {case}: MK8 and DOP853 at their finest differ", gap, at_most=1e-9)
        written, general = flat(rate(0.0, problem.initial, problem.args)), in_space(problem)
        off = np.abs(written - flat(general.field(0.0, general.initial, general.args))).max()
        report.bound(f"work-precision, {case}: rates for lgsim and for its peers differ", off, at_most=1e-12)
        curves[case] = measured(report, problem, rate, time, exact)
        rows = []
        for name, (_, errors, evaluations, seconds) in curves[case].items():
            cells = [f"{work_for(e, evaluations, errors):.0f}" for e in (1e-4, 1e-6, 1e-8)]
            times = [f"{1e3 * work_for(e, seconds, errors):.2f}" for e in (1e-4, 1e-6, 1e-8)]
            rows.append([name, *cells, *times])
            slope = -np.polyfit(np.log(evaluations), np.log(errors), 1)[0]
            report.bound(f"work-precision, {case}, {name}: power of the evaluations", slope, at_least=2.5)
            report.bound(f"work-precision, {case}, {name}: least error", errors.min(), at_most=1e-5)
        columns = [f"{what} {e}" for what in ("evals,", "ms,") for e in ("1e-4", "1e-6", "1e-8")]
        report.table(
            f"Work for an error: {case}, t = {time:g} s (nan: outside of the range that was run)",
            ["solver", *columns],
            rows,
        )
    ours, theirs = curves["heavy top"]["lgsim MK54"], curves["heavy top"]["diffrax Tsit5, renormalized"]
    ratio = work_for(1e-6, ours[2], ours[1]) / work_for(1e-6, theirs[2], theirs[1])
    report.figure("heavy top, error 1e-6: evaluations of MK54", ratio, "x Tsit5")

    def draw(plt):
        figure, axes = plt.subplots(2, len(curves), figsize=(max(7, 4.3 * len(curves)), 8), sharey="row", squeeze=False)
        for column, (case, found) in enumerate(curves.items()):
            for row, (index, label) in enumerate(((3, "wall time, s"), (2, "evaluations of the field"))):
                axis = axes[row, column]
                for (name, curve), mark in zip(found.items(), MARKS, strict=False):
                    style = "-" if name.startswith("lgsim") else "--"
                    axis.loglog(curve[index], curve[1], mark + style, ms=4, lw=1.2, label=name)
                axis.set_xlabel(label)
                axis.xaxis.set_minor_formatter("")
            axes[0, column].set_title(case)
        for axis in axes[:, 0]:
            axis.set_ylabel("error at the end")
        figure.legend(
            *axes[0, 0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=min(4, 1 + len(curves)),
            fontsize=9,
        )
        return figure

    page.add("work_precision", "Work and precision of adaptive solvers; the fastest of 15 turns, on one core.", draw)
