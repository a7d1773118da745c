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
from lgsim.view.figures import COLORS, DARK, DOUBLE, GRAY, SINGLE, SMALL, axes_grid, literal

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
    """Plot marginal distributions of parameters with their priors, and pairwise scatter plots.

    Contours contain 50 % and 90 % of the draws. An improper prior, such as an unbounded constant density, is not drawn.

    Args:
        names: Names in ``draws.values`` to show; None for the first six.
        prior: Draws of the prior by name; None for ``draws.prior_values``.
        truth: True values by name, if they are known.

    Raises:
        ValueError: there is no parameter of a name.
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    values = {name: x.reshape(-1) for name, x in draws.values.items()}
    chosen = list(values)[:MOST] if names is None else list(names)
    for name in (*chosen, *(truth or {})):
        if name not in values:
            raise ValueError(f"names, truth: expected names of {', '.join(values)}, got {name!r}")
    before = draws.prior_values(jax.random.key(0)) if prior is None else prior
    count = len(chosen)
    size = max(SINGLE, DOUBLE / 4 * count)
    figure, axes = axes_grid(count, count, size, 0.92 * size, time=False, margin=None)
    ranges = [_range(values[name], None if truth is None else truth.get(name)) for name in chosen]
    for row, name in enumerate(chosen):
        true = None if truth is None else truth.get(name)
        _marginal(axes[row, row], values[name], before.get(name), true, ranges[row])
        axes[row, row].set_title(literal(_title(name, values[name])), loc="left", fontsize=SMALL)
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
    figure.legend(handles, labels, loc="upper right", frameon=False, fontsize=SMALL)
    return figure


def _range(values: Float[np.ndarray, " draws"], true: float | None) -> tuple[float, float]:
    """Range of an axis: the draws without outliers, and the true value."""
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
    """Draw a histogram, the outline of the prior, and the true value."""
    edges = np.linspace(*ends, BINS + 1)
    ax.hist(values, edges.tolist(), density=True, color=COLORS[0], alpha=0.75, label="posterior")
    before = np.zeros(0) if prior is None else np.asarray(prior).reshape(-1)
    if before.size and np.all(np.isfinite(before)):
        # bin width for the number of draws of the prior
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
    """Draw a scatter plot of two parameters with density contours."""
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
    """Bin counts after binomial smoothing."""
    weights = np.array([1, 4, 6, 4, 1]) / 16
    for axis in (0, 1):
        heights = np.apply_along_axis(lambda row: np.convolve(row, weights, "same"), axis, heights)
    return heights


def _title(name: str, values: Float[np.ndarray, " draws"]) -> str:
    """Name of a parameter, with mean and standard deviation."""
    symbol, unit = _parts(name)
    spread = float(np.std(values))
    # two digits of the standard deviation, and as many decimals of the mean
    digits = max(0, 1 - int(np.floor(np.log10(spread)))) if spread > 0 else 6
    return f"{symbol}\n{np.mean(values):.{digits}f} ± {spread:.{digits}f} {unit}".rstrip()


def _parts(name: str) -> tuple[str, str]:
    """Symbol of a parameter and its unit, or an empty text."""
    symbol, _, unit = name.partition(", ")
    return symbol, "" if unit == "1" else unit


def _axis_label(name: str) -> str:
    symbol, unit = _parts(name)
    return f"{symbol}\n({unit})" if unit else symbol


def _label(ax: Axes, row: int, column: int, count: int, name: str, other: str) -> None:
    """Label only the left and the lower edge."""
    if row == count - 1:
        ax.set_xlabel(literal(_axis_label(other)), fontsize=SMALL)
    else:
        ax.tick_params(labelbottom=False)
    if column == 0 and row:
        ax.set_ylabel(literal(_axis_label(name)), fontsize=SMALL)
    elif column < row:
        ax.tick_params(labelleft=False)
    ticker = package("matplotlib.ticker", "plot", "a plot")
    ax.xaxis.set_major_locator(ticker.MaxNLocator(3))
    if column < row:
        ax.yaxis.set_major_locator(ticker.MaxNLocator(3))
