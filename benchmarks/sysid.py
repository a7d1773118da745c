"""System identification of robots that another simulator moved: errors, standard errors and run times.

    python benchmarks/sysid.py --quick     only Panda, on motions that a full run designed
    python benchmarks/sysid.py             designs them again, all sections, and writes a record in benchmarks/results

Needs the extra `oracle` (mujoco, pin, example-robot-data, scipy), for the comparison with mujoco.sysid `mujoco[sysid]`,
and for posteriors the extra `posterior`; without these their sections report it. The sections are files of cases/sysid.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import os
import sys
from importlib.metadata import version

if "--quick" in sys.argv:  # compilation dominates a short run; its times are not those of the full run
    # newer XLA does not know the second flag and would abort
    newer = tuple(int(part) for part in version("jaxlib").split(".")[:2]) > (0, 10)
    emitters = "" if newer else " --xla_cpu_use_fusion_emitters=false"
    os.environ.setdefault("XLA_FLAGS", f"--xla_backend_optimization_level=0{emitters}")

import jax

try:
    import mujoco  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/sysid.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")

jax.config.update("jax_enable_x64", True)

from cases.sysid import (  # noqa: E402
    bad_data,
    coverage,
    mujoco_sysid,
    panda_found,
    posterior,
    real_like_found,
    servo,
    simulated,
)

SECTIONS = (
    panda_found.run, real_like_found.run, coverage.run, bad_data.run, simulated.run, servo.run, mujoco_sysid.run,
    posterior.run,
)  # fmt: skip


def run(report):
    """All sections."""
    for section in SECTIONS:
        section(report)


if __name__ == "__main__":
    harness.main(run, "sysid")
