"""``lgsim montecarlo``: the study that a file asks for, its store, what goes on after Ctrl-C, and what is refused."""

import base64
import errno
import html
import json
import re
import signal
from importlib.util import find_spec

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from lgsim import controls, data
from lgsim import montecarlo as mc
from lgsim.formats import load_urdf
from lgsim.multibody.serialization import fingerprint
from lgsim.scenarios import load_study
from tests.cli.machines import LENGTH, lgsim, refused

TIP = 0.3

STUDY = """
[machine]
file = "arm.urdf"
gravity = [0, 0, -5]

[start]
q = { shoulder = 0.4, elbow = -0.3 }

[time]
dt = 0.02
steps = 4

[control]
law = "pd"
stiffness = 3.0
damping = { elbow = 0.2 }
torque = { shoulder = 0.5 }

[dispersions]
q = { std = { shoulder = 0.1, elbow = 0.2 } }
v = { low = -0.1, high = { elbow = 0.3 } }
masses = { relative = { fore = 0.1 } }
gravity = { std = [0, 0, 0.2] }
control.stiffness = { relative = 0.1 }

[outputs]
keep = ["final_q"]
attitudes = ["tip"]
positions = ["tip"]
history = 3

[[outputs.distance]]
name = "miss"
frame = "tip"
point = [0.1, 0, 0.6]

[[failures]]
name = "far"
output = "miss"
above = 0.1

[sampling]
samples = 200
seed = 3
tile = 16
"""


def changed(*pairs):
    text = STUDY
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def content(store):
    """What the files of a store hold, the lock and the place of the machine apart."""
    found = {path.relative_to(store).as_posix(): path.read_bytes() for path in store.rglob("*") if path.is_file()}
    return {name: text for name, text in found.items() if name not in ("lock", "machine.json")}


@pytest.fixture
def write(files):
    """A function that writes a study beside the machines."""

    def write(text, name="study.toml"):
        (files / name).write_text(text)
        return files / name

    return write


@pytest.fixture(scope="module")
def ran(files, tmp_path_factory):
    """(result of the command, store)."""
    store = tmp_path_factory.mktemp("studies") / "whole"
    (files / "whole.toml").write_text(STUDY)
    return lgsim("montecarlo", files / "whole.toml", "--out", store), store


def by_hand(files, samples=200):
    """The same study by the library's own words."""
    model = load_urdf(files / "arm.urdf").replace(gravity=jnp.array([0, 0, -5.0]))
    q = jnp.array([0.4, -0.3])
    law = controls.PD(q, jnp.full(2, 3.0), jnp.array([0.0, 0.2]))
    rollout = mc.Rollout(model, q, dt=0.02, steps=4, torques=jnp.array([0.5, 0.0]), control=law)
    own = model.inertias[:, 0]
    names = model.topology.body_names
    spread = np.where(np.array(names) == "fore", 0.1, 0.0)
    distributions = {
        "q0": mc.TangentNormal(model, q, jnp.array([0.1, 0.2])),
        "v0": mc.Uniform(jnp.array([-0.1, -0.1]), jnp.array([0.0, 0.3])),
        "model.inertias": mc.MassDispersion(model.inertias, mc.LogNormal(own, spread)),
        "model.gravity": mc.Normal(model.gravity, jnp.array([0, 0, 0.2])),
        "control.stiffness": mc.LogNormal(jnp.full(2, 3.0), 0.1),
    }
    outputs = {
        "final_q": mc.outputs.final_q,
        "attitude of tip": mc.FinalAttitude("tip"),
        "position of tip": mc.FinalPosition("tip"),
        "history": mc.Subsampled(3),
        "miss": mc.FinalDistance("tip", jnp.array([0.1, 0, 0.6])),
    }
    return mc.Study(distributions, rollout, outputs, samples=samples, seed=3, tile=16)


