"""The page about a fit: of several unknowns with what was held out, of one, of unknowns that no record shows."""

import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("matplotlib")

import lgsim
from lgsim.identify import (
    RESULTS,
    CentersOfMass,
    Channel,
    Fit,
    FramePoseSensor,
    JointParameter,
    Parameters,
    Plant,
    PositionSensor,
    Recording,
    SensorRecords,
    SimulationFit,
    TorqueSamples,
    VelocitySensor,
    fit,
)
from lgsim.identify.estimators.estimator import Estimate
from lgsim.view import reports
from lgsim.view.reports.identification_plots import broken, signals
from lgsim.view.reports.number_rows import Number, column_units, number_rows
from tests.view.reports.pages import cells, facts, headings, needs_no_network, number, pictures, remarks, rows

COUNT, MASS, LENGTH, INERTIA, DAMPING, NOISE = 120, 2.0, 0.5, 0.02, 0.3, 0.01


@pytest.fixture(scope="module")
def wheel():
    """A body that turns about a vertical axis: of its center of mass only the distance from the axis shows."""
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", lgsim.joints.Revolute(), joint_name="hinge", axis=[0, 0, 1], mass=MASS,
                     center=[0.4, 0, 0], inertia=INERTIA * np.eye(3), damping=0.2)  # fmt: skip
    return builder.build()


def recorded(model, phase=0.0):
    """A swing with the torques of the true wheel, by hand: the center is farther, the damping larger."""
    time = 0.02 * np.arange(COUNT)
    q, v, a = (f(3 * time + phase)[:, None] * s for f, s in ((np.sin, 1), (np.cos, 3), (np.sin, -9)))
    tau = (INERTIA + MASS * LENGTH**2) * a + DAMPING * v
    tau = tau + NOISE * np.random.default_rng(0).normal(size=tau.shape)
    return Recording(model, time, q, v, a, tau, source="swing.csv", history=("made by hand",))


@pytest.fixture(scope="module")
def swing(wheel):
    """(fit of center and damping with a part that was held out, the record)."""
    record = recorded(wheel)
    parameters = Parameters(Plant(wheel), [CentersOfMass(), JointParameter("damping")])
    held_out = TorqueSamples.from_recording(recorded(wheel, 1.0))
    return fit(parameters, TorqueSamples.from_recording(record), validation=held_out), record


@pytest.fixture(scope="module")
def page(swing):
    found, record = swing
    return reports.report_fit(
        found, record, record, title="A <wheel>", subtitle="by hand", files=["fit.npz"], remarks=["scale of joints"]
    ).html()


@pytest.mark.slow
def test_numbers_deviations_and_errors(swing, page):
    """The table against the fit, and the fit against the truth."""
    found, _ = swing
    # a base parameter has the name of its only number, but fewer cells
    table = {row[0]: row[1:] for row in cells(page) if len(row) == 6}
    unit, prior, value, deviation, moved = table["damping of hinge"]
    assert (unit, prior) == ("N m s/rad", "0.2")
    assert number(value) == pytest.approx(DAMPING, abs=4 * found.deviations[DAMPED])
    assert number(value) == pytest.approx(found.values[DAMPED], rel=1e-4)
    assert number(deviation) == pytest.approx(found.deviations[DAMPED], rel=1e-4)
    assert float(moved) == pytest.approx((found.values[DAMPED] - 0.2) / found.deviations[DAMPED], rel=0.01)
    assert number(table["x of bob"][2]) == pytest.approx(LENGTH, abs=1e-3)
    assert table["z of bob"][-1] == "not identifiable" and table["z of bob"][-2] == "–"
    residual = np.sqrt(np.mean(np.asarray(found.residuals()) ** 2))
    hinge = rows(page)["hinge"]
    assert hinge[0] == "N m" and number(hinge[4]) == pytest.approx(residual, rel=1e-4)
    assert residual == pytest.approx(NOISE, rel=0.2) and number(hinge[6]) == pytest.approx(1, abs=0.3)


DAMPED = "damping of hinge, N m s/rad"


