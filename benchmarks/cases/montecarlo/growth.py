"""Cost per sample and memory from 1e4 to 1e6 samples: two systems with random inertias, into a store."""

import resource
import sys
import tempfile
import time
from pathlib import Path

import jax

from cases.montecarlo import studies
from lgsim import montecarlo as mc

COUNTS, QUICK = (10_000, 100_000, 1_000_000), (5_000, 10_000, 20_000)
CHUNK = {COUNTS: 8192, QUICK: 4096}
"""Samples between two writes, so that the smallest study already has a whole chunk."""
# Upper bounds of the growth of the peak memory from the smallest to the largest number of samples, and of the cost of
# another sample.
MEMORY, COST = 1.1, 1.2


def run(report):
    """A table for each system."""
    for name, make in {"three bodies": studies.of_three_bodies, "arm": studies.of_arm}.items():
        _grow(report, name, make)


def _grow(report, name, make):
    counts, rows, seconds = QUICK if report.quick else COUNTS, [], []
    _timed(name, make(CHUNK[counts], studies.STEPS), CHUNK[counts])  # compiles, and imports the packages of a store
    for count in counts:
        _forget_peak()
        run, after, size = _timed(name, make(count, studies.STEPS), CHUNK[counts])
        seconds.append(run)
        rows.append([count, count / run, 1e6 * run / count, after, size, _peak() / 2**20, _peak_of_device()])
    statistics = "quantiles and mean on the group, s" if name == "three bodies" else "quantiles, s"
    report.table(
        f"{name.capitalize()} with random inertias, {studies.STEPS} steps, into a store",
        [
            "samples",
            "samples/s",
            "µs per sample",
            statistics,
            "store, MiB",
            "peak of memory, MiB",
            "of the device, MiB",
        ],
        rows,
    )
    report.figure(f"{name}, {counts[-1]:.0e} samples", rows[-1][1], "samples/s")
    report.bound(f"{name}: growth of the peak of memory", rows[-1][5] / rows[0][5], at_most=MEMORY)
    first, second = ((seconds[i + 1] - seconds[i]) / (counts[i + 1] - counts[i]) for i in range(2))
    report.bound(f"{name}: growth of the cost of one more sample", second / first, at_most=COST)
    if rows[0][6] != "-":
        report.bound(f"{name}: growth of the peak of the device's memory", rows[-1][6] / rows[0][6], at_most=MEMORY)


def _timed(name, study, chunk):
    """Seconds of a study into a store and of its statistics, and MiB of the store."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        found = mc.run(study, Path(folder) / "store", chunk=chunk, step_check=False)
        middle = time.perf_counter()
        found.quantiles("final_v", [0.01, 0.5, 0.99])
        if name == "three bodies":
            found.intrinsic("final_q", study.rollout.model)
        end = time.perf_counter()
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return middle - start, end - middle, size / 2**20


def _forget_peak():
    """Reset the peak memory of this process, where the operating system can."""
    place = Path("/proc/self/clear_refs")
    if place.exists():
        place.write_text("5")


def _peak():
    """Bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _peak_of_device():
    """Peak memory in MiB of a device with separate memory; it cannot be reset."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats["peak_bytes_in_use"] / 2**20 if "peak_bytes_in_use" in stats else "-"
