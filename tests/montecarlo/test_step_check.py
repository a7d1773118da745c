"""The error of the steps of a study: against closed forms, and where it has nothing to say or must not be believed."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.montecarlo.accuracy import step_check
from lgsim.montecarlo.accuracy.step_error import StudyStepError
from lgsim.multibody import joints
from tests.montecarlo import studies

STEPS = 24
RATE = 5.0
"""Of the oscillator, 1/s."""


def oscillator(dtype=None):
    """A mass of 2 kg on a slide with a spring: q'' = -RATE^2 q."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", "world", joints.Prismatic(), joint_name="slide", axis=[1, 0, 0], mass=2.0,
                     inertia=np.eye(3), stiffness=2.0 * RATE**2)  # fmt: skip
    model = builder.build()
    return model if dtype is None else jax.tree.map(lambda x: x.astype(dtype), model)


def last(motion):
    """The place and the speed at the end."""
    return jnp.concatenate([motion.q[-1], motion.v[-1]])


def swinging(dt, samples=400, method=lgsim.MK4, seed=0, outputs=(last,), **more):
    """The oscillator from places and speeds that vary, in tiles of 16."""
    model = oscillator()
    spread = {"q0": mc.Normal(jnp.array([0.7]), 0.2), "v0": mc.Normal(jnp.array([-1.0]), 0.5)}
    rollout = mc.Rollout(model, dt=dt, steps=STEPS, method=method, save_every=4)
    return mc.Study(spread, rollout, outputs, samples=samples, seed=seed, tile=16, **more)


def exact(study):
    """The end of each sample in closed form, (samples, 2)."""
    drawn = mc.study._draw_tile(study.sampler, jnp.arange(study.samples, dtype=jnp.uint32)).values
    q, v, t = np.asarray(drawn["q0"])[:, 0], np.asarray(drawn["v0"])[:, 0], STEPS * float(study.rollout.dt)
    c, s = np.cos(RATE * t), np.sin(RATE * t)
    return np.stack([q * c + v / RATE * s, -q * RATE * s + v * c], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["MK4", pytest.param("LieEuler", marks=pytest.mark.slow), pytest.param("MK3", marks=pytest.mark.slow),
     pytest.param("CF4", marks=pytest.mark.slow)],
)  # fmt: skip
def test_the_error_holds(method):
    """Mean, deviation and quantiles against the closed form of each sample: within three times the estimate, and the
    estimate is no more than ten times that, from fine steps to steps at the edge of stability."""
    method = lgsim.METHODS[method]
    for dt in (0.02, 0.05, 0.1, 0.2):
        study = swinging(dt, method=method)
        results = mc.run(study)
        found, truth, y = results.step_error, exact(study), results.column("last")
        each = found.outputs["last"]
        cases = {
            "mean": (each["mean"], y.mean(axis=0) - truth.mean(axis=0)),
            "std": (each["standard deviation"], y.std(axis=0, ddof=1) - truth.std(axis=0, ddof=1)),
            **{
                str(q): (each[f"quantile {q:g}"], np.quantile(y, q, axis=0) - np.quantile(truth, q, axis=0))
                for q in step_check.LEVELS
            },
        }
        largest = np.abs(y - truth).max()
        for name, (estimate, error) in cases.items():
            assert np.all(np.abs(error) <= 3 * estimate.error + 1e-14), (dt, name, error, estimate.error)
            # an error that vanishes by chance, as that of a mean of errors of both signs, is seen as their scatter
            assert np.all(estimate.error <= 10 * largest), (dt, name)
        if dt * RATE <= 0.1 and method.order > 1:
            np.testing.assert_allclose(each["mean"].order, method.order, atol=0.3)
        assert found.resolved == all(np.all(x.error <= x.tolerance) for x in each.values())


