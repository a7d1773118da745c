"""Symplectic methods on the heavy top, Figs. 2 and 3 of Section 3.4.4, and a million steps."""

import harness

import jax
import jax.numpy as jnp
import numpy as np
from cases.manifolds.study import MARKS, Orders, Page, by_scipy, counts, end, path
from systems.heavy_top_quadratic import heavy_top_quadratic

import lgsim
from lgsim.integrators.methods import SYMPLECTIC_METHODS
from lgsim.integrators.symplectic import SymplecticTheta
from lgsim.systems import CELLEDONI_TOP, heavy_top_cotangent

STEP, STEPS = 0.01, 6000  # of Fig. 3
LONG_STEP, CALL, EVERY, MILLION = 0.001, 10_000, 10, 1_000_000
TIME, FLOOR, CEILING = 0.1, 1e-11, 0.03


def attitude(state) -> np.ndarray:
    """R of a state of either form."""
    return np.asarray(state[0][0] if isinstance(state[0], tuple) else state[0])


def curves(report: harness.Report) -> dict[str, tuple[Orders, int]]:
    """Errors of the attitude at 0.1 s, after 2.4 revolutions of the top: first-order effects appear from there on."""
    canonical, quadratic = heavy_top_cotangent(**CELLEDONI_TOP), heavy_top_quadratic(**CELLEDONI_TOP)
    runs = {
        "theta = 0": (SymplecticTheta(0), canonical),
        "theta = 1/2": (SymplecticTheta(1 / 2), canonical),
        "theta = 1": (SymplecticTheta(1), canonical),
        "theta = 1/2, quadratic H": (SymplecticTheta(1 / 2), quadratic),
    }
    if report.quick:
        runs = {"theta = 1/2": runs["theta = 1/2"]}
    else:
        names = [name for name, method in SYMPLECTIC_METHODS.items() if len(method.tableau.substeps) > 1]
        runs |= {name: (SYMPLECTIC_METHODS[name], canonical) for name in names}
    exact = by_scipy(canonical, TIME).y[:9, -1]
    found = {}
    for name, (method, problem) in runs.items():
        steps, errors = [], []
        for n in counts(50, 6400 if method.order == 1 else 3200, 1):
            steps.append(n)
            errors.append(float(np.linalg.norm(attitude(end(method, problem, TIME, n)).ravel() - exact)))
            if errors[-1] < FLOOR:
                break
        found[name] = (Orders(np.array(steps), np.array(errors)), method.order)
    return found


def million(report: harness.Report) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Relative errors of energy and of the momentum about gravity along a long run, each ``EVERY``-th state."""
    problem = heavy_top_cotangent(**CELLEDONI_TOP)
    invariants = [problem.invariants[name] for name in ("energy", "vertical_momentum")]
    along = jax.jit(jax.vmap(lambda y: jnp.stack([f(y, problem.args) for f in invariants])))
    y, pieces = problem.initial, []
    for _ in range((CALL if report.quick else MILLION) // CALL):
        settings = {"dt": LONG_STEP, "steps": CALL, "save_every": EVERY, "args": problem.args, "checkpoint": None}
        ys = lgsim.integrate(SYMPLECTIC_METHODS["SymplecticMidpoint"], problem.action, problem.field, y, **settings).ys
        y = jax.tree.map(lambda leaf: leaf[-1], ys)
        pieces.append(np.asarray(along(ys)) if not pieces else np.asarray(along(ys))[1:])
    energy, momentum = np.concatenate(pieces).T
    return EVERY * np.arange(len(energy)), energy / energy[0] - 1, momentum - momentum[0]


def trend(steps: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The largest magnitude in each of 100 intervals, and its slope per step."""
    intervals = 100
    length = len(error[1:]) // intervals
    largest = np.abs(error[1 : 1 + intervals * length]).reshape(intervals, length).max(axis=1)
    middles = steps[1 : 1 + intervals * length].reshape(intervals, length).mean(axis=1)
    return middles, largest, float(np.polyfit(middles, largest, 1)[0])


