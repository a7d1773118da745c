"""The page about a study: of the store of the command, of results in memory, of a part, of nothing, of divergence."""

import re
from dataclasses import replace
from importlib.util import find_spec

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

import lgsim
from lgsim import montecarlo as mc
from lgsim.montecarlo.store import Store
from lgsim.scenarios import ScenarioError, load_study
from lgsim.scenarios.study_store import describe_study, open_study
from lgsim.view import reports
from lgsim.view.reports import replays
from lgsim.view.reports.estimates import estimate, failure_interval, spread_rows
from tests.scenarios.machines import ARM
from tests.scenarios.studies import STUDY, changed
from tests.view.reports.pages import cells, facts, headings, needs_no_network, number, pictures, remarks, rows

"""Of the interval of confidence of 95 %, in standard errors."""


def make_store(folder, text, name="store", samples=48, progress=None):
    """A store as the command leaves it, in chunks of one tile."""
    (folder / "arm.urdf").write_text(ARM)
    (folder / "study.toml").write_text(text)
    scenario = load_study(folder / "study.toml", samples=samples)
    mc.run(scenario.study, folder / name, chunk=16, progress=progress)
    describe_study(Store(folder / name), scenario, text.encode())
    return folder / name


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Forty-eight samples of the study, whose machine's file is there."""
    return make_store(tmp_path_factory.mktemp("studies"), STUDY)


@pytest.fixture(scope="module")
def columns(store):
    """All samples, by output."""
    parts = [chunk.columns for chunk in Store(store).read_all()]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@pytest.fixture(scope="module")
def page(store):
    """The page about the store."""
    return reports.report_study(str(store), cases=1).html()


@pytest.fixture
def still(monkeypatch):
    """No motion is played: the package for it is missing, which a warning says."""
    monkeypatch.setattr(replays, "find_spec", lambda name: None if name == "viser" else find_spec(name))


@pytest.mark.slow
def test_the_page_says_what_the_samples_say(columns, page):
    """Moments, failures and the worst sample against NumPy on the store's columns."""
    found = rows(page)
    for name, x in {"miss": columns["miss"], "final_q elbow (rad)": columns["final_q"][:, 1]}.items():
        wanted = [x.mean(), scipy.stats.t.ppf(0.975, 47) * x.std(ddof=1) / np.sqrt(48), x.std(ddof=1), x.min(), x.max()]
        np.testing.assert_allclose([number(text) for text in found[name][:5]], wanted, rtol=1e-4)
        assert 0 < number(found[name][5]) < 1e-3 * wanted[1]  # steps of 0.02 s by MK4 of a slow arm
    assert not any(name.startswith("attitude of tip") for name in found)
    assert {"position of tip x (m)", "position of tip z (m)", "final_q shoulder (rad)"} <= set(found)
    which = np.flatnonzero(columns["failed far"])
    known = scipy.stats.binomtest(len(which), 48).proportion_ci(0.95, method="exact")
    more = f" and {len(which) - 20} more" if len(which) > 20 else ""
    assert found["far"] == [
        str(len(which)), f"{len(which) / 48:.3g} ({known.low:.2g} to {known.high:.2g}, 95 %)", found["far"][2],
        ", ".join(map(str, which[:20])) + more,
    ]  # fmt: skip
    assert 0 < number(found["far"][2]) < 1e-4
    assert facts(page) == {"samples": "48", "diverged": "0", "far": f"{100 * len(which) / 48:.3g} %",
                           "not converged": "0 of 112 statistics"}  # fmt: skip
    assert next(text for kind, text in remarks(page) if kind == "good").startswith("Integration error: at most ")
    worst = int(np.argmax(columns["miss"]))
    assert re.findall("<h3>(.*?)</h3>", page) == [f"Sample {worst}: miss {columns['miss'][worst]:.4g}"]
    assert [row for row in cells(page) if row[1:] == ["samples = 200"]]  # the file that was run


@pytest.mark.slow
def test_it_is_one_page_without_a_network(page):
    """Pictures and scenes are in it; nothing is asked for from anywhere."""
    assert headings(page) == [
        "Summary", "Distributions", "Inputs", "Attitudes", "Fan charts", "Failures", "Worst cases", "Study"
    ]  # fmt: skip
    assert pictures(page) == 4 and needs_no_network(page)
    assert page.count("<iframe srcdoc=") == (1 if find_spec("viser") else 0)


@pytest.mark.slow
def test_strongest_inputs(columns, page):
    """The table names the input with the largest rank correlation, with scipy's value."""
    inputs = {name.removeprefix("input."): x for name, x in columns.items() if name.startswith("input.")}
    found = {name: scipy.stats.spearmanr(x, columns["miss"]).statistic for name, x in inputs.items()}
    strongest = max(found, key=lambda name: abs(found[name]))
    row = next(row for row in cells(page) if row and row[0] in inputs and row[1] == "miss")
    assert row[0] == strongest
    np.testing.assert_allclose(number(row[2]), found[strongest], rtol=1e-3)