@pytest.mark.slow
def test_facts_remarks_and_parts(page):
    assert headings(page) == ["Summary", "Recording", "Parameters", "Identifiability", "Residuals", "Files"]
    shown = facts(page)
    assert (shown["unknowns"], shown["samples fitted"]) == ("4", str(COUNT))
    assert shown["identifiable combinations"] == "2 of 4"
    assert (shown["samples"], shown["sampling rate"], shown["channels"]) == (str(COUNT), "50 Hz", "q, v, a, tau")
    texts = dict((text, kind) for kind, text in remarks(page))
    close = "The held-out error is close to the training error: the parameters are valid for this motion."
    assert texts[close] == "good"
    assert any(text.startswith("2 combinations of the unknowns are not identifiable") for text in texts)
    assert texts["The recording needed no corrections."] == "good"
    assert "Processing: made by hand." in page and "<li>fit.npz</li>" in page and "<li>scale of joints</li>" in page
    assert "<h1>A &lt;wheel&gt;</h1><p>by hand</p>" in page
    assert pictures(page) == 5 and needs_no_network(page) and "<script" not in page
    assert "base parameter" in page


@pytest.mark.slow
def test_the_fit_alone(swing):
    """Without the record there is no section about it, and the axis of time counts samples."""
    found, record = swing
    page = reports.report_fit(found).html()
    assert headings(page) == ["Summary", "Parameters", "Identifiability", "Residuals"] and pictures(page) == 4
    figures = reports.fit_figures(found)
    assert list(figures) == ["residuals", "whiteness", "singular-values", "changes"]
    assert figures["residuals"].axes[-1].get_xlabel() == "sample"
    assert reports.fit_figures(found, record)["record"].axes[0].get_title(loc="left") == "hinge"
    with pytest.raises(ValueError, match=f"motion: expected the {COUNT} samples that were fitted, got 7"):
        reports.report_fit(found, record, record[:7])


@pytest.mark.slow
def test_one_unknown(wheel):
    """Every table and plot has a single row; nothing was held out."""
    found = fit(Parameters(Plant(wheel), [JointParameter("damping")]), TorqueSamples.from_recording(recorded(wheel)))
    page = reports.report_fit(found).html()
    assert facts(page)["unknowns"] == "1" and facts(page)["held-out / training error"] == "–"
    # correlated residuals leave the damping too uncertain to be drawn as a change
    assert pictures(page) == 3 and rows(page)["hinge"][5] == "–"
    # the center is wrong, so that the residuals are not white
    assert any(text.startswith("The residuals are not white") for _, text in remarks(page))


def made_up(wheel, samples, columns):
    """A fit that no estimator made."""
    x = jnp.zeros(1)
    estimate = Estimate(x, jnp.eye(1), jnp.eye(1), jnp.ones(columns), x, x[None], jnp.array(0), RESULTS.successful)
    parameters = Parameters(Plant(wheel), [JointParameter("damping")])
    return Fit(parameters, estimate, samples, estimator=SimulationFit(window_steps=2))


def test_signals_of_sensors(wheel):
    """Channels by name, data sets one below the other; poses are no numbers; units by the kind of the sensor."""
    q = jnp.arange(6.0).reshape(2, 3, 1)
    pose = Channel(FramePoseSensor("bob"), jnp.tile(jnp.eye(4), (2, 3, 1, 1)), jnp.ones(6))
    channels = {"q": Channel(PositionSensor(), q, 1e-3), "v": Channel(VelocitySensor(), 10 * q, 1e-2), "pose": pose}
    found = made_up(wheel, SensorRecords(0.1, channels), 8)
    got = signals(found)
    np.testing.assert_array_equal(got[:, 6], np.arange(6.0))
    np.testing.assert_array_equal(got[:, 7], 10 * np.arange(6.0))
    assert got.shape == (6, 8) and np.all(np.isnan(got[:, :6]))
    assert column_units(found) == [*[""] * 6, "rad", "rad/s"]


def test_lines_do_not_cross_gaps():
    """NaN stands where time jumps ahead by ten steps or goes back."""
    time, values = np.array([0, 1, 2, 30, 31, 0, 1.0]), np.arange(7.0)
    t, x = broken(time, values)
    assert np.flatnonzero(np.isnan(t)).tolist() == np.flatnonzero(np.isnan(x)).tolist() == [3, 6]
    np.testing.assert_array_equal(t[~np.isnan(t)], time)
    assert [array.tolist() for array in broken(np.zeros(1), np.ones(1))] == [[0.0], [1.0]]


def test_how_sure_a_number_is(swing):
    assert Number("m", "kg", 1.0, 2.0, 0.5).significance == "2.0"
    assert Number("m", "kg", 1.0, 2.0, np.inf).significance == "not identifiable"
    assert Number("m", "kg", 1.0, 1.0, 0.0).significance == "held"
    assert [row.unit for row in number_rows(swing[0])] == ["m", "m", "m", "N m s/rad"]


def test_without_matplotlib_the_extra_is_named(swing, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r"a report needs the package matplotlib, .*'lgsim\[plot\]'"):
        reports.report_fit(swing[0])