def test_the_study_is_what_the_file_says(ran, files):
    """Every number of every sample against the study made by hand; the tip by hand-written kinematics."""
    result, store = ran
    assert result.exit_code == 0, result.output
    chunk, found = mc.Store(store).read_all(), {}
    for part in chunk:
        for name, x in part.columns.items():
            found.setdefault(name, []).append(x)
    found = {name: np.concatenate(x) for name, x in found.items()}
    wanted = mc.run(by_hand(files))
    for name in ("final_q", "attitude of tip", "position of tip", "history", "miss"):
        np.testing.assert_allclose(found[name], wanted.column(name), rtol=0, atol=1e-13)
    q = found["final_q"]
    both = q.sum(axis=1)
    tip = np.stack([LENGTH * np.sin(q[:, 0]) + TIP * np.sin(both), 0 * both,
                    LENGTH * np.cos(q[:, 0]) + TIP * np.cos(both)], axis=1)  # fmt: skip
    np.testing.assert_allclose(found["position of tip"], tip, atol=1e-14)
    miss = np.linalg.norm(tip - [0.1, 0, 0.6], axis=1)
    np.testing.assert_array_equal(found["failed far"], found["miss"] > 0.1)
    np.testing.assert_allclose(found["miss"], miss, atol=1e-14)
    assert 0.05 < np.mean(miss > 0.1) < 0.95 and q.std(axis=0).min() > 0.05


def test_table_and_files(ran):
    result, store = ran
    text = " ".join(result.stdout.split())
    assert "samples 200, 0 of them diverged" in text and f"report lgsim montecarlo report {store}" in text
    failed = np.concatenate([part.columns["failed far"] for part in mc.Store(store).read_all()])
    known = scipy.stats.binomtest(int(failed.sum()), len(failed)).proportion_ci(0.95, method="wilson")
    assert f"failed far {np.mean(failed):.5g} {known.low:.2g} to {known.high:.2g}" in text
    said = " ".join(result.stderr.split())
    assert "200 samples (random, seed 3); arm.urdf, 4 steps of 0.02 s; varies" in said
    names = {path.name for path in store.iterdir()}
    assert names == {"study.json", "study.toml", "machine.json", "chunks", "finished.json", "lock"}
    assert (store / "study.toml").read_text() == STUDY
    assert len(mc.Store(store).files()) == 13  # a tile each: one sees a small study go on too


def test_ctrl_c_and_resume_come_to_the_same_files(ran, files, tmp_path, monkeypatch):
    """Ctrl-C after the third chunk; without --resume the store is refused, with it all files are as without a break."""
    from lgsim.cli import montecarlo

    class Pressed(montecarlo.SampleWatch):
        def __call__(self, running):
            if running.samples == 48:
                signal.raise_signal(signal.SIGINT)
            super().__call__(running)

    store = tmp_path / "whole"
    with monkeypatch.context() as patch:
        patch.setattr(montecarlo, "SampleWatch", Pressed)
        result = lgsim("montecarlo", files / "whole.toml", "--out", store)
    assert result.exit_code == 130
    assert "note: interrupted after 48 samples; the same command with --resume goes on" in result.stderr
    part = content(store)
    assert "finished.json" not in part and len(mc.Store(store).missing()) == 10
    result = lgsim("montecarlo", files / "whole.toml", "--out", store)
    assert result.exit_code == 2
    assert result.stderr.strip().splitlines()[-1].endswith("there is a store already; --resume goes on with it")
    assert content(store) == part
    result = lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume")
    assert result.exit_code == 0, result.output
    assert content(store) == content(ran[1])


def test_more_samples_and_another_seed(ran, files, tmp_path):
    """--samples extends; --seed is another study, which --resume refuses with both fingerprints."""
    store = tmp_path / "more"
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--samples", 48).exit_code == 0
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--samples", 200, "--resume").exit_code == 0
    results = [np.concatenate([c.columns["final_q"] for c in mc.Store(x).read_all()]) for x in (store, ran[1])]
    np.testing.assert_array_equal(*results)
    before = content(store)
    given = ("montecarlo", files / "whole.toml", "--out", store, "--resume", "--seed")
    message = lgsim(*given, 4).stderr.strip().splitlines()[-1]
    mine = json.loads((store / "study.json").read_text())["study"]
    found = re.search(r"the store is of another study: it has (\w{16}), this run has (\w{16})$", message)
    assert found and found[1] == mine != found[2]
    assert content(store) == before


def test_a_store_of_another_machine_or_version_is_refused(ran, files, write, tmp_path):
    heavier = (files / "arm.urdf").read_text().replace('<mass value="2.0"/>', '<mass value="2.5"/>')
    (files / "heavier.urdf").write_text(heavier)
    other = write(changed(('"arm.urdf"', '"heavier.urdf"')), "heavier.toml")
    prints = [
        fingerprint(load_urdf(files / name).replace(gravity=jnp.array([0, 0, -5.0])))
        for name in ("arm.urdf", "heavier.urdf")
    ]
    said = lgsim("montecarlo", other, "--out", ran[1], "--resume").stderr.strip().splitlines()[-1]
    assert said.endswith(f"the store is of another model: it has {prints[0]}, this run has {prints[1]}")
    store = tmp_path / "old"
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--samples", 16).exit_code == 0
    about = store / "study.json"
    about.write_text(about.read_text().replace('"lgsim": "', '"lgsim": "0.0.1+'))
    result = lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume")
    assert result.exit_code == 2
    assert "the store is of another version: it has lgsim 0.0.1+" in result.stderr


