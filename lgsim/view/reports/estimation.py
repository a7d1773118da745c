"""The report of an estimated motion: states with bands, unknown parameters, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.estimate import RobotEstimate
from lgsim.estimate.consistency import chi_square_quantile
from lgsim.identify import Recording
from lgsim.identify.recording.coordinates import dof_names, encoders
from lgsim.simulation.trajectory import v_names
from lgsim.support.packages import own_version
from lgsim.view.figures import COLORS, DARK, DOUBLE, GRAY, HEAD, RED, axes_grid, literal
from lgsim.view.reports.identification import add_recording
from lgsim.view.reports.identification_plots import ROWS, broken, dots, legend, thin
from lgsim.view.reports.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = 0.95
"""The probability of the bands of residuals."""


def report_estimate(found: RobotEstimate, recording: Recording, title: str, files: Sequence[str]) -> Page:
    """Report of an estimated motion, with the readings of its recording and the names of files written with it."""
    drawn, verdict = estimate_figures(found, recording), found.filtered.verdict
    page = Page(title, recording.source, f"lgsim {own_version()}")
    page.add_section("Summary")
    page.add_verdict(verdict.summary, verdict.is_consistent)
    for fault in verdict.faults:
        page.add_remark(fault)
    add_recording(page, recording, recording.history)
    page.add_section("States")
    page.add_figure(
        drawn["states"],
        "States with bands of two standard deviations, in the body's axes for free joints, and readings.",
    )
    if "unknowns" in drawn:
        page.add_table(
            ["parameter", "prior", "estimate", "standard deviation"],
            [[name, found.prior[name], x[-1], spread[-1]] for name, (x, spread) in found.unknowns().items()],
        )
        page.add_figure(drawn["unknowns"], "Unknown parameters over time with bands of two standard deviations.")
    page.add_section("Residuals")
    page.add_table(
        ["readings of", "count", "gated", "standard deviation", "mean squared residual", "from", "to"],
        stream_rows(found),
        caption="Squared residuals are relative to the predicted ones; a consistent filter has a mean within the band.",
    )
    share = f"{100 * BAND:g} % of those of a consistent filter are below the line"
    page.add_figure(drawn["residuals"], f"Sizes of the normalized residuals; {share}.")
    page.add_section("Files")
    page.add_list(files)
    return page


def stream_rows(found: RobotEstimate) -> list[tuple[str, int, int, float, float, float, float]]:
    """Rows of streams: name, number of readings, of gated ones, deviation, mean squared residual and its band."""
    noises = {stream.measurement.name: float(np.max(stream.measurement.noise)) for stream in found.record.streams}
    return [
        (name, count, int(np.sum(found.filtered.gated[name])), noises[name], mean, *band)
        for name, count, mean, band in found.filtered.verdict.streams
    ]


def estimate_figures(found: RobotEstimate, recording: Recording) -> dict[str, Figure]:
    """Plots of ``report_estimate`` by name: states, residuals, and unknowns if there are any."""
    drawn = {"states": _states(found, recording), "residuals": _residuals(found)}
    shown = list(found.unknowns().items())[:ROWS]
    if shown:
        drawn["unknowns"], axes = axes_grid(len(shown), 1, DOUBLE, 1.45 * len(shown) + 0.7)
        for ax, (name, (values, deviations)) in zip(axes[:, 0], shown, strict=True):
            _band(ax, np.asarray(found.filtered.ts), values, deviations)
            ax.axhline(found.prior[name], color=DARK, linewidth=0.7, linestyle=(0, (4, 3)), label="prior")
            ax.set_title(literal(name.rpartition(", ")[0]), **HEAD)
            ax.set_ylabel(literal(name.rpartition(", ")[2]))
        legend(drawn["unknowns"], axes[0, 0])
    return drawn


def _states(found: RobotEstimate, recording: Recording) -> Figure:
    """Positions, recorded minus estimated ones, and velocities; of quaternions the rotation from the first state."""
    model, time = found.record.process.model, np.asarray(found.filtered.ts)
    names, units = dof_names(model), [name.rpartition("[")[2].rstrip("]") for name in v_names(model)]
    q, recorded = jnp.asarray(found.q), jnp.asarray(recording.q)
    positions = []
    for x in (q, recorded):
        positions.append(np.array(model.difference(q[:1], x)))
        for _, own, v in encoders(model):
            plain = len(own) - 4 * (len(own) != len(v))
            positions[-1][:, v[:plain]] = x[:, own[:plain]]
    # a reading from before or after all states has none of its own
    at = np.minimum(np.searchsorted(time, recording.time), len(time) - 1)
    panels = (
        ("q", "position", *positions),
        ("q", "minus estimate", 0 * positions[0], np.asarray(model.difference(q[at], recorded))),
        ("v", "velocity", found.v, recording.v),
    )
    figure, axes = axes_grid(len(names), 3, DOUBLE, 1.45 * len(names) + 0.7)
    for k, (channel, label, means, readings) in enumerate(panels):
        spread = found.deviations[:, model.nv * (channel == "v") :]
        for i, ax in enumerate(axes[:, k]):
            _band(ax, time, means[:, i], spread[:, i])
            if readings is not None and (valid := recording.valid(channel)[:, i]).any():
                dots(ax, recording.time[valid], readings[valid, i], np.zeros(int(valid.sum()), bool))
                if k == 1:
                    top = max(ax.get_ylim()[1], 1.2 * float(np.percentile(np.abs(readings[valid, i]), 99)))
                    ax.set_ylim(-top, top)
            ax.set_ylabel(f"{label} ({units[i] if channel == 'v' else units[i].removesuffix('/s')})")
    for ax, name in zip(axes[:, 0], names, strict=True):
        ax.set_title(literal(name), **HEAD)
    legend(figure, axes[0, 0])
    figure.align_ylabels()
    return figure


def _band(ax: Axes, time: np.ndarray, mean: Float[np.ndarray, " k"], deviation: Float[np.ndarray, " k"]) -> None:
    part = thin(len(time))
    t, low, high = time[part], (mean - 2 * deviation)[part], (mean + 2 * deviation)[part]
    ax.fill_between(t, low, high, color=COLORS[0], alpha=0.25, linewidth=0, label="± 2 standard deviations")
    ax.plot(*broken(t, mean[part]), color=COLORS[0], linewidth=1.0, label="estimate")
    # the band of the first states is as wide as that of the start
    late = len(t) // 10
    bottom, top = min(low[late:].min(), mean.min()), max(high[late:].max(), mean.max())
    ax.set_ylim(bottom - 0.1 * (top - bottom), top + 0.1 * (top - bottom))


def _residuals(found: RobotEstimate) -> Figure:
    """The sizes of the normalized residuals of each stream, gated ones in red."""
    estimate, dims = found.filtered, dict(found.filtered.dims)
    rows, time = -(-len(dims) // 2), np.asarray(found.filtered.ts)
    figure, axes = axes_grid(rows, 2, DOUBLE, 1.45 * rows + 0.7)
    for ax, (name, m) in zip(axes.flat, dims.items(), strict=False):
        size, gated = np.sqrt(np.asarray(estimate.nis[name]) / m), np.asarray(estimate.gated[name])
        there = np.flatnonzero(np.isfinite(size))
        there = there[thin(len(there))]
        ax.plot(time[there], size[there], ".", color=GRAY, markersize=1.6, label="residual")
        line = {"color": DARK, "linewidth": 0.7, "linestyle": (0, (4, 3)), "label": f"{100 * BAND:g} %"}
        ax.axhline(np.sqrt(chi_square_quantile(BAND, m) / m), **line)
        if gated.any():
            ax.plot(time[gated], size[gated], ".", color=RED, markersize=2.5, label="gated")
        ax.set_title(literal(name), **HEAD)
        ax.set_ylim(bottom=0)
    for ax in list(axes.flat)[len(dims) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("normalized size")
    legend(figure, *axes.flat)
    return figure
