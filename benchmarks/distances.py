"""Distances of collision geometry and their gradients, and MuJoCo in C: an arm of ten capsules, twenty obstacles.

    python benchmarks/distances.py --quick     short runs of the same rows
    python benchmarks/distances.py             all, and a record in benchmarks/results

Needs the extra `oracle` (mujoco) and a C compiler: MuJoCo's `mj_geomDistance` and `mj_jac` are called from a loop in C
over states and pairs, or from Python without a compiler, as the table states. Times are CPU seconds of calls in turns,
on one core. MJX cannot compute the distance of a chosen pair: its row shows its collisions with a margin for all pairs.
It is in the full run, if `benchmarks/peers/setup` has built its environment.
"""

import harness  # first: it pins the core before JAX starts its threads

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
