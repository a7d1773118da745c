"""The report of an estimated motion: states with bands, unknown parameters, residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.estimate import RobotEstimate
from lgsim.estimate.consistency import chi_square_quantile
from lgsim.identify import Recording
from lgsim.identify.recording.coordinates import dof_names, encoders
from lgsim.lie import quaternion
from lgsim.simulation.trajectory import v_names
from lgsim.support.packages import own_version, package
from lgsim.view.figures import COLORS, DARK, DOUBLE, GRAY, HEAD, RED, axes_grid, literal
from lgsim.view.reports.identification import add_recording
from lgsim.view.reports.identification_plots import ROWS, broken, dots, legend, thin
from lgsim.view.reports.page import Page

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = 0.95
"""The probability of the bands of residuals."""


def report_estimate(
    found: RobotEstimate,
    recording: Recording | None = None,
    *,
    title: str = "Estimation",
    subtitle: str = "",
    files: Sequence[str] = (),
) -> Page:
    """Report of an estimated motion: the verdict, states with deviations, unknown parameters, residuals.

    Args:
        found: Result of ``estimate.RobotRecord.filtered``.
        recording: The recording, for its readings in the plots and a section about its corrections.
        files: Names of files that were written with the page.

    Returns:
        The page: ``.save("estimate.html")`` or ``.html()``.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    package("matplotlib", "plot", "a report")
    drawn, verdict = estimate_figures(found, recording), found.filtered.verdict
    page = Page(title, subtitle, f"lgsim {own_version()}")
    page.add_section("Summary")
    page.add_facts([
        ("states", len(found.filtered.names)),
        ("times", len(found.filtered.ts)),
        ("readings", sum(stream.count for stream in verdict.streams)),
        ("readings beyond the gate", int(sum(np.sum(x) for x in found.filtered.gated.values()))),
        ("logarithm of the likelihood", float(found.filtered.loglikelihood)),
    ])  # fmt: skip
    page.add_verdict(verdict.text.split("\n")[0], verdict.is_consistent)
    for stream in verdict.streams:
        if not stream.is_consistent:
            page.add_remark(stream.text, "bad")
    for direction in verdict.unobserved:
        page.add_remark(f"Not observed: {direction}. Its deviation is what it would be without readings.")
    if recording is not None:
        add_recording(page, recording, recording.history)
    page.add_section("States")
    page.add_figure(drawn["states"], "Estimated states with bands of two standard deviations, and readings.")
    if "unknowns" in drawn:
        page.add_section("Unknown parameters")
        page.add_table(
            ["parameter", "prior", "estimate", "standard deviation"],
            [[name, found.prior[name], x[-1], spread[-1]] for name, (x, spread) in found.unknowns().items()],
        )
        page.add_figure(drawn["unknowns"], "Estimates over time with bands of two standard deviations.")
    page.add_section("Residuals")
    page.add_table(
        ["readings of", "count", "gated", "standard deviation", "mean squared residual", "from", "to"],
        stream_rows(found),
        caption="Squared residuals are relative to the predicted ones; a consistent filter has a mean within the band.",
    )
    share = f"{100 * BAND:g} % of those of a consistent filter are below the line"
    page.add_figure(drawn["residuals"], f"Sizes of the normalized residuals; {share}.")
    if files:
        page.add_section("Files")
        page.add_list(files)
    return page


def stream_rows(found: RobotEstimate) -> list[tuple[str, int, int, float, float, float, float]]:
    """Rows of streams: name, number of readings, of gated ones, deviation, mean squared residual and its band."""
    rows, own = [], {stream.name: stream for stream in found.filtered.verdict.streams}
    for stream in found.record.streams:
        name = stream.measurement.name
        gated, noise = int(np.sum(found.filtered.gated[name])), float(np.max(stream.measurement.noise))
        count, mean, band = own[name][1:] if name in own else (0, np.nan, (np.nan, np.nan))
        rows.append((name, count, gated, noise, mean, *band))
    return rows


