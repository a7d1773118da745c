"""Shared by the benchmarks: one core, interleaved medians, tables, bounds, and a record of a full run.

A benchmark is a file of this folder that runs on its own:

    import harness            # first: it pins the core before JAX starts its threads

    def run(report):
        seconds = harness.interleave({"ours": ours, "theirs": theirs}, repeats=5 if report.quick else 50)
        report.table("Cost", ["library", "µs"], [[name, 1e6 * s] for name, s in seconds.items()])
        report.figure("ours", 1e6 * seconds["ours"], "µs")
        report.bound("theirs / ours", seconds["theirs"] / seconds["ours"], at_least=3.5)

    harness.main(run, "cost")    # under if __name__ == "__main__"

It takes `--quick`, prints a last line of figures, and exits with 0 only if it checked a bound and all its bounds hold;
with 3 if it finished and a bound does not hold. A full run writes benchmarks/results/<name>.json atomically, with its
date, the commit of the code and the lowering on CPU.
"""

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

RESULTS = Path(__file__).parent / "results"
BROKEN = 3
PACKAGES = ("jax", "jaxlib", "lgsim", "numpy", "diffrax", "jaxlie", "mujoco", "pin", "scipy")


def pin_to_one_core() -> int | None:
    """Pin this process to the last core that it may use; returns its number, or None where pinning is unsupported."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        return max(os.sched_getaffinity(0))
    return None


# Threads inherit the affinity at their start, and XLA sizes its pools by it: hence the pinning at import. A test that
# imports this module keeps all its cores.
JAX_CAME_FIRST = "jax" in sys.modules
SCRIPT = Path(getattr(sys.modules["__main__"], "__file__", None) or ".").resolve()
CORE = pin_to_one_core() if SCRIPT.parent == Path(__file__).resolve().parent else None


class Report:
    """Tables, figures and bounds of a run."""

    def __init__(self, name: str, quick: bool):
        self.name, self.quick = name, quick
        self.tables: list[dict] = []
        self.figures: dict[str, dict] = {}
        self.bounds: list[dict] = []

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table and keep it for the record."""
        self.tables.append({"title": title, "columns": list(columns), "rows": [list(row) for row in rows]})
        cells = [list(columns), *([_text(value) for value in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        cells.insert(1, ["-" * width for width in widths])
        print(f"\n{title}")
        for first, *others in cells:
            fields = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            print("  ".join([f"{first:<{widths[0]}}", *fields]).rstrip(), flush=True)

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """Add a number to the last line."""
        self.figures[name] = {"value": float(value), "unit": unit}

    def bound(self, name: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> bool:
        """Check a value against its limits. Returns True if it holds; NaN never does."""
        if at_most is None and at_least is None:
            raise ValueError(f"bound {name!r}: expected at_most or at_least, got neither")
        value = float(value)
        holds = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        self.bounds.append({"name": name, "value": value, "at_most": at_most, "at_least": at_least, "holds": holds})
        return holds

    def last_line(self) -> str:
        """The figures, and the number of bounds that hold."""
        figures = [f"{name} {_text(f['value'])} {f['unit']}".rstrip() for name, f in self.figures.items()]
        kept = sum(bound["holds"] for bound in self.bounds)
        return f"{self.name}: {', '.join([*figures, f'{kept} of {len(self.bounds)} bounds hold'])}"


def main(run: Callable[[Report], None], name: str, argv: Sequence[str] | None = None) -> NoReturn:
    """Run a benchmark as a command; exits with 0 if its bounds hold, else with BROKEN."""
    parser = argparse.ArgumentParser(description=f"lgsim benchmark {name}")
    parser.add_argument(
        "--quick", action="store_true", help="make a short run with the same bounds, and write no record"
    )
    report = Report(name, quick=parser.parse_args(argv).quick)
    if CORE is not None and JAX_CAME_FIRST:
        print("note: JAX was imported before the harness, so that its threads may use other cores")
    run(report)
    for bound in report.bounds:
        if not bound["holds"]:
            limits = [f"{k.replace('_', ' ')} {bound[k]:g}" for k in ("at_most", "at_least") if bound[k] is not None]
            print(f"BOUND BROKEN: {bound['name']} = {_text(bound['value'])}, expected {' and '.join(limits)}")
    if not report.bounds:
        print("BOUND BROKEN: no bound was checked")
    holds = bool(report.bounds) and all(bound["holds"] for bound in report.bounds)
    if not report.quick:
        content = {"figures": report.figures, "bounds": report.bounds, "tables": report.tables}
        about = {"date": _now(), "commit": _commit(), "lowering": _lowering(), "machine": machine()}
        record = _plain({"benchmark": name, "holds": holds, **about, **content})
        write_whole(RESULTS / f"{name}.json", json.dumps(record, indent=1, allow_nan=False) + "\n")
    print(report.last_line(), flush=True)
    sys.exit(0 if holds else BROKEN)


def interleave(
    functions: Mapping[str, Callable[[], Any]],
    repeats: int,
    *,
    least: float = 2e-3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of a call to each function, which are compiled first.

    The functions take turns of about `least` seconds, so that a slow moment affects all of them. With the clock
    `time.process_time`, other processes on the core do not count.
    """
    import jax

    calls, names = {}, list(functions)
    for name, function in functions.items():
        jax.block_until_ready(function())
        calls[name] = max(1, math.ceil(least / max(_seconds(function, 1, clock), 1e-9)))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(repeats):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            samples[name].append(_seconds(functions[name], calls[name], clock) / calls[name])
    return {name: statistics.median(values) for name, values in samples.items()}


def compiled(function: Callable, *args: Any, options: dict | None = None) -> tuple[Callable, float]:
    """The jitted `function` compiled for `args`, and the seconds that tracing and compiling took."""
    import jax

    start = time.perf_counter()
    program = jax.jit(function, compiler_options=options).lower(*args).compile()
    return program, time.perf_counter() - start


def machine() -> dict:
    """The device, the processor and the versions of the packages."""
    import jax

    first = jax.devices()[0]
    return {
        "device": {"platform": first.platform, "kind": first.device_kind, "count": jax.device_count()},
        "cpu": _cpu_model(),
        "pinned_to_core": CORE,
        "platform": platform.platform(),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
    }


def write_whole(path: Path, text: str) -> None:
    """Write a text file atomically: a reader finds the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _now():
    return datetime.now(UTC).isoformat(timespec="seconds")


def _commit():
    """The commit of the working tree, with `+` where tracked files are changed; None without git."""
    if shutil.which("git") is None:
        return None
    command = ["git", "-C", str(Path(__file__).parents[1])]
    head = subprocess.run([*command, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True)
    if head.returncode:
        return None
    changed = subprocess.run([*command, "diff", "--quiet", "HEAD", "--", "lgsim"], capture_output=True).returncode
    return head.stdout.strip() + "+" * bool(changed)


def _lowering():
    """The compiler of lgsim's algorithms on CPU by default: LLVM with the extra `fast`, else XLA."""
    enabled = os.environ.get("LGSIM_LLVM_LOWERING", "1") != "0"
    return "LLVM" if enabled and _version("llvmlite") else "XLA"


def _seconds(function, calls, clock):
    import jax

    start = clock()
    for _ in range(calls):
        jax.block_until_ready(function())
    return clock() - start


def _version(package):
    return next((found.version for found in metadata.distributions(name=package)), None)


def _cpu_model():
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _text(value):
    return f"{value:.4g}" if isinstance(value, float) or hasattr(value, "item") else str(value)


def _plain(value):
    """Values for JSON: numbers of numpy as Python numbers, NaN and infinity, which JSON lacks, as strings."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