@pytest.mark.slow
def test_resolved_and_not():
    """What is printed, what is kept, and that the step that is advised resolves the study."""
    coarse = mc.run(swinging(0.15))
    found = coarse.step_error
    assert not found.resolved and found.faults > 0 and found.method == "MK4"
    text = found.summary()
    assert text.startswith(
        "not resolved: with dt = 0.15 s and MK4 the integration error exceeds the statistical interval of"
    )
    factor = round(found.dt / float(text.split("Use dt = ")[1].split(" s")[0]))
    assert factor >= 2 and f"({STEPS * factor:,} steps)" in text
    finer = mc.Rollout(oscillator(), dt=0.15 / factor, steps=STEPS * factor, save_every=4 * factor)
    spread = coarse.study.sampler.distributions
    fine = mc.run(mc.Study(spread, finer, (last,), samples=400, tile=16)).step_error
    assert fine.resolved and fine.summary().startswith("integration error: at most ")
    assert StudyStepError.from_plain(json.loads(json.dumps(found.to_plain()))).summary() == text
    with pytest.raises(ValueError, match="expected the integration error of a study"):
        StudyStepError.from_plain({"format": "lgsim step error 1"})


def test_sentences():
    """The largest share; or the statistics that are worst, the verdicts that change, and the advice; nothing seen."""
    end = {"mean": [[1e-3, 2e-3], [1e-2, 1e-2], [True, True]], "std": [[1e-4, 0.0], [1e-2, 1e-2], [True, False]],
           "quantiles": {"0.5": [[1e-3, 1e-3], [2e-2, 2e-2], [True, True]]}, "order": [3.9, 4.1]}  # fmt: skip
    good = {"format": "lgsim step error 1", "method": "MK4", "order": 4, "dt": 0.1, "samples": 48, "halved": 4,
            "quartered": 2, "advice": "", "outputs": {"end": end}, "failures": {"far": [0.0, [0.01, 0.1, False]]},
            "diverged": [0.0, [0.01, 0.1, False]]}  # fmt: skip
    by = "by 4 samples with dt/2 and 2 with dt/4"
    found = StudyStepError.from_plain(good)
    assert list(found.to_plain()) == list(good) and found.to_plain() == good
    assert found.summary() == (
        f"integration error: at most 0.2 of the statistical interval (mean of end[1]), {by}, order 4 of 4"
    )
    assert found.mean_error("end", 1) == "0.002" and found.mean_error("failed far", None) == "0.01"
    assert found.mean_error("other", None) == "–"
    bad = StudyStepError.from_plain({
        **good, "advice": "Take dt = 0.05 s (48 steps) or a method of higher order.",
        "failures": {"far": [0.25, [0.3, 0.1, True]]}, "diverged": [0.5, [math.nan, 0.1, True]],
        "outputs": {"end": {**end, "mean": [[0.1, 2.0], [1e-2, 1e-2], [True, True]]}},
    })  # fmt: skip
    assert bad.summary() == (
        "not resolved: with dt = 0.1 s and MK4 the integration error exceeds the statistical interval of 4 of 8"
        " statistics (probability of diverged: unknown against 0.1; mean of end[1]: 2 against 0.01; mean of end[0]: 0.1"
        f" against 0.01 and 1 more; {by}). With dt/2 the verdict changes: 25 % of the samples for 'far', 50 % for"
        " divergence. Take dt = 0.05 s (48 steps) or a method of higher order."
    )
    assert bad.mean_error("end", 0) == "0.1, not resolved" and bad.mean_error("diverged", 0) == "unknown, not resolved"
    still = {"mean": [0.0, 1.0, False], "std": [0.0, 1.0, False], "quantiles": {}, "order": math.nan}
    none = StudyStepError.from_plain({**good, "outputs": {"end": still}})
    assert none.summary() == f"integration error: none observed, {by}"


def test_the_limit_is_the_statistical_interval():
    """Of the mean that of Results; of the deviation of a Gaussian s / sqrt(2 n); of its median that of the order
    statistics."""
    results = mc.run(swinging(0.05, samples=4000))
    each, y = results.step_error.outputs["last"], results.column("last")
    np.testing.assert_allclose(each["mean"].tolerance, results.moments("last").half_width(), rtol=1e-12)
    normal = 1.959963984540054 * y.std(axis=0, ddof=1) / np.sqrt(4000)
    np.testing.assert_allclose(each["standard deviation"].tolerance, normal / np.sqrt(2), rtol=0.3)
    np.testing.assert_allclose(each["quantile 0.5"].tolerance, normal * np.sqrt(np.pi / 2), rtol=0.6)


