"""Variational integrators of robots: conservation and cost, compared with MK4, MKGauss2 and MuJoCo.

    python benchmarks/variational.py --quick     few robots, short motions
    python benchmarks/variational.py             all, a million steps of a satellite; a record in benchmarks/results

Needs the extra `oracle` (mujoco, example-robot-data). All systems move freely: without actuation, damping, friction and
joint limits, with springs and rotor inertias. MuJoCo has the same parameters (cases/variational/peer.py); on revolute
joints its RK4 equals MK4 to rounding. lgsim computes all energies and momenta from the states. Times are CPU seconds,
and methods take turns in comparisons of speed. ``VariationalTree`` takes two iterations here, and more if the last
change is above 1e-6 of the step.

The arms of the energy table start at rest: 0.2 rad per joint from hanging (Panda), well above it, horizontal with a
bent elbow, and high up (arm of 7). The wrists of the first two reach 20 to 35 rad/s and their other joints 10: the
largest error has a bound. The wrist of the horizontal one reaches 100 rad/s: the root mean square has a bound, since
the largest error, five times as large, is a short peak. The arm that starts high up reaches 170 rad/s, where no method
is accurate: it has no bound, and at 10 ms, where a body rotates by more than 90 degrees in a step, it diverges.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import sys

import jax

try:
    import mujoco  # noqa: F401
except ImportError as missing:
    sys.exit(f"benchmarks/variational.py: {missing.name} is missing; install it with: pip install 'lgsim[oracle]'")
from cases.variational import chains, energy, flight, maps, speed

jax.config.update("jax_enable_x64", True)


def run(report):
    """All tables."""
    speed.beside_forward_dynamics(report)
    speed.growth(report)
    speed.compiling(report)
    energy.free_flight(report)
    energy.arms_energy(report)
    chains.chains(report)
    flight.satellite(report)
    maps.ten_robots(report)
    if report.quick:
        return
    chains.turns(report)
    energy.crossing(report)
    energy.orders(report)
    chains.long_steps(report)
    flight.attitude(report)
    flight.flight(report)
    maps.costs(report)


if __name__ == "__main__":
    harness.main(run, "variational")
