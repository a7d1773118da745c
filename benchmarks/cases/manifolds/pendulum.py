"""The N-fold spherical pendulum, Section 5.3: orders, the manifold, and the history of adaptive steps."""

import harness

import jax
import jax.numpy as jnp
import numpy as np
from cases.manifolds.study import (
    FAMILIES,
    MARKS,
    Orders,
    Page,
    by_scipy,
    counts,
    distance,
    end,
    family,
    in_space,
    orders,
    path,
)

import lgsim
from lgsim.integrators.adaptive import ElementaryController, solve
from lgsim.integrators.methods import COORDINATE_METHODS, IMPLICIT_METHODS
from lgsim.systems import double_spherical_pendulum, pendulum_accelerations, spherical_pendulum

METHODS = {**lgsim.METHODS, **COORDINATE_METHODS, **IMPLICIT_METHODS}
QUICK = (
    "LieEuler",
    "MK2",
    "MK4",
    "MK4TwoCommutators",
    "MK4Cayley",
    "MK54",
    "CF4",
    "CG3",
)  # includes the paper's
FLOOR, CEILING = 1e-11, 0.3
TOLERANCE, STEPS = 1e-6, 1000  # the paper's value, and the most steps
TIME = 3.0
CONTROLLERS = {"paper's controller": lambda: ElementaryController(TOLERANCE), "PID": lambda: None}
FINE = {"rtol": 1e-12, "atol": 1e-12}


def methods(quick: bool) -> dict[str, lgsim.Method]:
    """The methods of Figs. 5 to 7."""
    return {name: METHODS[name] for name in QUICK} if quick else METHODS


def convergence(report: harness.Report, page: Page) -> None:
    """Fig. 5: the orders of all methods, from the paper's start and from a generic one."""
    problems = {"paper's start, 1.5 s": (spherical_pendulum(), 1.5), "generic, 2 s": (double_spherical_pendulum(), 2.0)}
    exact = {name: by_scipy(problem, time).y[:, -1] for name, (problem, time) in problems.items()}
    found: dict[tuple[str, str], Orders] = {}
    generic = problems["generic, 2 s"][0]
    rows = []
    for name, method in methods(report.quick).items():
        row = [name, method.order]
        for where, (problem, time) in problems.items():
            found[name, where] = orders(
                method, problem, time, exact[where], counts(16, 8192 if method.order == 1 else 4096), FLOOR
            )
            slope = found[name, where].slope(FLOOR, CEILING)
            row.append(f"{slope:.3f}")
            if problem is generic:
                report.bound(f"Fig. 5, {name}: |slope - {method.order}|", abs(slope - method.order), at_most=0.15)
            else:
                short = method.order - slope
                report.bound(f"Fig. 5, paper's start, {name}: {method.order} - slope", short, at_most=0.15)
        rows.append(row)
    report.table("Fig. 5. Orders on the double pendulum", ["method", "order", *problems], rows)
    gap = distance(end(lgsim.MK54, generic, 2.0, 2048), exact["generic, 2 s"])
    report.bound("Fig. 5: MK54 with 2048 steps and DOP853 differ", gap, at_most=2 * FLOOR)

    def draw(plt):
        groups = {name: [m for m in methods(report.quick) if family(m) == name] for name in FAMILIES}
        groups["other coordinates, implicit"] = groups.pop("other coordinates") + groups.pop("implicit")
        figure, axes = plt.subplots(2, 2, figsize=(13, 9), sharex=True, sharey=True)
        for axis, (title, names) in zip(axes.flat, groups.items(), strict=True):
            colors = plt.cm.turbo(np.linspace(0.05, 0.95, max(len(names), 2)))
            for name, color, mark in zip(names, colors, MARKS, strict=False):
                curve = found[name, "generic, 2 s"]
                axis.loglog(2.0 / curve.steps, curve.errors, mark + "-", color=color, ms=4, lw=1.1, label=name)
            h = np.array([3e-3, 3e-2])
            for order, size in ((1, 2.0), (2, 0.4), (4, 1e-2)):
                axis.loglog(h, size * (h / h[1]) ** order, color="gray", lw=0.8, ls=":")
                axis.annotate(f"{order}", (h[0], size * 0.1**order), color="gray", fontsize=9, ha="right")
            axis.set_title(title)
            axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
            axis.set_ylim(1e-11, 30)
        figure.supxlabel("step, s (dotted: slopes 1, 2, 4)")
        figure.supylabel("error at t = 2 s, all 12 entries")
        return figure

    page.add(
        "pendulum_orders",
        "Fig. 5. Double spherical pendulum in generic motion: errors against DOP853 at its finest.",
        draw,
    )


