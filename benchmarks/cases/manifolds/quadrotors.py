"""Two quadrotors with a load, Section 6: orders (Fig. 13) and the tracking of a parabola (Figs. 14 to 18)."""

import harness

from functools import partial

import jax
import numpy as np
from cases.manifolds.study import MARKS, Orders, Page, by_scipy, counts, distance, end, orders, path
from systems.quadrotor_control import command, desired_path, track, track_by_forces, two_quadrotors_tracking

import lgsim
from lgsim.systems.quadrotors import quadrotor_motion

NAMES = ("MK2", "MK3", "MK4", "MK5")
FLOOR, CEILING = 1e-11, 0.03
TIME, STEP = 1.0, 0.01


def flights(report: harness.Report, page: Page) -> None:
    """Figs. 13 to 18."""
    found = convergence(report)
    runs = tracking(report)
    page.add("quadrotors", "Figs. 13 to 18. Two quadrotors with a load on a parabola.", partial(draw, found, runs))


def convergence(report: harness.Report) -> dict[str, Orders]:
    """Fig. 13: four Munthe-Kaas methods under the forces of the load controller, against scipy."""
    problem, time = two_quadrotors_tracking(control=track_by_forces), TIME
    exact = by_scipy(problem, time).y[:, -1]
    names = NAMES[::3] if report.quick else NAMES
    found = {n: orders(getattr(lgsim, n), problem, time, exact, counts(16, 2048), FLOOR) for n in names}
    rows = []
    for name, curve in found.items():
        slope, order = curve.slope(FLOOR, CEILING), getattr(lgsim, name).order
        rows.append([name, order, f"{slope:.3f}", f"{curve.errors[-1]:.1e}"])
        report.bound(f"Fig. 13, {name}: |slope - {order}|", abs(slope - order), at_most=0.15)
    report.table("Fig. 13. Orders on the quadrotors, t = 1 s", ["method", "order", "slope", "least error"], rows)
    gap = distance(end(lgsim.MK5, problem, time, 1024), exact)
    report.bound("Fig. 13: MK5 with 1024 steps and DOP853 differ", gap, at_most=2 * FLOOR)
    return found


def flight(control) -> dict[str, np.ndarray]:
    """Five seconds by RKMK of order 4, and the data of Figs. 14 to 18."""
    problem = two_quadrotors_tracking(control=control)
    vehicles, goal = problem.args
    times, states = path(lgsim.MK4, problem, 5.0, round(5.0 / STEP))
    load, _, _, links = states
    asked = jax.jit(jax.vmap(lambda t, a, b: command(t, a, b, vehicles, goal).directions))(times, load, links)
    q, omega = np.asarray(links[..., :3]), np.asarray(links[..., 3:])
    return {
        "t": times,
        "load": np.asarray(load[:, :3]),
        "path": np.asarray(jax.jit(jax.vmap(lambda t: desired_path(t, goal)[0]))(times)),
        "vehicles": np.asarray(jax.jit(jax.vmap(lambda y: quadrotor_motion(y, vehicles)[0]))(states)),
        "astray": np.linalg.norm(np.asarray(asked) - q, axis=-1),
        "norms": np.abs(1 - np.linalg.norm(q, axis=-1)),
        "tangency": np.abs(np.sum(q * omega, axis=-1)),
    }


