"""Figures of lgsim are pictures in a notebook, whoever else draws there."""

import pickle
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="the extra plot is missing: pip install 'lgsim[plot]'")

from lgsim.view import figures

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_notebook_shows_it_before_pyplot_draws():
    """Regression: until pyplot's first figure, the last line of a cell was `<Figure size 540x334.8 with 2 Axes>`."""
    formatters = pytest.importorskip("IPython.core.formatters", reason="needs IPython")
    figure = figures.figure(2.0, 1.0)
    figure.subplots().plot([1, 2])
    data, _ = formatters.DisplayFormatter().format(figure)
    assert data["image/png"].startswith(PNG)


def test_it_is_a_figure_that_pickle_keeps():
    from matplotlib.figure import Figure

    figure = figures.figure(2.0, 1.0)
    figure.subplots().plot([1, 2])
    again = pickle.loads(pickle.dumps(figure))
    assert isinstance(again, Figure) and again._repr_png_() == figure._repr_png_()
    text = "import pickle, sys\nprint(type(pickle.load(sys.stdin.buffer)).__name__)"
    done = subprocess.run([sys.executable, "-c", text], input=pickle.dumps(figure), capture_output=True)
    assert done.stdout == b"ShownFigure\n", done.stderr


def test_the_module_has_no_other_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = figures.nothing
