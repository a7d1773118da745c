"""Plots of an identification, as figures of matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgsim.identify import Fit, Recording, TorqueSamples
from lgsim.identify.estimators.uncertainty import RANK_TOLERANCE
from lgsim.reports.number_rows import Number
from lgsim.support.extras import package
from lgsim.view.plots import COLORS, HEAD, OUTSIDE, TIME

Figure = Any
"""Of matplotlib, which only the package of pictures imports."""
POINTS = 3000
"""Of a curve: more cannot be told apart."""
ROWS = 30
"""Numbers in a plot; the surest are shown."""
GRAY, DARK = "#9aa3ad", "#20252c"


def grid(rows: int, columns: int, width: float, height: float, **more: Any) -> tuple[Figure, np.ndarray]:
    """A figure with axes (rows, columns) in the manner of ``lgsim.view.plots``."""
    figure = package("matplotlib.figure", "plot").Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **more)
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e3e6ea", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_size(9)
        ax.yaxis.label.set_size(9)
    return figure, axes


def thin(count: int) -> slice:
    """Every so many of them."""
    return slice(None, None, max(1, count // POINTS))


def broken(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with NaN where time jumps, so that no line crosses a gap."""
    steps = np.diff(time)
    ends = np.flatnonzero(steps > 10 * np.median(steps)) + 1 if len(steps) else np.zeros(0, int)
    return np.insert(time, ends, np.nan), np.insert(values.astype(float), ends, np.nan, axis=0)


def record(recording: Recording, shown: Recording, names: list[str], units: list[str]) -> Figure:
    """What was recorded of each joint, samples that do not count in red, and the smooth curve that was fitted."""
    channel = next((name for name in ("tau", "current") if name in recording.channels), None)
    columns = 2 if channel else 1
    figure, axes = grid(len(names), columns, 10.5, 1.45 * len(names) + 0.7, sharex="all")
    positions = _by_velocity(recording)
    smooth = _by_velocity(shown)
    for i, name in enumerate(names):
        bad = ~recording.valid("q")[:, i]
        _dots(axes[i, 0], recording.time, positions[:, i], bad)
        axes[i, 0].plot(*broken(shown.time, smooth[:, i]), color=COLORS[0], linewidth=1.1, label="smooth curve")
        axes[i, 0].set_title(name, **HEAD)
        axes[i, 0].set_ylabel(f"position ({units[i]})")
        if channel:
            values = recording.channels[channel][:, i]
            _dots(axes[i, 1], recording.time, values, ~recording.valid(channel)[:, i])
            unit = "A" if channel == "current" else "N m" if units[i] == "rad" else "N"
            axes[i, 1].set_ylabel(f"{'current' if channel == 'current' else 'force'} ({unit})")
    _legend(figure, axes[0, 0])
    for ax in axes[-1]:
        ax.set_xlabel(TIME)
        ax.margins(x=0.01)
    figure.align_ylabels()
    return figure


def _by_velocity(recording: Recording) -> np.ndarray:
    """Positions (n, nv) of joints with a number for each degree of freedom; of others the velocity."""
    model = recording.model
    out = np.zeros((len(recording), model.nv)) if recording.v is None else np.array(recording.v)
    for name, part in model.v_slices.items():
        at = model.q_slices[name]
        if at.stop - at.start == part.stop - part.start:
            out[:, part] = recording.q[:, at]
    return out


def _dots(ax: Any, time: np.ndarray, values: np.ndarray, bad: np.ndarray) -> None:
    some = thin(len(time))
    ax.plot(time[some], values[some], ".", color=GRAY, markersize=1.6, label="recorded")
    if bad.any():
        ax.plot(time[bad], values[bad], ".", color="#c0392b", markersize=2.5, label="does not count")


def residuals(fit: Fit, time: np.ndarray, names: list[str], units: list[str]) -> Figure:
    """Recorded and computed signals, and below what is left."""
    r, recorded = np.asarray(fit.residuals()), signals(fit)
    weight = weights(fit)
    figure, axes = grid(len(names), 2, 10.5, 1.45 * len(names) + 0.7, sharex="all", width_ratios=(1.25, 1.0))
    deviation = np.asarray(fit.signal_deviations())
    for i, name in enumerate(names):
        own = weight[:, i] > 0
        t, x, left, band = (a[own][thin(int(own.sum()))] for a in (time, recorded[:, i], r[:, i], deviation[:, i]))
        ax, beside = axes[i]
        ax.plot(t, x, ".", color=GRAY, markersize=1.6, label="recorded")
        ax.plot(*broken(t, x + left), color=COLORS[0], linewidth=1.0, label="computed")
        ax.set_title(name, **HEAD)
        ax.set_ylabel(units[i])
        beside.plot(t, left, ".", color=COLORS[1], markersize=1.6, label="computed less recorded")
        at, low = broken(t, 2 * band)
        beside.fill_between(at, -low, low, color=COLORS[0], linewidth=0, zorder=3, label="± 2 deviations of the fit")
        noise = float(np.asarray(fit.estimate.noise)[i])
        for side in (-2, 2):
            beside.axhline(side * noise, color=DARK, linewidth=0.7, linestyle=(0, (4, 3)),
                           label="± 2 deviations of the noise" if side > 0 else None)  # fmt: skip
        beside.set_ylabel(units[i])
        for each in axes[i]:
            each.margins(x=0.01)
    _legend(figure, *axes[0])
    for ax in axes[-1]:
        ax.set_xlabel(TIME)
    figure.align_ylabels()
    return figure