def estimate_figures(found: RobotEstimate, recording: Recording | None = None) -> dict[str, Figure]:
    """Plots of ``report_estimate`` by name: states, residuals, and unknowns if there are any.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    drawn = {"states": _states(found, recording), "residuals": _residuals(found)}
    unknowns = found.unknowns()
    if unknowns:
        shown = list(unknowns.items())[:ROWS]
        drawn["unknowns"], axes = axes_grid(len(shown), 1, DOUBLE, 1.45 * len(shown) + 0.7)
        for ax, (name, (values, deviations)) in zip(axes[:, 0], shown, strict=True):
            _band(ax, found.filtered.ts, values, deviations)
            prior = found.prior[name]
            ax.axhline(prior, color=DARK, linewidth=0.7, linestyle=(0, (4, 3)), label="prior")
            ax.set_title(literal(name.rpartition(", ")[0]), **HEAD)
            ax.set_ylabel(literal(name.rpartition(", ")[2]))
        legend(drawn["unknowns"], axes[0, 0])
    return drawn


def _states(found: RobotEstimate, recording: Recording | None) -> Figure:
    """Positions and velocities of all degrees of freedom, with bands and readings."""
    model, time = found.record.process.model, found.filtered.ts
    names, units = dof_names(model), [name.rpartition("[")[2].rstrip("]") for name in v_names(model)]
    q, spread = _positions(found)
    figure, axes = axes_grid(len(names), 3, DOUBLE, 1.45 * len(names) + 0.7)
    recorded = {}
    if recording is not None:
        recorded = {"q": np.asarray(_chart(found, jnp.asarray(recording.q))), "v": recording.v}
    for i, (name, unit) in enumerate(zip(names, units, strict=True)):
        v, wide = found.v[:, i], found.deviations[:, model.nv + i]
        panels = (
            ("q", "position", q[:, i], spread[:, i], 0.0),
            ("q", "minus estimate", q[:, i], spread[:, i], q[:, i]),
            ("v", "velocity", v, wide, 0.0),
        )
        for ax, (channel, label, mean, deviation, base) in zip(axes[i], panels, strict=True):
            _band(ax, time, mean - base, deviation)
            if recording is not None and recorded[channel] is not None:
                valid = recording.valid(channel)[:, i]
                t = recording.time[valid]
                values = recorded[channel][valid, i] - (np.interp(t, time, base) if np.ndim(base) else base)
                dots(ax, t, values, np.zeros(len(t), bool))
            ax.set_ylabel(f"{label} ({unit if channel == 'v' else unit.removesuffix('/s')})")
        axes[i, 0].set_title(literal(name), **HEAD)
    legend(figure, axes[0, 0])
    figure.align_ylabels()
    return figure


def _band(ax: Axes, time: Float[np.ndarray, " k"], mean: Float[np.ndarray, " k"], deviation: np.ndarray) -> None:
    part = thin(len(time))
    t, low, high = time[part], (mean - 2 * deviation)[part], (mean + 2 * deviation)[part]
    ax.fill_between(t, low, high, color=COLORS[0], alpha=0.25, linewidth=0, label="± 2 standard deviations")
    ax.plot(*broken(t, mean[part]), color=COLORS[0], linewidth=1.0, label="estimate")
    # the band of the first states is as wide as that of the start
    late = len(t) // 10
    bottom, top = min(low[late:].min(), mean.min()), max(high[late:].max(), mean.max())
    ax.set_ylim(bottom - 0.1 * (top - bottom), top + 0.1 * (top - bottom))


def _positions(found: RobotEstimate) -> tuple[Float[np.ndarray, "k nv"], Float[np.ndarray, "k nv"]]:
    """``_chart`` of the states, and its standard deviations to first order."""
    process, states = found.record.process, found.states
    if process.model.nq == process.model.nv:
        return found.q, found.deviations[:, : process.model.nv]

    def spread(mean: tuple, factor: jax.Array) -> jax.Array:
        def along(e: jax.Array) -> jax.Array:
            return _chart(found, process.parts(states.error.move(e, mean))[0])

        slope = jax.jacfwd(along)(jnp.zeros(factor.shape[0], factor.dtype))
        return jnp.linalg.norm(slope @ factor, axis=1)

    return np.asarray(_chart(found, jnp.asarray(found.q))), np.asarray(jax.vmap(spread)(states.means, states.factors))


def _chart(found: RobotEstimate, q: Float[jax.Array, "*batch nq"]) -> Float[jax.Array, "*batch nv"]:
    """Coordinates for each degree of freedom; of a quaternion the rotation vector from the first state."""
    parts = []
    for _, own, v in encoders(found.record.process.model):
        x = q[..., own]
        if len(own) != len(v):
            first = quaternion.inverse(jnp.asarray(found.q[0, own[-4:]]))
            turned = quaternion.log(quaternion.compose(first, x[..., -4:]))
            x = jnp.concatenate([x[..., :-4], turned], axis=-1)
        parts.append(x)
    return jnp.concatenate(parts, axis=-1)


def _residuals(found: RobotEstimate) -> Figure:
    """The sizes of the normalized residuals of each stream, gated ones in red."""
    estimate, dims = found.filtered, dict(found.filtered.dims)
    columns = min(2, len(dims))
    rows = -(-len(dims) // columns)
    figure, axes = axes_grid(rows, columns, DOUBLE, 1.45 * rows + 0.7)
    for ax, (name, m) in zip(axes.flat, dims.items(), strict=False):
        size, gated = np.sqrt(np.asarray(estimate.nis[name]) / m), np.asarray(estimate.gated[name])
        part = thin(len(size))
        ax.plot(estimate.ts[part], size[part], ".", color=GRAY, markersize=1.6, label="residual")
        ax.axhline(np.sqrt(chi_square_quantile(BAND, m) / m), color=DARK, linewidth=0.7, linestyle=(0, (4, 3)),
                   label=f"{100 * BAND:g} %")  # fmt: skip
        if gated.any():
            ax.plot(estimate.ts[gated], size[gated], ".", color=RED, markersize=2.5, label="gated")
        ax.set_title(literal(name), **HEAD)
        ax.set_ylim(bottom=0)
    for ax in list(axes.flat)[len(dims) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("normalized size")
    legend(figure, *axes.flat)
    return figure
