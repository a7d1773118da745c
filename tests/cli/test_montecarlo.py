"""``lgsim montecarlo``: the study that a file asks for, its store, what goes on after Ctrl-C, and what is refused."""

import errno
import re
import shutil
import signal
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from lgsim import data
from lgsim import montecarlo as mc
from lgsim.formats import load_urdf
from lgsim.montecarlo.store import Store
from lgsim.multibody.serialization import fingerprint
from lgsim.scenarios import load_study
from tests.cli.machines import LENGTH, lgsim, refused
from tests.montecarlo.ray_turns import alone
from tests.scenarios.studies import STUDY, by_hand, changed

TIP = 0.3


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


@pytest.mark.slow
def test_the_study_is_what_the_file_says(ran, files):
    """Every number of every sample against the study made by hand; the tip by hand-written kinematics."""
    result, store = ran
    assert result.exit_code == 0, result.output
    chunk, found = Store(store).read_all(), {}
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


@pytest.mark.slow
def test_table_and_files(ran):
    result, store = ran
    text = " ".join(result.stdout.split())
    assert "samples 200, 0 diverged" in text and f"report lgsim montecarlo report {store}" in text
    assert re.search(r"position limits \S+ % used: elbow \S+ rad, worst sample speed limits \S+ % used", text)
    failed = np.concatenate([part.columns["failed far"] for part in Store(store).read_all()])
    known = scipy.stats.binomtest(int(failed.sum()), len(failed)).proportion_ci(0.95, method="exact")
    assert f"failed far {np.mean(failed):.5g} {known.low:.2g} to {known.high:.2g}" in text
    said = " ".join(result.stderr.split())
    assert "200 samples (random, seed 3); arm.urdf, 4 steps of 0.02 s; random" in said
    names = {path.name for path in store.iterdir()}
    assert names == {"study.json", "study.toml", "machine.json", "chunks", "finished.json", "steps.json", "lock"}
    assert "steps at most " in text and "of the statistical interval (" in text
    assert (store / "study.toml").read_text() == STUDY
    assert len(Store(store).files()) == 13  # a tile each: one sees a small study go on too


@pytest.mark.slow
def test_numbers_of_histories_have_joints_and_times(tmp_path):
    """The table said history[6] where the report said joint and time."""
    (tmp_path / "study.toml").write_text(
        '[machine]\nfile = "lgsim:cart_pole"\n[time]\ndt = 0.01\nduration = 0.2\n[dispersions]\n'
        "masses = { relative = 0.1 }\n[outputs]\nhistory = 3\n[sampling]\nsamples = 16\n"
    )
    result = lgsim("montecarlo", tmp_path / "study.toml", "--out", tmp_path / "store", "--no-step-check")
    assert result.exit_code == 0, result.output
    assert "history q slider (m) at 0.1 s" in result.stdout and "history v hinge (rad/s) at 0.1 s" in result.stdout


def test_resume_wants_a_store(files, tmp_path):
    """It made a new one where a name was mistyped."""
    for _ in range(2):  # of a folder that is empty too
        line = refused("montecarlo", files / "whole.toml", "--out", tmp_path / "store", "--resume")
        assert line.startswith("--resume: expected an existing store, got ") and line.endswith(
            "omit --resume to create one"
        )
        (tmp_path / "store").mkdir(exist_ok=True)


@pytest.mark.slow
def test_ctrl_c_and_resume_come_to_the_same_files(ran, files, tmp_path, monkeypatch):
    """Ctrl-C after the third chunk; without --resume the store is refused, with it all files are as without a break."""
    from lgsim.cli.work import study as study_of_command

    class Pressed(study_of_command.SampleWatch):
        def __call__(self, running):
            if running.samples == 48:
                signal.raise_signal(signal.SIGINT)
            super().__call__(running)

    store = tmp_path / "whole"
    with monkeypatch.context() as patch:
        patch.setattr(study_of_command, "SampleWatch", Pressed)
        result = lgsim("montecarlo", files / "whole.toml", "--out", store)
    assert result.exit_code == 130
    assert "note: interrupted after 48 samples; the same command with --resume continues" in result.stderr
    part = content(store)
    assert "finished.json" not in part and len(Store(store).missing()) == 10
    result = lgsim("montecarlo", files / "whole.toml", "--out", store)
    assert result.exit_code == 2
    assert result.stderr.strip().splitlines()[-1].endswith("the store exists already; resume it with --resume")
    assert content(store) == part
    result = lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume")
    assert result.exit_code == 0, result.output
    assert content(store) == content(ran[1])