def _legend(figure: Figure, *axes: Any) -> None:
    """One line above all axes, with what some of them show."""
    entries = [entry for ax in axes for entry in zip(*ax.get_legend_handles_labels(), strict=True)]
    handles, labels = zip(*entries, strict=True)
    figure.legend(handles, labels, loc="outside upper right", fontsize=8, frameon=False, ncols=len(labels),
                  markerscale=3)  # fmt: skip


def whiteness(fit: Fit, names: list[str]) -> Figure:
    """Autocorrelations of the residuals; white noise stays in the band at 95 of 100 lags."""
    rho, _ = fit.whiteness()
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure, axes = grid(rows, columns, 10.5, 1.9 * rows + 0.4, sharex="all", sharey="all")
    lags = np.arange(1, len(rho) + 1)
    band = 1.96 / np.sqrt(np.asarray(fit.residuals()).shape[0])
    for i, ax in enumerate(axes.flat):
        if i >= len(names):
            ax.set_axis_off()
            continue
        ax.axhspan(-band, band, color=COLORS[2], alpha=0.25, linewidth=0)
        ax.vlines(lags, 0, rho[:, i], color=COLORS[0], linewidth=1.4)
        ax.axhline(0, color=DARK, linewidth=0.7)
        ax.set_title(names[i], **HEAD)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if i % columns == 0:
            ax.set_ylabel("autocorrelation")
        if i + columns >= len(names):
            ax.set_xlabel("lag (samples)")
            ax.tick_params(labelbottom=True)
    return figure


def singular_values(fit: Fit) -> Figure:
    """How well combinations of the unknowns are seen."""
    values = np.asarray(fit.identifiability.singular_values)
    rank = fit.identifiability.rank
    figure, axes = grid(1, 1, 7.5, 2.9)
    ax, number = axes[0, 0], np.arange(1, len(values) + 1)
    shown = np.maximum(values, RANK_TOLERANCE / 30)
    ax.semilogy(number[:rank], shown[:rank], "o", color=COLORS[0], markersize=5, label="seen")
    if rank < len(values):
        ax.semilogy(number[rank:], shown[rank:], "o", color=COLORS[1], markersize=5, label="not seen")
    ax.axhline(RANK_TOLERANCE, color="#c0392b", linewidth=0.8, linestyle=(0, (4, 3)), label="limit of float64")
    ax.set_xlabel("combination")
    ax.set_ylabel("relative singular value")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(**OUTSIDE)
    return figure


def changes(numbers: list[Number]) -> Figure | None:
    """Found against prior, in percent of the prior, with intervals that hold the truth at 95 of 100; None for none.

    Only numbers that are known better than to their own size.
    """
    known = [n for n in numbers if n.prior and 2 * n.deviation < abs(n.prior)]
    if not known:
        return None
    surest = sorted(known, key=lambda n: n.deviation / abs(n.prior))[:ROWS]
    shown = [n for n in known if n in surest]
    figure, axes = grid(1, 1, 8.5, 0.24 * len(shown) + 0.9)
    ax, place = axes[0, 0], np.arange(len(shown))[::-1]
    middle = np.array([100 * (n.found - n.prior) / abs(n.prior) for n in shown])
    wide = np.array([196 * n.deviation / abs(n.prior) for n in shown])
    ax.axvline(0, color=DARK, linewidth=0.8)
    ax.errorbar(middle, place, xerr=wide, fmt="o", color=COLORS[0], ecolor=COLORS[0], markersize=4.5, capsize=3,
                elinewidth=1.2)  # fmt: skip
    ax.set_yticks(place, [n.name for n in shown])
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_xlabel("found less prior (% of the prior), with 95 % intervals")
    return figure


def signals(fit: Fit) -> np.ndarray:
    """What was recorded (n, columns), as the residuals have it; NaN where that is no number."""
    samples = fit.samples
    if isinstance(samples, TorqueSamples):
        return np.asarray(samples.signals)
    whole = samples.broadcast(fit.model)
    parts = []
    for channel in whole.channels.values():
        values, width = np.asarray(channel.values)[0], channel.weight.shape[-1]
        # poses and quaternions are no numbers along a residual
        parts.append(values if values.shape[1:] == (width,) else np.full((len(values), width), np.nan))
    return np.concatenate(parts, axis=-1)


def weights(fit: Fit) -> np.ndarray:
    """How far each residual counts (n, columns)."""
    return np.asarray(fit.estimator.residuals(fit.parameters, fit.estimate.x, fit.samples)[1])
