"""``lgsim estimate``: check the arguments, filter a record, write files, print a summary."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from lgsim.cli import files, pictures
from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import BadInput, Stop, bad_input
from lgsim.cli.exit_status import Exit
from lgsim.cli.iterations import NoiseWatch
from lgsim.cli.options import names_of
from lgsim.cli.requests import EstimationRequest, FilterMethod
from lgsim.cli.terminal import console, lines, note, print_table, show_facts, warnings_as_notes
from lgsim.cli.work.identify_preparation import check_torque_constants, found_delays, read_record, refuse_open
from lgsim.cli.work.locked_joints import lock
from lgsim.dynamics import mass_matrix
from lgsim.estimate import EKF, UKF, IteratedEKF, RobotEstimate, RobotProcess, RobotRecord
from lgsim.estimate.robot_record import noise_of
from lgsim.identify import Plant, Recording
from lgsim.identify.recording.coordinates import dof_names
from lgsim.scenarios import load_recording_map
from lgsim.scenarios.recording_map import RecordingMap
from lgsim.simulation.trajectory import tau_names, v_names
from lgsim.support.messages import counted, listed
from lgsim.view.reports.estimation import estimate_figures, report_estimate, stream_rows

FILTERS = {FilterMethod.ekf: EKF, FilterMethod.iterated: IteratedEKF, FilterMethod.unscented: UKF}
PLOTS = ("states", "residuals", "unknowns")
"""Names of the plots of an estimate."""


def run_estimation(asked: EstimationRequest, machine: Path, motions: Sequence[Path]) -> Exit:
    """Read the recording, filter it, save, print a table, and return the reason why it ended.

    Raises:
        ScenarioError, FileError, BadInput: a file or an argument is invalid; raised before anything is compiled.
        Stop: a package is missing, or the estimate diverged.
    """
    _check_words(asked, motions)
    motion = motions[0]
    whole, report = files.read_machine(machine, floating_base=asked.floating_base)
    files.remark(report, asked.floating_base)
    given = load_recording_map(asked.map, whole).unresampled
    model, given = (whole, given) if asked.lock is None else lock(asked.lock, whole, given, motions)
    if model.topology.loops:
        raise BadInput("ROBOT: expected a robot without closed kinematic loops, which no filter supports")
    if given.priors:
        note("[known] is not used: a filter has the priors of [unknowns] only")
    plant = given.plant(model)
    with bad_input("--unknown: "):
        names = None if asked.unknown is None else names_of(asked.unknown)
        wanted = names is not None or given.root.table("unknowns").values
        blocks = list(given.blocks(plant, names, with_speed=False).values()) if wanted else []
        process = RobotProcess(model, 1.0, blocks, walk=given.estimation["walk"])
    if not asked.check:
        check_replaced(_outputs(asked, files.joint_list(model), bool(blocks)), asked.force)
    recording = read_record(motion, whole, model, given)
    if not (asked.check or asked.force):
        refuse_open(motion, recording, "an estimate")
    delays = found_delays(recording, plant, given)
    recording = _driven(recording, plant, given)
    if asked.check:
        return Exit.DONE
    files.keep_compiled()
    start = time.perf_counter()
    found, searched = _estimated(asked, motion, process, recording, given, delays)
    verdict = found.filtered.verdict
    if not verdict.finite:
        raise Stop(f"{motion}: the estimate diverged; try a smaller --dt, or another start in the map", Exit.DIVERGED)
    wall = time.perf_counter() - start
    # the verdict is the first line of the output
    for line in (f"verdict: {verdict.summary}", *(f"  {fault}" for fault in verdict.faults)):
        console().print(line, soft_wrap=True)
    if searched:
        note(
            "noises with a star were fitted to the residuals, which then cannot show a wrong model; give those you know"
        )
    _show(found, searched, wall, _save(asked, machine, found, recording))
    return Exit.DONE if verdict.is_consistent else Exit.NOT_CONSISTENT


def _check_words(asked: EstimationRequest, motions: Sequence[Path]) -> None:
    """Check the arguments before any file is read."""
    if len(motions) > 1:
        raise BadInput(f"MOTION: expected one recording, got {len(motions)}; estimate them one by one")
    for option, value, most in (("--force-noise", asked.force_noise, np.inf), ("--dt", asked.dt, np.inf),
                                ("--gate", asked.gate, 1)):  # fmt: skip
        if value is not None and not 0 < value < most:
            wanted = "a positive number" if most > 1 else "a fraction between 0 and 1, such as 0.999"
            raise BadInput(f"{option}: expected {wanted}, got {value:g}")
    files.check_results(("--out", asked.out, ".npz"), ("--report", asked.report, ".html"))
    if asked.plot or asked.report is not None:
        pictures.check_plots()


def _outputs(asked: EstimationRequest, joints: str, unknowns: bool) -> list[Output]:
    """The files that will be written, with their options."""
    outputs = [Output("--out", asked.out, "estimate", joints)]
    outputs += [] if asked.report is None else [Output("--report", asked.report, "report")]
    return outputs + [Output("--plot", _picture(asked, name), "plot") for name in PLOTS[: 2 + unknowns] if asked.plot]


def _picture(asked: EstimationRequest, name: str) -> Path:
    return asked.out.with_name(f"{asked.out.stem}-{name}.png")


def _driven(recording: Recording, plant: Plant, given: RecordingMap) -> Recording:
    """The recording with joint forces, N m or N."""
    channel = "tau" if recording.tau is not None else "current"
    if channel not in recording.channels:
        note("the record has no joint forces: the robot moves under its own weight and random forces")
        return recording
    if channel == "current":
        check_torque_constants(given, plant.model)
    tau, weights = recording.channels[channel] * np.asarray(plant.scale), recording.weights
    return replace(recording, tau=tau, weights={**weights, "tau": weights[channel]})


def _estimated(
    asked: EstimationRequest, motion: Path, process: RobotProcess, recording: Recording, given: RecordingMap,
    delays: dict[str, float],
) -> tuple[RobotEstimate, list[str]]:  # fmt: skip
    """The estimate, and the noises that were searched for: those that neither the map nor an option gives.

    Raises:
        Stop: every trial of the search diverged.
    """
    own, force, known = given.estimation, asked.force_noise or given.estimation["force_noise"], given.stated | {"force"}
    if force is None:
        # a force noise that accelerates all joints alike
        force = jnp.diagonal(mass_matrix(process.model, jnp.asarray(recording.q[0], process.model.dtype)))
        known = given.stated
    process = eqx.tree_at(lambda p: p.force_noise, process, jnp.asarray(force, process.model.dtype))
    with bad_input(f"{motion}: "):
        record = RobotRecord.from_recording(
            process, recording, given.deviations, delays=delays, gate=asked.gate or own["gate"], dt=asked.dt,
            q_deviations=own["start_position"], v_deviations=own["start_velocity"],
        )  # fmt: skip
    names = [name for name in record.noises if name.partition(" ")[0] not in known]
    also = f" and {counted(process.unknowns, 'unknown')}" if process.unknowns else ""
    what = f"{counted(2 * process.model.nv, 'state')}{also} from {counted(len(record.streams), 'stream')} of readings"
    method = FILTERS[asked.method]()
    console(error=True).print(f"{motion}: {what}, {type(method).__name__}", soft_wrap=True)
    with NoiseWatch(names) as watch, warnings_as_notes():
        try:
            record = record.scaled(
                record.likely_factors(method, names, lambda *row: watch((len(watch.rows) + 1, *row)))
            )
        except ValueError as error:
            raise Stop(f"{motion}: the estimate diverged for all noises; try a smaller --dt", Exit.DIVERGED) from error
        return record.filtered(method, smoothed=asked.smooth), names


def _save(asked: EstimationRequest, machine: Path, found: RobotEstimate, recording: Recording) -> list[Path]:
    """Write all files, and return them."""
    made = [found.save(asked.out)]
    # for example missing glyphs in matplotlib's font
    with warnings_as_notes():
        if asked.plot:
            for name, figure in estimate_figures(found, recording).items():
                made.append(_picture(asked, name))
                pictures.save_figure(figure, made[-1], dpi=150)
        if asked.report is not None:
            title = f"Estimated motion of {machine.stem}"
            made.append(report_estimate(found, recording, title, [path.name for path in made]).save(asked.report))
    return made


def _show(found: RobotEstimate, searched: Sequence[str], wall: float, made: Sequence[Path]) -> None:
    """Print tables of the joints, the readings and the unknowns."""
    process, spread = found.record.process, np.median(found.deviations, axis=0)
    nv, noise = process.model.nv, np.broadcast_to(process.force_noise, (process.model.nv,))
    units = [name.rpartition("[")[2].rstrip("]") for name in (*v_names(process.model), *tau_names(process.model))]
    star = " *" if "force" in searched else ""
    print_table(
        ("joint", "std of position", "std of velocity", "force noise per sqrt(Hz)"),
        ((name, f"{spread[i]:.2g} {units[i].removesuffix('/s')}", f"{spread[nv + i]:.2g} {units[i]}",
          f"{noise[i]:.3g} {units[nv + i]}{star}") for i, name in enumerate(dof_names(process.model))),
    )  # fmt: skip
    print_table(
        ("readings of", "count", "gated", "std", "mean squared residual", "consistent band"),
        ((name, f"{count}", f"{gated}", f"{noise:.3g}{' *' * (noise_of(name) in searched)}", f"{mean:.3g}",
          f"{low:.3g} to {high:.3g}") for name, count, gated, noise, mean, low, high in stream_rows(found)),
    )  # fmt: skip
    if unknowns := found.unknowns():
        print_table(
            ("parameter", "prior", "estimate", "std"),
            ((name, f"{found.prior[name]:.6g}", f"{x[-1]:.6g}", f"{s[-1]:.2g}") for name, (x, s) in unknowns.items()),
        )
    kind = "filtered" if found.states is found.filtered else "smoothed"
    facts = [("states", f"{kind}, at {counted(len(found.filtered.ts), 'time')}")]
    facts.append(("log likelihood", f"{float(found.filtered.loglikelihood):.6g}"))
    facts += [("*", f"noises not given, of the largest likelihood: {listed(searched)}")] if searched else []
    show_facts([*facts, ("time", f"{wall:.2f} s"), ("files", lines(made))])