def test_the_samples_that_are_run_again():
    """At most 15 % of the work where that is something, from strata of the order by their keys, the same each time."""
    for samples in (100, 3000, 20_000, 1_000_000):
        keys = np.random.default_rng(samples).exponential(size=min(samples, step_check._POOL))
        for width in (16, 64, 512):
            halved, quartered, _ = step_check._sizes(samples, width, 10**4)
            light = 6 * min(max(width, 32), samples) * 10**4 <= step_check.LIGHT
            assert 2 * halved + 4 * quartered <= 0.15 * samples or light or halved == 2
            assert quartered <= halved <= step_check.MOST
            chosen, weights = step_check._stratified(keys, halved, 3)
            np.testing.assert_array_equal(chosen, step_check._stratified(keys, halved, 3)[0])
            assert len(chosen) == halved and np.all(np.diff(chosen) > 0)
            # each sample represents as many: sums of weights are unbiased, and the largest keys are taken
            np.testing.assert_allclose(weights.mean(), 1, rtol=1e-12)
            above = keys > np.quantile(keys, 0.75)
            np.testing.assert_allclose(weights @ above[chosen] / halved, 0.25, atol=2 / np.sqrt(halved))
            if halved >= 64:  # twice as many as their share from the upper sixteenth, or all of it
                top = keys > np.quantile(keys, 15 / 16)
                assert top[chosen].sum() >= min(top.sum(), halved / 8)
    assert step_check._sizes(200, 64, 10**7) == (9, 1, 9)
    for n, few in ((1, 1), (5, 2), (600, 3)):  # fewer than strata
        chosen, weights = step_check._stratified(np.arange(float(n)), few, 0)
        assert len(chosen) == few and np.all(weights > 0)
    keys = np.zeros(20_000)
    assert not np.array_equal(step_check._stratified(keys, 64, 1)[0], step_check._stratified(keys, 64, 2)[0])


