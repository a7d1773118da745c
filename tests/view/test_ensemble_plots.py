"""Plots of many samples: what is drawn, against NumPy and SciPy."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from lgsim.simulation import Trajectory
from tests.montecarlo import studies

pytest.importorskip("matplotlib", reason="the package matplotlib is missing: pip install 'lgsim[plot]'")

from lgsim.view import ensemble_plots


def turned(rng, count, about, std):
    """Quaternions about an attitude, of either sign, and their rotation vectors from it."""
    apart = std * rng.standard_normal((count, 3))
    found = (Rotation.from_rotvec(about) * Rotation.from_rotvec(apart)).as_quat(scalar_first=True)
    return found * rng.choice([-1, 1], (count, 1)), apart


def test_a_fan_is_the_quantiles_of_each_number():
    """Median lines and bands of joint and velocities; a ball joint about its mean, whatever the quaternions' signs."""
    rng, model, time = np.random.default_rng(0), studies.ball(), np.array([0.0, 0.5, 1.0])
    q, apart = zip(*(turned(rng, 400, [0.3 * t, 2.8, 0.1], 0.2) for t in time), strict=True)
    v = rng.standard_normal((400, 3, 3))
    states = np.concatenate([np.stack(q, axis=1), v], axis=2)
    motion = Trajectory(model, time, states[0, :, :4], v[0], np.zeros((3, 3)), "MK4", 0.5, "", "0")
    left, right = ensemble_plots.fans(model, time, states, [motion]).axes[:2]
    lines = [line.get_ydata() for line in right.get_lines()]
    np.testing.assert_allclose(lines[:3], np.median(v, axis=0).T, rtol=1e-14)
    np.testing.assert_array_equal(lines[3:], v[0].T)
    band = right.collections[0].get_paths()[0].vertices
    low, high = np.quantile(v[..., 0], [0.05, 0.95], axis=0)
    assert band[:, 1].min() == pytest.approx(low.min()) and band[:, 1].max() == pytest.approx(high.max())
    # the sample mean is not the point that the samples were drawn about
    drawn = np.array([line.get_ydata() for line in left.get_lines()])
    np.testing.assert_allclose(drawn[:3], 0, atol=0.03)
    np.testing.assert_allclose(drawn[3:], np.stack([a[0] for a in apart], axis=1), atol=0.05)
    assert left.get_ylabel() == "deviation (rad)"


def test_attitudes_are_drawn_with_their_covariance():
    """The ellipse of one standard deviation has the covariance's axes, in degrees."""
    rng, covariance = np.random.default_rng(1), np.array([[0.04, 0.01, 0], [0.01, 0.02, 0], [0, 0, 0.01]])
    points, apart = turned(rng, 50, [0.0, 0.0, 1.0], 0.1)
    mean = Rotation.from_rotvec([0, 0, 1.0]).as_quat(scalar_first=True)
    figure = ensemble_plots.attitudes(points, mean, covariance, "hull")
    ball, first = figure.axes[-1], figure.axes[0]
    cloud, ellipse = (np.array(line.get_data()) for line in first.get_lines()[:2])
    np.testing.assert_allclose(cloud, np.degrees(apart[:, :2]).T, atol=1e-10)
    inverse, round = np.linalg.inv(covariance[:2, :2]), np.radians(ellipse)
    np.testing.assert_allclose(np.einsum("in,ij,jn->n", round, inverse, round), 1, rtol=1e-10)
    assert ball.get_title(loc="left") == "hull: axes"
    ends = np.array(ball.collections[1]._offsets3d)
    np.testing.assert_allclose(np.linalg.norm(ends, axis=0), 1, rtol=1e-12)


def test_histograms_show_shares_and_levels():
    data = ensemble_plots.HistogramData("x (m)", np.array([1.0, 3.0]), np.array([0.0, 1.0, 2.0]), 1.2, {0.5: 1.25})
    figure = ensemble_plots.histograms([data] * 4, columns=3)
    ax = figure.axes[0]
    np.testing.assert_array_equal(ax.patches[0].get_data().values, [25.0, 75.0])
    assert [line.get_xdata()[0] for line in ax.get_lines()] == [1.25, 1.2]
    assert [each.get_visible() for each in figure.axes] == [True] * 4 + [False] * 2


def test_histograms_with_outliers_and_long_names():
    """Shares are those of all samples; a mean beyond the axes is text; labels and titles do not overlap."""
    name = "an output with a name that is far longer than its panel, and goes on $x^2$ even after two lines of text"
    quantiles = {0.05: 1.00, 0.5: 1.01, 0.95: 1.02}
    data = ensemble_plots.HistogramData(name, np.array([1.0, 2.0]), np.array([0.0, 1.0, 2.0]), 50.0, quantiles, 1.0)
    figure = ensemble_plots.histograms([data] * 3)
    figure.canvas.draw()
    ax = figure.axes[0]
    np.testing.assert_array_equal(ax.patches[0].get_data().values, [25.0, 50.0])
    assert [line.get_xdata()[0] for line in ax.get_lines()] == list(quantiles.values())
    assert ax.texts[-1].get_text() == "beyond:\n25 % of samples\nmean 50"
    boxes = [text.get_window_extent() for text in ax.texts]
    titles = [each.title.get_window_extent() for each in figure.axes]
    for group in (boxes, titles):
        assert not any(a.overlaps(b) for i, a in enumerate(group) for b in group[:i])
