"""Stores that others made or damaged: no file of theirs is lost, no link is followed, damage is one kind of error."""

import io
import json
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from lgsim import montecarlo as mc
from lgsim.montecarlo.store import Store
from lgsim.support.files import TEMPORARY, file_lock
from tests.montecarlo import studies

SAMPLES = 48
DOTFILES = (".pre-commit-config.yaml", ".env.local", ".eslintrc.json", ".study.json.abcdefgh")


@pytest.fixture(scope="module")
def study():
    return studies.plain(SAMPLES)


@pytest.fixture(scope="module")
def finished(study, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "whole"
    mc.run(study, path, chunk=16)
    (path / "steps.json").write_text(json.dumps(STEPS))
    return path


@pytest.fixture
def store(finished, tmp_path):
    """A copy of it, to do things to."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def statistic(shape):
    return [np.full(shape, x).tolist() for x in (0.0, 1.0, True)]


STEPS = {
    "format": "lgsim step error 1", "method": "MK4", "order": 4, "dt": 0.1, "samples": SAMPLES, "halved": 4,
    "quartered": 2, "advice": "",
    "outputs": {"sum": {"mean": statistic(()), "std": statistic(()), "quantiles": {"0.5": statistic(())}, "order": 4}},
    "failures": {"high": [0.0, statistic(())]}, "diverged": [0.0, statistic(())],
}  # fmt: skip


def opened(study, path):
    """All that a reader of a store reads."""
    found = mc.Results.open(study, path)
    return found.moments("sum"), found.quantiles("sum", [0.5]), found.step_error


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_with_files_of_others_becomes_no_store(study, tmp_path, resume):
    """`--out .` twice deleted every file with two dots."""
    for name in DOTFILES:
        (tmp_path / name).write_text(name)
    before = content(tmp_path)
    with pytest.raises(FileExistsError, match="expected a new path or a store"):
        mc.run(study, tmp_path, resume=resume)
    assert content(tmp_path) == before


def test_only_temporary_files_of_lgsim_are_removed(study, store):
    kept = [store / name for name in DOTFILES] + [store / "chunks" / name for name in DOTFILES]
    kept += [store / "notes.txt", store / "chunks" / "lgsim-a"]
    for file in kept:
        file.write_text("dear")
    (store / f"{TEMPORARY}folder").mkdir()
    (store / f"{TEMPORARY}link").symlink_to(store / "notes.txt")
    gone = [store / f"{TEMPORARY}0123456789abcdef", store / "chunks" / f"{TEMPORARY}0123456789abcdef"]
    for file in gone:
        file.write_text("half")
    mc.run(study, store, resume=True)
    assert all(file.read_text() == "dear" for file in kept) and not any(file.exists() for file in gone)
    assert (store / f"{TEMPORARY}folder").is_dir() and (store / f"{TEMPORARY}link").is_symlink()


def test_the_rest_of_one_that_was_killed_at_its_start_becomes_a_store(study, tmp_path):
    (tmp_path / "chunks").mkdir()
    for name in ("lock", f"{TEMPORARY}00", f"chunks/{TEMPORARY}00"):
        (tmp_path / name).write_text("77\n")
    assert mc.run(study, tmp_path, chunk=16).finished


@pytest.mark.parametrize("name", ["chunks/.env.local", "chunks/a", "lock", f"{TEMPORARY}link"])
def test_another_rest_does_not(study, tmp_path, name):
    """A file in the folder of the chunks, a lock that is a letter, a link that looks like a temporary file."""
    (tmp_path / "chunks").mkdir()
    if name.startswith(TEMPORARY):
        (tmp_path / name).symlink_to(tmp_path / "chunks")
    else:
        (tmp_path / name).write_text("a letter")
    before = content(tmp_path)
    with pytest.raises(FileExistsError, match="expected a new path or a store"):
        mc.run(study, tmp_path)
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["lock", "study.json", "finished.json", "steps.json", "chunks/00000001.parquet", "chunks"]
)
def test_no_link_is_followed(study, store, tmp_path, name):
    """Neither to read nor to write: what it leads to stays as it is."""
    target = tmp_path / "of another" / Path(name).name
    target.parent.mkdir()
    shutil.move(store / name, target)
    if name == "chunks":
        (target / ".env.local").write_text("dear")
        (target / "00000002.parquet").unlink()
    (store / name).symlink_to(target)
    before = content(target.parent)
    # a rollout that is a function has no steps: a run does not read that file
    readers = {"lock": [mc.run], "steps.json": [opened]}.get(name, [mc.run, opened])
    for read in readers:
        with pytest.raises(ValueError, match=f"{Path(name).name}: expected .*, got a link") as caught:
            read(study, store, **({"resume": True} if read is mc.run else {}))
        assert type(caught.value) is ValueError
    assert content(target.parent) == before and (store / name).is_symlink()


def test_links_in_a_folder_without_a_store(study, tmp_path):
    """A lock and chunks that lead elsewhere, in place of the rest of a store."""
    away = tmp_path / "away"
    away.mkdir()
    (away / "letter").write_text("dear")
    for name, target in (("lock", "letter"), ("chunks", ".")):
        path = tmp_path / f"with {name}"
        path.mkdir()
        (path / name).symlink_to(away / target)
        with pytest.raises(FileExistsError, match="expected a new path"):
            mc.run(study, path)
    assert {file.name: file.read_text() for file in away.iterdir()} == {"letter": "dear"}


def test_the_lock_of_another_study_is_not_written(study, store):
    (store / "lock").write_text("what another wrote")
    for wrong in (studies.plain(SAMPLES, seed=4), studies.plain(SAMPLES - 16)):
        with pytest.raises(ValueError, match=r"another study|expected at least 48"):
            mc.run(wrong, store, resume=True)
    assert (store / "lock").read_text() == "what another wrote"
    mc.run(study, store, resume=True)
    assert (store / "lock").read_text() == f"{os.getpid()}\n"


def test_a_pipe_in_a_store_is_not_waited_for(study, store):
    for name in ("study.json", "finished.json", "chunks/00000000.parquet", "lock"):
        moved = store / f"{name} moved"
        (store / name).rename(moved)
        os.mkfifo(store / name)
        with pytest.raises(ValueError, match="expected a regular file, got a pipe"):
            mc.run(study, store, resume=True)
        (store / name).unlink()
        moved.rename(store / name)


def test_a_store_that_another_process_began_meanwhile(study, tmp_path, monkeypatch):
    """Without resume it is not gone on with, though nothing was there when this process looked first."""
    path, entered = tmp_path / "s", threading.Event()

    def late(place):
        if not entered.is_set():
            entered.set()
            mc.run(studies.plain(SAMPLES, seed=9), path, chunk=16)
        return file_lock(place)

    monkeypatch.setattr(mc.engine, "file_lock", late)
    with pytest.raises(FileExistsError, match="the store exists already"):
        mc.run(study, path)
    assert Store(path).metadata.seed == 9


DEEP = "[" * 100_000
WRONG_COUNTS = ("-5", "0", "Infinity", "NaN", "1e308", "1.5", "true", '"8"', "null", "[8]", "1" * 400, DEEP)


@pytest.mark.parametrize("key", ["samples", "tile", "chunk", "seed"])
def test_counts_that_are_none(study, store, key):
    file = store / "study.json"
    plain = json.loads(file.read_text())
    for value in WRONG_COUNTS:
        if (key, value) == ("seed", "0"):
            continue
        file.write_text(json.dumps({**plain, key: "HERE"}).replace('"HERE"', value))
        damaged(study, store, "study.json: expected (JSON|the output of lgsim.montecarlo), got a damaged file")


@pytest.mark.parametrize(
    "change",
    [
        {"versions": []}, {"versions": {"jax": 1}}, {"study": 5}, {"columns": {}}, {"columns": {"sum": 1}},
        {"columns": {"sum": ["float64", [-1]]}}, {"columns": {"sum": ["float64", [True]]}}, {"columns": [1]},
        {"columns": {"sum": ["float64", [10**6, 10**6]]}}, {"columns": {"sum": ["O", []]}}, {"columns": None},
        {"columns": {"sum": ["nothing", []]}}, {"columns": {"sum": [None, []]}}, {"columns": {"sum": ["i4,f8", []]}},
        {"more": 1}, {"model": None}, {"format": 1}, {"backend": {}},
    ],
    ids=str,
)  # fmt: skip
def test_metadata_of_other_types(study, store, change):
    file = store / "study.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    damaged(study, store, "study.json: expected the output of lgsim.montecarlo, got a damaged file")


@pytest.mark.parametrize("key", ["study", "versions", "columns", "samples", "format"])
def test_metadata_without_a_key(study, store, key):
    file = store / "study.json"
    plain = json.loads(file.read_text())
    del plain[key]
    file.write_text(json.dumps(plain))
    damaged(study, store, "study.json: expected the output of lgsim.montecarlo, got a damaged file")


@pytest.mark.parametrize("name", ["study.json", "finished.json", "steps.json"])
def test_files_that_are_no_json(study, store, name):
    for bad in (b"", b"\xff\xfe\x00", DEEP.encode(), b'{"samples": ', b"5", b"[]", b"null", b'"x"'):
        (store / name).write_bytes(bad)
        damaged(study, store, f"{name}: ")


def test_a_number_of_samples_that_is_none(study, store):
    for value in (*WRONG_COUNTS, str(SAMPLES + 1)):
        (store / "finished.json").write_text(f'{{"samples": {value}}}')
        damaged(study, store, "finished.json: ")


@pytest.mark.parametrize(
    "change",
    [
        {"outputs": {"sum": 1}}, {"outputs": {"other": STEPS["outputs"]["sum"]}}, {"order": "4"}, {"dt": []},
        {"outputs": {"pair": STEPS["outputs"]["sum"]}}, {"halved": -1}, {"quartered": True}, {"samples": 1e308},
        {"outputs": {"sum": {**STEPS["outputs"]["sum"], "order": [1, 2]}}}, {"method": None}, {"advice": 3},
        {"outputs": {"sum": {**STEPS["outputs"]["sum"], "mean": [[1, 2], 1, True]}}}, {"diverged": [0, []]},
        {"outputs": {"sum": {**STEPS["outputs"]["sum"], "mean": [[[1], 2], 1, True]}}}, {"failures": [1]},
        {"outputs": {"sum": {**STEPS["outputs"]["sum"], "quantiles": {"low": statistic(())}}}}, {"diverged": "no"},
        {"failures": {"low": [0.0, statistic(())]}}, {"diverged": [0.0, statistic((2,))]}, {"dt": 10**400},
    ],
    ids=lambda change: next(iter(change)),
)  # fmt: skip
def test_an_error_of_the_steps_of_other_types(study, store, change):
    (store / "steps.json").write_text(json.dumps({**STEPS, **change}))
    damaged(study, store, "steps.json: the file is damaged; delete it and resume the study")


def test_the_error_of_the_steps_is_read(study, store):
    assert opened(study, store)[2].outputs["sum"]["mean"].order == 4


def damaged(study, store, match):
    with pytest.raises(ValueError, match=match) as caught:
        opened(study, store)
    assert type(caught.value) is ValueError and str(store) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 600


def rewritten(file, change):
    """Write the table of a chunk after a change of it, with the checksum that it had."""
    table = parquet.read_table(file)
    parquet.write_table(change(table).replace_schema_metadata(table.schema.metadata), file, compression="none")


def column(table, name, value):
    return table.set_column(table.column_names.index(name), name, value)


CHANGES = {
    "a column less": lambda t: t.drop_columns(["sum"]),
    "a column more": lambda t: t.append_column("more", t["sum"]),
    "of another name": lambda t: t.rename_columns(["sums" if name == "sum" else name for name in t.column_names]),
    "texts": lambda t: column(t, "sum", arrow.array(["1.0"] * 16)),
    "float32": lambda t: column(t, "sum", t["sum"].cast(arrow.float32())),
    "lists": lambda t: column(t, "sum", arrow.array([[1.0]] * 16)),
    "nulls": lambda t: column(t, "sum", arrow.array([None] * 16, arrow.float64())),
    "more rows": lambda t: arrow.concat_tables([t, t]),
    "no rows": lambda t: t.slice(0, 0),
    "other numbers": lambda t: column(t, "sum", arrow.array(np.arange(16.0))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_chunk_of_something_else(study, store, change):
    rewritten(Store(store).file(1), CHANGES[change])
    damaged(study, store, r"00000001.parquet: the chunk is damaged; delete the file and resume the study")


def test_a_chunk_that_unpacks_to_much_more(study, store):
    """The last bytes of a small file promise a chunk of 2^26 samples; nothing of them is read."""
    plain = json.loads((store / "study.json").read_text())
    many = 2**20
    for name in ("chunk", "samples"):
        plain[name] = many
    (store / "study.json").write_text(json.dumps(plain))
    file = io.BytesIO()
    table = parquet.read_table(Store(store).file(0))
    big = {name: arrow.repeat(table[name][0], many) for name in table.column_names}
    parquet.write_table(arrow.table(big), file, compression="zstd")
    assert len(file.getvalue()) < 2**16
    Store(store).file(0).write_bytes(file.getvalue())
    damaged(study, store, r"00000000.parquet: the chunk is damaged; .*\(it is compressed\)")


def test_a_store_that_promises_many_chunks(study, store):
    """It is read for as long as its chunks are there: 2^32 paths would take minutes."""
    plain = json.loads((store / "study.json").read_text())
    (store / "study.json").write_text(json.dumps({**plain, "samples": 2**32 - 1}))
    start = time.perf_counter()
    opened(study, store)
    assert mc.Results.open(study, store).samples == SAMPLES and time.perf_counter() - start < 20


@pytest.mark.slow
def test_flipped_bytes(study, store):
    """300 bytes in files of a store, one after another: what is read is right, or refused in one sentence."""
    chance, expected = np.random.default_rng(0), opened(study, store)
    names = ["study.json", "finished.json", "steps.json", "chunks/00000000.parquet"]
    for _ in range(300):
        file = store / names[chance.integers(len(names))]
        before = file.read_bytes()
        flipped = bytearray(before)
        flipped[chance.integers(len(flipped))] = chance.integers(256)
        file.write_bytes(flipped)
        try:
            found = opened(study, store)
            if file.suffix == ".parquet":
                assert found[0].mean == expected[0].mean
        except ValueError as error:
            assert type(error) is ValueError and len(str(error).splitlines()) == 1
        file.write_bytes(before)