def test_a_full_disk_leaves_a_store_that_goes_on(ran, files, tmp_path, monkeypatch):
    """The fourth chunk finds no room: one clear line; what is there is read, and after making room goes on."""
    from lgsim.montecarlo import store as stores

    whole, store = stores.write_whole, tmp_path / "full"

    def full(path, data):
        if path.name == "00000003.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(stores, "write_whole", full)
        result = lgsim("montecarlo", files / "whole.toml", "--out", store)
    assert result.exit_code == 1
    said = result.stderr.strip().splitlines()[-1]
    assert said.startswith("error: ") and "00000003.parquet: no room on the disk" in said and "resume" in said
    assert sum(part.count for part in mc.Store(store).read_all()) == 48
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume").exit_code == 0
    assert content(store) == content(ran[1])


def test_a_rule_to_stop_and_sequences(files, write, tmp_path):
    """The study ends where the mean is known; a Sobol sequence takes no such rule."""
    rule = '\n[stop]\noutput = "miss"\nhalf_width = 0.01\nleast = 32\n'
    study, store = write(STUDY + rule, "stop.toml"), tmp_path / "stop"
    result = lgsim("montecarlo", study, "--out", store, "--samples", 3000)
    assert result.exit_code == 0, result.output
    kept = mc.Store(store)
    miss = np.concatenate([part.columns["miss"] for part in kept.read_all()])
    assert kept.finished == len(miss) < 3000
    half = 1.959963984540054 * miss.std(ddof=1) / np.sqrt(len(miss))
    assert half <= 0.01 < 1.959963984540054 * miss[:-16].std(ddof=1) / np.sqrt(len(miss) - 16)
    sobol = changed(("tile = 16", 'tile = 16\nsequence = "sobol"'))
    said = refused("montecarlo", write(sobol + rule, "sobol.toml"), "--check")
    assert ": stop: an interval of confidence is known for plain random sampling alone" in said
    assert type(load_study(write(sobol, "sobol.toml")).study.sampler.points).__name__ == "SobolPoints"


@pytest.fixture(scope="module")
def page(ran, tmp_path_factory):
    """The report of the store."""
    out = tmp_path_factory.mktemp("report") / "page.html"
    result = lgsim("montecarlo", "report", ran[1], "--out", out, "--cases", 1)
    assert result.exit_code == 0, result.output
    assert f"{out}: 200 samples" in result.stdout
    return out.read_text()


def cells(page):
    """The rows of all tables, as texts."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]


def test_the_report_says_what_the_samples_say(ran, page):
    """Moments, failures and the worst sample against NumPy on the store's columns."""
    columns = {}
    for part in mc.Store(ran[1]).read_all():
        for name, x in part.columns.items():
            columns.setdefault(name, []).append(x)
    columns = {name: np.concatenate(x) for name, x in columns.items()}
    rows = {row[0]: row[1:] for row in cells(page) if row}
    shown = {"miss": columns["miss"], "final_q elbow (rad)": columns["final_q"][:, 1]}
    for name, x in shown.items():
        wanted = [x.mean(), 1.959963984540054 * x.std(ddof=1) / np.sqrt(200), x.std(ddof=1), x.min(), x.max()]
        found = [float(text.replace("\u2212", "-")) for text in rows[name]]
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
    assert not any(name.startswith("attitude of tip") for name in rows)
    which = np.flatnonzero(columns["failed far"])
    assert rows["far"][0] == str(len(which)) and rows["far"][2].startswith(", ".join(map(str, which[:20])))
    worst = int(np.argmax(columns["miss"]))
    assert f"Sample {worst}: miss {columns['miss'][worst]:.4g}" in page
    assert [row for row in cells(page) if row[1:] == ["samples = 200"]]  # the file that was run


