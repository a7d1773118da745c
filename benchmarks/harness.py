"""What every benchmark shares: one core, interleaved medians, tables, bounds, and a record of a full run.

A benchmark is a file of this folder that runs alone:

    import harness            # first: it picks the core before JAX makes its threads

    def run(report):
        seconds = harness.interleave({"ours": ours, "theirs": theirs}, repeats=5 if report.quick else 50)
        report.table("Cost", ["library", "us"], [[name, 1e6 * s] for name, s in seconds.items()])
        report.figure("ours", 1e6 * seconds["ours"], "us")
        report.bound("theirs / ours", seconds["theirs"] / seconds["ours"], at_least=3.5)

    harness.main(run, "cost")    # under if __name__ == "__main__"

It takes `--quick`, ends with one line of figures, and exits 0 only if it checked a bound and all its bounds hold; with
3 if it ran to its end and one is broken. A full run writes benchmarks/results/<name>.json, whole or not at all.
"""

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

RESULTS = Path(__file__).parent / "results"
BROKEN = 3
PACKAGES = ("jax", "jaxlib", "lgsim", "numpy", "diffrax", "jaxlie", "mujoco", "pin", "scipy")


def pin_to_one_core() -> int | None:
    """Keep this process on the last core it may use; its number, or None where the system cannot pin."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        return max(os.sched_getaffinity(0))
    return None


# Threads inherit the affinity of their start and XLA sizes its pools by it, hence at import; a test that imports this
# module keeps all its cores.
JAX_CAME_FIRST = "jax" in sys.modules
SCRIPT = Path(getattr(sys.modules["__main__"], "__file__", None) or ".").resolve()
CORE = pin_to_one_core() if SCRIPT.parent == Path(__file__).resolve().parent else None


class Report:
    """What a run shows and what it is held to."""

    def __init__(self, name: str, quick: bool):
        self.name, self.quick = name, quick
        self.tables: list[dict] = []
        self.figures: dict[str, dict] = {}
        self.bounds: list[dict] = []

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Print a table now and keep it for the record."""
        self.tables.append({"title": title, "columns": list(columns), "rows": [list(row) for row in rows]})
        cells = [list(columns), *([_text(value) for value in row] for row in rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        cells.insert(1, ["-" * width for width in widths])
        print(f"\n{title}")
        for first, *others in cells:
            fields = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
            print("  ".join([f"{first:<{widths[0]}}", *fields]).rstrip(), flush=True)

    def figure(self, name: str, value: float, unit: str = "") -> None:
        """A number for the last line."""
        self.figures[name] = {"value": float(value), "unit": unit}

    def bound(self, name: str, value: float, *, at_most: float | None = None, at_least: float | None = None) -> bool:
        """Hold `value` to a limit; NaN holds no limit. Returns whether it holds."""
        if at_most is None and at_least is None:
            raise ValueError(f"bound {name!r}: expected at_most or at_least, got neither")
        value = float(value)
        holds = (at_most is None or value <= at_most) and (at_least is None or value >= at_least)
        self.bounds.append({"name": name, "value": value, "at_most": at_most, "at_least": at_least, "holds": holds})
        return holds

    def last_line(self) -> str:
        """The figures and the state of the bounds."""
        figures = [f"{name} {_text(f['value'])} {f['unit']}".rstrip() for name, f in self.figures.items()]
        kept = sum(bound["holds"] for bound in self.bounds)
        return f"{self.name}: {', '.join([*figures, f'{kept} of {len(self.bounds)} bounds hold'])}"


def main(run: Callable[[Report], None], name: str, argv: Sequence[str] | None = None) -> NoReturn:
    """Run a benchmark as a command and leave with 0 if its bounds hold, else with BROKEN."""
    parser = argparse.ArgumentParser(description=f"lgsim benchmark {name}")
    parser.add_argument("--quick", action="store_true", help="a short run with the same bounds, which writes no record")
    report = Report(name, quick=parser.parse_args(argv).quick)
    if CORE is not None and JAX_CAME_FIRST:
        print("note: JAX was imported before the harness, so its threads may use other cores")
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
        record = _plain({"benchmark": name, "holds": holds, "machine": machine(), **content})
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
    """Median seconds of a call, in turns of about `least` seconds, so that a slow moment hits all; compiles first.

    With `time.process_time` for a clock what else runs on the core does not count.
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
    """The device and the versions behind the numbers."""
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
    """Write a text file so that a reader finds the old one or the new one, never a part."""
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
    """What JSON can hold: numpy's numbers as Python's, NaN and infinity, which JSON lacks, as words."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | None) else str(value)
