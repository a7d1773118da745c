"""Chunks: the same bits in any cut, on any number of devices, and in constant memory; samples that diverge."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

import lgsim
from lgsim import montecarlo as mc
from tests.montecarlo import studies

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def machine():
    """A ball joint of which everything varies: start, inertias, gravity, control, wind."""
    model = studies.ball()
    wind = mc.Wind("ball", jnp.array([1.0, 0.0, 0.0]), jnp.zeros((4, 3)), dt=0.05, quadratic=0.1)
    hold = lgsim.controls.PD(model.neutral(), 1.0, 0.2)
    rollout = mc.Rollout(model, dt=0.01, steps=8, control=hold, wrenches=wind, save_every=4)
    return mc.Study(
        {
            "q0": mc.TangentNormal(model, model.neutral(), 0.3),
            "v0": mc.Normal(jnp.zeros(3), 1.0),
            "model.inertias": mc.InertiaDispersion(model.inertias, 0.1),
            "model.gravity": mc.Normal(model.gravity, jnp.array([0.0, 0.0, 0.01])),
            "control.stiffness": mc.LogNormal(1.0, 0.2),
            "wrenches.gusts": mc.OrnsteinUhlenbeck(jnp.ones(3), 0.2, 0.05, 4),
        },
        rollout,
        [
            mc.outputs.final_q, mc.outputs.final_v, mc.outputs.peak_torque, mc.outputs.FinalAttitude("ball"),
            mc.outputs.Subsampled(2),
        ],
        samples=40, seed=11, tile=16,
    )  # fmt: skip


def test_repr_is_short(machine):
    """The names of the distributions and outputs, without arrays."""
    text = repr(machine)
    assert text.startswith("Study(40 samples, seed 11)\n  distributions: control.stiffness, ") and text.count("\n") < 10
    assert "\n  outputs: final_q, " in text and "failures" not in text


@pytest.fixture(scope="module")
def whole(machine):
    return mc.run(machine)


@pytest.mark.slow
def test_a_sample_is_the_motion_that_rollout_gives(machine, whole):
    """Every value at its place: the same by ``lgsim.rollout`` with the model, control and wind of the sample."""
    i = 21
    values = {name: jnp.asarray(x) for name, x in machine.sample(i).values.items()}
    run = machine.rollout
    model = run.model.replace(inertias=values["model.inertias"], gravity=values["model.gravity"])
    control = lgsim.controls.PD(run.control.target, values["control.stiffness"], 0.2)
    wind = mc.Wind("ball", run.wrenches.mean, values["wrenches.gusts"], dt=0.05, quadratic=0.1)
    motion = jax.jit(lambda q, v: lgsim.rollout(model, q, v, dt=0.01, steps=8, control=control, wrenches=wind))(
        values["q0"], values["v0"]
    )
    np.testing.assert_allclose(whole.column("final_q")[i], motion.q[-1], atol=1e-13)
    np.testing.assert_allclose(whole.column("final_v")[i], motion.v[-1], atol=1e-12)
    np.testing.assert_allclose(
        whole.column("Subsampled")[i, 0], jnp.concatenate([values["q0"], values["v0"]]), atol=1e-14
    )
    rows = np.array([0, 4, 8])
    torques = jax.jit(jax.vmap(lambda q, v: control(0.0, q, v, model)))(motion.q[rows], motion.v[rows])
    np.testing.assert_allclose(whole.column("peak_torque")[i], np.abs(torques).max(axis=0), atol=1e-12)
    R = jax.jit(lambda q: lgsim.forward_kinematics(model, q)[0, :3, :3])(motion.q[-1])
    attitude = Rotation.from_quat(whole.column("FinalAttitude")[i], scalar_first=True)
    np.testing.assert_allclose(attitude.as_matrix(), R, atol=1e-12)


@pytest.mark.slow
@pytest.mark.quick
def test_replay(machine, whole):
    """The motion of one sample alone, with its model."""
    motion = machine.replay(21)
    np.testing.assert_allclose(motion.q[-1], whole.column("final_q")[21], atol=1e-13)
    np.testing.assert_array_equal(motion.model.inertias, machine.sample(21).values["model.inertias"])
    assert motion.result == "" and len(motion) == 3 and motion.tau.any()


def test_bits_do_not_depend_on_the_cut(machine, whole):
    """One chunk, chunks of a tile, a chunk from the middle alone, more samples: equal to the last bit."""
    parts = mc.run(machine, chunk=16)
    middle = mc.Engine(machine).chunk(16, 32)
    more = mc.Study(machine.sampler.distributions, machine.rollout, machine.outputs, samples=50, seed=11, tile=16)
    more = mc.run(more)
    for name in whole.running.names:
        column = whole.column(name)
        np.testing.assert_array_equal(parts.column(name), column)
        np.testing.assert_array_equal(middle.columns[name], column[16:32])
        np.testing.assert_array_equal(more.column(name)[:40], column)
        for one in ("mean", "squared_deviations", "low", "high"):
            np.testing.assert_array_equal(getattr(parts.moments(name), one), getattr(whole.moments(name), one))


@pytest.mark.slow
def test_other_numbers_are_not_compiled_again(machine):
    """Another seed, mean and number of samples run in the programs that are there."""
    distributions = {**machine.sampler.distributions, "v0": mc.Normal(jnp.ones(3), 0.5)}
    other = mc.Study(distributions, machine.rollout, machine.outputs, samples=17, seed=5, tile=16)
    first, second = mc.Engine(machine), mc.Engine(other)
    assert all(a is b for a, b in zip(first._programs, second._programs, strict=True))
    assert first.fingerprint != second.fingerprint


def test_a_study_travels(machine, whole):
    """Pickled, as a cluster sends it: the same fingerprint, and a chunk of the same bits."""
    copy = mc.Engine(pickle.loads(pickle.dumps(machine)))
    assert copy.fingerprint == mc.Engine(machine).fingerprint
    np.testing.assert_array_equal(copy.chunk(16, 40).columns["final_q"], whole.column("final_q")[16:])


def test_memory_is_that_of_a_tile():
    """The program of a tile is all that runs, whatever the number of samples; a chunk's results bound the rest."""
    few, many = (mc.Engine(studies.plain(samples)) for samples in (100, 1_000_000_000))
    sizes = [[p.memory_analysis().temp_size_in_bytes for p in engine._programs] for engine in (few, many)]
    assert sizes[0] == sizes[1]
    each = 8 + 2 * 8 + 1 + 1
    assert many.chunk_size * each <= 2**16 * each
    assert many.chunk_size % many.width == 0


