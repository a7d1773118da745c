"""Plots of ensembles of motions: histograms, scatter plots, attitudes on the sphere, fan charts."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.lie import quaternion
from lgsim.multibody.model import Model
from lgsim.view.figures import COLORS, DOUBLE, HEAD, OUTSIDE, SMALL, axes_grid, literal
from lgsim.view.motion import MotionLike
from lgsim.view.panels import panel_title, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["HistogramData", "ScatterData", "attitudes", "fans", "histograms", "scatters"]

BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.32))
"""The bands of a fan chart: two quantile levels, and the opacity between them."""
LABEL_WIDTH = 0.17
"""Width of a label of a quantile as a fraction of the width of a histogram."""
TITLE_WIDTH = 30
"""Largest number of characters in a line of a histogram's title."""
MARKED = {"linewidth": 1.1, "linestyle": (0, (4, 2))}
AXES = ("x", "y", "z")


class HistogramData(NamedTuple):
    """The distribution of a scalar over samples.

    Attributes:
        name: Name of the quantity, with its unit.
        counts: Number of samples in each bin, (bins,).
        edges: Edges of the bins, (bins + 1,).
        mean: Mean of all samples, in the unit of the quantity.
        quantiles: Quantiles by level, between 0 and 1.
        beyond: Number of samples outside of the edges.
    """

    name: str
    counts: Float[np.ndarray, " bins"]
    edges: Float[np.ndarray, " bins_1"]
    mean: float
    quantiles: Mapping[float, float]
    beyond: float = 0.0


