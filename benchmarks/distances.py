"""Distances of solids and their gradients beside MuJoCo in C: an arm of ten capsules among twenty obstacles.

    python benchmarks/distances.py --quick     short runs of the same rows
    python benchmarks/distances.py             all, and a record in benchmarks/results

Needs the extra `oracle` (mujoco) and a C compiler: MuJoCo's `mj_geomDistance` and `mj_jac` are called from a loop in C
over states and pairs; without a compiler from Python, which the table says. Times are the processor's seconds of calls
in turns, on one core. MJX has no distances of pairs that are quantity: its row, in the
full run and where `benchmarks/peers/setup` has built its environment, is of its collisions with a margin of all pairs.
"""

import harness  # first: it picks the core before JAX makes its threads

# isort: split
import sys

import jax

try:
    import mujoco  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/distances.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from cases.distances import pairs

jax.config.update("jax_enable_x64", True)


def run(report):
    """All tables."""
    pairs.table(report)


if __name__ == "__main__":
    harness.main(run, "distances")