@pytest.mark.slow
def test_more_samples_and_another_seed(ran, files, write, tmp_path):
    """--samples extends; --seed or another key is another study, which --resume refuses and names."""
    store = tmp_path / "more"
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--samples", 48).exit_code == 0
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--samples", 200, "--resume").exit_code == 0
    results = [np.concatenate([c.columns["final_q"] for c in Store(x).read_all()]) for x in (store, ran[1])]
    np.testing.assert_array_equal(*results)
    before = content(store)
    given = ("montecarlo", files / "whole.toml", "--out", store, "--resume", "--seed")
    message = lgsim(*given, 4).stderr.strip().splitlines()[-1]
    wrong = (
        "the store belongs to another study: seed (3 in the store, 4 here); use a new store, or the study of this one"
    )
    assert message.endswith(wrong)
    other = write(changed(("dt = 0.02", "dt = 0.01")), "other.toml")
    message = lgsim("montecarlo", other, "--out", store, "--resume", "--samples", 200).stderr.strip().splitlines()[-1]
    assert message.endswith("; keys that differ from its study.toml: time.dt")
    assert content(store) == before


@pytest.mark.slow
def test_a_store_of_another_machine_or_version_is_refused(ran, files, write, tmp_path):
    heavier = (files / "arm.urdf").read_text().replace('<mass value="2.0"/>', '<mass value="2.5"/>')
    (files / "heavier.urdf").write_text(heavier)
    other = write(changed(('"arm.urdf"', '"heavier.urdf"')), "heavier.toml")
    prints = [
        fingerprint(load_urdf(files / name).replace(gravity=jnp.array([0, 0, -5.0])))
        for name in ("arm.urdf", "heavier.urdf")
    ]
    said = lgsim("montecarlo", other, "--out", ran[1], "--resume").stderr.strip().splitlines()[-1]
    assert said.endswith(
        f"the store belongs to another model: it has {prints[0]}, this run has {prints[1]}; use a new store; keys that"
        " differ from its study.toml: machine.file"
    )
    store = tmp_path / "old"
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--samples", 16).exit_code == 0
    about = store / "study.json"
    about.write_text(about.read_text().replace('"lgsim": "', '"lgsim": "0.0.1+'))
    result = lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume")
    assert result.exit_code == 2
    assert "the store belongs to another version: it has lgsim 0.0.1+" in result.stderr


def test_a_full_disk_leaves_a_store_that_goes_on(ran, files, tmp_path, monkeypatch):
    """The fourth chunk finds no room: one clear line; what is there is read, and after making room goes on."""
    from lgsim.montecarlo import store as stores

    whole, store = stores.write_whole, tmp_path / "full"

    def full(path, data, **options):
        if path.name == "00000003.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(path, data, **options)

    with monkeypatch.context() as patch:
        patch.setattr(stores, "write_whole", full)
        result = lgsim("montecarlo", files / "whole.toml", "--out", store)
    assert result.exit_code == 1
    said = result.stderr.strip().splitlines()[-1]
    assert said.startswith("error: ") and "00000003.parquet: no space left on the disk" in said and "resume" in said
    assert sum(part.count for part in Store(store).read_all()) == 48
    assert lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume").exit_code == 0
    assert content(store) == content(ran[1])