def fast(samples, seed, dt=0.05):
    """A mass with strong damping; one of a hundred starts at 50 m/s, and the end does not tell it."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", "world", joints.Prismatic(), joint_name="slide", axis=[1, 0, 0], mass=1.0,
                     inertia=np.eye(3))  # fmt: skip

    def drag(t, q, v, model):
        return -v * (1 + 0.4 * jnp.abs(v))

    def start(z):
        return jnp.where(z > 2.3263, 50.0, 1.0)

    def travel(motion):
        return motion.q[-1, 0]

    rollout = mc.Rollout(builder.build(), dt=dt, steps=int(2 / dt), control=drag, save_every=int(2 / dt))
    spread = {"v0": mc.FunctionDistribution(start, 1)}
    return mc.Study(spread, rollout, [travel], samples=samples, seed=seed, tile=16)


@pytest.mark.slow
def test_a_minority_that_is_faster_is_run_again():
    """Its error is found in each of twenty studies, whichever samples are drawn."""
    for seed in range(20):
        study = fast(1000, seed)
        results, truth = mc.run(study), mc.Engine(study).refined(np.arange(1000), 64)["travel"]
        error = abs(results.column("travel").mean() - truth.mean())
        found = results.step_error.outputs["travel"]["mean"]
        assert error > 1e-5 and found.error >= error / 3


def rare(samples, seed=0):
    """The oscillator, and whether it is beyond a bound that about one of 300 samples reaches."""
    far = {"far": lambda y: y["last"][0] > 1.3}

    def beyond(motion):
        return motion.q[-1, 0] > 1.25

    return swinging(0.05, samples=samples, seed=seed, outputs=(last, beyond), failures=far)


def test_what_no_repeated_sample_shows():
    """A Boolean output that no sample changes is open, up to 3/k; a failure of outputs is known from their errors."""
    found = mc.run(rare(1000)).step_error
    rows = list(found.open())
    assert [row[:3] for row in rows if row[0] == "beyond" and row[2] == "mean"] == [("beyond", None, "mean")]
    assert found.resolved and not any(row[0].startswith("failed") for row in rows)
    each = found.outputs["beyond"]["mean"]
    assert each.error > 3 / found.halved and not each.seen
    assert "not shown for the mean of beyond" in found.summary() and "samples would show it" in found.summary()
    assert found.mean_error("beyond", None).endswith("not shown")
    assert StudyStepError.from_plain(json.loads(json.dumps(found.to_plain()))).summary() == found.summary()


def test_a_failure_near_the_errors_of_outputs():
    """As many verdicts change as samples are carried across the bound, by the closed form of each."""
    study = swinging(0.2, samples=2000, failures={"far": lambda y: y["last"][0] > 0.2})
    results = mc.run(study)
    truth = exact(study)[:, 0] > 0.2
    wrong = np.mean(truth != (results.column("last")[:, 0] > 0.2))
    found = results.step_error.verdicts["failed far"]
    assert found.seen and wrong / 3 <= found.error <= 1


@pytest.mark.slow
def test_points_of_a_sequence_are_not_taken_in_a_lattice():
    """The samples run again cover the first coordinate evenly, which every 16th point of a Sobol sequence does not."""
    pytest.importorskip("scipy")
    study = swinging(0.05, samples=4096, sequence=mc.Sobol())
    chosen, weights = step_check._stratified(np.zeros(4096), 192, 0)
    drawn = mc.study._draw_tile(study.sampler, jnp.asarray(chosen.astype(np.uint32))).values["q0"]
    edges = 0.7 + 0.2 * np.array([-9, -0.6745, 0, 0.6745, 9])
    shares = np.histogram(drawn[:, 0], edges, weights=weights)[0] / len(chosen)
    assert np.all(np.abs(shares - 0.25) < 0.1)
    for sequence in (mc.Sobol(), mc.LatinHypercube()):
        found = mc.run(swinging(0.02, sequence=sequence)).step_error
        assert found.resolved and np.all(found.outputs["last"]["mean"].order > 3.5)


def test_no_recompilation_and_no_program_of_its_own():
    """The check runs in the study's program, whatever the number of substeps."""
    engine = mc.Engine(swinging(0.05))
    programs = engine._programs
    size = len(mc.engine._compiled)
    two, four = engine.refined(np.array([3, 50]), 2), engine.refined(np.array([3, 50]), 4)
    assert engine._substepped_programs is programs and len(mc.engine._compiled) == size
    q = exact(engine.study)[[3, 50]]
    ratio = np.abs(two["last"] - q) / np.abs(four["last"] - q)
    np.testing.assert_allclose(np.log2(ratio), 4, atol=0.5)


def test_a_study_by_a_function_has_no_steps():
    """Nothing is checked, and nothing is said."""
    results = mc.run(studies.plain())
    assert results.step_error is None and mc.check_steps(mc.Engine(studies.plain()), results) is None
    with pytest.raises(TypeError, match="expected a Rollout, got a function, whose steps are unknown"):
        studies.plain().with_substeps(2)
    assert mc.run(swinging(0.05), step_check=False).step_error is None


def test_indices_of_sobol_have_steps():
    """The study of a study is checked through its rollout."""
    results = mc.run(mc.sobol_study(swinging(0.05), ["last"], samples=64))
    found = results.step_error
    assert found.order == 4 and set(found.outputs) == {"last A", "last B", "last mixed"}
    assert found.outputs["last mixed"]["mean"].error.shape == (2, 2)


def tall(motion):
    """Whether the mass is beyond a point at the end, and how often it has been."""
    return {"beyond": motion.q[-1, 0] > 0.05, "visits": jnp.sum(motion.q[:, 0] > 0.05)}