def histograms(data: Sequence[HistogramData], columns: int = 3) -> Figure:
    """Plot histograms with means and quantiles.

    Args:
        data: Distributions, at least one.
        columns: Largest number of plots in a row.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    columns = min(columns, len(data))
    rows = -(-len(data) // columns)
    figure, axes = axes_grid(rows, columns, DOUBLE / 3 * columns, 1.7 * rows + 0.2, time=False)
    for ax in axes.flat[len(data) :]:
        ax.set_visible(False)
    for ax, each in zip(axes.flat, data, strict=False):
        total = each.counts.sum() + each.beyond
        ax.stairs(100 * each.counts / (total or 1), each.edges, fill=True, color=COLORS[0], alpha=0.55)
        width, row, last = each.edges[-1] - each.edges[0], 0, -np.inf
        for level, value in sorted(each.quantiles.items()):
            ax.axvline(value, color=COLORS[5], linewidth=0.9, linestyle=(0, (4, 3)))
            # labels closer than their width are below each other
            row, last = (row + 1 if value - last < LABEL_WIDTH * width else 0), value
            ax.annotate(
                f"{100 * level:g} %", (value, 1.0), (2, -8 - 7 * row), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=6, color=COLORS[5],
            )  # fmt: skip
        outside = [f"{100 * each.beyond / total:.2g} % of samples"] if each.beyond else []
        if each.edges[0] <= each.mean <= each.edges[-1]:
            ax.axvline(each.mean, color=COLORS[1], linewidth=1.4)
        else:
            outside.append(f"mean {each.mean:.3g}")
        ax.locator_params(axis="x", nbins=5)
        if outside:
            ax.annotate(
                "\n".join(["beyond:", *outside]), (1.0, 0.5), (-2, 0), xycoords="axes fraction",
                textcoords="offset points", fontsize=6, ha="right", va="center",
                color=COLORS[5],
            )  # fmt: skip
        lines = textwrap.wrap(each.name, TITLE_WIDTH, max_lines=2, placeholder=" …")
        ax.set_title("\n".join(map(literal, lines)), **HEAD)
        ax.set_ylabel("share of samples (%)")
    return figure


class ScatterData(NamedTuple):
    """An output over an input.

    Attributes:
        x: Samples of the input, (samples,).
        y: Samples of the output, (samples,).
        output: Name of the output, with its unit.
        note: Second line of the title.
    """

    x: Float[np.ndarray, " samples"]
    y: Float[np.ndarray, " samples"]
    input: str
    output: str
    note: str = ""


def scatters(data: Sequence[ScatterData], columns: int = 3) -> Figure:
    """Plot outputs over inputs, a point for each sample.

    Args:
        data: Pairs of an input and an output, at least one.
        columns: Largest number of plots in a row.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    columns = min(columns, len(data))
    rows = -(-len(data) // columns)
    figure, axes = axes_grid(rows, columns, DOUBLE / 3 * columns, 2.0 * rows + 0.2, time=False, margin=None)
    for ax in axes.flat[len(data) :]:
        ax.set_visible(False)
    for ax, each in zip(axes.flat, data, strict=False):
        # one picture of the points, whatever their number
        ax.plot(each.x, each.y, ".", markersize=2, color=COLORS[0], alpha=0.4, rasterized=True)
        lines = textwrap.wrap(each.output, TITLE_WIDTH, max_lines=2, placeholder=" …")
        ax.set_title("\n".join([*map(literal, lines), each.note]), **HEAD)
        ax.set_xlabel(literal(textwrap.shorten(each.input, TITLE_WIDTH, placeholder=" …")))
        ax.locator_params(axis="x", nbins=5)
    return figure


def attitudes(
    quaternions: Float[np.ndarray, "n 4"] | Float[Array, "n 4"],
    mean: Float[np.ndarray, " 4"] | Float[Array, " 4"],
    covariance: Float[np.ndarray, "3 3"] | Float[Array, "3 3"],
    name: str = "",
) -> Figure:
    """Plot attitudes as axes on the unit sphere, and as rotation vectors relative to their mean.

    Args:
        quaternions: Unit quaternions of the samples, w first.
        mean: Unit quaternion of the mean on the group.
        covariance: Covariance of the rotation vectors in body axes, rad^2; drawn as ellipses of 1 and 2 standard
            deviations.
        name: Name of the rotating frame.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    points, center = jnp.asarray(quaternions), jnp.asarray(mean)
    R, R_mean = np.asarray(quaternion.Ad(points)), np.asarray(quaternion.Ad(center))
    vectors = np.degrees(np.asarray(_rotation_vectors(center, points)))
    figure, grid = axes_grid(1, 4, DOUBLE, 2.2, time=False)
    ball = grid[0, 0].get_subplotspec()
    grid[0, 0].remove()
    _sphere(figure.add_subplot(ball, projection="3d"), R, R_mean, name)
    in_degrees = np.degrees(1) ** 2 * np.asarray(covariance)
    angle = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for ax, (i, j) in zip(grid[0, 1:], ((0, 1), (1, 2), (2, 0)), strict=True):
        ax.plot(vectors[:, i], vectors[:, j], ".", markersize=2, color=COLORS[0], alpha=0.5)
        variances, directions = np.linalg.eigh(in_degrees[np.ix_((i, j), (i, j))])
        ellipse = directions @ (np.sqrt(np.maximum(variances, 0))[:, None] * circle)
        for scale in (1, 2):
            ax.plot(*(scale * ellipse), color=COLORS[1], linewidth=1.1)
        ax.set_xlabel(f"angle about {AXES[i]} (deg)")
        ax.set_ylabel(f"angle about {AXES[j]} (deg)")
        ax.set_aspect("equal", adjustable="datalim")
    grid[0, 1].set_title("rotation vectors, body axes", **HEAD)
    return figure


def _sphere(ax: Any, R: Float[np.ndarray, "n 3 3"], R_mean: Float[np.ndarray, "3 3"], name: str) -> None:
    """Draw the axes of attitudes and of their mean on the unit sphere."""
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 37), np.linspace(0, np.pi, 19))
    ball = np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)
    ax.plot_wireframe(*ball, rstride=3, cstride=3, color="#c9ced4", linewidth=0.5)
    for i, letter in enumerate(AXES):
        ax.scatter(*R[:, :, i].T, s=3, color=COLORS[i], alpha=0.35, depthshade=False)
        ax.plot(*np.stack([np.zeros(3), R_mean[:, i]]).T, color=COLORS[i], linewidth=1.6)
        ax.text(*(1.18 * R_mean[:, i]), letter, color=COLORS[i], fontsize=SMALL)
    ax.set_box_aspect((1, 1, 1), zoom=1.35)
    ax.view_init(22, 35)
    ax.set_axis_off()
    ax.set_title(literal(f"{name}: axes".removeprefix(": ")), **HEAD)


def fans(
    model: Model,
    time: Float[np.ndarray, " N"] | Float[Array, " N"],
    states: Float[np.ndarray, "samples N nq_nv"] | Float[Array, "samples N nq_nv"],
    marked: Sequence[MotionLike] = (),
) -> Figure:
    """Plot fan charts of the configuration and velocity of each joint: median, and bands of 50 % and 90 %.

    Attitudes are shown as rotation vectors relative to their mean at each time, in body axes.

    Args:
        time: Times of the states, s.
        states: q and v of the samples, concatenated.
        marked: Motions of single samples, drawn dashed.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    rows, time, states = panels(model), np.asarray(time, float), np.asarray(states, float)
    figure, axes = axes_grid(len(rows), 2, DOUBLE, 1.3 * len(rows) + 0.6)
    q, v = states[..., : model.nq], states[..., model.nq :]
    for ax, panel in zip(axes, rows, strict=True):
        own = q[..., list(panel.q)]
        means = _mean_quaternions(own) if panel.quaternion else None
        shown = own if means is None else _vectors_in_time(means, own)
        _fan(ax[0], time, shown, panel.q_names if means is None else panel.v_names)
        _fan(ax[1], time, v[..., list(panel.v)], panel.v_names)
        for motion in marked:
            line = np.asarray(motion.q, float)[:, list(panel.q)]
            if means is not None:
                nearest = np.abs(np.asarray(motion.time)[:, None] - time[None]).argmin(axis=1)
                line = _vectors_in_time(means[nearest], line[None])[0]
            for side, values in zip(ax, (line, np.asarray(motion.v)[:, list(panel.v)]), strict=True):
                for k, color in zip(range(values.shape[1]), COLORS, strict=False):
                    side.plot(motion.time, values[:, k], color=color, **MARKED)
        ax[0].set_ylabel("deviation (rad)" if panel.quaternion else f"q ({panel.units[0]})")
        ax[1].set_ylabel(f"v ({panel.units[1]})")
        ax[0].set_title(literal(panel_title(panel, rows)), **HEAD)
    figure.align_ylabels()
    return figure


def _fan(
    ax: Axes, time: Float[np.ndarray, " N"], values: Float[np.ndarray, "samples N k"], names: Sequence[str]
) -> None:
    """Draw the median and the bands of k components over time."""
    for k, name in enumerate(names):
        for low, high, dark in BANDS:
            ends = np.nanquantile(values[..., k], [low, high], axis=0)
            ax.fill_between(time, *ends, color=COLORS[k], alpha=dark, linewidth=0)
        ax.plot(time, np.nanmedian(values[..., k], axis=0), color=COLORS[k], linewidth=1.2, label=name)
    if len(names) > 1:
        ax.legend(**OUTSIDE)


def _mean_quaternions(own: Float[np.ndarray, "samples N 4"]) -> Float[np.ndarray, "N 4"]:
    """Mean quaternion at each time: the dominant eigenvector of the sum of q q^T.

    Source: Markley, Cheng, Crassidis, Oshman, Averaging quaternions, Journal of Guidance, Control, and Dynamics 30(4),
    2007, eq. (12).
    """
    _, vectors = np.linalg.eigh(np.einsum("nti,ntj->tij", own, own))
    return vectors[..., -1]


def _vectors_in_time(
    means: Float[np.ndarray, "N 4"], own: Float[np.ndarray, "samples N 4"]
) -> Float[np.ndarray, "samples N 3"]:
    """Rotation vectors of quaternions relative to the mean at each time, in body axes."""
    return np.asarray(_rotation_vectors(jnp.asarray(np.broadcast_to(means, own.shape)), jnp.asarray(own)))


@jax.jit
def _rotation_vectors(mean: Float[Array, "*#batch 4"], points: Float[Array, "*batch 4"]) -> Float[Array, "*batch 3"]:
    """Rotation vectors of ``mean^-1 points`` of at most half a revolution."""
    back = quaternion.inverse(jnp.broadcast_to(mean, points.shape))
    gap = quaternion.compose(back, points)
    return quaternion.log(jnp.where(gap[..., :1] < 0, -gap, gap))
