"""``lgsim estimate``: check the arguments, filter a record, write files, print a summary."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import RenderableType
from rich.table import Table

from lgsim.cli import files, pictures
from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import BadInput, Stop, bad_input
from lgsim.cli.exit_status import Exit
from lgsim.cli.iterations import NoiseWatch
from lgsim.cli.options import names_of
from lgsim.cli.requests import EstimationRequest, FilterMethod
from lgsim.cli.terminal import console, lines, note, show_facts, warnings_as_notes
from lgsim.cli.work.identify_preparation import check_torque_constants, found_delays, read_record, refuse_open
from lgsim.cli.work.locked_joints import lock
from lgsim.dynamics import mass_matrix
from lgsim.estimate import EKF, UKF, IteratedEKF, RobotEstimate, RobotProcess, RobotRecord
from lgsim.estimate.methods import Filter
from lgsim.estimate.robot_record import ENDINGS, SENSORS, noise_of
from lgsim.identify import Plant, Recording
from lgsim.identify.recording.coordinates import dof_names
from lgsim.scenarios import load_recording_map
from lgsim.scenarios.recording_map import RecordingMap
from lgsim.simulation.trajectory import tau_names, v_names
from lgsim.support.messages import counted, listed
from lgsim.view.reports import estimate_figures, report_estimate
from lgsim.view.reports.estimation import stream_rows

FILTERS: Mapping[FilterMethod, Callable[[], Filter]] = {
    FilterMethod.ekf: EKF, FilterMethod.iterated: IteratedEKF, FilterMethod.unscented: UKF,
}  # fmt: skip
_ADVICE = "try a smaller --dt, or a start that is nearer, see [estimation] in the map"
LONGEST = 3000
"""Number of samples in which noises are searched for."""
PLOTS = ("states", "residuals", "unknowns")
"""Names of the plots of an estimate."""


def run_estimation(asked: EstimationRequest, machine: Path, motion: Path) -> Exit:
    """Read the recording, filter it, save, print a table, and return the reason why it ended.

    Raises:
        ScenarioError, FileError, BadInput: a file or an argument is invalid; raised before anything is compiled.
        Stop: a package is missing, or the estimate diverged.
    """
    _check_words(asked)
    whole, report = files.read_machine(machine, floating_base=asked.floating_base)
    files.remark(report, asked.floating_base)
    given = load_recording_map(asked.map, whole).unresampled
    model, given = (whole, given) if asked.lock is None else lock(asked.lock, whole, given, [motion])
    if model.topology.loops:
        raise BadInput("ROBOT: expected a robot without closed kinematic loops, which no filter supports yet")
    plant = given.plant(model)
    with bad_input("--unknown: "):
        in_map = bool(given.root.table("unknowns").values)
        names = None if asked.unknown is None else names_of(asked.unknown)
        blocks = given.blocks(plant, names, with_speed=False) if names or in_map else {}
        # of unknowns that change a signal, before the record is read
        RobotProcess(model, 1.0, list(blocks.values()))
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
    force = asked.force_noise or given.estimation.force_noise
    # by default a force noise that accelerates all joints alike
    inertia = np.diagonal(np.asarray(mass_matrix(model, np.asarray(recording.q[0], model.dtype))))
    process = RobotProcess(
        model, inertia if force is None else force, list(blocks.values()), walk=given.estimation.walk
    )
    of = partial(
        RobotRecord.from_recording, process, deviations=given.deviations, delays=delays, dt=asked.dt,
        gate=given.estimation.gate if asked.gate is None else asked.gate,
        q_deviations=given.estimation.start_position, v_deviations=given.estimation.start_velocity,
    )  # fmt: skip
    with bad_input():
        record = of(recording)
        searched_in = of(_liveliest(recording)) if len(recording) > LONGEST else record
    free = [*(["force"] if force is None else []), *(kind for kind in SENSORS if kind not in given.stated)]
    start = time.perf_counter()
    searched = record.noises(free)
    found = _estimated(record, searched_in, FILTERS[asked.method](), searched, asked.smooth, motion)
    wall = time.perf_counter() - start
    verdict = found.filtered.verdict
    if not verdict.finite:
        raise Stop(f"{motion}: the estimate diverged; {_ADVICE}", Exit.LOST)
    # the verdict is the first line of the output
    first, *more = verdict.text.split("\n")
    output = console()
    output.print(f"verdict: {first}", soft_wrap=True)
    consistent = {stream.text for stream in verdict.streams if stream.is_consistent}
    for line in more:
        if line.strip() not in consistent:
            output.print(line, soft_wrap=True)
    _show(found, searched, wall, _save(asked, machine, found, recording))
    return Exit.DONE if verdict.is_consistent else Exit.NOT_CONSISTENT


def _check_words(asked: EstimationRequest) -> None:
    """Check the arguments before any file is read."""
    if len(asked.motion or ()) != 1:
        raise BadInput(f"MOTION: expected one recording, got {len(asked.motion or ())}; estimate them one by one")
    for option, value in (("--force-noise", asked.force_noise), ("--dt", asked.dt)):
        if value is not None and not 0 < value < float("inf"):
            raise BadInput(f"{option}: expected a positive number, got {value:g}")
    if asked.gate is not None and not 0 < asked.gate < 1:
        raise BadInput(f"--gate: expected a fraction between 0 and 1, such as 0.999, got {asked.gate:g}")
    for option, path, endings in (("--out", asked.out, ENDINGS), ("--report", asked.report, (".html",))):
        if path is not None:
            if path.suffix not in endings:
                raise BadInput(f"{option}: expected a name that ends in {' or '.join(endings)}, got {path.name!r}")
            files.check_file(option, path)
    if asked.plot or asked.report is not None:
        pictures.check_plots()


def _outputs(asked: EstimationRequest, joints: str, unknowns: bool) -> list[Output]:
    """The files that will be written, with their options."""
    outputs = [Output("--out", asked.out, "estimate", joints)]
    if asked.report is not None:
        outputs.append(Output("--report", asked.report, "report"))
    return outputs + [Output("--plot", _picture(asked, name), "plot") for name in PLOTS[: 2 + unknowns] if asked.plot]


def _picture(asked: EstimationRequest, name: str) -> Path:
    return asked.out.with_name(f"{asked.out.stem}-{name}.png")


def _driven(recording: Recording, plant: Plant, given: RecordingMap) -> Recording:
    """The recording with ascending times and joint forces, N m or N."""
    if np.any(np.diff(recording.time) <= 0):
        part = recording[recording.longest_segment]
        note(f"the clock goes back: using the longest part without that, {len(part)} of {len(recording)} samples")
        recording = part
    signals, channel = recording.tau, "tau"
    if signals is None and recording.current is not None:
        check_torque_constants(given, plant.model)
        signals, channel = recording.current, "current"
    if signals is None:
        note("the record has no joint forces: the robot moves under its own weight and random forces")
        return recording
    weights = {**recording.weights, "tau": recording.weights[channel]}
    return replace(recording, tau=signals * np.asarray(plant.scale), weights=weights)


def _liveliest(recording: Recording) -> Recording:
    """The part of ``LONGEST`` samples in which the joints move most."""
    path = np.append(0, np.cumsum(np.linalg.norm(np.diff(recording.q, axis=0), axis=1)))
    first = int(np.argmax(path[LONGEST - 1 :] - path[: len(path) - LONGEST + 1]))
    return recording[first : first + LONGEST]


def _estimated(
    record: RobotRecord, part: RobotRecord, method: Filter, free: list[str], smooth: bool, motion: Path
) -> RobotEstimate:
    """The record, filtered with noises that are the most likely ones in a part of it.

    Raises:
        Stop: every trial diverged.
    """
    unknowns = record.process.unknowns
    also = f" and {counted(unknowns, 'unknown')}" if unknowns else ""
    what = f"{counted(len(record.streams), 'stream')} of readings, {type(method).__name__}"
    console(error=True).print(
        f"{motion}: {counted(2 * record.process.model.nv, 'state')}{also} from {what}", soft_wrap=True
    )
    with NoiseWatch(free) as watch:
        try:
            record = record.scaled(part.likely_factors(method, free, lambda *row: watch(row)))
        except ValueError as error:
            raise Stop(f"{motion}: the estimate diverged for all noises; {_ADVICE}", Exit.LOST) from error
        return record.filtered(method, smoothed=smooth)


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
            page = report_estimate(
                found, recording, title=f"Estimated motion of {machine.stem}", subtitle=recording.source,
                files=[path.name for path in made],
            )  # fmt: skip
            made.append(page.save(asked.report))
    return made


def _show(found: RobotEstimate, searched: list[str], wall: float, made: list[Path]) -> None:
    """Print tables of the joints, the readings and the unknowns."""
    model, record, k = found.record.process.model, found.record, found.record.process.model.nv

    def table(*columns: str, rows: Any) -> None:
        made = Table(columns[0], box=box.SIMPLE_HEAD)
        for name in columns[1:]:
            made.add_column(name, justify="right")
        for row in rows:
            made.add_row(*row)
        console().print(made)

    spread = np.median(found.deviations, axis=0)
    units = [name.rpartition("[")[2].rstrip("]") for name in (*v_names(model), *tau_names(model))]
    noises = np.asarray(record.process.force_noise)
    noises = np.broadcast_to(noises, (k,)) if noises.ndim < 2 else np.linalg.norm(noises, axis=1)
    table(
        "joint", "std of position", "std of velocity", "force noise per sqrt(Hz)",
        rows=[
            [name, f"{spread[i]:.2g} {units[i].removesuffix('/s')}", f"{spread[k + i]:.2g} {units[i]}",
             f"{noises[i]:.3g} {units[k + i]}{' *' * ('force' in searched)}"]
            for i, name in enumerate(dof_names(model))
        ],
    )  # fmt: skip
    table(
        "readings of", "count", "gated", "std", "mean squared residual", "consistent band",
        rows=[
            [name, f"{count}", f"{gated}", f"{noise:.3g}{' *' * (noise_of(name) in searched)}",
             f"{mean:.3g}", f"{low:.3g} to {high:.3g}"]
            for name, count, gated, noise, mean, low, high in stream_rows(found)
        ],
    )  # fmt: skip
    unknowns = found.unknowns()
    if unknowns:
        prior = found.prior
        table(
            "parameter", "prior", "estimate", "standard deviation",
            rows=[[name, f"{prior[name]:.6g}", f"{x[-1]:.6g}", f"{s[-1]:.2g}"] for name, (x, s) in unknowns.items()],
        )  # fmt: skip
    kind = "filtered" if found.states is found.filtered else "smoothed"
    facts: list[tuple[str, RenderableType]] = [
        ("states", f"{kind}, at {counted(len(found.filtered.ts), 'time')}"),
        ("log likelihood", f"{float(found.filtered.loglikelihood):.6g}"),
    ]
    if searched:
        facts.append(("*", f"noises not given, of the largest likelihood: {listed(searched)}"))
    show_facts([*facts, ("time", f"{wall:.2f} s"), ("files", lines(made))])
