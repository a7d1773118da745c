"""Plots of a fit as matplotlib figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from lgsim.identify import Fit, Recording, TorqueSamples
from lgsim.identify.estimators.uncertainty import RANK_TOLERANCE
from lgsim.view.figures import COLORS, DARK, DOUBLE, GRAY, HEAD, OUTSIDE, RED, SMALL, TIME, axes_grid, literal
from lgsim.view.reports.number_rows import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 3000
"""Largest number of points of a curve."""
ROWS = 30
"""Largest number of rows in a plot of parameters, those with the smallest standard errors."""


def thin(count: int) -> slice:
    """Slice that keeps about ``POINTS`` evenly spaced samples."""
    return slice(None, None, max(1, count // POINTS))


def broken(
    time: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m"]]:
    """A curve with NaN at jumps of time, so that no line crosses a gap."""
    steps = np.diff(time)
    jump = (steps > 10 * np.median(steps)) | (steps < 0) if len(steps) else np.zeros(0, bool)
    ends = np.flatnonzero(jump) + 1
    return np.insert(time, ends, np.nan), np.insert(values.astype(float), ends, np.nan, axis=0)


def record(recording: Recording, motion: Recording | None, names: Sequence[str], units: Sequence[str]) -> Figure:
    """Plot the recording of each joint, with excluded samples in red, and the smoothed motion.

    Args:
        motion: Smoothed part that was fitted; None to omit it.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    channel = next((name for name in ("tau", "current") if name in recording.channels), None)
    columns = 2 if channel else 1
    figure, axes = axes_grid(len(names), columns, DOUBLE, 1.45 * len(names) + 0.7, sharex=True, time=False, margin=None)
    positions = _by_velocity(recording)
    smooth = None if motion is None else _by_velocity(motion)
    for i, name in enumerate(names):
        bad = ~recording.valid("q")[:, i]
        dots(axes[i, 0], recording.time, positions[:, i], bad)
        if motion is not None and smooth is not None:
            axes[i, 0].plot(*broken(motion.time, smooth[:, i]), color=COLORS[0], linewidth=1.1, label="smoothed")
        axes[i, 0].set_title(literal(name), **HEAD)
        axes[i, 0].set_ylabel(f"position ({units[i]})")
        if channel:
            values = recording.channels[channel][:, i]
            dots(axes[i, 1], recording.time, values, ~recording.valid(channel)[:, i])
            unit = "A" if channel == "current" else "N m" if units[i] == "rad" else "N"
            axes[i, 1].set_ylabel(f"{'current' if channel == 'current' else 'joint force'} ({unit})")
    legend(figure, axes[0, 0])
    for ax in axes[-1]:
        ax.set_xlabel(TIME)
        ax.margins(x=0.01)
    figure.align_ylabels()
    return figure


def _by_velocity(recording: Recording) -> Float[np.ndarray, "n nv"]:
    """The positions of joints with a number for each degree of freedom, and of other joints the velocities."""
    model = recording.model
    out = np.zeros((len(recording), model.nv)) if recording.v is None else np.array(recording.v)
    for name, part in model.v_slices.items():
        at = model.q_slices[name]
        if at.stop - at.start == part.stop - part.start:
            out[:, part] = recording.q[:, at]
    return out


def dots(ax: Axes, time: Float[np.ndarray, " n"], values: Float[np.ndarray, " n"], bad: Bool[np.ndarray, " n"]) -> None:
    """Plot samples as dots, those that do not count in red."""
    part = thin(len(time))
    ax.plot(time[part], values[part], ".", color=GRAY, markersize=1.6, label="recorded")
    if bad.any():
        ax.plot(time[bad], values[bad], ".", color=RED, markersize=2.5, label="excluded")


