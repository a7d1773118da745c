"""``lgsim simulate``, ``lgsim optimize`` and ``lgsim identify``; what they do is loaded when one of them is called."""

from __future__ import annotations

from lgsim.cli.errors import BadInput, needs
from lgsim.cli.exit_status import Exit
from lgsim.cli.options import command, file_or_example
from lgsim.cli.requests import IdentificationRequest, OptimizationRequest, SimulationRequest
from lgsim.cli.terminal import echo_file
from lgsim.support.messages import unknown_choice

METHODS = ("auto", "torque", "linear", "simulation")
"""The methods of an identification."""


@command(SimulationRequest)
def simulate(asked: SimulationRequest) -> Exit:
    """Simulate a machine and save the run.

    Ctrl-C ends the simulation early and saves what there is; so does a motion that diverges. With --adaptive the steps
    are as long as the tolerance lets them be, and --dt says only what is saved. The error that the steps leave is
    estimated from the same motion with other steps.
    """
    from lgsim.cli.work.simulation import run_simulation

    return run_simulation(asked)


@command(OptimizationRequest)
def optimize(asked: OptimizationRequest) -> Exit:
    """Find the motion that does what a scenario asks for: reach a pose, swing up, follow a path.

    Start with `lgsim optimize --example reach > reach.toml` and `lgsim optimize reach.toml --plot --html`. Ctrl-C ends
    the search early and saves the best motion so far; the same command then goes on, from a checkpoint beside it.
    """
    from lgsim import data

    maker = "lgsim optimize --example reach > reach.toml"
    found = file_or_example("SCENARIO", asked.scenario, asked.example, data.SCENARIOS, data.scenario, maker)
    from lgsim.cli.work.optimization import run_optimization

    return run_optimization(asked, found)


@command(IdentificationRequest)
def identify(asked: IdentificationRequest) -> Exit:
    """Find masses, inertias, friction and other numbers of a machine from its recorded motion, and how sure they are.

    Columns with clear names, such as "time", "elbow_position" or "tau elbow", need no map. Ctrl-C ends the search; the
    same command then goes on, to the same numbers, from a checkpoint beside the output.

    The first line of the output is the verdict. A fit that converged at a bound, or with combinations that the prior
    decides, has converged too. Steps of a simulation that decide the numbers are not resolved.
    """
    if asked.example:
        from lgsim.data import recording_map

        if asked.machine is not None:
            raise BadInput("--example: without MACHINE and MOTION; it prints a map, your shell can keep it: > map.toml")
        echo_file(recording_map().read_text(encoding="utf-8"))
        return Exit.DONE
    if asked.machine is None or not asked.motion:
        raise BadInput(
            "MACHINE MOTION: expected a URDF, SDF or MJCF file and a recorded motion, such as a .csv or .mcap file"
        )
    if asked.method not in METHODS:
        raise BadInput(unknown_choice("--method: expected one of", asked.method, METHODS))
    needs("scipy", "identify", "identification")
    from lgsim.cli.work.identification import run_identification

    return run_identification(asked, asked.machine, asked.motion)
