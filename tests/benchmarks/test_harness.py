"""The benchmarks' harness fails when it should, measures what it says, and writes a record whole or not at all."""

import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import harness

FOLDER = Path(harness.__file__).parent


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def leave(run, *argv):
    with pytest.raises(SystemExit) as leaving:
        harness.main(run, "study", argv)
    return leaving.value.code


def sound(report):
    report.table("Times", ["who", "us", "n"], [["ours", 1.23456, 7], ["theirs", float("nan"), np.int64(8)]])
    report.figure("ours", np.float32(1.5), "us")
    report.bound("speed", 4.0, at_least=3.5)
    report.bound("error", 1e-9, at_most=1e-8)


@pytest.mark.parametrize("argv", [(), ("--quick",)])
def test_success_prints_a_table_and_one_last_line(argv, results, capsys):
    assert leave(sound, *argv) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:6] == ["Times", "who        us  n", "------  -----  -", "ours    1.235  7", "theirs    nan  8"]
    assert lines[-1] == "study: ours 1.5 us, 2 of 2 bounds hold"


def test_only_a_full_run_writes_a_record(results):
    leave(sound, "--quick")
    assert not results.exists()
    leave(sound)
    record = json.loads((results / "study.json").read_text())
    assert [path.name for path in results.iterdir()] == ["study.json"]
    assert record["holds"] is True and record["figures"] == {"ours": {"value": 1.5, "unit": "us"}}
    assert record["tables"][0]["rows"] == [["ours", 1.23456, 7], ["theirs", "nan", 8]]
    assert record["machine"]["versions"]["jax"] == jax.__version__
    assert set(record["machine"]["versions"]) == {"python", *harness.PACKAGES}
    assert record["machine"]["device"]["platform"] == jax.devices()[0].platform
    assert record["machine"]["cpu"] and record["machine"]["platform"]
    assert datetime.fromisoformat(record["date"]).tzinfo and record["lowering"] in ("LLVM", "XLA")
    assert record["commit"] is None or re.fullmatch(r"[0-9a-f]{8,}\+?", record["commit"])


@pytest.mark.parametrize(
    ("value", "limits"),
    [(2.0, {"at_most": 1.0}), (2.0, {"at_least": 3.0}), (float("nan"), {"at_most": 1.0, "at_least": 0.0})],
)
def test_broken_bound_is_named_and_fails(value, limits, results, capsys):
    def run(report):
        sound(report)
        assert not report.bound("drift", value, **limits)

    assert leave(run) == harness.BROKEN == 3
    out = capsys.readouterr().out
    assert "BOUND BROKEN: drift" in out and out.splitlines()[-1].endswith("2 of 3 bounds hold")
    assert json.loads((results / "study.json").read_text())["holds"] is False


def test_run_without_a_bound_fails(results, capsys):
    assert leave(lambda report: report.figure("x", 1.0)) == harness.BROKEN
    assert "no bound was checked" in capsys.readouterr().out


def test_bound_without_a_limit_is_an_error():
    with pytest.raises(ValueError, match="expected at_most or at_least"):
        harness.Report("study", quick=True).bound("drift", 1.0)


def test_failed_write_leaves_the_old_record(tmp_path, monkeypatch):
    path = tmp_path / "study.json"
    harness.write_whole(path, "old")

    def full_disk(*_):
        raise OSError("no space left")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        harness.write_whole(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_interleave_gives_medians_in_turns():
    order = []

    def wait(name, seconds):
        return lambda: (order.append(name), time.sleep(seconds))[0]

    medians = harness.interleave({"short": wait("short", 0.002), "long": wait("long", 0.02)}, 3, least=1e-9)
    assert 0.002 <= medians["short"] < 0.015 < 0.02 <= medians["long"] < 0.2
    # two calls each beforehand, then turns in which the first place changes
    assert order == ["short"] * 2 + ["long"] * 2 + ["short", "long", "long", "short", "short", "long"]


def test_compile_time_is_apart():
    program, seconds = harness.compiled(lambda x: x @ x, jnp.eye(3))
    assert seconds > 0
    np.testing.assert_array_equal(program(jnp.eye(3)), np.eye(3))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system cannot pin a process")
def test_a_benchmark_is_pinned_before_jax_starts_and_an_importer_is_not(tmp_path):
    tell = "import harness, os; print(harness.CORE, harness.JAX_CAME_FIRST, *os.sched_getaffinity(0))"
    (tmp_path / "harness.py").write_text((FOLDER / "harness.py").read_text())
    (tmp_path / "study.py").write_text(tell)
    everyone = sorted(os.sched_getaffinity(0))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def told(*command):
        run = subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        return run.stdout.split()

    assert told("study.py") == [str(everyone[-1]), "False", str(everyone[-1])]
    assert told("-c", tell) == ["None", "False", *map(str, everyone)]
