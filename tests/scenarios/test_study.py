"""Study files: the Monte Carlo studies that they describe, their stores, and what is refused at which line and key."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import controls, data, load_urdf
from lgsim import montecarlo as mc
from lgsim.montecarlo.store import Store
from lgsim.multibody import Model
from lgsim.multibody.model import DRIVES
from lgsim.scenarios import ScenarioError, load_study
from lgsim.scenarios.study_store import describe_study, open_study
from lgsim.simulation import with_stops
from tests.scenarios.machines import ARM
from tests.scenarios.studies import STUDY, by_hand, changed


@pytest.mark.slow
def test_a_study_is_the_one_made_by_hand(write, folder):
    """Every number, every function and every static field of the study; the failure apart, which is a module."""
    found = load_study(write(STUDY))
    wanted = by_hand(folder)
    assert eqx.tree_equal(found.study, eqx.tree_at(lambda s: s.failures, wanted, found.study.failures))
    far = found.study.failures["far"]
    assert (far.output, far.entry, float(far.low), float(far.high)) == ("miss", None, -np.inf, 0.1)
    assert (found.worst, found.cases, found.machine.floating_base) == (None, 3, False)
    assert found.machine.path == folder / "arm.urdf"
    again = load_study(write(STUDY), samples=7, seed=11).study
    assert (again.samples, again.seed, again.tile) == (7, 11, 16)
    with pytest.raises(ValueError, match=r"^samples: expected an integer of at least 1, got 0$"):
        load_study(write(STUDY), samples=0)


def hover_by_hand():
    """The study "hover" of lgsim, made from Python."""
    model = load_urdf(data.quadrotor(), floating_base=True)
    q = jnp.array([0, 0, 2, 1, 0, 0, 0.0])
    gains = {"stiffness": 4.0, "damping": 3.5, "attitude": 150.0, "spin": 22.0, "thrust_limit": 25.0}
    law = controls.Hover.from_model(model, jnp.array([0, 0, 2.0]), **gains)
    wind = mc.Wind(
        "hull", jnp.array([4.0, 0, 0]), jnp.zeros((41, 3)), *(jnp.asarray(x) for x in (10 * 0.01, 0.04, 0.0))
    )
    rollout = mc.Rollout(model, q, dt=0.01, steps=400, control=law, wrenches=wind, save_every=4)
    spread = np.array([0.08] + 3 * [0.03] + 3 * [0.0] + 3 * [0.05])
    distributions = {
        "q0": mc.TangentNormal(model, q, jnp.array([0.05] * 5 + [0.2])),
        "v0": mc.Normal(jnp.zeros(6), np.full(6, 0.1)),
        "model.inertias": mc.InertiaDispersion(model.inertias, spread[None]),
        "wrenches.mean": mc.Normal(wind.mean, np.array([1.0, 1.0, 0.2])),
        "wrenches.quadratic": mc.LogNormal.with_mean(wind.quadratic, np.array(0.15)),
        "control.stiffness": mc.LogNormal.with_mean(law.stiffness, np.array(0.05)),
        "wrenches.gusts": mc.OrnsteinUhlenbeck(jnp.array([1.5, 1.5, 0.7]), jnp.asarray(0.8), 10 * 0.01, 41),
    }
    outputs = {
        "final_q": mc.outputs.final_q,
        "attitude of hull": mc.outputs.FinalAttitude("hull"),
        "history": mc.outputs.Subsampled(51),
        "drift": mc.outputs.LargestDistance("hull", jnp.array([0, 0, 2.0])),
    }
    failures = {"carried away": mc.outputs.OutOfBounds("drift", None, jnp.asarray(-np.inf), jnp.asarray(0.8))}
    stop = mc.StopAtConfidence("drift", 0.01, 0.95, 500)
    return mc.Study(distributions, rollout, outputs, samples=2000, failures=failures, stop=stop)


def arm_by_hand():
    """The study "arm" of lgsim, made from Python."""
    model = load_urdf(data.arm7())
    q = np.zeros(7)
    for joint, value in {"joint2": -0.4, "joint4": -2.0, "joint6": 1.6, "joint7": 0.8}.items():
        q[model.q_slices[joint]] = value
    q = jnp.asarray(q)
    law = controls.ComputedTorque(q, jnp.full(7, 100.0), jnp.full(7, 20.0))
    rollout = mc.Rollout(model, q, dt=0.002, steps=250, control=law, save_every=10)
    spread = np.array([0.05] + 3 * [0.02] + 3 * [0.0] + 3 * [0.02])
    distributions = {
        "q0": mc.TangentNormal(model, q, jnp.full(7, 0.02)),
        "model.inertias": mc.InertiaDispersion(model.inertias, np.tile(spread, (7, 1))),
        "model.friction": mc.LogNormal.with_mean(model.friction, np.full(7, 0.3)),
        "model.placements": mc.PoseDispersion(model.placements, np.full(6, 2e-4)),
        "control.stiffness": mc.LogNormal.with_mean(law.stiffness, np.full(7, 0.05)),
    }
    outputs = {
        "final_q": mc.outputs.final_q,
        "peak_torque": mc.outputs.peak_torque,
        "attitude of flange": mc.outputs.FinalAttitude("flange"),
        "position of flange": mc.outputs.FinalPosition("flange"),
        "history": mc.outputs.Subsampled(26),
    }
    return mc.Study(distributions, rollout, outputs, samples=1000, sequence=mc.LatinHypercube())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wanted"), [("hover", hover_by_hand), ("arm", arm_by_hand)])
def test_shipped_studies_are_the_ones_made_by_hand(name, wanted):
    found = load_study(data.study(name))
    assert eqx.tree_equal(found.study, wanted())
    assert (found.worst, found.cases) == (("drift", 2) if name == "hover" else (None, 3))


LAWS = {
    "none": ("", None),
    "gravity": ("", controls.GravityCompensation()),
    "pd": (
        "stiffness = 2\ndamping = [1, 2]",
        controls.PD(jnp.array([0.4, -0.3]), jnp.full(2, 2.0), jnp.array([1, 2.0])),
    ),
    "computed_torque": (
        "target = { elbow = 0.1 }\nstiffness = { shoulder = 3 }\ndamping = 1",
        controls.ComputedTorque(jnp.array([0.4, 0.1]), jnp.array([3.0, 0.0]), jnp.ones(2)),
    ),
}  # fmt: skip


@pytest.mark.repeats
@pytest.mark.parametrize("law", LAWS)
def test_laws_of_control(law, write):
    more, wanted = LAWS[law]
    text = changed(('law = "pd"\nstiffness = 3.0\ndamping = { elbow = 0.2 }', f'law = "{law}"\n{more}'),
                   ("control.stiffness = { relative = 0.1 }", ""))  # fmt: skip
    assert eqx.tree_equal(load_study(write(text)).study.rollout.control, wanted)


def test_other_sequences_and_numbers(write):
    """A Sobol sequence, a number of the machine by joint, and one by low and high."""
    text = changed(
        ("tile = 16", 'sequence = "sobol"'),
        ("gravity = { std = [0, 0, 0.2] }", "damping = { low = { elbow = 0.1 }, high = 0.2 }"),
    )  # fmt: skip
    study = load_study(write(text)).study
    assert type(study.sampler.points.parts).__name__ == "SobolPoints"
    spread = study.sampler.distributions["model.damping"]
    np.testing.assert_array_equal(spread.low, [0.0, 0.1])
    np.testing.assert_array_equal(spread.high, [0.2, 0.2])


@pytest.mark.slow
def test_every_number_of_a_drive_has_a_key(write):
    """``low`` and ``high`` reach the number of that name in the machine."""
    lines = "\n".join(f"{name} = {{ low = {i}, high = {i + 1} }}" for i, name in enumerate(DRIVES))
    study = load_study(write(changed(("gravity = { std = [0, 0, 0.2] }", lines)))).study
    for i, name in enumerate(DRIVES):
        spread = study.sampler.distributions[f"model.{name}"]
        np.testing.assert_array_equal([spread.low, spread.high], [[i, i], [i + 1, i + 1]])
        assert hasattr(Model, name)


DISPERSION, MASSES = "gravity = { std = [0, 0, 0.2] }", "masses = { relative = { fore = 0.1 } }"
LINES = {"unknown key": "gain = 3", "masses and inertias": MASSES, "no floating base": "[control]", "steps": "[time]",
         "no bound": "[[failures]]", "all fail": "below = 0.5", "coarse gusts": "[wind]"}  # fmt: skip
"""Where the error is, if not where the change begins."""
BAD = {
    "unknown key": (('law = "pd"', 'law = "pd"\ngain = 3'), r"control.gain: there is no such key"),
    "unknown leaf": ((DISPERSION, "dampling = { std = 1 }"), r"dispersions.dampling: there is no such key; did you"
                     " mean 'damping'"),
    "unknown table": (("[sampling]", "[samples]"), r"samples: there is no such key; did you mean 'sampling'"),
    "negative mass": (("relative = { fore = 0.1 }", "low = -0.5, high = 2"),
                      "dispersions.masses.low: expected positive masses, got -0.5 kg"),
    "normal masses": ((MASSES, "damping = { std = 0.1 }"),
                      "dispersions.damping.std: a normal distribution includes negative values; use relative"),
    "negative body": ((MASSES,
                       "inertias = { mass = 0.1, about = { fore = { mass = -1, inertia = [1, 1, 1] } } }"),
                      "dispersions.inertias.about.fore.mass: the body has the negative mass -1 kg"),
    "inertia of no body": ((MASSES,
                            "inertias = { mass = 0.1, about = { fore = { mass = 1, inertia = [1, 1, 9] } } }"),
                           "dispersions.inertias.about.fore.inertia: the body has a non-physical"
                           " inertia"),
    "unknown body": (("{ fore = 0.1 }", "{ four = 0.1 }"), "dispersions.masses.relative.four: expected the name of"
                     " a body, got 'four'; did you mean 'fore'"),
    "masses and inertias": ((DISPERSION, "inertias = { mass = 0.1 }"), "dispersions.masses: expected either masses"
                            " or inertias"),
    "zero samples": (("samples = 200", "samples = 0"), "sampling.samples: expected a whole number from 1 on, got 0"),
    "two kinds": ((DISPERSION, "gravity = { std = 1, relative = 1 }"), "dispersions.gravity: expected one of std"),
    "negative spread": ((DISPERSION, "gravity = { std = -1 }"), "dispersions.gravity.std: expected nonnegative values"),
    "nothing to spread": ((DISPERSION, "friction = { relative = 0.1 }"), "dispersions.friction.relative: the"
                          " model's friction is zero"),
    "low alone": (
        ("v = { low = -0.1, high = { elbow = 0.3 } }", "v = { low = -0.1 }"),
        "dispersions.v.low: expected low and high, got only low",
    ),
    "a mass with high alone": (
        ("relative = { fore = 0.1 }", "high = 2"),
        "dispersions.masses.high: expected low and high, got only high",
    ),
    "low above high": (("high = { elbow = 0.3 }", "high = -1"), "dispersions.v.high: expected low to be at most"),
    "unknown joint": (("{ shoulder = 0.1, elbow", "{ shoulders = 0.1, elbow"), "dispersions.q.std.shoulders:"),
    "no wind": ((DISPERSION, "wind.mean = { std = 1 }"), "dispersions.wind: expected a table [wind], which is missing"),
    "unknown gain": (("control.stiffness", "control.stifness"), "dispersions.control.stifness: there is no such"),
    "no floating base": (('law = "pd"\nstiffness = 3.0\ndamping = { elbow = 0.2 }', 'law = "hover"'),
                         "control: model: expected a model with a floating base"),
    "unknown output": (('["final_q"]', '["final_p"]'), "outputs.keep[1]: expected one of"),
    "unknown frame": (('positions = ["tip"]', 'positions = ["top"]'), "outputs.positions[1]: expected the name of"
                      " a frame, got 'top'; did you mean 'tip'"),
    "failure of nothing": (('output = "miss"', 'output = "mass"'), "failures[1].output: expected the name of an"
                           " output, got 'mass'; did you mean 'miss'"),
    "percents": ((MASSES, "inertias = { mass = 5 }"), "dispersions.inertias.mass: expected relative deviations of at"
                 " most 1, got 5; 5 % is 0.05"),
    "all fail": (("above = 0.1", "above = 0.1\nbelow = 0.5"),
                 "failures[1].below: expected at most above = 0.1, got 0.5: every sample fails"),
    "coarse gusts": (("[outputs]\n", "[wind]\nlinear = 1\ngusts = 1\ncorrelation_time = 0.1\n\n[outputs]\n"),
                     "wind.every: the nodes of the gusts are 0.2 s apart, more than half of the correlation time of 0.1"
                     " s: the gusts between them would be weaker; expected at most 2 steps"),
    "no bound": (("above = 0.1", ""), "failures[1]: expected above, below, or both"),
    "history": (("history = 3", "history = 9"), "outputs.history: expected at most 5"),
    "steps": (("steps = 4", "steps = 4\nduration = 1"), "time: expected either a duration"),
    "unknown machine": (('"arm.urdf"', '"lgsim:quadroter"'), "machine.file: expected a robot that is part of"
                        " lgsim, got 'quadroter'; did you mean 'quadrotor'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_studies(case, write, without_import_hook):
    """File, line and key; nothing is compiled."""
    (old, new), message = BAD[case]
    text = changed((old, new))
    place = text.index(LINES[case]) if case in LINES else text.index(new) if new else 0
    study = write(text, "bad.toml")
    with pytest.raises(ScenarioError) as caught:
        load_study(study)
    error = caught.value
    assert (error.file, error.line) == (study, text[:place].count("\n") + 1)
    assert str(error).startswith(f"{study}:{error.line}: {message}")
    assert error.key and f"{error.key}: {error.reason}".startswith(message)


def test_files_of_the_machine(write, tmp_path):
    """Missing, or of the wrong kind: the key that names it."""
    reasons = {
        "none.urdf": "none.urdf: the file cannot be read: No such file",
        "run.npz": "run.npz: expected a robot's URDF, SDF or MJCF file, got the name of a run",
    }
    for name, reason in reasons.items():
        with pytest.raises(ScenarioError) as caught:
            load_study(write(changed(("arm.urdf", name)), "bad.toml"))
        assert (caught.value.line, caught.value.key) == (3, "machine.file") and reason in caught.value.reason


def test_stops_of_the_machine(write, folder, tmp_path):
    """They are those of ``with_stops``, softer for long steps; a store keeps them."""
    plain = load_study(write(STUDY)).machine.model
    for dt, time in (("0.002", 0.02), ("0.02", 0.2)):
        text = changed(("gravity = [0, 0, -5]", "gravity = [0, 0, -5]\nstops = true"), ("dt = 0.02", f"dt = {dt}"))
        found = load_study(write(text))
        wanted = with_stops(plain, time)
        np.testing.assert_allclose(found.machine.model.drives, wanted.drives, rtol=1e-12)
        np.testing.assert_array_equal(found.study.rollout.model.drives, found.machine.model.drives)
        assert wanted.limit_stiffness[1] > 0 == wanted.limit_stiffness[0]
        again = load_study(write(text), model=found.machine.model)
        np.testing.assert_array_equal(again.machine.model.drives, found.machine.model.drives)
    with pytest.raises(ScenarioError, match=r":5: machine.stops: expected true or false, got 1"):
        load_study(write(text.replace("stops = true", "stops = 1"), "bad.toml"))


def test_an_mjcf_machine_that_moves_has_no_floating_base(write):
    pytest.importorskip("mujoco")
    text = changed(("arm.urdf", "slider.xml"), ("gravity = [0, 0, -5]", "floating_base = true"))
    expected = r":3: machine.file: .*slider.xml: floating_base: expected a body of the world"
    with pytest.raises(ScenarioError, match=expected):
        load_study(write(text, "bad.toml"))


@pytest.fixture(scope="module")
def stored(folder, tmp_path_factory):
    """(store, study) of 32 samples, with the study file and the machine in the store."""
    place = tmp_path_factory.mktemp("stores")
    (place / "arm.urdf").write_text(ARM)
    (place / "study.toml").write_text(STUDY)
    scenario = load_study(place / "study.toml", samples=32)
    mc.run(scenario.study, place / "store")
    describe_study(Store(place / "store"), scenario, (place / "study.toml").read_bytes())
    return place / "store", scenario


@pytest.mark.slow
def test_a_store_is_opened_without_the_files_it_came_from(stored):
    store, scenario = stored
    (store.parent / "study.toml").rename(store.parent / "away.toml")
    (store.parent / "arm.urdf").rename(store.parent / "away.urdf")
    try:
        found = open_study(str(store))
    finally:
        (store.parent / "away.toml").rename(store.parent / "study.toml")
        (store.parent / "away.urdf").rename(store.parent / "arm.urdf")
    assert found.path == store and found.text == STUDY and found.results.samples == 32
    assert eqx.tree_equal(found.scenario.study, scenario.study)
    assert found.scenario.machine.path == store.parent / "arm.urdf" and found.scenario.machine.report is None


def test_stores_that_are_refused(stored, tmp_path):
    """Folders without a store, stores without the study or the machine, damaged ones: one line with the place."""

    def reason(path):
        with pytest.raises(ScenarioError) as caught:
            open_study(path)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    lacking = "expected a store of lgsim montecarlo; "
    assert reason(tmp_path).startswith(f"{tmp_path}: {lacking}")
    assert reason(tmp_path / "none").startswith(f"{tmp_path / 'none'}: {lacking}")
    store, _ = stored
    for name in ("study.toml", "machine.json"):
        (store / name).rename(store / "away")
        try:
            assert reason(store).startswith(f"{store}: {lacking}it has no {name}; open a store of montecarlo.run with ")
        finally:
            (store / "away").rename(store / name)
    text = (store / "machine.json").read_text()
    about = json.loads(text)
    deep, joints = "[" * 100_000, '{"joints": [{"kind": "Revolute"'
    records = ("{}", deep, "[]", "5", "", joints, '{"joints": 5}', '{"joints": [{"kind": {}}]}')
    for damaged in (
        "{", "[]", '{"topology": "{}", "numbers": {}, "file": ""}', deep, "5", "null", "\udcff", "[1]",
        *(json.dumps({**about, "topology": record}) for record in records), json.dumps({**about, "file": 5}),
        json.dumps({**about, "numbers": 5}), json.dumps({**about, "numbers": []}),
        json.dumps({**about, "topology": {}}), json.dumps({"file": "", "topology": about["topology"]}),
    ):  # fmt: skip
        (store / "machine.json").write_bytes(damaged.encode(errors="surrogateescape"))
        assert reason(store).startswith(f"{store}: ") or reason(store).startswith(f"{store / 'machine.json'}: ")
    (store / "machine.json").unlink()
    (store / "machine.json").symlink_to(tmp_path / "machine.json")
    (tmp_path / "machine.json").write_text(text)
    assert "machine.json: expected a regular file, got a link" in reason(store)
    (store / "machine.json").unlink()
    (store / "machine.json").write_text(text)
    (store / "study.toml").write_bytes(b"\xff")
    assert "study.toml" in reason(store)
    (store / "study.toml").write_text(STUDY)
    line = STUDY[: STUDY.index("history = 3")].count("\n") + 1
    # the study file was changed: the columns are not those of the samples
    (store / "study.toml").write_text(changed(("history = 3", "history = 4")))
    assert "expected the store of this study, got that of another one: history (float64[3," in reason(store)
    (store / "study.toml").write_text(changed(("history = 3", "histry = 3")))
    assert reason(store).startswith(f"{store / 'study.toml'}:{line}: outputs.histry: there is no such key")
    (store / "study.toml").write_text(STUDY)


def test_a_store_of_other_floats_says_what_to_set(stored):
    """A process without float64 reads no store of float64."""
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(ScenarioError) as caught:
            open_study(stored[0])
    finally:
        jax.config.update("jax_enable_x64", True)
    wanted = "the store contains float64 values: set jax.config.update('jax_enable_x64', True) first"
    assert caught.value.reason == wanted


@pytest.mark.slow
@pytest.mark.float32
def test_numbers_have_the_default_float(write, request):
    dtype = np.float32 if request.config.getoption("--float32") else np.float64
    for file in (write(STUDY), *(data.study(name) for name in data.STUDIES)):
        study = load_study(file, samples=3).study
        assert study.rollout.model.dtype == study.rollout.q0.dtype == study.columns()["final_q"].dtype == dtype


@pytest.mark.slow
def test_extremes_and_times_of_a_file(write):
    """Their quantities on a motion made by hand: a joint that passes through a parabola, and the height of the tip."""
    tables = """