def manifold(report: harness.Report, page: Page) -> None:
    """Figs. 6 and 7: |q_i| = 1 and q_i . omega_i = 0, which solvers in R^12 do not conserve."""
    time, steps = 5.0, 500
    problem = double_spherical_pendulum()  # from the paper's planar start symmetry keeps q . omega zero in any method
    runs = {}
    for name, method in methods(report.quick).items():
        times, states = path(method, problem, time, steps)
        runs[name] = np.asarray(states)
    space = in_space(problem)
    naive = {
        "RK4 in R^12": np.asarray(path(lgsim.MK4, space, time, steps)[1]),
        "DOP853 in R^12, tolerance 1e-9": by_scipy(problem, time, rtol=1e-9, atol=1e-9, t_eval=times).y.T,
    }
    naive = {name: states.reshape(-1, 2, 6) for name, states in naive.items()}

    def gaps(states):
        q, omega = states[..., :3], states[..., 3:]
        return {
            "1 - |q|": np.abs(1 - np.linalg.norm(q, axis=-1)).max(axis=1),
            "q . omega": np.abs(np.sum(q * omega, axis=-1)).max(axis=1),
        }

    lie, others = ({name: gaps(states) for name, states in group.items()} for group in (runs, naive))
    rows = []
    for name, gap in {**lie, **others}.items():
        rows.append([name, *(f"{values.max():.1e}" for values in gap.values())])
        for what, values in gap.items():
            if name in lie:
                report.bound(f"Figs. 6-7, {name}: {what}", values.max(), at_most=1e-13)
            else:
                report.bound(f"Figs. 6-7, {name}: {what}", values.max(), at_least=1e-11)
    report.table("Figs. 6 and 7. Distance from the manifold over 0..5 s, largest of both rods", ["method", *gap], rows)
    report.figure("largest |1 - |q|| of a Lie method", max(gap["1 - |q|"].max() for gap in lie.values()))

    def draw(plt):
        figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), sharex=True, sharey=True)
        for axis, what, number in zip(axes, ("1 - |q|", "q . omega"), (6, 7), strict=True):
            shown = set()
            for name, gap in lie.items():
                kind = family(name)
                label = None if kind in shown else f"{kind} ({sum(family(m) == kind for m in lie)})"
                shown.add(kind)
                axis.semilogy(times, gap[what] + 1e-17, color=FAMILIES[kind], lw=0.5, alpha=0.6, label=label)
            for (name, gap), style in zip(others.items(), ("-", "--"), strict=True):
                axis.semilogy(times, gap[what] + 1e-17, color="black", ls=style, lw=1.6, label=name)
            axis.axhline(1e-13, color="red", lw=0.8, ls=":")
            axis.set(title=f"Fig. {number}: {what.replace('omega', 'ω')}, the larger of both rods", xlabel="time, s")
        axes[0].set_ylim(1e-17, 1e-4)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
        return figure

    page.add("pendulum_manifold", "Figs. 6, 7. Double pendulum, step 0.01 s: Lie methods stay on (TS²)².", draw)


def adaptive(problem, controller=None, **more):
    """RKMK(5,4) up to t = 3 s, with its steps."""
    settings = {"t1": TIME, "args": problem.args, "controller": controller, "save_steps": True, "max_steps": STEPS}
    settings |= {"rtol": TOLERANCE, "atol": TOLERANCE, **more}
    return solve(lgsim.MK54, problem.action, problem.field, problem.initial, **settings)


def chain(rods: int, total: float | None = None):
    """The paper's chain: rods of 1 m, or of a given total length."""
    return spherical_pendulum(masses=np.ones(rods), lengths=np.full(rods, 1.0 if total is None else total / rods))


def steps(report: harness.Report, page: Page) -> None:
    """Figs. 8, 10 and 11: step sizes with the paper's controller and with PID, and their accuracy."""
    cases = {"N = 2": chain(2), "N = 20, L = 1 m": chain(20), "N = 20, L = 0.25 m": chain(20, 5.0)}
    if report.quick:
        del cases["N = 20, L = 1 m"]
    runs, rows, errors = {}, [], {}
    for case, problem in cases.items():
        exact = by_scipy(problem, TIME, **FINE).y[:, -1]
        for name, make in CONTROLLERS.items():
            if report.quick and (case, name) == ("N = 20, L = 0.25 m", "PID"):
                continue
            run = adaptive(problem, make())
            assert not run.message, run.message
            runs[case, name] = run
            error, n = distance(run.y, exact), int(run.accepted)
            constant = distance(end(lgsim.MK5, problem, TIME, n), exact)
            errors[case, name] = (error, constant)
            least = float(run.ts[int(jnp.argmin(run.step_sizes[:-1]))])  # the last one only reaches t
            rows.append([f"{case}, {name}", n, int(run.rejected), f"{least:.2f}", f"{error:.1e}", f"{constant:.1e}"])
            if case == "N = 2":
                report.bound(f"Fig. 11, {name}: time of the shortest step - 2.2 s", abs(least - 2.2), at_most=0.1)
                report.bound(f"Fig. 11, {name}: error with constant / adaptive steps", constant / error, at_least=3.0)
    report.table(
        f"Figs. 8, 10, 11. RKMK(5,4), tolerance {TOLERANCE:g}, t = 3 s",
        ["chain, controller", "steps", "rejected", "shortest at, s", "error", "MK5, as many constant steps"],
        rows,
    )
    spread = float(np.ptp(np.asarray(runs["N = 2", "paper's controller"].step_sizes)))
    report.figure("Fig. 11: spread of the steps", spread, "s")
    if not report.quick:
        picture(
            page, cases, runs, {case: pair for (case, name), pair in errors.items() if name == "paper's controller"}
        )


