"""The plot of a posterior: panels, labels, the prior and the truth where they are known."""

import jax
import numpy as np
import pytest

from lgsim.identify import PosteriorDraws, PosteriorProblem, laplace_approximation, log_density
from lgsim.identify.posterior import HalfNormalNoise
from lgsim.identify.unknowns.joint_blocks import JointParameter, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.view import reports
from tests.identify import arms

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def draws():
    blocks = [JointParameter("damping", ["elbow"], upper=1.0), TorqueOffset(["elbow"])]
    samples = arms.samples(Plant(arms.planar(damping=0.25), offset=0.1), 40, noise=0.3)
    problem = PosteriorProblem(Parameters(arms.planar(damping=0.25), blocks), samples, noise=HalfNormalNoise(0.5))
    density = log_density(problem)
    found = laplace_approximation(density)
    return PosteriorDraws(density, found.draw(jax.random.key(0), (2, 400)))


@pytest.mark.slow
def test_panels_show_each_number_and_each_pair(draws):
    damping = "damping of elbow, N m s/rad"
    figure = reports.posterior_figure(draws, truth={damping: 0.25})
    axes = np.array(figure.axes).reshape(4, 4)
    assert [ax.get_visible() for ax in axes[1]] == [True, True, False, False]
    assert (
        axes[3, 0].get_xlabel() == "damping of elbow\n(N m s/rad)"
        and axes[1, 0].get_ylabel() == "offset of elbow\n(N m)"
    )
    mean, spread = np.mean(draws.values[damping]), np.std(draws.values[damping])
    shown, _, rest = axes[0, 0].get_title(loc="left").splitlines()[1].partition(" ± ")
    assert float(shown) == pytest.approx(mean, abs=0.06 * spread) and rest.endswith("N m s/rad")
    heights = np.array([bar.get_height() for bar in axes[0, 0].patches[:30]])
    width = axes[0, 0].patches[0].get_width()
    assert np.sum(heights) * width == pytest.approx(1)  # a density
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["posterior", "prior", "truth"]
    assert 0.25 in axes[0, 0].lines[-1].get_xdata()
    # a flat prior without bounds is no distribution
    assert len(axes[1, 1].get_legend_handles_labels()[1]) == 1
    assert len(axes[2, 2].get_legend_handles_labels()[1]) == 2


@pytest.mark.slow
def test_names_are_drawn_as_they_are(draws, tmp_path, monkeypatch):
    own, joint = draws.values, r"sh$\frac$x $y$ [b] {x} %s"
    renamed = {name.replace("elbow", joint): x for name, x in own.items()}
    monkeypatch.setattr(PosteriorDraws, "values", property(lambda self: renamed))
    figure = reports.posterior_figure(draws, list(renamed)[:2], prior={})
    figure.savefig(tmp_path / "posterior.svg")
    assert figure.axes[0].get_title(loc="left").startswith(f"damping of {joint}".replace("$", r"\$"))


@pytest.mark.slow
def test_one_number_with_draws_of_a_prior_by_name(draws, tmp_path):
    name = "offset of elbow, N m"
    figure = reports.posterior_figure(draws, [name], prior={name: np.random.default_rng(0).normal(size=500)})
    assert len(figure.axes) == 1 and len(figure.axes[0].get_legend_handles_labels()[1]) == 2
    figure.savefig(tmp_path / "posterior.png")
    with pytest.raises(ValueError, match=r"names, truth: expected names of damping of elbow.*, got 'mass'"):
        reports.posterior_figure(draws, ["mass"])
