"""Variational steps of robots: what they keep, what they cost, and when MK4, MKGauss2 and MuJoCo are ahead.

    python benchmarks/variational.py --quick     few robots, short motions
    python benchmarks/variational.py             all, a million steps of a satellite; a record in benchmarks/results

Needs the extra `oracle` (mujoco, example-robot-data). All machines move freely: their drives, dampers, friction and
stops are off, springs and rotors stay. MuJoCo has the same numbers (cases/variational/peer.py); on hinges its RK4 is
MK4 to rounding. Energies and momenta of all are lgsim's, of their states. Times are the processor's seconds, and what
is compared for speed runs in turns. ``VariationalTree`` takes two iterations here, and more where the last change is
above 1e-6 of the step.

The arms of the energy table start at rest: 0.2 rad a joint off hanging (Panda), well above it, horizontal with a bent
elbow, and high up (arm of 7). Of the first two, whose wrists reach 20 to 35 rad/s and other joints 10, the largest
error is bound, of the horizontal one, whose wrist reaches 100 rad/s, the root mean square: the largest, five times it,
is a moment of the wrist. The arm that starts high up whirls at 170 rad/s, where no method is good: it has no bound, and
at 10 ms, where a body turns by more than a quarter of a turn a step, it ends loudly.
"""

import harness  # first: it picks the core before JAX makes its threads

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
