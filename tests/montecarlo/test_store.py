"""Stores: killed at any moment and resumed to the same files; damage, other studies, other writers, full disks."""

import errno
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import chex
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.montecarlo import results
from lgsim.montecarlo.engine import collect
from lgsim.montecarlo.results import RunningStatistics
from lgsim.montecarlo.store import Store
from lgsim.simulation import trajectory_files
from tests.montecarlo import studies

ROOT = Path(__file__).parents[2]

WORKER = """
import sys, time
import jax
jax.config.update("jax_enable_x64", True)
from lgsim import montecarlo as mc
from tests.montecarlo import studies
study = studies.plain(int(sys.argv[2]))
mc.run(study, sys.argv[1], resume=True, chunk=16, progress=lambda running: time.sleep(0.01))
"""


def files(store):
    """The content of all files but the lock's."""
    found = {p.relative_to(store).as_posix(): p.read_bytes() for p in sorted(store.rglob("*")) if p.is_file()}
    found.pop("lock")
    return {name: hashlib.sha256(content).hexdigest() for name, content in found.items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A store of a study that nothing disturbed."""
    path = tmp_path_factory.mktemp("store") / "whole"
    mc.run(studies.plain(800), path, chunk=16)
    return path


@pytest.fixture
def store(finished, tmp_path):
    """A copy of it, to do things to."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def worker(path, samples=800):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(path), str(samples)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def killed(path, kills, samples):
    """How many of some workers on a store were killed while they wrote; each at a random moment after its start."""
    chance, count = random.Random(0), 0
    for _ in range(kills):
        before = len(list(path.glob("chunks/*.parquet")))
        process = worker(path, samples)
        try:
            while process.poll() is None and len(list(path.glob("chunks/*.parquet"))) <= before:
                time.sleep(0.005)
            time.sleep(chance.uniform(0, 0.1))
        finally:
            process.kill()
            process.communicate()
        count += process.returncode == -signal.SIGKILL
    return count


@pytest.mark.slow
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_killed_and_resumed_it_comes_to_the_same_files(tmp_path, kills):
    """SIGKILL at random moments; what the resumed study leaves is equal byte for byte."""
    path, undisturbed, samples = tmp_path / "store", tmp_path / "undisturbed", 320 * kills
    assert killed(path, kills, samples) == kills
    assert not (path / "finished.json").exists()
    assert 0 < len(Store(path).missing()) < samples // 16
    study = studies.plain(samples)
    resumed, whole = mc.run(study, path, resume=True), mc.run(study, undisturbed, chunk=16)
    assert files(path) == files(undisturbed)
    np.testing.assert_array_equal(resumed.column("sum"), whole.column("sum"))


def test_what_is_there_is_not_computed_again(store, monkeypatch):
    """A finished study computes nothing; with a chunk gone, that one alone."""
    done = []
    chunk = mc.Engine.chunk
    monkeypatch.setattr(mc.Engine, "chunk", lambda self, *at: (done.append(at), chunk(self, *at))[1])
    mc.run(studies.plain(800), store, resume=True)
    assert done == []
    gone = Store(store).file(7)
    before = gone.read_bytes()
    gone.unlink()
    mc.run(studies.plain(800), store, resume=True)
    assert done == [(112, 128)] and gone.read_bytes() == before


def test_a_store_is_plain_parquet(finished):
    """Other programs read it: numbers by name with the sample's."""
    table = pyarrow.parquet.read_table(finished / "chunks" / "00000003.parquet")
    assert table.column_names == ["sample", "diverged", "failed high", "pair[0]", "pair[1]", "sum", "input.s",
                                  "input.x[0]", "input.x[1]"]  # fmt: skip
    np.testing.assert_array_equal(table["sample"], np.arange(48, 64))
    about = json.loads((finished / "study.json").read_text())
    assert about["versions"]["lgsim"] == lgsim.__version__
    assert about["seed"] == 3 and about["samples"] == 800
    assert set(about) >= {"study", "model", "versions", "tile", "chunk", "columns"}


def test_results_of_a_store_are_those_in_memory(finished, monkeypatch):
    """Moments and counts to the last bit, quantiles within the digest's error in the level."""
    monkeypatch.setattr(results, "SORTED", 0)
    study = studies.plain(800)
    kept, memory = mc.Results.open(study, finished), mc.run(study)
    assert kept.finished
    for name in ("sum", "pair", "failed high"):
        for one in ("mean", "squared_deviations", "low", "high", "count"):
            np.testing.assert_array_equal(getattr(kept.moments(name), one), getattr(memory.moments(name), one))
    assert kept.diverged == memory.diverged
    np.testing.assert_array_equal(kept.failures("high").indices, memory.failures("high").indices)
    levels = [0.01, 0.25, 0.5, 0.99]
    found = kept.quantiles("pair", levels)
    assert found.shape == (4, 2)
    good = memory.column("pair")[memory.column("diverged") == 0]
    for k in range(2):
        reached = [np.mean(good[:, k] <= q) for q in found[:, k]]
        np.testing.assert_allclose(reached, levels, atol=2 / len(good))


def test_more_samples(store):
    """A plain random study goes on: what was there stays, and the whole is that of a longer study."""
    mc.run(studies.plain(1000), store, resume=True)
    longer = store.parent / "longer"
    mc.run(studies.plain(1000), longer, chunk=16)
    assert files(store) == files(longer)
    with pytest.raises(ValueError, match="samples: expected at least 1000 as in the store, got 800"):
        mc.run(studies.plain(800), store, resume=True)


def test_a_damaged_chunk_is_noticed(store):
    """One bit, in the numbers or in the file's structure."""
    chunk = Store(store).file(3)
    content = bytearray(chunk.read_bytes())
    numbers = content.index(Store(store).read(3).columns["sum"].tobytes())
    for place in (numbers + 50, len(content) - 20):
        flipped = bytearray(content)
        flipped[place] ^= 4
        chunk.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"00000003.parquet: the chunk is damaged; delete the file and resume"):
            mc.Results.open(studies.plain(800), store).moments("sum")
        with pytest.raises(ValueError, match=r"00000003.parquet: the chunk is damaged"):
            mc.run(studies.plain(800), store, resume=True)
    chunk.unlink()
    mc.run(studies.plain(800), store, resume=True)
    assert chunk.read_bytes() == bytes(content)