def test_a_rule_to_stop_and_sequences(files, write, tmp_path):
    """The study ends where the mean is known; a Sobol sequence takes no such rule."""
    rule = '\n[stop]\noutput = "miss"\nhalf_width = 0.01\nleast = 32\n'
    study, store = write(STUDY + rule, "stop.toml"), tmp_path / "stop"
    result = lgsim("montecarlo", study, "--out", store, "--samples", 3000)
    assert result.exit_code == 0, result.output
    kept = Store(store)
    miss = np.concatenate([part.columns["miss"] for part in kept.read_all()])
    assert kept.finished == len(miss) < 3000

    def half(x):
        return scipy.stats.t.ppf(0.975, len(x) - 1) * scipy.stats.sem(x)

    assert half(miss) <= 0.01 < half(miss[:-16])
    sobol = changed(("tile = 16", 'tile = 16\nsequence = "sobol"'))
    said = refused("montecarlo", write(sobol + rule, "sobol.toml"), "--check")
    assert ": stop: confidence intervals require random sampling" in said
    assert type(load_study(write(sobol, "sobol.toml")).study.sampler.points.parts).__name__ == "SobolPoints"
    pairs = write(changed(("tile = 16", 'tile = 16\nsequence = "antithetic"')) + rule, "pairs.toml")
    assert "(antithetic, seed 3), until miss" in lgsim("montecarlo", pairs, "--check").stderr


@pytest.mark.slow
def test_the_report_of_a_part_and_of_nothing(files, tmp_path, monkeypatch):
    """A study that was interrupted is reported as such; the store alone is needed, not the machine's file."""
    from lgsim.cli.work import study as study_of_command
    from lgsim.view.reports import replays

    class Pressed(study_of_command.SampleWatch):
        def __call__(self, running):
            signal.raise_signal(signal.SIGINT)
            super().__call__(running)

    (tmp_path / "arm.urdf").write_bytes((files / "arm.urdf").read_bytes())
    study, store, out = tmp_path / "study.toml", tmp_path / "part", tmp_path / "part.html"
    study.write_text(STUDY)
    with monkeypatch.context() as patch:
        patch.setattr(study_of_command, "SampleWatch", Pressed)
        assert lgsim("montecarlo", study, "--out", store).exit_code == 130
    (tmp_path / "arm.urdf").unlink()
    study.unlink()
    monkeypatch.setattr(replays, "find_spec", lambda name: None)
    result = lgsim("montecarlo", "report", store, "--cases", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out}: 16 samples\n"
    assert result.stderr == "note: the report has no replays, since viser is missing: pip install 'lgsim[view]'\n"
    assert "The study is incomplete" in out.read_text() and "Worst cases" in out.read_text()
    other = tmp_path / "other.html"
    assert lgsim("montecarlo", "report", store, "--cases", 0, "--out", other).stdout == f"{other}: 16 samples\n"
    assert "Worst cases" not in other.read_text()
    Store(store).file(0).unlink()
    out.unlink()  # else a note says that it will be replaced
    nothing = f"{store}: the store has no samples yet; continue with lgsim montecarlo study.toml --resume"
    assert refused("montecarlo", "report", store) == nothing


def test_starts_beyond_limits_and_joints_without_inertia(write):
    """Notes before the study, whose dispersions may mend both."""
    pairs = (
        ("arm.urdf", "light.urdf"),
        ("elbow = -0.3", "elbow = -90"),
        ("masses = { relative = { fore = 0.1 } }\n", ""),
    )
    result = lgsim("montecarlo", write(changed(*pairs)), "--check")
    assert result.exit_code == 0
    odd = "joint 'elbow' starts at -90 rad, beyond its position limit (-2 to 1.5 rad): looks like degrees"
    assert f"note: {odd}" in result.stderr
    assert (
        "note: nominal motion, without random inputs: joint 'elbow' moves without inertia: give the link behind it"
        in result.stderr
    )


def test_a_study_whose_samples_all_diverge(write, tmp_path):
    """It says so, with the exit code of a diverged simulation."""
    study, store = (
        write(changed(("dt = 0.02", 'dt = 1.0\nmethod = "MK4"'), ("stiffness = 3.0", "stiffness = 1e9"))),
        tmp_path / "gone",
    )
    result = lgsim("montecarlo", study, "--out", store, "--samples", 16)
    assert result.exit_code == 3 and "note: all samples diverged" in result.stderr