def test_the_report_is_one_page_without_a_network(page):
    """Pictures and scenes are in it; nothing is asked for from anywhere."""
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == ["Summary", "Distributions", "Attitudes", "In time", "Failures", "Worst cases", "Study"]
    pictures = re.findall(r'<img src="data:image/png;base64,([^"]*)"', page)
    assert len(pictures) == 3 and all(base64.b64decode(x).startswith(b"\x89PNG") for x in pictures)
    frames = re.findall(r'<iframe srcdoc="([^"]*)"', page)
    assert len(frames) == (1 if find_spec("viser") else 0)
    outside = re.sub(r'srcdoc="[^"]*"', "", page)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', outside) and "default-src 'none'" in outside


def test_the_report_of_a_part_and_of_nothing(files, tmp_path, monkeypatch):
    """A study that was interrupted is reported as such; the store alone is needed, not the machine's file."""
    from lgsim.cli import montecarlo

    class Pressed(montecarlo.SampleWatch):
        def __call__(self, running):
            signal.raise_signal(signal.SIGINT)
            super().__call__(running)

    (tmp_path / "arm.urdf").write_bytes((files / "arm.urdf").read_bytes())
    study, store, out = tmp_path / "study.toml", tmp_path / "part", tmp_path / "part.html"
    study.write_text(STUDY)
    with monkeypatch.context() as patch:
        patch.setattr(montecarlo, "SampleWatch", Pressed)
        assert lgsim("montecarlo", study, "--out", store).exit_code == 130
    (tmp_path / "arm.urdf").unlink()
    study.unlink()
    result = lgsim("montecarlo", "report", store, "--cases", 0)
    assert result.exit_code == 0, result.output
    assert "The study is not done" in out.read_text() and "Worst cases" not in out.read_text()
    mc.Store(store).file(0).unlink()
    assert "the store has no samples yet" in refused("montecarlo", "report", store)


def test_a_study_whose_samples_all_diverge(write, tmp_path):
    """It says so, with the exit code of a diverged simulation, and its report replays one up to where it is finite."""
    study, store = write(changed(("dt = 0.02", "dt = 1.0"), ("stiffness = 3.0", "stiffness = 1e9"))), tmp_path / "gone"
    result = lgsim("montecarlo", study, "--out", store, "--samples", 16)
    assert result.exit_code == 3 and "note: all samples diverged" in result.stderr
    assert lgsim("montecarlo", "report", store, "--cases", 0).exit_code == 0
    page = (tmp_path / "gone.html").read_text()
    assert re.findall(r"<h2>(.*?)</h2>", page) == ["Summary", "Failures", "Study"]
    assert "16 samples diverged and count in no statistics" in page


@pytest.mark.slow
def test_on_a_ray_cluster_of_its_own(ran, files, tmp_path):
    """--engine ray starts one where there is none, and leaves the same chunks."""
    pytest.importorskip("ray", reason="the package ray is missing: pip install 'lgsim[ray]'")
    store = tmp_path / "ray"
    result = lgsim("montecarlo", files / "whole.toml", "--out", store, "--engine", "ray")
    assert result.exit_code == 0, result.output
    assert content(store) == content(ran[1])


def test_examples_are_right(tmp_path):
    for name in data.STUDIES:
        text = lgsim("montecarlo", "--example", name).stdout
        file = tmp_path / f"{name}.toml"
        file.write_text(text)
        result = lgsim("montecarlo", file, "--check")
        assert result.exit_code == 0 and "samples" in result.stderr
    assert "expected one of hover, arm, got 'hoover'" in refused("montecarlo", "--example", "hoover")


DISPERSION, MASSES = "gravity = { std = [0, 0, 0.2] }", "masses = { relative = { fore = 0.1 } }"
LINES = {"unknown key": "gain = 3", "masses and inertias": MASSES, "no floating base": "[control]", "steps": "[time]",
         "no bound": "[[failures]]"}  # fmt: skip
