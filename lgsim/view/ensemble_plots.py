"""Plots of many samples of a motion: distributions, attitudes on the sphere, fans in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lgsim.lie import quaternion
from lgsim.multibody.model import Model
from lgsim.view.motion import MotionLike
from lgsim.view.panels import Panel, panels
from lgsim.view.plots import COLORS, HEAD, OUTSIDE, axes_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Spread", "attitudes", "fans", "histograms"]

BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.32))
"""Of a fan: two levels and how dark what lies between them is."""
MARKED = {"linewidth": 1.1, "linestyle": (0, (4, 2))}
AXES = ("x", "y", "z")


class Spread(NamedTuple):
    """How a number is spread.

    Attributes:
        name: What it is, with its unit.
        counts: Samples in each bin, (bins,).
        edges: Of the bins, (bins + 1,).
        mean: Of all samples.
        quantiles: Values by level.
    """

    name: str
    counts: np.ndarray
    edges: np.ndarray
    mean: float
    quantiles: Mapping[float, float]


def histograms(spreads: Sequence[Spread], columns: int = 3) -> Figure:
    """A histogram for each number, with its mean and its quantiles.

    Args:
        spreads: At least one.
        columns: Of plots beside each other.

    Raises:
        ImportError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    columns = min(columns, len(spreads))
    rows = -(-len(spreads) // columns)
    figure, axes = axes_grid(rows, columns, 3.7 * columns, 2.4 * rows + 0.3, time=False)
    for ax in axes.flat[len(spreads) :]:
        ax.set_visible(False)
    for ax, spread in zip(axes.flat, spreads, strict=False):
        share = spread.counts / max(spread.counts.sum(), 1)
        ax.stairs(100 * share, spread.edges, fill=True, color=COLORS[0], alpha=0.55)
        for level, value in spread.quantiles.items():
            ax.axvline(value, color=COLORS[5], linewidth=0.9, linestyle=(0, (4, 3)))
            ax.annotate(
                f"{100 * level:g} %", (value, 1.0), (2, -8), xycoords=("data", "axes fraction"),
                textcoords="offset points", fontsize=6.5, color=COLORS[5],
            )  # fmt: skip
        ax.axvline(spread.mean, color=COLORS[1], linewidth=1.4)
        ax.set_title(spread.name, **HEAD)
        ax.set_ylabel("samples (%)")
    return figure


def attitudes(quaternions: Any, mean: Any, covariance: Any, name: str = "") -> Figure:
    """Attitudes as the ends of their axes on the unit sphere, and their rotation vectors about the mean.

    Args:
        quaternions: Of the samples, w first, (n, 4).
        mean: On the group, (4,).
        covariance: Of the rotation vectors about it in body axes, (3, 3), rad^2; drawn as ellipses of 1 and 2 standard
            deviations.
        name: What turns.

    Raises:
        ImportError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    points, center = jnp.asarray(quaternions), jnp.asarray(mean)
    R, R_mean = np.asarray(quaternion.Ad(points)), np.asarray(quaternion.Ad(center))
    apart = np.degrees(np.asarray(_about(center, points)))
    figure, grid = axes_grid(1, 4, 14.0, 4.0, time=False)
    ball = grid[0, 0].get_subplotspec()
    grid[0, 0].remove()
    _sphere(figure.add_subplot(ball, projection="3d"), R, R_mean, name)
    spread = np.degrees(1) ** 2 * np.asarray(covariance)
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    for ax, (i, j) in zip(grid[0, 1:], ((0, 1), (1, 2), (2, 0)), strict=True):
        ax.plot(apart[:, i], apart[:, j], ".", markersize=2, color=COLORS[0], alpha=0.5)
        values, vectors = np.linalg.eigh(spread[np.ix_((i, j), (i, j))])
        ellipse = vectors @ (np.sqrt(np.maximum(values, 0))[:, None] * circle)
        for scale in (1, 2):
            ax.plot(*(scale * ellipse), color=COLORS[1], linewidth=1.1)
        ax.set_xlabel(f"about {AXES[i]} (degrees)", fontsize=9)
        ax.set_ylabel(f"about {AXES[j]} (degrees)")
        ax.set_aspect("equal", adjustable="datalim")
    grid[0, 1].set_title("from the mean, in body axes; 1 and 2 standard deviations", **HEAD)
    return figure


def _sphere(ax: Any, R: np.ndarray, R_mean: np.ndarray, name: str) -> None:
    around, up = np.meshgrid(np.linspace(0, 2 * np.pi, 37), np.linspace(0, np.pi, 19))
    ball = np.sin(up) * np.cos(around), np.sin(up) * np.sin(around), np.cos(up)
    ax.plot_wireframe(*ball, rstride=3, cstride=3, color="#c9ced4", linewidth=0.5)
    for i, letter in enumerate(AXES):
        ax.scatter(*R[:, :, i].T, s=3, color=COLORS[i], alpha=0.35, depthshade=False)
        ax.plot(*np.stack([np.zeros(3), R_mean[:, i]]).T, color=COLORS[i], linewidth=1.6)
        ax.text(*(1.18 * R_mean[:, i]), letter, color=COLORS[i], fontsize=9)
    ax.set_box_aspect((1, 1, 1), zoom=1.35)
    ax.view_init(22, 35)
    ax.set_axis_off()
    ax.set_title(f"{name}: its axes in the world".removeprefix(": "), **HEAD)


def fans(model: Model, time: Any, states: Any, marked: Sequence[MotionLike] = ()) -> Figure:
    """Configuration and velocity of each joint over time: the median, and where half and nine tenths of samples are.

    Attitudes are shown as rotation vectors about their mean at each time, in body axes.

    Args:
        model: The machine.
        time: (N,), s.
        states: q and v of the samples beside each other, (samples, N, nq + nv).
        marked: Motions of single samples, drawn as dashed lines.

    Raises:
        ImportError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    rows, time, states = panels(model), np.asarray(time, float), np.asarray(states, float)
    figure, axes = axes_grid(len(rows), 2, 10.0, 1.7 * len(rows) + 0.8)
    q, v = states[..., : model.nq], states[..., model.nq :]
    for ax, panel in zip(axes, rows, strict=True):
        turned = panel.quaternion
        own = q[..., list(panel.q)]
        means = _means(own) if turned else None
        _fan(ax[0], time, own if means is None else _turns(means, own), panel.v_names if turned else panel.q_names)
        _fan(ax[1], time, v[..., list(panel.v)], panel.v_names)
        for motion in marked:
            line = np.asarray(motion.q, float)[:, list(panel.q)]
            if means is not None:
                nearest = np.abs(np.asarray(motion.time)[:, None] - time[None]).argmin(axis=1)
                line = _turns(means[nearest], line[None])[0]
            for side, values in zip(ax, (line, np.asarray(motion.v)[:, list(panel.v)]), strict=True):
                for k, color in zip(range(values.shape[1]), COLORS, strict=False):
                    side.plot(motion.time, values[:, k], color=color, **MARKED)
        ax[0].set_ylabel("from the mean (rad)" if turned else f"q ({panel.units[0]})")
        ax[1].set_ylabel(f"v ({panel.units[1]})")
        ax[0].set_title(_name(panel, rows), **HEAD)
    figure.align_ylabels()
    return figure


def _fan(ax: Any, time: np.ndarray, values: np.ndarray, names: Sequence[str]) -> None:
    for k, name in enumerate(names):
        for low, high, dark in BANDS:
            ends = np.nanquantile(values[..., k], [low, high], axis=0)
            ax.fill_between(time, *ends, color=COLORS[k], alpha=dark, linewidth=0)
        ax.plot(time, np.nanmedian(values[..., k], axis=0), color=COLORS[k], linewidth=1.2, label=name)
    if len(names) > 1:
        ax.legend(**OUTSIDE)


def _name(panel: Panel, rows: Sequence[Panel]) -> str:
    twice = sum(other.joint == panel.joint for other in rows) > 1
    return panel.joint + (" (turning)" if panel.turns else " (sliding)") * twice


def _means(own: np.ndarray) -> np.ndarray:
    """The quaternion (N, 4) at each time that is nearest to all: the first eigenvector of the sum of q q^T.

    Source: Markley, Cheng, Crassidis, Oshman, Averaging quaternions, Journal of Guidance, Control, and Dynamics 30(4),
    2007, eq. (12).
    """
    _, vectors = np.linalg.eigh(np.einsum("nti,ntj->tij", own, own))
    return vectors[..., -1]


def _turns(means: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Rotation vectors (samples, N, 3) of quaternions (samples, N, 4) about means (N, 4)."""
    return np.asarray(_about(jnp.asarray(np.broadcast_to(means, own.shape)), jnp.asarray(own)))


@jax.jit
def _about(mean: Any, points: Any) -> Any:
    """The rotation vectors of ``mean^-1 points`` along the shorter way."""
    back = quaternion.inverse(jnp.broadcast_to(mean, points.shape))
    gap = quaternion.compose(back, points)
    return quaternion.log(jnp.where(gap[..., :1] < 0, -gap, gap))
