"""Figures that no other library keeps, and that a notebook shows as they are, in the manner of all plots of lgsim."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from lgsim.support.packages import package
from lgsim.support.printable import printable_lines

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure

COLORS = ("#1a78d1", "#e6591a", "#2a9d5c", "#8e5bc0", "#c99a06", "#56616f")
GRAY, DARK, RED = "#9aa3ad", "#20252c", "#c0392b"
TIME = "time (s)"
OUTSIDE = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False, "fontsize": 8}
HEAD = {"loc": "left", "fontweight": "bold", "fontsize": 9}


def figure(width: float, height: float) -> Figure:
    """An empty figure; as the last line of a cell it is a picture, whether or not pyplot draws into the notebook.

    Args:
        width: Width, inches.
        height: Height, inches.

    Raises:
        ModuleNotFoundError: matplotlib is missing: ``pip install 'lgsim[plot]'``.
    """
    return _shown_figure(_plain_figure())(figsize=(width, height), layout="constrained")


def axes_grid(
    rows: int,
    columns: int,
    width: float,
    height: float,
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
    *,
    time: bool = True,
    sharex: bool = False,
    sharey: bool = False,
    margin: float | None = 0.01,
) -> tuple[Figure, np.ndarray]:
    """A figure that no other library keeps, and its axes.

    Args:
        width: Width of the figure, inches.
        height: Height of the figure, inches.
        heights: Relative heights of the rows; None for equal ones.
        widths: Relative widths of the columns; None for equal ones.
        time: Whether the horizontal axes are time, shared by all.
        sharex: Whether all share their horizontal axes, which are not time.
        sharey: Whether all share their vertical axes.
        margin: The share of the horizontal axes that is free at either end; None for matplotlib's own.

    Returns:
        The figure and its axes (rows, columns).

    Raises:
        ImportError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    found = figure(width, height)
    axes = found.subplots(
        rows, columns, squeeze=False, sharex=time or sharex, sharey=sharey, height_ratios=heights, width_ratios=widths
    )
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e3e6ea", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=8)
        ax.xaxis.label.set_size(9)
        ax.yaxis.label.set_size(9)
        if margin is not None:
            ax.margins(x=margin)
    if time:
        for ax in axes[-1]:
            ax.set_xlabel(TIME, fontsize=9)
    return found, axes


def _plain_figure() -> type[Figure]:
    return package("matplotlib.figure", "plot", "a plot").Figure


def literal(text: str) -> str:
    """A text for a title, a label or a legend that matplotlib draws as it is: a dollar sign begins no formula.

    Args:
        text: The text, such as a joint's name.
    """
    return printable_lines(text).replace("$", r"\$")


@cache
def _shown_figure(base: type[Figure]) -> type[Figure]:
    class ShownFigure(base):
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    ShownFigure.__qualname__ = "ShownFigure"  # where pickle finds it
    return ShownFigure


def __getattr__(name: str) -> Any:
    if name == "ShownFigure":
        return _shown_figure(_plain_figure())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
