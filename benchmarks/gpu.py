"""lgsim on a GPU in 10 minutes: correctness, then speed, with lgsim's own kernels and with XLA only.

    python benchmarks/gpu.py --quick                 a dry run, also without a GPU: small batches, no record
    python benchmarks/gpu.py --out folder            all of it; needs a GPU, and no network

It needs JAX with its plugin for CUDA; `cupy` for the kernels' text without XLA; the robots by the package
example-robot-data or as files, LGSIM_ROBOTS=folder. Each section is a process with its own time limit, and writes its
rows at once to `gpu_rows.jsonl` in the folder (benchmarks/results by default), so that an early end loses nothing.

The first section compares 512 states with float64 on the host, by `lgsim.cuda_kernels` and by XLA. A function with
wrong results is not timed, and the benchmark fails. Bounds on speed are those of an H200; on other GPUs they are shown
and not enforced.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import argparse
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CARD, TOTAL = "H200", 560
LIMITS = {
    "card": 40, "truth of kernels": 150, "truth of XLA": 90, "text": 90, "kernels": 90, "Pallas": 60, "XLA": 90,
    "float64": 40, "motions": 120, "study": 90,
}  # fmt: skip
"""Time limits of the sections, s, of TOTAL for all of them; the most informative ones first."""
KERNELS = ("kernels", "text", "Pallas")
"""The ways to run a kernel of lgsim: in XLA's programs, its text by cupy, and by Pallas."""
ACCURACY = {"float32": 1e-4, "float64": 1e-12}
# (ways, robot, dtype, function): lower bounds of states or steps per second
SPEED = {
    (KERNELS, "Panda", "float32", "forward dynamics"): 2e9,
    (KERNELS, "Panda", "float64", "forward dynamics"): 8e8,
    (KERNELS, "ANYmal", "float32", "forward dynamics"): 1e9,
    (KERNELS, "Talos", "float32", "forward dynamics"): 2e8,
    (KERNELS, "Panda", "float32", "MK4 step"): 5e8,
    (KERNELS, "ANYmal", "float32", "MK4 step"): 2e8,
    (KERNELS, "Panda", "float32", "products"): 8e8,
    (("XLA",), "Panda", "float32", "forward dynamics"): 1e8,
    (("XLA",), "Panda", "float32", "MK4 step"): 3e7,
}
GRADIENT, COMPILE, CHUNK = 5.0, 10.0, 0.8
"""Bounds: a gradient relative to a rollout, seconds to compile a kernel, rate of a chunk relative to the rollout."""