def test_no_damage_changes_a_number(store):
    """One bit of every third byte: what is read is an error, or what was written (a note of the format was hit)."""
    chunk, content, written = Store(store).file(3), Store(store).file(3).read_bytes(), Store(store).read(3)
    refused = 0
    for place in range(0, len(content), 3):
        chunk.write_bytes(content[:place] + bytes([content[place] ^ 1 << place // 3 % 8]) + content[place + 1 :])
        try:
            found = Store(store).read(3)
        except ValueError:
            refused += 1
            continue
        chex.assert_trees_all_equal(found, written)
    assert refused > len(content) / 9


@pytest.mark.parametrize("other", ["seed", "numbers", "program", "tile"])
def test_a_store_of_another_study_is_refused(store, other):
    """The message names what differs and what to do, and nothing of the store changes."""
    first = studies.plain(800)
    given = {
        "seed": lambda: studies.plain(800, seed=4),
        "numbers": lambda: mc.Study({**first.sampler.distributions, "s": mc.LogNormal(2.0, 0.2)}, studies.response,
                                    samples=800, seed=3, tile=16, failures=first.failures),
        "program": lambda: mc.Study(first.sampler.distributions, studies.response, samples=800, seed=3, tile=16,
                                    failures={"high": lambda y: y["sum"] > 1}),
        "tile": lambda: mc.Study(first.sampler.distributions, studies.response, samples=800, seed=3, tile=8,
                                 failures=first.failures),
    }[other]()  # fmt: skip
    mine, theirs = (mc.Engine(study).fingerprint for study in (first, given))
    wrong = {
        "seed": "seed (3 in the store, 4 here)", "tile": "tile (16 in the store, 8 here)"
    }.get(other, "its program, or numbers of its distributions, rollout, outputs or failures"
                 f" (fingerprint {mine} in the store, {theirs} here)")  # fmt: skip
    before = files(store)
    message = f"the store belongs to another study: {wrong}; use a new store, or the study of this one"
    with pytest.raises(ValueError, match=re.escape(message)):
        mc.run(given, store, resume=True)
    assert files(store) == before


@pytest.mark.slow
def test_a_store_of_another_model_or_version_is_refused(tmp_path):
    model = studies.pendulum()

    def study(model):
        return mc.Study({"v0": mc.Normal([0.0], 1.0)}, mc.Rollout(model, dt=0.01, steps=1), [mc.outputs.final_q],
                        samples=4, tile=4)  # fmt: skip

    mc.run(study(model), tmp_path / "s")
    heavier = model.replace(inertias=model.inertias * 1.1)
    prints = [lgsim.multibody.serialization.fingerprint(m) for m in (model, heavier)]
    with pytest.raises(ValueError, match=f"to another model: it has {prints[0]}, this run has {prints[1]}"):
        mc.run(study(heavier), tmp_path / "s", resume=True)
    about = tmp_path / "s" / "study.json"
    about.write_text(about.read_text().replace(f'"lgsim": "{lgsim.__version__}"', '"lgsim": "0.0.1"'))
    with pytest.raises(ValueError, match=rf"another version: it has lgsim 0.0.1, .* has lgsim {lgsim.__version__}"):
        mc.run(study(model), tmp_path / "s", resume=True)


def test_a_second_writer_is_refused(tmp_path):
    """While another process writes; once it is killed, the store is free."""
    path = tmp_path / "s"
    first = worker(path)
    try:
        while first.poll() is None and not list(path.glob("chunks/*.parquet")):
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGSTOP)
        with pytest.raises(RuntimeError, match=rf"another process writes to this store \(process {first.pid}\)"):
            mc.run(studies.plain(800), path, resume=True)
    finally:
        first.kill()
        first.communicate()
    assert mc.run(studies.plain(800), path, resume=True).finished


@pytest.mark.slow
def test_two_processes_at_once(tmp_path):
    """Begun in one moment on one path: one writes, the other says so, and the store is as without it."""
    path, undisturbed = tmp_path / "s", tmp_path / "undisturbed"
    both = [worker(path), worker(path)]
    errors = [process.communicate()[1] for process in both]
    codes = [process.returncode for process in both]
    assert 0 in codes
    for code, error in zip(codes, errors, strict=True):
        assert code == 0 or ("RuntimeError" in error.splitlines()[-1] and "another process writes" in error)
    mc.run(studies.plain(800), undisturbed, chunk=16)
    assert files(path) == files(undisturbed)


def test_full_disk(tmp_path, monkeypatch):
    """The error names the file; what was written is whole and readable; with room again it goes on."""
    path, writes = tmp_path / "s", []

    def full(file, content, **options):
        writes.append(file)
        if len(writes) > 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        trajectory_files.write_whole(file, content, **options)

    with monkeypatch.context() as patched:
        patched.setattr(mc.store, "write_whole", full)
        with pytest.raises(
            OSError, match=r"no space left on the disk for \d+ bytes .*free some space and resume"
        ) as caught:
            mc.run(studies.plain(800), path, chunk=16)
    assert caught.value.errno == errno.ENOSPC
    kept = mc.Results.open(studies.plain(800), path)
    assert not kept.finished and kept.samples == 19 * 16
    assert mc.run(studies.plain(800), path, resume=True).samples == 800


def test_a_file_that_the_system_cuts_off(tmp_path):
    """A real failure in the middle of a write: the limit of a file's size; no part of a file is left."""
    path = tmp_path / "s"
    mc.run(studies.plain(32), path, chunk=16)
    before = files(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
    try:
        with pytest.raises(OSError, match="no space left on the disk"):
            Store(path).write(0, mc.Engine(studies.plain(32)).chunk(0, 16))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(path) == before


def test_paths(tmp_path, finished):
    """A store that is there, a folder of something else, no store."""
    with pytest.raises(FileExistsError, match="the store exists already; resume it with resume=True"):
        mc.run(studies.plain(800), finished)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("dear")
    for resume in (False, True):
        with pytest.raises(FileExistsError, match="expected a new path or a store"):
            mc.run(studies.plain(800), tmp_path / "letters", resume=resume)
    assert [p.name for p in (tmp_path / "letters").iterdir()] == ["a.txt"]
    with pytest.raises(FileNotFoundError, match=r"study.json is missing"):
        mc.Results.open(studies.plain(800), tmp_path / "nothing")
    with pytest.raises(ValueError, match="chunk: expected 16 as in the store, got 32"):
        mc.run(studies.plain(800), finished, resume=True, chunk=32)


def test_chunks_in_any_order(finished, tmp_path):
    """What another engine does: whole chunks from anywhere, some twice, and at the end the same store."""
    study, path = studies.plain(800), tmp_path / "s"
    engine = mc.Engine(study)
    with mc.open_store(engine, path, chunk=16) as store:
        for k in [*reversed(range(50)), 3, 17]:
            start, stop = store.bounds(k)
            store.write(k, mc.Engine(study).chunk(start, stop) if k == 9 else engine.chunk(start, stop))
        assert store.missing() == []
        collect(study, store)
    assert files(path) == files(finished)
    with pytest.raises(ValueError, match="chunk 3: expected samples 48 to 64, got 0 to 16"):
        Store(path).write(3, engine.chunk(0, 16))


def test_an_interruption_keeps_what_is_there(tmp_path, monkeypatch):
    """Ctrl-C between two chunks, and within the statistics of one; after the last one the study is done."""

    def stop(after):
        def progress(running):
            if running.samples >= after:
                raise KeyboardInterrupt

        return progress

    for store in (None, tmp_path / "s"):
        found = mc.run(studies.plain(800), store, chunk=16, progress=stop(160))
        assert (found.samples, found.finished) == (160, False)
    add = RunningStatistics.add

    def pressed(running, chunk):
        add(running, chunk)
        if chunk.start == 320:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunningStatistics, "add", pressed)
        part = mc.run(studies.plain(800), tmp_path / "s", resume=True)
    assert (part.samples, part.finished) == (336, False)
    whole = mc.run(studies.plain(800), tmp_path / "s", resume=True, progress=stop(800))
    assert (whole.samples, whole.finished) == (800, True)
    np.testing.assert_array_equal(whole.moments("sum").mean, mc.run(studies.plain(800)).moments("sum").mean)


def test_a_stopped_study_has_the_samples_that_count(tmp_path):
    """Less than its last chunk; the same as in memory."""
    rule = mc.StopAtConfidence("sum", 1.0, min_samples=50)
    study = studies.plain(800, stop=rule)
    memory, kept = mc.run(study, chunk=16), mc.run(study, tmp_path / "s", chunk=400)
    again = mc.Results.open(study, tmp_path / "s")
    assert memory.samples == kept.samples == again.samples < 400
    np.testing.assert_array_equal(again.column("pair"), memory.column("pair"))
    assert jnp.asarray(again.quantiles("sum", [0.5]) - memory.quantiles("sum", [0.5])).item() < 0.1


def test_an_interrupted_study_has_the_samples_that_count(tmp_path):
    """Workers that run ahead write chunks behind the one in which the rule is met."""
    study = studies.plain(800, stop=mc.StopAtConfidence("sum", 1.0, min_samples=50))
    wanted, engine = mc.run(study, chunk=16), mc.Engine(study)
    with mc.open_store(engine, tmp_path / "s", chunk=400) as store:
        for k in range(2):
            store.write(k, engine.chunk(*store.bounds(k)))
    found = mc.Results.open(study, tmp_path / "s")
    assert not found.finished and found.samples == wanted.samples < 400
    np.testing.assert_array_equal(found.column("pair"), wanted.column("pair"))


def test_the_store_of_another_study_is_not_opened(store):
    """Differences are named: seed, columns, tile, or the fingerprint of program and numbers."""
    first = studies.plain(800)
    parts = first.sampler.distributions, studies.response
    numbers = mc.Study({**parts[0], "s": mc.LogNormal(2.0, 0.2)}, parts[1], samples=800, seed=3, tile=16,
                       failures=first.failures)  # fmt: skip
    for other, wrong in (
        (studies.plain(800, seed=4), "seed (3 in the store, 4 here); open it with the study that was run"),
        (numbers, "its program, or numbers of its distributions, rollout, outputs or failures (fingerprint"
                  f" {mc.Engine(first).fingerprint} in the store, {mc.Engine(numbers).fingerprint} here)"),
        (mc.Study(*parts, samples=800, seed=3, tile=16), "failed high (bool in the store, none here)"),
    ):  # fmt: skip
        message = f"expected the store of this study, got that of another one: {wrong}"
        with pytest.raises(ValueError, match=re.escape(message)):
            mc.Results.open(other, store)
    assert mc.Results.open(first, store).samples == 800
    # the text of a program may depend on the versions
    about = store / "study.json"
    about.write_text(about.read_text().replace(f'"lgsim": "{lgsim.__version__}"', '"lgsim": "0.0.1"'))
    assert mc.Results.open(numbers, store).samples == 800


def test_names_that_a_store_cannot_tell_apart(tmp_path):
    study = mc.Study({"x": mc.Normal(jnp.zeros(1), 1.0)}, lambda v: {"x": v["x"], "x[0]": v["x"][0]}, samples=4, tile=4)
    with pytest.raises(ValueError, match=r"outputs: expected names other than those of entries of arrays, got \['x\[0"):
        mc.run(study, tmp_path / "s")


def test_samples_of_another_place(store):
    """A chunk under the name of another one: its column of samples is checked."""
    chunks = store / "chunks"
    (chunks / "00000001.parquet").write_bytes((chunks / "00000000.parquet").read_bytes())
    with pytest.raises(ValueError, match=r"00000001.parquet: the chunk is damaged.*its samples are others"):
        Store(store).read(1)


def test_quantiles_of_a_store_are_those_in_memory(store):
    found = mc.Results.open(studies.plain(800), store)
    memory = mc.run(studies.plain(800))
    np.testing.assert_array_equal(found.quantiles("pair", [0.05, 0.5]), memory.quantiles("pair", [0.05, 0.5]))
