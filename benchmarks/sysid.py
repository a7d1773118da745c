"""System identification: what is recovered of machines that another simulator moved, how surely, and at what cost.

    python benchmarks/sysid.py --quick     on motions that a full run has designed
    python benchmarks/sysid.py             designs them anew, and writes a record in benchmarks/results

Needs the extra `oracle` (mujoco, example-robot-data, scipy). The sections are files of the folder sysid_parts.
"""

import harness  # first: it picks the core before JAX makes its threads

# isort: split
import sys

import jax

try:
    import mujoco  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/sysid.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")

jax.config.update("jax_enable_x64", True)

from sysid_parts import coverage, panda  # noqa: E402

SECTIONS = (panda.run, coverage.run)


def run(report):
    """All sections."""
    for section in SECTIONS:
        section(report)


if __name__ == "__main__":
    harness.main(run, "sysid")