def test_a_tile_that_does_not_fit(monkeypatch):
    monkeypatch.setattr(mc.engine, "device_memory", lambda device: 100)
    with pytest.raises(MemoryError, match=r"tile: 16 samples need .* use a smaller tile"):
        mc.run(studies.plain())


def test_divergent_samples_are_counted_and_poison_nothing():
    """Those of the definition, by NumPy, with their numbers; moments are those of the others."""
    study = studies.plain(2000)
    found = mc.run(study)
    x = np.concatenate([np.asarray(mc.study._draw_tile(study.sampler, jnp.arange(2000, dtype=jnp.uint32)).values["x"])])
    lost, blown = x[:, 0] > 2, x[:, 0] < -0.2
    # where "sum" alone is not finite, "pair" counts
    assert found.diverged == dict.fromkeys(np.flatnonzero(blown), "blown up")
    assert found.running.diverged == blown.sum() > 5 and lost.sum() > 30
    assert (found.moments("sum").missing, found.moments("pair").missing) == (lost.sum() + blown.sum(), blown.sum())
    np.testing.assert_allclose(found.moments("pair").mean, found.column("pair")[~blown].mean(axis=0), rtol=1e-12)
    good = found.column("sum")[~lost & ~blown]
    np.testing.assert_allclose(found.moments("sum").mean, good.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.moments("sum").std, good.std(ddof=1), rtol=1e-12)
    failed = found.failures("high")
    np.testing.assert_array_equal(failed.indices, np.flatnonzero((found.column("sum") > 0) & ~lost & ~blown))
    assert (failed.count, failed.samples) == (len(failed.indices), len(good))
    assert failed.probability == failed.count / failed.samples
    assert failed.interval[0] < failed.probability < failed.interval[1]


def test_a_motion_that_diverges_is_noticed_whatever_is_kept_of_it():
    """A pendulum with a spring far too stiff for the step, of which only the start is kept."""
    model = studies.pendulum()
    run = mc.Rollout(model, [0.5], dt=0.1, steps=60, control=lgsim.controls.PD(jnp.zeros(1), 1.0, 0.0))
    study = mc.Study({"control.stiffness": mc.LogNormal(1e2, 8.0)}, run, {"start": lambda motion: motion.q[0]},
                     samples=16, tile=16)  # fmt: skip
    found = mc.run(study)
    stiff = np.array([float(study.sample(i).values["control.stiffness"]) for i in range(16)])
    assert {i for i in range(16) if stiff[i] > 1e5} <= set(found.diverged)
    assert not {i for i in range(16) if stiff[i] < 1e2} & set(found.diverged)
    worst = int(np.argmax(stiff))
    assert study.replay(worst).result.startswith("diverged: the state is not finite at")


def test_it_stops_when_the_interval_is_narrow():
    """At the first tile where it holds, whatever the chunks; checked against scipy's interval of each prefix."""
    rule = mc.StopAtConfidence("sum", 0.5, level=0.9, min_samples=100)
    study = studies.plain(5000, stop=rule)
    found = [mc.run(study, chunk=chunk) for chunk in (16, 480, None)]
    assert {each.samples for each in found} == {found[0].samples}
    n = found[0].samples
    assert 100 <= n < 5000 and n % 16 == 0
    good, y = found[0].column("diverged") == 0, found[0].column("sum")

    def width(k):
        return stats.t.ppf(0.95, good[:k].sum() - 1) * stats.sem(y[:k][good[:k]])

    assert width(n) <= 0.5 < width(n - 16)
    np.testing.assert_array_equal(found[2].column("sum"), y)


