"""Figures of lgsim are pictures in a notebook, whoever else draws there."""

import pickle
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="the extra plot is missing: pip install 'lgsim[plot]'")

import lgsim
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


def test_the_style_is_set_and_restored():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    with lgsim.view.style():
        assert mpl.rcParams["figure.figsize"] == [figures.SINGLE, 2.3] and mpl.rcParams["font.size"] == figures.TEXT
        assert mpl.rcParams["axes.prop_cycle"].by_key()["color"] == list(figures.COLORS)
    assert dict(mpl.rcParams) == before
    lgsim.view.style().__exit__()
    assert dict(mpl.rcParams) == before


def test_panels_have_letters_in_front_of_their_titles():
    axes = figures.figure(3.0, 2.0).subplots(2, 2)
    axes[0, 1].set_title("energy", loc="left")
    lgsim.view.panel_letters(axes)
    assert [ax.get_title(loc="left") for ax in axes.flat] == ["(a)", "(b) energy", "(c)", "(d)"]
    lgsim.view.panel_letters([axes[1, 1]])
    with pytest.raises(ValueError, match="expected at most 26 panels, got 27"):
        lgsim.view.panel_letters([axes[0, 0]] * 27)


def test_the_module_has_no_other_name():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = figures.nothing