def test_a_probability_that_diverged_samples_leave_open(write, tmp_path):
    """Some of the samples diverge, as stiffness varies by decades: exit status 3, and the name of the failure."""
    study = write(changed(("dt = 0.02", 'dt = 0.1\nmethod = "MK4"'), ("stiffness = 3.0", "stiffness = 1e9"),
                          ("stiffness = { relative = 0.1 }", "stiffness = { relative = 1e5 }")))  # fmt: skip
    result = lgsim("montecarlo", study, "--out", tmp_path / "open", "--samples", 64, "--no-step-check")
    assert result.exit_code == 3 and "all samples diverged" not in result.stderr, result.output
    assert re.search(r"note: the probability of 'far' is open: \d+ samples of 64 diverged", result.stderr)


STIFF = Path(__file__).parents[1] / "data" / "stiff_arm.toml"


def integrated(masses, dt, duration=2.745):
    """(final angles, peak torques) of the arm of ``stiff_arm.toml`` with hand-written equations, by Runge-Kutta steps.

    Two uniform links of 0.4 m; at q = 0 they stand upright.
    """
    m, n = masses.T
    inner, cross = n * 0.4**2 / 3, n * 0.4 * 0.2
    outer = m * 0.4**2 / 3 + n * 0.4**2 + inner

    def rate(q, v):
        c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
        M11, M12 = outer + 2 * cross * c, inner + cross * c
        fore = 9.81 * n * 0.2 * np.sin(q.sum(axis=1))
        tau = -40 * q - 6 * v
        f = (
            tau[:, 0]
            + cross * s * (2 * v[:, 0] + v[:, 1]) * v[:, 1]
            + 9.81 * (0.2 * m + 0.4 * n) * np.sin(q[:, 0])
            + fore
        )
        g = tau[:, 1] - cross * s * v[:, 0] ** 2 + fore
        return np.stack([inner * f - M12 * g, M11 * g - M12 * f], axis=1) / (M11 * inner - M12**2)[:, None]

    q, v = np.tile([0.775, -0.5], (len(masses), 1)), np.zeros_like(masses)
    peak = np.abs(40 * q)
    for _ in range(round(duration / dt)):
        a1 = rate(q, v)
        a2 = rate(q + dt / 2 * v, v + dt / 2 * a1)
        a3 = rate(q + dt / 2 * (v + dt / 2 * a1), v + dt / 2 * a2)
        a4 = rate(q + dt * (v + dt / 2 * a2), v + dt * a3)
        q = q + dt * v + dt**2 / 6 * (a1 + a2 + a3)
        v = v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        peak = np.maximum(peak, np.abs(40 * q + 6 * v))
    return q, peak


def column(store, name):
    """A column of a store."""
    return np.concatenate([part.columns[name] for part in Store(store).read_all()])


def finer(tmp_path, dt):
    """The stiff study with another step."""
    (tmp_path / "stiff_arm.urdf").write_bytes(STIFF.with_suffix(".urdf").read_bytes())
    (tmp_path / "stiff.toml").write_text(STIFF.read_text().replace("dt = 0.005", f"dt = {dt:g}"))
    return tmp_path / "stiff.toml"


def run_stiff(study, store, samples, *words):
    """(result, samples' masses) of the stiff study."""
    result = lgsim("montecarlo", study, "--out", store, "--samples", samples, *words)
    sampler = load_study(study, samples=samples).study.sampler
    drawn = mc.study._draw_tile(sampler, jnp.arange(min(samples, 500), dtype=jnp.uint32))
    return result, np.asarray(drawn.values["model.inertias"])[:, :, 0]