[[outputs.maximum]]
name = "top"
joint = "elbow"
[[outputs.minimum]]
name = "low"
height_of = "tip"
[[outputs.time_of]]
name = "when"
joint = "elbow"
value = 0.8
rising = false
[[failures]]
name = "soon"
output = "when"
below = 1.0
[[failures]]"""
    study = load_study(write(changed(("[[failures]]", tables)))).study
    assert study.rollout.every_step and set(study.failures) == {"soon", "far"}
    time = jnp.linspace(0.0, 1.5, 4)
    q = jnp.stack([0 * time, 1 - (time - 0.7) ** 2], axis=1)
    v = jnp.stack([0 * time, -2 * (time - 0.7)], axis=1)
    motion = mc.SampledMotion(study.rollout.model, time, q, v, 0 * v)
    found = jax.jit(lambda motion: {name: study.outputs[name](motion) for name in ("top", "low", "when")})(motion)
    np.testing.assert_allclose(found["top"], 1.0, atol=1e-14)
    np.testing.assert_allclose(found["when"], 0.7 + np.sqrt(0.2), rtol=1e-12)
    # upper link upright, 0.4 m, and the tip 0.3 m along the lower one
    np.testing.assert_allclose(found["low"], 0.4 + 0.3 * np.cos(1.0), rtol=1e-12)
    both, neither = 'joint = "elbow"\nheight_of = "tip"', "# nothing"
    for wrong, message in ((both, "expected either joint"), (neither, "expected either joint"),
                           ('joint = "wrist"', "expected the name of a joint of one coordinate")):  # fmt: skip
        text = changed(("[[failures]]", f'[[outputs.maximum]]\nname = "top"\n{wrong}\n[[failures]]'))
        with pytest.raises(ScenarioError, match=message):
            load_study(write(text))
