"""ANYmal on four soft feet: the cost of contact, standing, landing, and the gradient of a trot, on one core in float64.

    python benchmarks/contact.py --quick     short runs of the same rows
    python benchmarks/contact.py             all, and a record in benchmarks/results

Needs the extra `oracle` (mujoco, example-robot-data). Springs and dampers in the joints hold the legs, with equal
parameters in MuJoCo. MuJoCo has its own contact model and steps one state after another in C, without Python in
between; its errors are relative to its own finest steps. Rows of MJX and JaxSim are in the full run, if
`benchmarks/peers/setup` has built their environment.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys

import jax

try:
    import mujoco  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/contact.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from cases.contact import landing, standing, trot

jax.config.update("jax_enable_x64", True)


def run(report):
    """All tables."""
    standing.accelerations(report)
    standing.steps(report)
    landing.errors(report)
    trot.gradients(report)


if __name__ == "__main__":
    harness.main(run, "contact")
