"""The benchmark of a GPU counts what is right alone, holds bounds on their card alone, and keeps rows when it ends."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.harness import Report

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def gpu(monkeypatch):
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    import gpu

    yield gpu
    for name in set(sys.modules) - before:
        del sys.modules[name]


def speed(path="kernels", per_s=3e9, task="forward dynamics", section="kernels", **more):
    given = {"robot": "Panda", "dtype": "float32", "compile_s": 2.0, **more}
    return {"section": section, "path": path, "task": task, "per_s": per_s, **given}


def states(report):
    return {row[0]: row[-1] for row in report.tables[-1]["rows"]}


FORWARD = "forward dynamics a second, Panda, float32, by a kernel"


@pytest.mark.parametrize(
    "held, shown, per_s, state",
    [(True, True, 3e9, "holds"), (True, True, 1e9, "BROKEN"), (False, True, 1e9, "not held, no H200"),
     (False, False, 1e9, "not measured")],
)  # fmt: skip
def test_bounds_are_held_on_their_card_alone(held, shown, per_s, state, gpu):
    report = Report("gpu", quick=False)
    gpu._bounds(report, [speed(per_s=per_s), speed(path="text", per_s=5e8)], held, shown)
    assert states(report)[FORWARD] == state
    assert len(report.bounds) == (len(states(report)) if held else 0)
    # what is missing on the card breaks its bound
    assert states(report)["MK4 step a second, Panda, float32, by a kernel"] == ("BROKEN" if held else "not measured")


def test_a_gradient_and_a_chunk_are_compared_with_the_rollout_of_their_way(gpu):
    rows = [
        speed(path, rate, task, "motions")
        for path, rates in {"kernels": (1e9, 2.5e8, 7e8), "XLA": (2e7, 3e6, 1.8e7)}.items()
        for rate, task in zip(rates, ("rollout", "gradient of a rollout", "Monte Carlo chunk"), strict=True)
    ]
    report = Report("gpu", quick=False)
    gpu._bounds(report, rows, held=True, shown=True)
    found = states(report)
    assert found["gradient in rollouts, kernels"] == "holds" and found["gradient in rollouts, XLA"] == "BROKEN"
    assert found["Monte Carlo chunk in rollouts' rate, kernels"] == "BROKEN"
    assert found["Monte Carlo chunk in rollouts' rate, XLA"] == "holds"


def test_what_is_not_right_does_not_count(gpu):
    right = {"kernels": set(), "XLA": {("Panda", "float32")}}
    assert not gpu._counts(speed(), right) and gpu._counts(speed("XLA"), right)
    assert gpu._counts(speed("text", relative_error=1e-5), right)
    assert not gpu._counts(speed("XLA", dtype="float64"), right) and not gpu._counts(speed("XLA", robot="Talos"), right)
    for error in (2e-4, float("nan")):
        assert not gpu._counts(speed("text", relative_error=error), right)


def truth(error, taken=True, dtype="float32"):
    row = {"section": "truth", "path": "kernels", "task": "products", "robot": "Panda", "dtype": dtype}
    return row | {"relative_error": error, "by_kernel": taken}


@pytest.mark.parametrize(
    "rows, sound, right",
    [([truth(1e-6)], True, {"float32"}), ([truth(1e-6), truth(1e-13, False, "float64")], True, {"float32", "float64"}),
     ([], True, set()), ([truth(1e-6)], False, set()), ([truth(1e-6), truth(1e-3)], True, set()),
     ([truth(1e-11, dtype="float64")], True, set()), ([truth(float("nan"))], True, set()),
     ([truth(1e-6, taken=False)], True, set())],
)  # fmt: skip
def test_truth(rows, sound, right, gpu, tmp_path):
    run = gpu.Run(Report("gpu", quick=True), tmp_path / "rows.jsonl")
    run.path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert gpu._truth(run, "kernels", sound) == {("Panda", dtype) for dtype in right}


@pytest.mark.slow
def test_a_section_that_fails_says_why(gpu, tmp_path, monkeypatch):
    run = gpu.Run(Report("gpu", quick=False), tmp_path / "rows.jsonl")
    assert gpu._process("nonsense", run.path, 60, []) == ("failed with 1: KeyError: 'nonsense'", True)
    assert gpu._process("card", run.path, 4, []) == ("not measured, no time is left", False)
    run.path.write_text(json.dumps({"section": "card", "device": "a"}) + "\n" + '{"section": "cut off')
    assert run.rows() == [{"section": "card", "device": "a"}]
    monkeypatch.setenv("LGSIM_ROBOTS", str(tmp_path))
    problem, failed = gpu._process("truth of XLA", run.path, 60, [])
    assert failed and "FileNotFoundError" in problem and "panda.urdf" in problem


@pytest.mark.slow
@pytest.mark.oracle
def test_a_section_that_ends_by_its_clock_keeps_its_rows(gpu, tmp_path):
    run = gpu.Run(Report("gpu", quick=False), tmp_path / "rows.jsonl")
    run.path.write_text(json.dumps({"section": "card", "device": "a"}) + "\n")
    assert gpu._process("truth of XLA", run.path, 5, []) == ("ended by its clock after 5 s", False)
    assert len(run.rows("card")) == 1