class Run:
    """The rows of all sections, read from their file, and the sections that failed."""

    def __init__(self, report, path):
        self.report, self.path, self.start, self.failed = report, path, time.monotonic(), []
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")

    def rows(self, section=None):
        """The rows of one section, or of all."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [row for row in found if section in (None, row["section"])]

    def section(self, name, *words):
        """Run a section within its time limit and print its rows; returns True if it did not fail."""
        known = len(self.rows())
        limit = min(LIMITS[name], TOTAL - (time.monotonic() - self.start))
        print(f"\n{name}: {limit:.0f} s at most", file=sys.stderr, flush=True)
        problem, failed = _process(name, self.path, limit, [*(["quick"] if self.report.quick else []), *words])
        self.failed += [name] * failed
        rows = self.rows()[known:]
        for row in rows:
            if "note" in row:
                print(f"{name}: {row['note']}")
        if problem:
            print(f"{name}: {problem}")
        rows = [{key: value for key, value in row.items() if key != "section"} for row in rows if "note" not in row]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        if rows:
            self.report.table(name, columns, [[_short(row.get(column, "-")) for column in columns] for row in rows])
        return not failed


def _short(value):
    return "-" if value is None else value


def _process(name, rows, limit, words):
    """(reason why a section did not finish, or "", True if it failed)."""
    if limit < 5:
        return "not measured, no time is left", False
    paths = [str(FOLDER), os.environ.get("PYTHONPATH", "")]
    environment = {
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false", **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }  # fmt: skip
    platforms = environment.get("JAX_PLATFORMS", "")
    if platforms and "cpu" not in platforms:
        environment["JAX_PLATFORMS"] = f"{platforms},cpu"  # the reference is computed here
    command = [sys.executable, "-m", "cases.gpu.sections", name, str(rows), *words]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, env=environment, stderr=said, start_new_session=True)
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # the process group that was started here
            process.wait()
            return f"ended by its clock after {limit:.0f} s", False
        said.seek(0)
        lines = [line for line in said.read().splitlines() if line.strip()]
    # JAX's tracebacks end with its own remarks
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception|Interrupt)\b", line)]
    return (f"failed with {code}: {(errors or lines or [''])[-1][:300]}", True) if code else ("", False)


def _truth(run, path, sound):
    """The (robot, dtype) for which a way is correct, with a bound on each row; empty if a row is wrong."""
    rows = [row for row in run.rows("truth") if row["path"] == path]
    right = [sound and bool(rows)]
    for row in rows:
        name = f"error by {path}, {row['task']}, {row['robot']}, {row['dtype']}"
        right.append(run.report.bound(name, row["relative_error"], at_most=ACCURACY[row["dtype"]]))
    if path == "kernels":
        taken = sum(row["by_kernel"] for row in rows)
        right.append(run.report.bound("functions that a kernel took", taken, at_least=1))
    return {(row["robot"], row["dtype"]) for row in rows} if all(right) else set()


def run(report):
    """All sections, and the bounds."""
    if not report.quick and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))  # the GPU is compared with the host
    with tempfile.TemporaryDirectory() as folder:
        _all(Run(report, Path(folder if report.quick and OUT is None else OUT or harness.RESULTS) / "gpu_rows.jsonl"))


def _all(run):
    report = run.report
    run.section("card")
    card = next(iter(run.rows("card")), {"device": "none", "capability": 0})
    on_card = card["capability"] > 0
    if not on_card and not report.quick:
        sys.exit("benchmarks/gpu.py: JAX finds no GPU; --quick is a dry run without one")
    right = {"kernels": set()}
    if on_card:
        right["kernels"] = _truth(run, "kernels", run.section("truth of kernels"))
    right["XLA"] = _truth(run, "XLA", run.section("truth of XLA"))
    words = ["kernels"] if right["kernels"] else []
    for name in ("text", "kernels", "Pallas", "XLA", "float64", "motions", "study"):
        if name != "XLA" or right["XLA"]:
            run.section(name, *words)
    for row in run.rows():
        if row.get("path") in ("text", "Pallas") and "relative_error" in row:
            name = f"error by {row['path']}, {row['task']}, {row['robot']}, {row['dtype']}, {row.get('block', 128)}"
            report.bound(name, row["relative_error"], at_most=ACCURACY[row["dtype"]])
    held = CARD in card["device"] and not report.quick
    _bounds(report, [row for row in run.rows() if _counts(row, right)], held, on_card and not report.quick)
    report.bound(f"sections that failed {run.failed}", len(run.failed), at_most=0)
    report.figure("sections' time", time.monotonic() - run.start, "s")


def _counts(row, right):
    error = row.get("relative_error")
    if error is not None and not error <= ACCURACY[row["dtype"]]:
        return False
    if row["section"] == "truth" or "per_s" not in row:
        return False
    return row["path"] not in right or (row["robot"], row["dtype"]) in right[row["path"]]


def _bounds(report, rows, held, shown):
    """A table of all bounds on speed; they are enforced on the GPU that they are for."""
    found = []

    def bound(name, value, way="-", **limit):
        ((kind, number),) = limit.items()
        state = "not measured"
        if held:
            state = "holds" if report.bound(name, value, **limit) else "BROKEN"
        elif shown and math.isfinite(value):
            state = f"not held, no {CARD}"
        found.append([name, value if shown else "-", way, f"{kind.replace('_', ' ')} {number:g}", state])

    for (ways, robot, dtype, task), least in SPEED.items():
        fit = [r for r in rows if r["path"] in ways and (r["robot"], r["dtype"], r["task"]) == (robot, dtype, task)]
        best = max(fit, key=lambda row: row["per_s"], default={"per_s": math.nan, "path": "-"})
        title = f"{task} a second, {robot}, {dtype}, {'by XLA only' if ways == ('XLA',) else 'by a kernel'}"
        bound(title, best["per_s"], best["path"], at_least=least)
    compiling = [row["compile_s"] for row in rows if row["path"] in ("kernels", "text")]
    bound("seconds to compile a kernel", max(compiling, default=math.nan), at_most=COMPILE)
    for path in ("kernels", "XLA"):
        own = {row["task"]: row for row in rows if row["section"] == "motions" and row["path"] == path}
        if path == "kernels" and not own:
            continue  # only the motions by XLA exist
        per = {task: row["per_s"] for task, row in own.items()}
        rollout = per.get("rollout", math.nan)
        bound(f"gradient in rollouts, {path}", rollout / per.get("gradient of a rollout", math.nan), at_most=GRADIENT)
        bound(f"Monte Carlo chunk in rollouts' rate, {path}", per.get("Monte Carlo chunk", math.nan) / rollout,
              at_least=CHUNK)  # fmt: skip
    report.table(f"Bounds on speed, of an {CARD}", ["bound", "found", "way", "limit", "state"], found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--out", type=Path, help="folder for the rows and the record")
    given, rest = parser.parse_known_args()
    OUT = given.out
    if OUT is not None:
        harness.RESULTS = OUT
    harness.main(run, "gpu", rest)