def tracking(report: harness.Report) -> dict[str, dict]:
    """Figs. 14 to 18, with thrusts and moments, and with forces only as in the paper."""
    runs = {"thrusts and moments": flight(track)}
    if not report.quick:
        runs["forces only"] = flight(track_by_forces)
    rows = []
    for name, f in runs.items():
        off = np.linalg.norm(f["load"] - f["path"], axis=-1)
        ends = off[0], off[-1], f["astray"][0].max(), f["astray"][-1].max()
        rows.append([name, *(f"{x:.1e}" for x in (*ends, f["norms"].max(), f["tangency"].max()))])
        report.bound(f"Fig. 16, {name}: path error of the load at 5 s / at the start", off[-1] / off[0], at_most=5e-3)
        report.bound(f"Fig. 17, {name}: direction error of the links at 5 s", ends[3], at_most=1e-6)
        report.bound(f"Fig. 18, {name}: |1 - |q||", f["norms"].max(), at_most=1e-13)
        report.bound(f"Fig. 18, {name}: q . omega", f["tangency"].max(), at_most=1e-13)
    report.table(
        f"Figs. 14 to 18. MK4, step {STEP:g} s",
        ["control", "path error at 0 s, m", "at 5 s", "link error at 0 s", "at 5 s", "|1 - |q||", "q . omega"],
        rows,
    )
    report.figure("path error of the load at 5 s", off[-1], "m")
    return runs


def draw(found: dict[str, Orders], flights: dict[str, dict], plt):
    """The picture."""
    f = flights["thrusts and moments"]
    up = np.array([1.0, 1.0, -1.0])  # e3 points down
    figure = plt.figure(figsize=(13, 8))
    axis = figure.add_subplot(2, 3, 1)
    for (name, curve), mark in zip(found.items(), MARKS, strict=False):
        axis.loglog(TIME / curve.steps, curve.errors, mark + "-", ms=4, lw=1.1, label=name)
    axis.set(title="Fig. 13: error at t = 1 s", xlabel="step, s")
    axis.legend(fontsize=8)
    axis = figure.add_subplot(2, 3, 2, projection="3d")
    axis.plot(*(up * f["path"]).T, color="red", lw=1)
    axis.plot(*(up * f["load"]).T, color="#3b3a6e", lw=1)
    for k in np.linspace(0, len(f["t"]) - 1, 9).round().astype(int):
        for body in f["vehicles"][k]:
            axis.plot(*np.stack([up * f["load"][k], up * body]).T, color="gray", lw=0.8)
            axis.plot(*(up * body)[:, None], "s", color="#d95f02", ms=4)
        axis.plot(*(up * f["load"][k])[:, None], "o", color="#3b3a6e", ms=5)
    axis.set(title="Fig. 14: snapshots, 0 to 5 s (up is up)", xlabel="x, m", ylabel="y, m", zlabel="height, m")
    axis.set_yticks([-0.8, -0.4, 0.0])
    axis.set_box_aspect((4, 2, 4))
    axis = figure.add_subplot(2, 3, 3)
    for k, color in enumerate(("#3b3a6e", "#1b9e77", "#d95f02")):
        axis.plot(f["t"], f["load"][:, k], color=color, lw=1.4, label=f"y{k + 1}")
        axis.plot(f["t"], f["path"][:, k], color="red", lw=0.9, ls="--", label="desired" if k == 2 else None)
    axis.set(title="Fig. 15: load and path, m (y3 points down)", xlabel="time, s")
    axis.legend(fontsize=8)
    panels = {"Fig. 16: load off its path, m": None, "Fig. 17: links off their directions": "astray"}
    for place, (title, what) in enumerate(panels.items(), start=4):
        axis = figure.add_subplot(2, 3, place)
        for (name, g), style in zip(flights.items(), ("-", ":"), strict=True):
            curve = np.linalg.norm(g["load"] - g["path"], axis=-1) if what is None else g[what].max(axis=-1)
            axis.semilogy(g["t"], curve, style, lw=1.5, label=name)
        axis.set(title=title, xlabel="time, s")
        axis.legend(fontsize=8)
    axis = figure.add_subplot(2, 3, 6)
    for k in range(2):
        axis.semilogy(f["t"], f["norms"][:, k] + 1e-18, lw=0.8, label=f"1 - |q{k + 1}|")
    axis.set(title="Fig. 18: norms of the links' directions", xlabel="time, s", ylim=(1e-17, 1e-12))
    axis.legend(fontsize=8)
    return figure