def accuracies(total: float | None) -> dict[int, tuple[float, float]]:
    """Errors with adaptive and with as many constant steps, by the number of rods."""
    curve = {}
    for rods in (2, 4, 6, 8, 10, 12, 14, 16, 18):
        problem = chain(rods, total)
        exact = by_scipy(problem, TIME, **FINE).y[:, -1]
        run = adaptive(problem, ElementaryController(TOLERANCE))
        curve[rods] = (distance(run.y, exact), distance(end(lgsim.MK5, problem, TIME, int(run.accepted)), exact))
    return curve


def picture(page: Page, cases: dict, runs: dict, last: dict[str, tuple[float, float]]) -> None:
    """Figs. 8, 10 and 11; ``last`` are the errors of the longest chains."""
    accuracy = {
        None: {**accuracies(None), 20: last["N = 20, L = 1 m"]},
        5.0: {**accuracies(5.0), 20: last["N = 20, L = 0.25 m"]},
    }

    def histories(axis, case):
        for name, color in zip(CONTROLLERS, ("#3b3a6e", "#d95f02"), strict=True):
            found = runs[case, name]
            starts, sizes = found.ts[: int(found.accepted) - 1], found.step_sizes[:-1]  # the last one only reaches t
            axis.step(starts, sizes, where="post", color=color, lw=1.2, label=name)
        n = int(runs[case, "paper's controller"].accepted)
        axis.axhline(TIME / n, color="gray", ls="--", lw=1, label="constant, as many")
        axis.set(xlabel="time, s", ylabel="step, s", yscale="log")
        axis.legend(fontsize=8)

    def draw(plt):
        problem, run = cases["N = 2"], runs["N = 2", "paper's controller"]
        outer = by_scipy(problem, TIME, "RK45", rtol=TOLERANCE, atol=TOLERANCE)
        fine = by_scipy(problem, TIME, **FINE, t_eval=np.linspace(0.0, TIME, 601))
        accelerations = jax.jit(jax.vmap(pendulum_accelerations, (0, None)))(fine.y.T.reshape(-1, 2, 6), problem.args)
        _, constant = path(lgsim.MK5, problem, TIME, int(run.accepted))
        figure = plt.figure(figsize=(13, 7.6))
        top, bottom = figure.subfigures(2, 1)
        axes = top.subplots(1, 3)
        axes[0].step(
            outer.t[:-2], np.diff(outer.t)[:-1], where="post", color="#1b9e77", lw=1, label="RK45 (ODE45) in R^12"
        )
        histories(axes[0], "N = 2")
        axes[0].set_title("Fig. 11(a): N = 2, tolerance 1e-6")
        ends = np.asarray(run.ts[: int(run.accepted) + 1])
        adapted, fixed = np.asarray(run.ys)[: len(ends)], np.asarray(constant)
        for rod, color in enumerate(("#3b3a6e", "#d95f02")):
            axes[1].plot(fine.t, fine.y[6 * rod + 4], color=color, lw=1, label=f"reference, rod {rod + 1}")
            axes[1].plot(ends, adapted[:, rod, 4], "o", color=color, ms=4, label="adaptive")
            axes[1].plot(np.linspace(0, TIME, len(fixed)), fixed[:, rod, 4], "x", color=color, ms=4, label="constant")
            axes[2].plot(fine.t, accelerations[:, rod, 1], color=color, lw=1.2, label=f"rod {rod + 1}")
        axes[1].set(xlim=(2.1, 3.0), title="Fig. 11(b): ω⁽²⁾ of both rods, rad/s", xlabel="time, s")
        axes[1].legend(fontsize=7, ncols=2)
        axes[2].set(title="Fig. 11(c): ω'⁽²⁾ of both rods, rad/s²", xlabel="time, s")
        axes[2].legend(fontsize=8)
        axes = bottom.subplots(1, 4)
        for (total, curve), left, case in zip(accuracy.items(), (0, 2), list(cases)[1:], strict=True):
            number, length = (8, "L = 1 m") if total is None else (10, "L = 5 m / N")
            values = np.array(list(curve.values()))
            for column, (label, mark) in enumerate((("adaptive", "o-"), ("MK5, as many", "s--"))):
                axes[left].semilogy(list(curve), values[:, column], mark, ms=4, lw=1.1, label=label)
            axes[left].set(title=f"Fig. {number}: {length}", xlabel="rods N", ylabel="error at t = 3 s")
            axes[left].legend(fontsize=8)
            histories(axes[left + 1], case)
            axes[left + 1].set_title(f"Fig. {number}: {case}")
        return figure

    page.add("pendulum_steps", "Figs. 8, 10, 11. Steps that RKMK(5,4) chooses, and their errors.", draw)
