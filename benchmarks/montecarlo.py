"""Monte Carlo: cost and memory up to a million samples, and throughput of MuJoCo, JAX peers and two devices.

    python benchmarks/montecarlo.py --quick     1e4 to 4e4 samples, short motions, one peer, one device
    python benchmarks/montecarlo.py             1e4 to 1e6 samples, and a record in benchmarks/results

Needs the extras `montecarlo` and `oracle` (mujoco, example-robot-data), and for the JAX peers the environments that
benchmarks/peers/setup builds. One core, float64, MK4; the device is the default one of JAX. The sections are files of
the folder cases/montecarlo; a selection of them: `python benchmarks/montecarlo.py --quick growth native`.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys

import jax

try:
    import mujoco  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/montecarlo.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")

jax.config.update("jax_enable_x64", True)

from cases.montecarlo import devices, growth, native, others  # noqa: E402

# growth first, so that programs of other sections do not add to its memory
SECTIONS = {"growth": growth.run, "native": native.run, "others": others.run, "devices": devices.run}
QUICK = ("growth", "native", "others")


def run(report):
    """All sections, or the named ones; a quick run leaves out the second device."""
    for section in (NAMED or QUICK) if report.quick else SECTIONS:
        SECTIONS[section](report)


if __name__ == "__main__":
    NAMED = [word for word in sys.argv[1:] if word in SECTIONS]
    harness.main(run, "montecarlo", [word for word in sys.argv[1:] if word not in NAMED])