"""Where the error is, if not where the change begins."""
BAD = {
    "unknown key": (('law = "pd"', 'law = "pd"\ngain = 3'), r"control.gain: there is no such key"),
    "unknown leaf": ((DISPERSION, "dampling = { std = 1 }"), r"dispersions.dampling: there is no such key; did you"
                     " mean 'damping'"),
    "unknown table": (("[sampling]", "[samples]"), r"samples: there is no such key; did you mean 'sampling'"),
    "negative mass": (("relative = { fore = 0.1 }", "low = -0.5, high = 2"),
                      "dispersions.masses.low: expected masses above zero, got -0.5 kg"),
    "normal masses": ((MASSES, "damping = { std = 0.1 }"),
                      "dispersions.damping.std: a normal distribution has negative numbers; take relative"),
    "negative body": ((MASSES,
                       "inertias = { mass = 0.1, about = { fore = { mass = -1, inertia = [1, 1, 1] } } }"),
                      "dispersions.inertias.about.fore.mass: the body has the negative mass -1 kg"),
    "inertia of no body": ((MASSES,
                            "inertias = { mass = 0.1, about = { fore = { mass = 1, inertia = [1, 1, 9] } } }"),
                           "dispersions.inertias.about.fore.inertia: the body has an inertia that no mass"
                           " distribution has"),
    "unknown body": (("{ fore = 0.1 }", "{ four = 0.1 }"), "dispersions.masses.relative.four: expected the name of"
                     " a body, got 'four'; did you mean 'fore'"),
    "masses and inertias": ((DISPERSION, "inertias = { mass = 0.1 }"), "dispersions.masses: expected either masses"
                            " or inertias"),
    "zero samples": (("samples = 200", "samples = 0"), "sampling.samples: expected a whole number from 1 on, got 0"),
    "two kinds": ((DISPERSION, "gravity = { std = 1, relative = 1 }"), "dispersions.gravity: expected one of std"),
    "negative spread": ((DISPERSION, "gravity = { std = -1 }"), "dispersions.gravity.std: expected zero or more"),
    "nothing to spread": ((DISPERSION, "friction = { relative = 0.1 }"), "dispersions.friction.relative: the"
                          " machine's friction is zero"),
    "low above high": (("high = { elbow = 0.3 }", "high = -1"), "dispersions.v.high: expected low to be at most"),
    "unknown joint": (("{ shoulder = 0.1, elbow", "{ shoulders = 0.1, elbow"), "dispersions.q.std.shoulders:"),
    "no wind": ((DISPERSION, "wind.mean = { std = 1 }"), "dispersions.wind: there is none: give a table [wind]"),
    "unknown gain": (("control.stiffness", "control.stifness"), "dispersions.control.stifness: there is no such"),
    "no floating base": (('law = "pd"\nstiffness = 3.0\ndamping = { elbow = 0.2 }', 'law = "hover"'),
                         "control: model: expected a machine with a floating base"),
    "unknown output": (('["final_q"]', '["final_p"]'), "outputs.keep[1]: expected one of"),
    "unknown frame": (('positions = ["tip"]', 'positions = ["top"]'), "outputs.positions[1]: expected the name of"
                      " a frame, got 'top'; did you mean 'tip'"),
    "failure of nothing": (('output = "miss"', 'output = "mass"'), "failures[1].output: expected the name of an"
                           " output, got 'mass'; did you mean 'miss'"),
    "no bound": (("above = 0.1", ""), "failures[1]: expected above, below, or both"),
    "history": (("history = 3", "history = 9"), "outputs.history: expected at most 5"),
    "steps": (("steps = 4", "steps = 4\nduration = 1"), "time: expected either a duration"),
    "unknown machine": (('"arm.urdf"', '"lgsim:quadroter"'), "machine.file: expected a machine that comes with"
                        " lgsim, got 'quadroter'; did you mean 'quadrotor'"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_studies(case, write):
    """File, line and key; nothing is compiled."""
    (old, new), message = BAD[case]
    text = changed((old, new))
    place = text.index(LINES[case]) if case in LINES else text.index(new) if new else 0
    study = write(text, "bad.toml")
    said = refused("montecarlo", study, "--check")
    assert said.startswith(f"{study}:{text[:place].count(chr(10)) + 1}: {message}"), said


def test_bad_words(files, ran, write, tmp_path):
    study = write(STUDY)
    assert refused("montecarlo", study, "--samples", 0) == "--samples: expected a whole number from 1 on, got 0"
    assert refused("montecarlo", study, "--seed=-1").startswith("--seed: expected a whole number from 0 on")
    assert refused("montecarlo", study, "--address", "auto") == "--address: only with --engine ray"
    assert "no such option" in refused("montecarlo", study, "--sample", 3).lower()
    assert refused("montecarlo", study, "--out", tmp_path / "no" / "store").startswith("--out: there is no folder")
    assert refused("montecarlo", "--seed", 1).startswith("STUDY: expected a TOML file")
    assert "expected a store that lgsim montecarlo made; " in refused("montecarlo", "report", tmp_path)
    (tmp_path / "x").write_text("")
    taken = lgsim("montecarlo", study, "--out", tmp_path)
    assert taken.exit_code == 2 and "expected a path where nothing is yet, or a store" in taken.stderr
    assert "run" in lgsim("montecarlo").stdout and "report" in lgsim("montecarlo", "--help").stdout