def test_inputs_without_any_effect_and_hostile_names():
    """Noise has no strongest input; names are shown as they are."""
    one = {"x": mc.Normal(0.0, 1.0), "$<b>y": mc.Normal(0.0, 1.0)}
    none = mc.Study(one, lambda values: {"noise": jnp.sin(1e6 * values["x"])}, samples=64)
    page = reports.report_study(mc.run(none), cases=0).html()
    assert "No rank correlation of an input with an output exceeds what is due to chance." in page
    named = mc.Study(one, lambda values: {"$_<i>": values["$<b>y"] ** 3}, samples=64)
    page = reports.report_study(mc.run(named), cases=0).html()
    assert ["$<b>y", "$_<i>", "1", "1"] in [row[:4] for row in cells(page)]


@pytest.mark.slow
def test_the_worst_by_another_output(store, still):
    """An output of several numbers counts by its distance from the mean."""
    with pytest.warns(UserWarning, match="the report has no replays"):
        page = reports.report_study(open_study(store), worst="final_q", cases=2).html()
    assert len(re.findall("<h3>Sample \\d+: final_q", page)) == 2 and ("note", replays.MISSING) in remarks(page)
    with pytest.raises(ValueError, match=r"worst: expected one of .*miss.*, got 'mis'"):
        reports.report_study(store, worst="mis")


@pytest.mark.slow
def test_a_part_and_nothing(tmp_path):
    """A study that was interrupted is reported as such; without any sample it is refused."""

    def interrupted(running):
        raise KeyboardInterrupt

    store = make_store(tmp_path, STUDY, progress=interrupted)
    page = reports.report_study(store, cases=0).html()
    assert remarks(page) == [("note", "The study is incomplete: this page shows the available samples.")]
    assert facts(page)["samples"] == "16" and "Worst cases" not in headings(page)
    Store(store).file(0).unlink()
    with pytest.raises(ScenarioError) as caught:
        reports.report_study(store)
    nothing = "the store has no samples yet; continue with lgsim montecarlo study.toml --resume"
    assert str(caught.value) == f"{store}: {nothing}"
    with pytest.raises(ValueError, match="store: expected results with samples, got none"):
        reports.report_study(open_study(store).results)
    with pytest.raises(ScenarioError, match="expected a store of lgsim montecarlo"):
        reports.report_study(tmp_path)


def test_samples_that_all_diverge(tmp_path, still):
    """No statistics; a sample is shown up to where its numbers are small."""
    gone = changed(("dt = 0.02", 'dt = 1.0\nmethod = "MK4"'), ("stiffness = 3.0", "stiffness = 1e9"))
    with pytest.warns(UserWarning, match="has no replays"):
        page = reports.report_study(make_store(tmp_path, gone, samples=16)).html()
    assert headings(page) == ["Summary", "Failures", "Worst cases", "Study"]
    assert ("bad", "16 samples diverged and are excluded from all statistics.") in remarks(page)
    assert "Diverged, " in page and re.findall("<h3>Sample 0: (not finite|blown up)", page)


@pytest.fixture(scope="module")
def pendulum():
    """A study of a pendulum made in Python: an output of one number, a failure that is a function."""
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", lgsim.joints.Revolute(), joint_name="hinge", axis=[0, 1, 0], mass=2.0,
                     center=[0, 0, -0.5], inertia=1e-2 * np.eye(3))  # fmt: skip
    model, start = builder.build(), jnp.array([1.4])
    rollout = mc.Rollout(model, start, dt=0.02, steps=4)
    return mc.Study({"q0": mc.TangentNormal(model, start, 0.03)}, rollout, {"angle": angle}, samples=16, tile=16,
                    failures={"high": high})  # fmt: skip


def angle(motion):
    """The angle at the end."""
    return motion.q[-1, 0]


def high(columns):
    """Whether the angle at the end is above the mean."""
    return columns["angle"] > 1.39


def test_results_in_memory(pendulum, still, tmp_path):
    """No store, no study file: the page has what the samples give, and the worst by the only output."""
    results = mc.run(pendulum)
    with pytest.warns(UserWarning, match="has no replays"):
        report = reports.report_study(results)
    page = report.save(tmp_path / "study.html").read_text(encoding="utf-8")
    assert headings(page) == ["Summary", "Distributions", "Inputs", "Failures", "Worst cases"]
    x = results.column("angle")
    assert rows(page)["angle"][3:5] == [f"{x.min():.5g}", f"{x.max():.5g}"]
    worst = np.argsort(-x, kind="stable")[:3]
    assert re.findall(r"<h3>Sample (\d+): angle", page) == [str(i) for i in worst]
    assert rows(page)["high"][0] == str(int(np.sum(x > 1.39)))
    assert "Made by lgsim" in page and "16 samples, seed 0" in page