def test_truth_values_and_whole_numbers():
    """They have no order; a share that the steps change is seen as its change."""
    kept = {"beyond": lambda m: tall(m)["beyond"], "n": lambda m: tall(m)["visits"], "end": last}
    study = swinging(0.2, samples=2000, outputs=kept, failures={"far": lambda y: jnp.abs(y["end"][0]) > 0.6})
    results = mc.run(study)
    found, truth = results.step_error, exact(study)
    assert np.isnan(found.outputs["beyond"]["mean"].order) and np.isnan(found.outputs["n"]["mean"].order)
    true = abs(results.column("beyond").mean() - np.mean(truth[:, 0] > 0.05))
    assert true <= 3 * found.outputs["beyond"]["mean"].error
    change = found.verdicts["failed far"]
    wrong = np.abs(results.column("failed far").mean() - np.mean(np.abs(truth[:, 0]) > 0.6))
    assert 0 < wrong <= 3 * change.error and not change.within
    flips = np.mean(results.column("failed far") != (np.abs(truth[:, 0]) > 0.6))
    assert abs(found.flipped["failed far"] - flips) < 0.1 < flips
    assert "% of the samples for 'far'" in found.summary()


@pytest.mark.slow
def test_attitudes_and_distances():
    """A quaternion whose sign jumps is no error; poses, peaks and least distances are numbers as all others."""
    model = studies.ball()
    model = model.replace(gravity=jnp.zeros(3)).add_solids(
        [(name, frame, lgsim.geometry.Sphere(0.01), lgsim.SE3.exp(jnp.array([*place, 0, 0, 0.0])))
         for name, frame, place in (("knob", "ball", [0, 0, 0.3]), ("post", "world", [0.3, 0, 0.1]))]
    )  # fmt: skip
    rollout = mc.Rollout(model, v0=[0.2, 0.1, math.pi / 0.24], dt=0.01, steps=STEPS, save_every=4)
    study = mc.Study(
        {"v0": mc.Normal(rollout.v0, 0.05)}, rollout,
        {"attitude": mc.outputs.FinalAttitude("ball"), "pose": mc.outputs.FinalPose("ball"),
         "speed": mc.outputs.peak_speed, "clearance": mc.outputs.LeastClearance((("knob",), ("post",)))},
        samples=100, tile=16,
    )  # fmt: skip
    results = mc.run(study)
    w = results.column("attitude")[:, 0]
    assert np.ptp(np.sign(results.column("attitude")[:, 3])) == 2 or np.ptp(np.sign(w)) == 2  # half a turn: it jumps
    found = results.step_error
    assert found.resolved, found.summary()
    assert found.outputs["attitude"]["mean"].error.max() < 1e-3 and found.outputs["pose"]["mean"].error.shape == (4, 4)


@pytest.mark.slow
def test_samples_that_diverge():
    """A pendulum with springs far too stiff for the step: diverged is one verdict, not resolved another."""
    model = studies.pendulum()
    rollout = mc.Rollout(model, [0.5], dt=0.1, steps=60, save_every=60,
                         control=lgsim.controls.PD(jnp.zeros(1), 1.0, 0.0))  # fmt: skip
    study = mc.Study({"control.stiffness": mc.LogNormal(1e3, 3.0)}, rollout, [mc.outputs.final_q], samples=64, tile=16)
    results = mc.run(study)
    found = results.step_error
    assert 0 < results.running.diverged < 64
    assert 0 < found.flipped["diverged"] < 1 and not found.verdicts["diverged"].within
    assert "for divergence" in found.summary() and not found.resolved
    # beyond every step: no sample is finite with dt or dt/2, and no number has an error that is known
    lost = mc.Study({"control.stiffness": mc.LogNormal(1e12, 0.1)}, rollout, [mc.outputs.final_q], samples=64, tile=16)
    results = mc.run(lost)
    assert results.running.diverged == 64 and results.step_error.flipped["diverged"] == 0
    assert results.step_error.outputs == {}


