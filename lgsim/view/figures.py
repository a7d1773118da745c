"""The figure style of lgsim, and figures that a notebook shows without pyplot."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from functools import cache
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np

from lgsim.support.packages import package
from lgsim.support.printable import printable_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SINGLE, DOUBLE = 3.4, 7.2
"""Widths of a figure over one and over two columns of a journal, inches."""
TEXT, SMALL = 8, 7
"""Font sizes of labels and titles, and of tick labels and legends, points."""
COLORS = ("#1a78d1", "#e6591a", "#2a9d5c", "#8e5bc0", "#c99a06", "#56616f", "#17a5b5")
GRAY, DARK, RED = "#9aa3ad", "#20252c", "#c0392b"
TIME = "time (s)"
OUTSIDE = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5), "frameon": False, "fontsize": SMALL}
HEAD = {"loc": "left", "fontweight": "bold", "fontsize": TEXT}
STYLE = {
    "figure.figsize": (SINGLE, 2.3),
    "figure.dpi": 120,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300,
    "font.size": TEXT,
    "figure.titlesize": TEXT,
    "axes.titlesize": TEXT,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": TEXT,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
"""Settings of matplotlib; the colors are ``COLORS``."""


class Style:
    """The figure style while it is set; the end of a ``with`` block restores the settings before it."""

    def __init__(self) -> None:
        matplotlib = package("matplotlib", "plot", "the figure style")
        cycler = package("cycler", "plot", "the figure style").cycler
        self._settings = matplotlib.rcParams
        settings = {**STYLE, "axes.prop_cycle": cycler(color=COLORS)}
        self._before = {name: self._settings[name] for name in settings}
        self._settings.update(settings)

    def __enter__(self) -> Style:
        return self

    def __exit__(self, *_: object) -> None:
        self._settings.update(self._before)

    def _ipython_display_(self) -> None:
        """Show nothing where a cell ends with ``style()``."""


def style() -> Style:
    """Set the figure style of lgsim's own plots in matplotlib.

    Widths are 3.4 inches for one column of a journal and 7.2 inches for two, labels have 8 points, tick labels and
    legends 7, and PDF and SVG files keep text as text. ``lgsim.view.style()`` sets the style for all figures that
    follow; ``with lgsim.view.style():`` sets it for the figures of a block.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    return Style()


def panel_letters(axes: Axes | Iterable[Axes]) -> None:
    """Label the panels of a figure (a), (b), ... in front of their titles, at the upper left.

    Args:
        axes: Axes in reading order, as ``plt.subplots`` returns them.

    Raises:
        ValueError: there are more than 26 panels.
    """
    panels = list(np.ravel(np.asarray(axes, dtype=object)))
    if len(panels) > len(ascii_lowercase):
        raise ValueError(f"axes: expected at most {len(ascii_lowercase)} panels, got {len(panels)}")
    for ax, letter in zip(panels, ascii_lowercase, strict=False):
        title = ax.get_title("left") or ax.get_title("center")
        ax.set_title("", loc="center")
        ax.set_title(f"({letter}) {title}".strip(), **HEAD)


def figure(width: float, height: float) -> Figure:
    """An empty figure that a notebook shows as the last line of a cell, whichever backend pyplot has.

    Args:
        width: Width, inches.
        height: Height, inches.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
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
    """A figure without pyplot, and its axes, in the style of lgsim.

    Args:
        width: Width of the figure, inches.
        height: Height of the figure, inches.
        heights: Relative heights of the rows; None for equal heights.
        widths: Relative widths of the columns; None for equal widths.
        time: True if the horizontal axes are time, which all panels share.
        sharex: True if all panels share horizontal axes that are not time.
        sharey: True if all panels share their vertical axes.
        margin: Margin at either end of the horizontal axes, relative to their length; None for matplotlib's default.

    Returns:
        The figure and its axes (rows, columns).

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    drawn = figure(width, height)
    axes = drawn.subplots(
        rows, columns, squeeze=False, sharex=time or sharex, sharey=sharey, height_ratios=heights, width_ratios=widths
    )
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e3e6ea", linewidth=0.6)
        ax.set_axisbelow(True)
        ax.tick_params(labelsize=SMALL)
        ax.xaxis.label.set_size(TEXT)
        ax.yaxis.label.set_size(TEXT)
        if margin is not None:
            ax.margins(x=margin)
    if time:
        for ax in axes[-1]:
            ax.set_xlabel(TIME, fontsize=TEXT)
    return drawn, axes


def _plain_figure() -> type[Figure]:
    return package("matplotlib.figure", "plot", "a plot").Figure


def literal(text: str) -> str:
    """Text that matplotlib draws without interpretation: a dollar sign starts no formula.

    Args:
        text: Text of a title, a label or a legend, such as a joint's name.
    """
    return printable_lines(text).replace("$", r"\$")


@cache
def _shown_figure(base: type[Figure]) -> type[Figure]:
    class ShownFigure(base):
        def _repr_png_(self) -> bytes:
            picture = io.BytesIO()
            self.savefig(picture, format="png", dpi="figure")
            return picture.getvalue()

    ShownFigure.__qualname__ = "ShownFigure"  # where pickle finds it
    return ShownFigure


def __getattr__(name: str) -> Any:
    if name == "ShownFigure":
        return _shown_figure(_plain_figure())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