def test_a_rollout_that_is_a_function(pendulum):
    """Nothing is known of its machine: there are no motions to replay."""
    study = mc.Study(dict(pendulum.sampler.distributions), end_of, samples=16, tile=16)
    page = reports.report_study(mc.run(study)).html()
    assert headings(page) == ["Summary", "Distributions", "Inputs"] and {"pair[0]", "pair[1]"} <= set(rows(page))
    assert "steps" not in page.lower() and len(rows(page)["pair[0]"]) == 5


def end_of(values):
    """Two numbers of a sample."""
    return {"pair": jnp.concatenate([values["q0"], 2 * values["q0"]])}


def test_samples_with_weights(pendulum):
    """Of importance sampling: weighted moments and probabilities, no quantiles and no single samples."""
    study = mc.Study(
        dict(pendulum.sampler.distributions), pendulum.rollout, {"angle": angle, "history": mc.outputs.Subsampled(2)},
        samples=16, tile=16, failures={"high": high}, tilts={"q0": mc.ImportanceTilt(1.0)},
    )  # fmt: skip
    results = mc.run(study)
    page = reports.report_study(results, cases=0).html()
    assert headings(page) == ["Summary", "Distributions", "Failures"]
    m, found = results.running.moments("angle"), results.failures("high")
    assert [text for kind, text in remarks(page) if kind == "bad"] == [
        f"The weighted samples have an effective number of {m.effective:.3g}, below 1000: intervals of means are too"
        " narrow."
    ]
    assert number(rows(page)["angle"][0]) == pytest.approx(float(m.mean), rel=1e-4)
    low, top = found.interval
    assert rows(page)["high"][1] == f"{found.probability:.3g} ({low:.2g} to {top:.2g}, 95 %)"
    assert "Statistics use the weights" in page and "5 %, 50 %" not in page


def test_estimates_in_words():
    """Means with half of their interval, the widest of several; the exact interval of a failure, by scipy."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(100, 2)) * [1.0, 3.0]
    m = mc.Moments.of(x)
    half = scipy.stats.t.ppf(0.975, 99) * x[:, 1].std(ddof=1) / 10
    assert estimate("x", m, 0.95) == f"[1] {x[:, 1].mean():.4g} ± {half:.2g} (95 %)"
    assert estimate("x", mc.Moments.of(x[:, 0]), 0.95).startswith(f"{x[:, 0].mean():.4g} ± ")
    assert estimate("x", mc.Moments.of(x[:1]), 0.95) == "?"
    failed = replace(mc.Moments.of(np.arange(50) < 3), truth=True)
    known = scipy.stats.binomtest(3, 50).proportion_ci(0.9, method="exact")
    assert failure_interval(failed, 0.9) == f"{known.low:.2g} to {known.high:.2g}"
    assert estimate("failed far", failed, 0.9) == f"0.06 ({known.low:.2g} to {known.high:.2g}, 90 %)"


def test_spread_of_each_number(pendulum):
    results = mc.run(pendulum)
    x, row = results.column("angle"), spread_rows(results.running, 0.95)[0]
    assert (row.output, row.entry, row.low, row.high) == ("angle", None, x.min(), x.max())
    wanted = [x.mean(), x.std(ddof=1), scipy.stats.t.ppf(0.975, 15) * x.std(ddof=1) / 4]
    np.testing.assert_allclose([row.mean, row.std, row.half_width], wanted, rtol=1e-12)


@pytest.mark.slow
def test_steps_that_are_too_long(pendulum, still):
    """A red box says what is not resolved and what to do; where nobody looked, the page says so."""
    stiff = lgsim.controls.PD(jnp.zeros(1), 60.0, 120.0)
    rollout = mc.Rollout(pendulum.rollout.model, pendulum.rollout.q0, dt=0.02, steps=4, control=stiff)
    study = mc.Study(dict(pendulum.sampler.distributions), rollout, {"angle": angle}, samples=48, tile=16,
                     failures={"high": high})  # fmt: skip
    results = mc.run(study)
    assert not results.step_error.resolved
    page = reports.report_study(results, cases=0).html()
    red = [text for kind, text in remarks(page) if kind == "bad"]
    assert len(red) == 1 and red[0].startswith("Not resolved: with dt = 0.02 s and MK4 the integration error exceeds")
    assert "Use dt = " in red[0] or "use dt = " in red[0]
    assert rows(page)["angle"][5].endswith(", not resolved")
    assert facts(page)["not converged"] == f"{results.step_error.faults} of 7 statistics"
    unknown = reports.report_study(mc.run(study, step_check=False), cases=0).html()
    note = "The integration error of these statistics was not estimated (--no-step-check)."
    assert ("note", note) in remarks(unknown)
    assert len(rows(unknown)["angle"]) == 5 and "not converged" not in facts(unknown)
