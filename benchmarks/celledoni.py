"""Integrators on manifolds: the figures of Celledoni et al. 2021, a million symplectic steps, work and precision.

    python benchmarks/celledoni.py --quick     few methods and small sizes, no figures
    python benchmarks/celledoni.py             everything, with a record and a page of figures in benchmarks/results

E. Celledoni, E. Cokaj, A. Leone, D. Murari, B. Owren, Lie group integrators for mechanical systems, International
Journal of Computer Mathematics 99(1), 2022. Needs the extras `adaptive` (diffrax), `oracle` (scipy) and `plot`.
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
    import diffrax  # noqa: F401
    import scipy  # noqa: F401
except ImportError as missing:
    sys.exit(
        f"benchmarks/celledoni.py: {missing.name} is missing; install it with: pip install 'lgsim[adaptive,oracle]'"
    )
from cases.manifolds import pendulum, precision, quadrotors, references, top
from cases.manifolds.study import Page

jax.config.update("jax_enable_x64", True)

TITLE = "Lie group integrators for mechanical systems: the paper's figures by lgsim"


def run(report: harness.Report) -> None:
    """All sections."""
    page = Page(None if report.quick else harness.RESULTS, TITLE)
    references.states(report)
    for study in (pendulum.convergence, pendulum.manifold, pendulum.steps, top.symplectic, quadrotors.flights):
        study(report, page)
    precision.work(report, page)
    lines = {
        bound["name"]: f"{bound['value']:.2g} {'holds' if bound['holds'] else 'BROKEN'}" for bound in report.bounds
    }
    written = page.write(lines)
    if written:
        print(f"\nPage of figures: {os.path.relpath(written)}")


if __name__ == "__main__":
    harness.main(run, "celledoni")
