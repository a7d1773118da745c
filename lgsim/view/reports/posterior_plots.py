"""The plot of a posterior: the distribution of each number, and of each pair of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.identify import PosteriorDraws
from lgsim.support.packages import package
from lgsim.view.figures import COLORS, DARK, GRAY, axes_grid, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 6
"""Number of numbers that are shown unless they are named."""
LEVELS = (0.5, 0.9)
"""Parts of the draws that the lines of a pair hold."""
BINS = 30
SHOWN = 4.5
"""Half the width of the axes, in standard deviations."""


def posterior_figure(
    draws: PosteriorDraws,
    names: Sequence[str] | None = None,
    prior: Mapping[str, ArrayLike] | None = None,
    truth: Mapping[str, float] | None = None,
) -> Figure:
    """Plot the marginal distribution of each number with that of its prior, and the draws of each pair.

    The lines of a pair hold 50 % and 90 % of the draws. A prior that is no distribution, such as a constant density
    without bounds, is not drawn.

    Args:
        names: Numbers of ``draws.values`` to show, by default the first six.
        prior: Draws of the prior by name, of any count, by default ``draws.prior_values``.
        truth: True numbers by name, where they are known.

    Raises:
        ValueError: there is no such number.
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    values = {name: x.reshape(-1) for name, x in draws.values.items()}
    chosen = list(values)[:MOST] if names is None else list(names)
    for name in (*chosen, *(truth or {})):
        if name not in values:
            raise ValueError(f"names, truth: there is no number {name!r}; there are {', '.join(values)}")
    before = draws.prior_values(jax.random.key(0)) if prior is None else prior
    count = len(chosen)
    size = max(3.2, 2.1 * count)
    figure, axes = axes_grid(count, count, size, 0.92 * size, time=False, margin=None)
    ranges = [_range(values[name], None if truth is None else truth.get(name)) for name in chosen]
    for row, name in enumerate(chosen):
        true = None if truth is None else truth.get(name)
        _marginal(axes[row, row], values[name], before.get(name), true, ranges[row])
        axes[row, row].set_title(literal(_title(name, values[name])), loc="left", fontsize=8)
        for column, other in enumerate(chosen):
            ax = axes[row, column]
            if column > row:
                ax.set_visible(False)
                continue
            if column < row:
                _pair(ax, values[other], values[name], ranges[column], ranges[row])
                mark = None if truth is None else (truth.get(other), truth.get(name))
                if mark is not None and mark[0] is not None and mark[1] is not None:
                    ax.plot(*mark, "+", color=DARK, markersize=11, markeredgewidth=1.4)
            ax.set_xlim(*ranges[column])
            _label(ax, row, column, count, name, other)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper right", frameon=False, fontsize=9)
    return figure


def _range(values: Float[np.ndarray, " draws"], true: float | None) -> tuple[float, float]:
    """The ends of an axis: all but the farthest draws, and the truth."""
    middle, spread = float(np.mean(values)), float(np.std(values))
    low = max(float(np.min(values)) - 0.3 * spread, middle - SHOWN * spread)
    high = min(float(np.max(values)) + 0.3 * spread, middle + SHOWN * spread)
    if true is not None:
        low, high = min(low, true - 0.3 * spread), max(high, true + 0.3 * spread)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _marginal(
    ax: Axes,
    values: Float[np.ndarray, " draws"],
    prior: ArrayLike | None,
    true: float | None,
    ends: tuple[float, float],
) -> None:
    """Histograms of a number, of its prior as an outline, and a line at the truth."""
    edges = np.linspace(*ends, BINS + 1)
    ax.hist(values, edges.tolist(), density=True, color=COLORS[0], alpha=0.75, label="posterior")
    before = np.zeros(0) if prior is None else np.asarray(prior).reshape(-1)
    if before.size and np.all(np.isfinite(before)):
        # bins as wide as the prior has draws for
        inside = np.mean((before >= ends[0]) & (before <= ends[1]))
        wide = np.linspace(*ends, int(np.clip(inside * before.size / 40, 1, BINS)) + 1)
        heights, _ = np.histogram(before, wide)
        ax.stairs(heights / before.size / np.diff(wide), wide, color=GRAY, linewidth=1.6, label="prior")
    if true is not None:
        ax.axvline(true, color=DARK, linewidth=1.2, linestyle=(0, (4, 3)), label="truth")
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)


def _pair(
    ax: Axes,
    x: Float[np.ndarray, " draws"],
    y: Float[np.ndarray, " draws"],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
) -> None:
    """Draws of two numbers as dots with lines of their density."""
    step = max(1, len(x) // 1500)
    ax.plot(x[::step], y[::step], ".", color=COLORS[0], markersize=1.5, alpha=0.35, rasterized=True)
    heights, xs, ys = np.histogram2d(x, y, 20, [x_ends, y_ends])
    smooth = _blurred(heights)
    ordered = np.sort(smooth.reshape(-1))[::-1]
    held = np.cumsum(ordered) / max(np.sum(ordered), 1)
    levels = sorted({float(ordered[np.searchsorted(held, part)]) for part in LEVELS if held[-1] > part})
    if levels and levels[0] > 0:
        middles = (xs[1:] + xs[:-1]) / 2, (ys[1:] + ys[:-1]) / 2
        ax.contour(*middles, smooth.T, levels=levels, colors=COLORS[0], linewidths=1.1)
    ax.set_ylim(*y_ends)


def _blurred(heights: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    """Counts of bins, each shared with its neighbors."""
    weights = np.array([1, 4, 6, 4, 1]) / 16
    for axis in (0, 1):
        heights = np.apply_along_axis(lambda row: np.convolve(row, weights, "same"), axis, heights)
    return heights


def _title(name: str, values: Float[np.ndarray, " draws"]) -> str:
    """The name of a number over its mean and standard deviation."""
    symbol, unit = _parts(name)
    spread = float(np.std(values))
    # two digits of the deviation, and the mean to its last one
    digits = max(0, 1 - int(np.floor(np.log10(spread)))) if spread > 0 else 6
    return f"{symbol}\n{np.mean(values):.{digits}f} ± {spread:.{digits}f} {unit}".rstrip()


def _parts(name: str) -> tuple[str, str]:
    """The symbol of a number and its unit, empty for none."""
    symbol, _, unit = name.partition(", ")
    return symbol, "" if unit == "1" else unit


def _axis_label(name: str) -> str:
    symbol, unit = _parts(name)
    return f"{symbol}\n({unit})" if unit else symbol


def _label(ax: Axes, row: int, column: int, count: int, name: str, other: str) -> None:
    """Names and ticks at the left and lower edge alone."""
    if row == count - 1:
        ax.set_xlabel(literal(_axis_label(other)), fontsize=8)
    else:
        ax.tick_params(labelbottom=False)
    if column == 0 and row:
        ax.set_ylabel(literal(_axis_label(name)), fontsize=8)
    elif column < row:
        ax.tick_params(labelleft=False)
    ticker = package("matplotlib.ticker", "plot", "a plot")
    ax.xaxis.set_major_locator(ticker.MaxNLocator(3))
    if column < row:
        ax.yaxis.set_major_locator(ticker.MaxNLocator(3))