def test_not_resolved_where_half_the_step_is_no_better():
    """Dampers far beyond the step, of motions that stops keep finite, at dt, dt/2 and dt/4: no step is made up."""
    model = studies.pendulum()

    def wild(t, q, v, model):
        """A torque that turns with the speed within 0.0025 rad/s: a rate of 4e4 1/s."""
        return -50.0 * jnp.tanh(400.0 * v)

    rollout = mc.Rollout(model, [0.5], dt=0.1, steps=60, save_every=60, control=wild)
    found = mc.run(
        mc.Study({"v0": mc.Normal([0.0], 1.0)}, rollout, [mc.outputs.final_v], samples=200, tile=16)
    ).step_error
    assert not found.resolved
    text = found.summary()
    assert "no step can be computed from them" in text
    assert "Rates up to 4e+04 1/s at joint hinge (damping 2e+04 of the control on 0.5 kg m^2)" in text
    assert "or Rodas4, which is stable for fast rates" in text


def test_one_sample():
    """No interval is known: an error that is small beside the number is resolved, another is not."""
    fine, coarse = (mc.run(swinging(dt, samples=1)).step_error for dt in (0.02, 0.25))
    assert fine.resolved and (fine.halved, fine.quartered) == (1, 1)
    assert not coarse.resolved
    truth = exact(swinging(0.25, samples=1))[0]
    y = mc.run(swinging(0.25, samples=1)).column("last")[0]
    assert np.all(np.abs(y - truth) <= 3 * coarse.outputs["last"]["mean"].error)


@pytest.mark.slow
def test_weights():
    """A tilted study: the error of the weighted mean, and no quantiles."""
    study = swinging(0.1, samples=2000, tilts={"q0": mc.ImportanceTilt(1.0, 1.1)},
                     failures={"far": mc.outputs.OutOfBounds("last", entry=0, high=1.0)})  # fmt: skip
    results = mc.run(study)
    found = results.step_error.outputs["last"]
    w = np.exp(results.column("log_weight"))
    drawn = mc.study._draw_tile(study.sampler, jnp.arange(2000, dtype=jnp.uint32)).values
    assert np.asarray(drawn["q0"]).mean() > 0.85
    true = np.abs(w @ (results.column("last") - exact(study)) / w.sum())
    assert np.all(true <= 3 * found["mean"].error) and np.all(found["mean"].error < 0.1)
    assert set(found) == {"mean", "standard deviation"}


@pytest.mark.slow
@pytest.mark.float32
def test_single_precision():
    """Rounding is part of the error: what is seen of it holds, and small steps do not go below it."""
    model = oscillator(jnp.float32)
    spread = {"q0": mc.Normal(jnp.array([0.7], jnp.float32), 0.2)}
    for dt in (1e-3, 0.02):
        rollout = mc.Rollout(model, dt=dt, steps=STEPS, save_every=4)
        results = mc.run(mc.Study(spread, rollout, (last,), samples=400, tile=16))
        drawn = mc.study._draw_tile(results.study.sampler, jnp.arange(400, dtype=jnp.uint32)).values
        q, t = np.asarray(drawn["q0"], float)[:, 0], STEPS * float(rollout.dt)
        truth = np.stack([q * np.cos(RATE * t), -q * RATE * np.sin(RATE * t)], axis=1)
        found = results.step_error.outputs["last"]
        true = np.abs(results.column("last").astype(float).mean(axis=0) - truth.mean(axis=0))
        assert found["mean"].error.dtype == float and results.step_error.resolved
        assert np.all(true <= 3 * found["mean"].error + 1e-6)


def test_stores_keep_it(tmp_path):
    """Written at the end, read when opened, dropped when the study is extended, made again when it is missing."""
    pytest.importorskip("pyarrow")
    study, store = swinging(0.05, samples=64), tmp_path / "store"
    found = mc.run(study, store).step_error
    assert mc.Results.open(study, store).step_error.to_plain() == found.to_plain()
    text = (store / "steps.json").read_text()
    (store / "steps.json").unlink()
    assert mc.Results.open(study, store).step_error is None
    assert mc.run(study, store, resume=True, step_check=False).step_error is None
    mc.run(study, store, resume=True)
    assert (store / "steps.json").read_text() == text
    more = mc.run(swinging(0.05, samples=96), store, resume=True)
    assert more.step_error.samples == 96
    (store / "steps.json").write_text("{}")
    with pytest.raises(ValueError, match="the file is damaged; delete it and resume the study"):
        mc.Results.open(study, store)