def symplectic(report: harness.Report, page: Page) -> None:
    """Figs. 2 and 3."""
    found = curves(report)
    rows = []
    for name, (curve, order) in found.items():
        slope = curve.slope(FLOOR, CEILING)
        rows.append([name, order, f"{slope:.3f}", f"{curve.errors[-1]:.1e}"])
        report.bound(f"Fig. 2, {name}: |slope - {order}|", abs(slope - order), at_most=0.15)
    report.table(
        "Fig. 2. Orders of the symplectic methods, heavy top at t = 0.1 s", ["method", "order", "slope", "error"], rows
    )

    problem = heavy_top_cotangent(**CELLEDONI_TOP)
    drifts, rows = {}, []
    for name, theta in (("theta = 1/2", 1 / 2), *([] if report.quick else [("theta = 0", 0)])):
        times, states = path(SymplecticTheta(theta), problem, STEP * STEPS, STEPS, 10)
        values = {
            what: np.asarray(jax.jit(jax.vmap(lambda y, what=what: problem.invariants[what](y, problem.args)))(states))
            for what in ("energy", "vertical_momentum")
        }
        energy = values["energy"] / values["energy"][0] - 1
        momentum = np.abs(values["vertical_momentum"] - values["vertical_momentum"][0])
        size = np.linalg.norm(np.asarray(problem.initial[1]))
        drifts[name] = (times, energy, states)
        halves = [np.abs(half).max() for half in np.array_split(energy, 2)]
        rows.append([name, f"{np.abs(energy).max():.1e}", f"{halves[1] / halves[0]:.3f}", f"{momentum.max():.1e}"])
        report.bound(f"Fig. 3, {name}: momentum about gravity", momentum.max() / size, at_most=1e-12)
        if theta:
            report.bound("Fig. 3: largest energy error, second half / first half", halves[1] / halves[0], at_most=1.05)
            report.bound("Fig. 3: relative energy error over 6000 steps", np.abs(energy).max(), at_most=0.05)
    report.table(
        "Fig. 3. 6000 steps of 0.01 s",
        ["method", "energy, relative", "2nd half / 1st", "momentum about gravity, kg m^2/s"],
        rows,
    )

    steps, energy, momentum = million(report)
    middles, largest, slope = trend(steps, energy)
    many = f"{steps[-1]:,} steps"
    report.bound(f"{many}: slope of the largest energy error, relative, per step", abs(slope), at_most=1e-13)
    report.bound(
        f"{many}: momentum about gravity, relative to the momentum", np.abs(momentum).max() / size, at_most=1e-12
    )
    report.figure(f"energy trend over {many}", slope, "per step")
    report.figure("momentum about gravity", np.abs(momentum).max() / size)

    def draw(plt):
        figure = plt.figure(figsize=(14.5, 8))
        times, _, states = drifts["theta = 1/2"]
        space = figure.add_subplot(2, 3, 1, projection="3d")
        up = np.einsum("nji,j->ni", np.asarray(states[0]), np.array(CELLEDONI_TOP["up"]))
        space.plot(*up.T, ".", ms=2, color="#3b3a6e")
        space.set_title("Fig. 3: direction up, in the body")
        axis = figure.add_subplot(2, 3, 2)
        few_times, few = path(SymplecticTheta(1 / 2), problem, 1.0, 500)
        for row, label in zip(np.asarray(few[0])[:, :, 1].T, "xyz", strict=True):
            axis.plot(few_times, row, lw=1.2, label=label)
        axis.set(title="Fig. 2: R X, step 0.002 s", xlabel="time, s")
        axis.legend(fontsize=8)
        axis = figure.add_subplot(2, 3, 3)
        for (name, (curve, _)), mark in zip(found.items(), MARKS, strict=False):
            axis.loglog(
                TIME / curve.steps, curve.errors, mark + "-", ms=4, lw=1.1, label=name.removeprefix("Symplectic")
            )
        axis.set(title="Fig. 2: error of the attitude at t = 0.1 s", xlabel="step, s")
        axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
        axis = figure.add_subplot(2, 3, 4)
        for name, (times, error, _) in reversed(drifts.items()):
            axis.semilogy(times[1:], np.abs(error[1:]), ".", ms=2, label=name)
        axis.set(title="Fig. 3: energy, relative change, step 0.01 s", xlabel="time, s", ylim=(1e-9, 0.1))
        axis.legend(fontsize=8, markerscale=5, loc="lower right")
        axis = figure.add_subplot(2, 3, 5)
        axis.plot(middles, largest, lw=1.2, color="#3b3a6e")
        axis.set(title=f"{many} of 1 ms: largest energy error,\neach of 100 intervals, relative", xlabel="steps")
        axis.set_ylim(0, 1.3 * largest.max())
        axis = figure.add_subplot(2, 3, 6)
        axis.plot(
            steps[:: max(1, len(steps) // 2000)],
            momentum[:: max(1, len(steps) // 2000)] / size,
            lw=0.7,
            color="#d95f02",
        )
        axis.set(title=f"{many}: momentum about gravity,\nchange relative to the momentum", xlabel="steps")
        return figure

    page.add("heavy_top_symplectic", "Figs. 2, 3. The symplectic family on T*SO(3), and a million steps of it.", draw)
