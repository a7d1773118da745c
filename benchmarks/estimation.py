"""Estimation on groups: batches of filters compared with NumPy and GTSAM, one update, compilation, smoothers.

    python benchmarks/estimation.py --quick     short flights, few repeats
    python benchmarks/estimation.py             all, and a record in benchmarks/results

A batch of 1024 quadrotors has an IMU at 200 Hz and poses at 20 Hz. The filter in NumPy is one run at a time, as in
navlie, with the same model and the same estimate. GTSAM's filter in C++ is called from Python, which adds about a
microsecond; it needs `gtsam` 4.3 and has no biases, so that it is compared with a filter of lgsim of the same nine
components and the same noise. Times are CPU seconds of calls in turns.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import os
import tempfile

import jax

jax.config.update("jax_enable_x64", True)

from cases.estimation import batches, smoothers, updates  # noqa: E402


def run(report):
    """All tables."""
    with tempfile.TemporaryDirectory() as folder:  # no program is compiled already
        os.environ["LGSIM_CACHE_DIR"] = folder
        updates.compiling(report)
        batches.batches(report)
        updates.online(report)
        smoothers.smoothing(report)
        smoothers.in_parallel(report)


if __name__ == "__main__":
    harness.main(run, "estimation")
