"""Figures that no other library keeps, and that a notebook shows as they are."""

from __future__ import annotations

import io
from functools import cache
from typing import TYPE_CHECKING, Any

from lgsim.support.packages import package
from lgsim.support.printable import printable_lines

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(width: float, height: float) -> Figure:
    """An empty figure; as the last line of a cell it is a picture, whether or not pyplot draws into the notebook.

    Args:
        width: Width, inches.
        height: Height, inches.

    Raises:
        ModuleNotFoundError: matplotlib is missing: ``pip install 'lgsim[plot]'``.
    """
    return _shown_figure(_plain_figure())(figsize=(width, height), layout="constrained")


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