@pytest.mark.slow
def test_an_answer_that_was_wrong_and_looked_right(tmp_path):
    """A stiff arm at 5 ms by MK4: finite, and a third of it fails; half the step says that none does. Exit code 3."""
    result, masses = run_stiff(STIFF, tmp_path / "coarse", 192)
    assert result.exit_code == 3, result.output
    assert np.mean(column(tmp_path / "coarse", "failed missed")) > 0.2
    table, said = " ".join(result.stdout.split()), " ".join(result.stderr.split())
    assert "192, 0 diverged" in table and "steps not converged, see below" in table
    assert re.search(r"failed missed 0.\d+ 0.2\d to 0.\d+ [\d.]+, not resolved", table)
    assert (
        "note: not resolved: with dt = 0.005 s and MK4 the integration error exceeds the statistical interval of"
        in said
    )
    rate = re.search(r"Rates up to (\S+) 1/s at joint elbow \(damping 6 of the control on 0.0\d+ kg m\^2\)", said)
    # 6 / (the least eigenvalue of the inertia of two links of 0.8 kg, straight), by hand
    assert rate is not None and abs(float(rate[1]) / (6 / (0.8 * 0.4**2 * 0.0664)) - 1) < 0.1
    assert ", beyond the stability limit of MK4: use dt = 0.00" in said
    assert "or Rodas4" in said and "% of the samples for 'missed'" in said
    angles, _ = integrated(masses[:64], 1.5e-3)
    assert np.all(np.abs(angles) < 1e-5) and np.max(np.abs(column(tmp_path / "coarse", "final_q")[:64] - angles)) > 0.1
    assert (tmp_path / "coarse" / "steps.json").exists()


@pytest.mark.slow
def test_without_the_check(tmp_path):
    """--no-step-check: exit code 0, and no word of steps."""
    blind, _ = run_stiff(STIFF, tmp_path / "blind", 320, "--no-step-check")
    assert blind.exit_code == 0 and "not resolved" not in blind.output and "steps" not in blind.stdout
    assert not (tmp_path / "blind" / "steps.json").exists()


@pytest.mark.slow
def test_the_same_arm_with_the_steps_that_it_needs(tmp_path):
    """At 0.5 ms none fails, the angle is that of the hand-written equations, and the error of the steps holds."""
    result, masses = run_stiff(finer(tmp_path, 0.0005), tmp_path / "fine", 128)
    assert result.exit_code == 0, result.output
    angles, peak = integrated(masses, 2.5e-4)
    q = column(tmp_path / "fine", "final_q")
    np.testing.assert_allclose(q, angles, rtol=0, atol=1e-13)
    np.testing.assert_allclose(column(tmp_path / "fine", "peak_torque"), peak, atol=1e-9)
    found = Store(tmp_path / "fine").step_error
    true = np.abs(q.mean(axis=0) - angles.mean(axis=0))
    assert np.all(true <= 3 * found.outputs["final_q"]["mean"].error + 1e-14) and found.resolved
    assert "integration error" not in result.stderr and "steps at most" in " ".join(result.stdout.split())


@pytest.mark.slow
def test_the_stiff_arm_by_the_method_that_a_study_finds(tmp_path):
    """Without a method in its file: Rodas4 at 5 ms, resolved, and none fails; the numbers of hand-written equations."""
    study = finer(tmp_path, 0.005)
    study.write_text(study.read_text().replace('method = "MK4"\n', ""))
    result, masses = run_stiff(study, tmp_path / "auto", 192)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stderr.split())
    assert re.search(r"rates up to \S+ 1/s at joint elbow \(damping 6 of the control .*Rodas4 replaces MK4", said)
    assert not column(tmp_path / "auto", "failed missed").any()
    angles, _ = integrated(masses, 2.5e-4)
    assert np.abs(column(tmp_path / "auto", "final_q")[: len(angles)] - angles).max() < 1e-6


@pytest.mark.slow
@pytest.mark.exhaustive
def test_all_samples_of_the_stiff_arm(tmp_path):
    """All 20 000: not resolved at 5 ms; at 0.5 ms and at the advised step 0 % fail, 1.5e-7 rad, 31 N m."""
    result, _ = run_stiff(STIFF, tmp_path / "coarse", 20_000)
    assert result.exit_code == 3 and "samples 20,000, 0 diverged" in " ".join(result.stdout.split())
    # to the next step that divides the duration
    advised = 2.745 / int(re.search(r"\(([\d,]+) steps\)", " ".join(result.stderr.split()))[1].replace(",", ""))
    for dt in (0.0005, advised):
        store = tmp_path / f"fine{dt:g}"
        study = finer(tmp_path, dt)
        study.write_text(study.read_text().replace(f"dt = {dt:g}", f"dt = {dt!r}"))
        result, masses = run_stiff(study, store, 20_000)
        assert result.exit_code == 0, result.output
        assert not column(store, "failed missed").any()
        q = column(store, "final_q")
        assert abs(q[:, 0].mean() - 1.5e-7) < 1e-8
        np.testing.assert_allclose(column(store, "peak_torque").mean(axis=0), [31, 20], rtol=1e-12)
        angles, _ = integrated(masses, 2.5e-4)
        found = Store(store).step_error.outputs["final_q"]
        assert np.all(np.abs(q[:500] - angles) <= 30 * found["mean"].error + 1e-12)