def residuals(
    fit: Fit, time: Float[np.ndarray, " n"], names: Sequence[str], units: Sequence[str], label: str = TIME
) -> Figure:
    """Plot recorded and computed signals, and their residuals.

    Args:
        time: Time of each row of the residuals, s, or its index.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    r, recorded = np.asarray(fit.residuals()), signals(fit)
    weight = weights(fit)
    figure, axes = axes_grid(
        len(names), 2, DOUBLE, 1.45 * len(names) + 0.7, widths=(1.25, 1.0), sharex=True, time=False, margin=None
    )
    deviation = np.asarray(fit.signal_deviations())
    for i, name in enumerate(names):
        own = weight[:, i] > 0
        t, x, left, band = (a[own][thin(int(own.sum()))] for a in (time, recorded[:, i], r[:, i], deviation[:, i]))
        ax, beside = axes[i]
        ax.plot(t, x, ".", color=GRAY, markersize=1.6, label="recorded")
        ax.plot(*broken(t, x + left), color=COLORS[0], linewidth=1.0, label="computed")
        ax.set_title(literal(name), **HEAD)
        ax.set_ylabel(f"signal ({units[i]})" if units[i] else "signal")
        beside.plot(t, left, ".", color=COLORS[1], markersize=1.6, label="residual")
        at, low = broken(t, 2 * band)
        beside.fill_between(at, -low, low, color=COLORS[0], linewidth=0, zorder=3, label="± 2 standard errors")
        noise = float(np.asarray(fit.estimate.noise)[i])
        for side in (-2, 2):
            beside.axhline(side * noise, color=DARK, linewidth=0.7, linestyle=(0, (4, 3)),
                           label="± 2 noise levels" if side > 0 else None)  # fmt: skip
        beside.set_ylabel(f"residual ({units[i]})" if units[i] else "residual")
        for each in axes[i]:
            each.margins(x=0.01)
    legend(figure, *axes[0])
    for ax in axes[-1]:
        ax.set_xlabel(label)
    figure.align_ylabels()
    return figure


def legend(figure: Figure, *axes: Axes) -> None:
    """Add one legend above all axes, each label once."""
    entries = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(entries.values(), entries.keys(), loc="outside upper right", fontsize=SMALL, frameon=False,
                  ncols=len(entries), markerscale=3)  # fmt: skip


def whiteness(fit: Fit, names: Sequence[str]) -> Figure:
    """Plot autocorrelations of the residuals; white noise is in the band at 95 % of the lags.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    rho, _ = fit.whiteness()
    columns = min(4, len(names))
    rows = -(-len(names) // columns)
    figure, axes = axes_grid(rows, columns, DOUBLE, 1.9 * rows + 0.4, sharex=True, sharey=True, time=False, margin=None)
    lags = np.arange(1, len(rho) + 1)
    band = 1.96 / np.sqrt(np.asarray(fit.residuals()).shape[0])
    for i, ax in enumerate(axes.flat):
        if i >= len(names):
            ax.set_axis_off()
            continue
        ax.axhspan(-band, band, color=COLORS[2], alpha=0.25, linewidth=0)
        ax.vlines(lags, 0, rho[:, i], color=COLORS[0], linewidth=1.4)
        ax.axhline(0, color=DARK, linewidth=0.7)
        ax.set_title(literal(names[i]), **HEAD)
        ax.xaxis.get_major_locator().set_params(integer=True)
        if i % columns == 0:
            ax.set_ylabel("autocorrelation")
        if i + columns >= len(names):
            ax.set_xlabel("lag (samples)")
            ax.tick_params(labelbottom=True)
    return figure


def singular_values(fit: Fit) -> Figure:
    """Plot the singular values of the scaled sensitivities: the identifiability of combinations of unknowns.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    values = np.asarray(fit.identifiability.singular_values)
    rank = fit.identifiability.rank
    figure, axes = axes_grid(1, 1, DOUBLE, 2.4, time=False, margin=None)
    ax, number = axes[0, 0], np.arange(1, len(values) + 1)
    shown = np.maximum(values, RANK_TOLERANCE / 30)
    ax.semilogy(number[:rank], shown[:rank], "o", color=COLORS[0], markersize=5, label="identifiable")
    if rank < len(values):
        ax.semilogy(number[rank:], shown[rank:], "o", color=COLORS[1], markersize=5, label="not identifiable")
    ax.axhline(RANK_TOLERANCE, color=RED, linewidth=0.8, linestyle=(0, (4, 3)), label="rank tolerance")
    ax.set_xlabel("combination")
    ax.set_ylabel("relative singular value")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(**OUTSIDE)
    return figure


def changes(numbers: Sequence[Number]) -> Figure | None:
    """Plot changes of parameters from their prior, in percent of it, with 95 % confidence intervals.

    Only parameters with a standard error below half of their prior are shown; None if there are none.

    Raises:
        ModuleNotFoundError: matplotlib is missing.
    """
    known = [n for n in numbers if n.prior and 2 * n.deviation < abs(n.prior)]
    if not known:
        return None
    surest = sorted(known, key=lambda n: n.deviation / abs(n.prior))[:ROWS]
    shown = [n for n in known if n in surest]
    figure, axes = axes_grid(1, 1, DOUBLE, 0.24 * len(shown) + 0.9, time=False, margin=None)
    ax, place = axes[0, 0], np.arange(len(shown))[::-1]
    middle = np.array([100 * (n.found - n.prior) / abs(n.prior) for n in shown])
    wide = np.array([196 * n.deviation / abs(n.prior) for n in shown])
    ax.axvline(0, color=DARK, linewidth=0.8)
    ax.errorbar(middle, place, xerr=wide, fmt="o", color=COLORS[0], ecolor=COLORS[0], markersize=4.5, capsize=3,
                elinewidth=1.2)  # fmt: skip
    ax.set_yticks(place, [literal(n.name) for n in shown])
    ax.set_ylim(-0.7, len(shown) - 0.3)
    ax.set_xlabel("relative change from the prior (%)")
    return figure


def signals(fit: Fit) -> Float[np.ndarray, "n columns"]:
    """Recorded signals in the layout of the residuals; NaN for poses and quaternions."""
    samples = fit.samples
    if isinstance(samples, TorqueSamples):
        return np.asarray(samples.signals)
    parts = []
    for channel in samples.broadcast(fit.model).channels.values():
        values, width = np.asarray(channel.values), channel.weight.shape[-1]
        # poses and quaternions do not match the components of a residual
        plain = values if values.shape[2:] == (width,) else np.full((*values.shape[:2], width), np.nan)
        parts.append(plain.reshape(-1, width))
    return np.concatenate(parts, axis=-1)


def weights(fit: Fit) -> Float[np.ndarray, "n columns"]:
    """Weight of each residual."""
    return np.asarray(fit.estimator.residuals(fit.parameters, fit.estimate.x, fit.samples)[1])