SHARDED = """
import jax, numpy as np, sys
jax.config.update("jax_enable_x64", True)
from lgsim import montecarlo as mc
from tests.montecarlo import studies
study = studies.plain(700)
assert len(jax.devices()) == 8
engine = mc.Engine(study)
assert engine.width == 8 * 16
one, all8 = mc.run(study, devices=jax.devices()[:1]), mc.run(study)
for name in ("sum", "pair", "diverged"):
    assert np.allclose(one.column(name), all8.column(name), rtol=1e-13, atol=0, equal_nan=True), name
assert one.running.diverged == all8.running.diverged > 5
model = studies.pendulum()
arm = mc.Study({"model.inertias": mc.InertiaDispersion(model.inertias, 0.1), "v0": mc.Normal([0.0], 1.0)},
               mc.Rollout(model, dt=0.01, steps=4), [mc.outputs.final_q], samples=40, tile=4)
found = [mc.run(arm, devices=devices).column("final_q") for devices in (None, jax.devices()[:1])]
assert np.allclose(*found, rtol=1e-13, atol=0)
placed = mc.Engine(arm)
out = placed._programs[1](placed._leaves, placed._programs[0](placed._leaves, placed._indices(0)))
assert len(out["final_q"].sharding.device_set) == 8
"""


@pytest.mark.slow
def test_eight_devices_give_what_one_gives():
    """Samples shared out by ``jax.sharding`` over virtual devices, uneven at the end."""
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    run = subprocess.run(
        [sys.executable, "-c", SHARDED], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr


BAD = {
    "zero": (lambda m, r: mc.Study({}, r, [mc.outputs.final_q], samples=0), "samples: expected an integer from 1"),
    "seed": (lambda m, r: mc.Study({}, r, [mc.outputs.final_q], samples=9, seed=-1), "seed: expected an integer"),
    "tile": (lambda m, r: mc.Study({}, r, [mc.outputs.final_q], samples=9, tile=0), "tile: expected an integer"),
    "leaf": (
        lambda m, r: mc.Study(
            {"model.inertia": mc.InertiaDispersion(m.inertias, 0.1)}, r, [mc.outputs.final_q], samples=9
        ),
        "got 'model.inertia'; did you mean 'model.inertias'",
    ),
    "control": (
        lambda m, r: mc.Study({"control.stifness": mc.LogNormal(1.0, 0.1)}, r, [mc.outputs.final_q], samples=9),
        "did you mean 'control.stiffness'",
    ),
    "shape": (
        lambda m, r: mc.Study({"v0": mc.Normal(jnp.zeros(3), 1.0)}, r, [mc.outputs.final_q], samples=9),
        r"v0: expected values of shape \(1,\), got \(3,\)",
    ),
    "no output": (lambda m, r: mc.Study({}, r, samples=9), "outputs: expected at least one function of the motion"),
    "no function": (lambda m, r: mc.Study({}, r, {"q": 3}, samples=9), "expected functions of a motion, got 3"),
    "taken": (lambda m, r: mc.Study({}, r, {"diverged": mc.outputs.final_q}, samples=9), "expected other names than"),
    "rule": (
        lambda m, r: mc.Study({}, r, [mc.outputs.final_q], samples=9, stop=mc.StopAtConfidence("q", 1.0)),
        "stop: expected one of the outputs final_q",
    ),
    "rule of Sobol": (
        lambda m, r: studies.plain(sequence=mc.Sobol(), stop=mc.StopAtConfidence("sum", 1.0)),
        "require random sampling",
    ),
    "tilt": (
        lambda m, r: studies.plain(tilts={"y": mc.ImportanceTilt(1.0)}),
        r"tilts: expected names .*'s', 'x'.*, got 'y'",
    ),
    "sample": (lambda m, r: studies.plain().sample(300), "i: expected a sample from 0 to 299, got 300"),
    "chunk": (lambda m, r: mc.run(studies.plain(), chunk=40), "chunk: expected a multiple of 16"),
    "part": (lambda m, r: mc.Engine(studies.plain()).chunk(8, 32), "chunk: expected samples from a multiple of 16"),
    "subsampled": (lambda m, r: mc.outputs.Subsampled(1), "count: expected at least 2 states"),
    "replay": (lambda m, r: studies.plain().replay(0), "replay: expected a Rollout, got a function"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, without_import_hook):
    model = studies.pendulum()
    rollout = mc.Rollout(model, dt=0.1, steps=1, control=lgsim.controls.PD(jnp.zeros(1), 1.0, 0.0))
    make, message = BAD[case]
    with pytest.raises((ValueError, TypeError), match=message):
        make(model, rollout)