@pytest.mark.slow
def test_on_a_ray_cluster_of_its_own(ran, files, tmp_path):
    """--engine ray starts one where there is none, and leaves the same chunks."""
    pytest.importorskip("ray", reason="the package ray is missing: pip install 'lgsim[ray]'")
    store = tmp_path / "ray"
    with alone():
        result = lgsim("montecarlo", files / "whole.toml", "--out", store, "--engine", "ray")
    assert result.exit_code == 0, result.output
    assert content(store) == content(ran[1])


@pytest.mark.slow
def test_examples_are_right(tmp_path):
    for name in data.STUDIES:
        text = lgsim("montecarlo", "--example", name).stdout
        file = tmp_path / f"{name}.toml"
        file.write_text(text)
        result = lgsim("montecarlo", file, "--check")
        assert result.exit_code == 0 and "samples" in result.stderr
    assert "expected one of hover, arm, got 'hoover'" in refused("montecarlo", "--example", "hoover")


def test_bad_studies(write):
    """One line with file, line and key; nothing is compiled."""
    study = write(changed(("damping = {", "dampng = {")), "bad.toml")
    line = STUDY[: STUDY.index("damping = {")].count("\n") + 1
    assert refused("montecarlo", study, "--check") == (
        f"{study}:{line}: control.dampng: there is no such key; did you mean 'damping'?"
    )


@pytest.mark.slow
def test_damaged_stores_are_one_line(ran, files, tmp_path):
    """Whatever is damaged: the report and the next run name the file."""
    store = tmp_path / "store"
    shutil.copytree(ran[1], store)
    damage = {"chunks/00000002.parquet": b"PAR1", "study.json": b"[" * 100_000, "finished.json": b'{"samples": -5}',
              "machine.json": b"[]", "study.toml": b"\xff"}  # fmt: skip
    for name, content in damage.items():
        kept = (store / name).read_bytes()
        (store / name).write_bytes(content)
        assert Path(name).name in refused("montecarlo", "report", store, "--cases", 0)
        said = lgsim("montecarlo", files / "whole.toml", "--out", store, "--resume")
        if name.startswith(("chunks", "study.json")):
            assert said.exit_code == 2 and name in said.stderr.strip().splitlines()[-1]
        else:  # which a run writes anew
            assert said.exit_code == 0 and (store / name).read_bytes() == kept
        (store / name).write_bytes(kept)


def test_bad_words(files, ran, write, tmp_path):
    study = write(STUDY)
    assert refused("montecarlo", study, "--samples", 0) == "--samples: expected an integer of at least 1, got 0"
    assert refused("montecarlo", study, "--seed=-1").startswith("--seed: expected an integer of at least 0")
    assert refused("montecarlo", study, "--address", "auto") == "--address: expected --engine ray"
    assert "no such option" in refused("montecarlo", study, "--sample", 3).lower()
    assert refused("montecarlo", study, "--out", tmp_path / "no" / "store").startswith("--out: there is no folder")
    assert refused("montecarlo", "--seed", 1).startswith("STUDY: expected a TOML file")
    assert "expected a store of lgsim montecarlo; " in refused("montecarlo", "report", tmp_path)
    # it became a store, and --resume deleted every file with two dots
    (tmp_path / ".env.local").write_text("dear")
    for resume in ([], ["--resume"]):
        taken = lgsim("montecarlo", study, "--out", tmp_path, *resume)
        assert taken.exit_code == 2 and "expected a new path or a store" in taken.stderr
    assert [path.name for path in tmp_path.iterdir()] == [".env.local"]
    assert "run" in lgsim("montecarlo").stdout and "report" in lgsim("montecarlo", "--help").stdout
