"""Closed kinematic loops, compared with Pinocchio's constraintDynamics and MuJoCo's equality constraints.

    python benchmarks/loops.py --quick     short runs of the same rows, only for Cassie
    python benchmarks/loops.py             all, and a record in benchmarks/results

Needs the extra `oracle` (pin, mujoco, example-robot-data). Pinocchio is called one state at a time from Python, which
adds about half a microsecond; its proximal solver takes one step. Times are CPU seconds of calls in turns.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys

import jax

try:
    import mujoco  # noqa: F401
    import pinocchio  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/loops.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from cases.loops import four_bar, tables

jax.config.update("jax_enable_x64", True)


def run(report):
    """All tables."""
    seconds = tables.accelerations(report)
    tables.derivatives(report)
    tables.projection(report)
    tables.compiling(report, seconds)
    four_bar.closure(report)


if __name__ == "__main__":
    harness.main(run, "loops")