def test_an_interruption_keeps_the_samples(monkeypatch):
    """Ctrl-C in the check: the results are there, their error is not."""

    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(mc.engine, "check_steps", pressed)
    results = mc.run(swinging(0.05, samples=32))
    assert results.finished and results.samples == 32 and results.step_error is None


@pytest.mark.slow
def test_calibration():
    """Random machines, spreads, gains, methods and steps, against sixteen times as many steps, statistic by statistic.

    Of what is called resolved, the true error is within three times the estimate in 97 %, never above thirty times; of
    what is, at most 5 % is called unresolved.
    """
    machines, rng = (studies.pendulum(), studies.tumbling()), np.random.default_rng(5)
    claimed = inside = beyond = fine = flagged = 0
    for trial in range(16):
        model = machines[trial % 2]
        v0 = jnp.asarray(2 * rng.normal(size=model.nv))
        stiffness, damping, dt = 10 ** rng.uniform(-1, 1.6), 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-2.3, -0.9)
        control = lgsim.controls.PD(model.neutral(), stiffness, damping) if trial % 2 == 0 else None
        rollout = mc.Rollout(model, v0=v0, dt=dt, steps=40, save_every=4, control=control,
                             method=(lgsim.MK4, lgsim.MK2)[rng.integers(2)])  # fmt: skip
        spread = {"v0": mc.Normal(v0, 10 ** rng.uniform(-3, 0)),
                  "model.inertias": mc.InertiaDispersion(model.inertias, 10 ** rng.uniform(-3, -0.7))}  # fmt: skip
        kept = [mc.outputs.final_q, mc.outputs.final_v, mc.outputs.peak_speed]
        study = mc.Study(spread, rollout, kept, samples=int(rng.choice([60, 1000])), tile=16, seed=trial)
        results = mc.run(study)
        truth = mc.Engine(study).refined(np.arange(study.samples), 16)
        if results.running.diverged or truth["diverged"].any():
            continue
        for name, each in results.step_error.outputs.items():
            y, t = results.column(name), truth[name]
            for what, found in each.items():
                level = float(what.split()[-1]) if "quantile" in what else None
                f = {"mean": np.mean, "standard deviation": lambda x, axis: np.std(x, axis=axis, ddof=1)}.get(
                    what, lambda x, axis, level=level: np.quantile(x, level, axis=axis)
                )
                true, resolved = np.abs(f(y, axis=0) - f(t, axis=0)), found.within
                claimed += resolved.sum()
                inside += (true[resolved] <= 3 * found.error[resolved] + 1e-13).sum()
                beyond += (true[resolved] > 30 * found.error[resolved] + 1e-13).sum()
                fine += (true <= found.tolerance / 3).sum()
                flagged += ((true <= found.tolerance / 3) & ~resolved).sum()
    assert claimed > 500 and inside >= 0.97 * claimed and beyond == 0
    assert flagged <= 0.05 * fine


@pytest.mark.slow
def test_where_loops_of_unknown_length_cost(monkeypatch):
    """As on a GPU: the study in a program of its own, the check in another, to the same error."""
    study = swinging(0.1)
    wanted = mc.run(study).step_error
    engine = mc.Engine(study)
    monkeypatch.setattr(engine, "_checks", False)
    engine._leaves, engine._traced = engine._placed(study), mc.engine.traced_programs(study)
    found = mc.check_steps(engine, mc.run(study, step_check=False))
    assert engine._substepped_programs[1] is not engine._programs[1]
    np.testing.assert_allclose(found.outputs["last"]["mean"].error, wanted.outputs["last"]["mean"].error, rtol=1e-6)
