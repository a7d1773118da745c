"""``lgsim identify``: check the arguments, fit, write files, print a summary."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy import ndarray
from rich.console import RenderableType

from lgsim.cli import files, pictures
from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import BadInput, Stop, bad_input
from lgsim.cli.exit_status import Exit
from lgsim.cli.iterations import FitWatch
from lgsim.cli.options import names_of
from lgsim.cli.requests import IdentificationRequest, PriorBodies
from lgsim.cli.terminal import console, lines, note, print_table, show_facts, warnings_as_notes
from lgsim.cli.work import identify_preparation
from lgsim.cli.work.identify_preparation import PreparedMotion
from lgsim.cli.work.locked_joints import lock
from lgsim.formats import write_urdf
from lgsim.identify import (
    RESULTS,
    Block,
    Fit,
    LinearFit,
    Parameters,
    Plant,
    Recording,
    SensorRecords,
    SignalScale,
    SimulationFit,
    TorqueFit,
    base_parameters,
    fit,
    join_recordings,
    nearest_consistent,
)
from lgsim.identify.estimators.estimator import Estimator
from lgsim.identify.step_error import FitStepError
from lgsim.identify.unknowns.coupled_plant import MOTOR_UNITS, CoupledPlant
from lgsim.identify.unknowns.plant import FRICTION_PARTS
from lgsim.multibody import Model
from lgsim.scenarios import load_recording_map
from lgsim.scenarios.machine import first_tag
from lgsim.scenarios.recording_map import RecordingMap
from lgsim.scenarios.unknowns import LINEAR
from lgsim.support.messages import counted, listed
from lgsim.support.verdict import Outcome
from lgsim.view.reports import fit_figures, report_fit

PLOTS = ("record", "residuals", "whiteness", "singular-values", "changes")
"""Names of the plots of a fit."""
SAME = 1e-9
"""Relative difference of values that differ by rounding only."""
WINDOW = 0.5
"""Duration of the simulated windows, s."""


def run_identification(asked: IdentificationRequest, machine: Path, motions: Sequence[Path]) -> Exit:
    """Read the recordings, fit, save, print a table, and return the reason why it ended.

    Raises:
        ScenarioError, FileError, BadInput: a file or an argument is invalid; raised before anything is compiled.
        Stop: a package is missing, or there is nothing to save.
    """
    _check_words(asked, machine)
    whole, report = files.read_machine(machine, floating_base=asked.floating_base, loops=asked.loops)
    files.remark(report, asked.floating_base)
    given = load_recording_map(asked.map, whole)
    model, given = (whole, given) if asked.lock is None else lock(asked.lock, whole, given, motions)
    if not asked.check:
        check_replaced(_outputs(asked, files.joint_list(model)), asked.force)
    if asked.physical is PriorBodies.nearest:
        model = _with_nearest_bodies(model)
    if asked.friction_speed is not None:
        model = model.replace(friction_speed=asked.friction_speed)
    plant = given.plant(model)
    with bad_input("--fit: "):
        names = _unknowns(asked, bool(given.root.table("unknowns").values))
        blocks = given.blocks(plant, names, asked.friction_speed is None and asked.method in ("auto", "torque"))
    if asked.friction_speed is not None and "friction_speed" in blocks:
        raise BadInput("--friction-speed: expected no unknown friction_speed, got one in --fit or in the map")
    if asked.method == "linear" and (wrong := [name for name in blocks if name not in LINEAR]):
        raise BadInput(f"--method linear: expected parameters among {', '.join(LINEAR)}; {listed(wrong)} not linear")
    kind, recording = _read(asked, motions, whole, given, plant, blocks)
    if kind == "simulation" and asked.method == "auto":
        blocks = given.blocks(plant, names, with_speed=False)
    if kind != "simulation" and recording.tau is None:
        blocks = _with_constants(blocks, given, plant.model)
    if asked.check:
        return Exit.DONE
    files.keep_compiled()
    motion = identify_preparation.prepared(recording, given, kind == "simulation", asked.held_out)
    with bad_input("--fit: "):
        parameters = Parameters(plant, list(blocks.values()), given.priors)
        estimator = _estimator(kind, parameters, motion, asked.lags)
    sources = listed([str(path) for path in motions])
    what = f"{counted(parameters.size, 'parameter')} of {listed(list(blocks))}, by {type(estimator).__name__}"
    console(error=True).print(f"{sources}: {what}", soft_wrap=True)
    start = time.perf_counter()
    found = _found(asked, parameters, motion, estimator)
    if found is None:
        return Exit.INTERRUPTED
    wall = time.perf_counter() - start
    if not jnp.all(jnp.isfinite(found.estimate.x)) or bool(found.estimate.result == RESULTS.nonfinite):
        raise Stop(f"{sources}: {found.verdict}; the next run starts again", Exit.NOT_CONVERGED)
    # the verdict is the first line of the output
    console().print(f"verdict: {found.verdict}", soft_wrap=True, highlight=False)
    made, lost = _save(asked, machine, found, motion, what)
    if not isinstance(estimator, LinearFit):
        files.checkpoint(asked.out).unlink(missing_ok=True)
    steps = None if asked.no_step_check else found.step_error
    _show(found, wall, made, lost, steps)
    ended = reason_of(found.verdict.outcome)
    if ended is not Exit.DONE:
        return ended
    if steps is None or steps.resolved:
        return Exit.DONE
    note(steps.summary())
    return Exit.NOT_RESOLVED


def _with_nearest_bodies(model: Model) -> Model:
    """The model with the nearest consistent bodies in place of inconsistent ones, with a note that names them."""
    nearest = nearest_consistent(model)
    moved = jnp.any(nearest.inertias != model.inertias, axis=1).tolist()
    rows = zip(model.body_names, nearest.inertias[:, 0].tolist(), moved, strict=True)
    names = [f"{name} ({mass:.3g} kg)" for name, mass, new in rows if new]
    if names:
        note(f"--physical nearest: the prior is the nearest body that can exist for {listed(names)}")
    return nearest


def _read(
    asked: IdentificationRequest,
    motions: Sequence[Path],
    whole: Model,
    given: RecordingMap,
    plant: Plant,
    blocks: Mapping[str, Block],
) -> tuple[str, Recording]:
    """The method of the fit, and the recordings merged to one without delays."""
    recordings = [identify_preparation.read_record(path, whole, plant.model, given) for path in motions]
    kind = _kind(asked, recordings[0], blocks)
    for path, recording in zip(motions, recordings, strict=True):
        if not (asked.check or asked.force):
            identify_preparation.refuse_open(path, recording, "a fit")
    return kind, join_recordings([identify_preparation.in_step(each, plant, given) for each in recordings])


def _with_constants(blocks: Mapping[str, Block], given: RecordingMap, model: Model) -> dict[str, Block]:
    """The blocks for a record of currents, with torque constants in N m/A.

    Raises:
        BadInput: constants of joints are neither given nor fitted.
    """
    fitted = scales if isinstance(scales := blocks.get("scales"), SignalScale) else None
    identify_preparation.check_torque_constants(given, model, fitted)
    return dict(blocks) if fitted is None else {**blocks, "scales": replace(fitted, unit="N m/A")}


def reason_of(outcome: Outcome) -> Exit:
    """The exit reason after a fit."""
    reasons = {
        Outcome.STOPPED: Exit.INTERRUPTED, Outcome.FAILED: Exit.NOT_CONVERGED, Outcome.DOES_NOT_FIT: Exit.DOES_NOT_FIT
    }  # fmt: skip
    return reasons.get(outcome, Exit.DONE)


def _unknowns(asked: IdentificationRequest, in_map: bool) -> list[str] | None:
    """Names of the requested parameters; None for those of the map, or the default ones."""
    if asked.fit is not None:
        return names_of(asked.fit)
    if asked.method != "linear" or in_map:
        return None
    note("--method linear: fits standard parameters, friction and damping; physical consistency is not enforced")
    return ["standard", "friction", "damping"]


def _check_words(asked: IdentificationRequest, machine: Path) -> None:
    """Check the arguments before any file is read."""
    if asked.friction_speed is not None and not 0 < asked.friction_speed < math.inf:
        raise BadInput(f"--friction-speed: expected a positive number, got {asked.friction_speed:g}")
    files.check_results(
        ("--out", asked.out, ".npz"), ("--report", asked.report, ".html"), ("--write", asked.write, ".urdf")
    )
    if not 0 <= asked.held_out < 1:
        raise BadInput(f"--held-out: expected a fraction from 0 to less than 1, got {asked.held_out:g}")
    if asked.plot or asked.report is not None:
        pictures.check_plots()
    if asked.write is not None and machine.exists() and first_tag(machine) == "mujoco":
        raise BadInput("--write: expected a URDF file; for other files --out saves the parameters")


def _kind(asked: IdentificationRequest, recording: Recording, blocks: Mapping[str, Block]) -> str:
    """The method; if it is not given, the data in the record determine it."""
    forces = recording.tau is not None or recording.current is not None
    if asked.lags and (asked.method == "simulation" or not forces):
        raise BadInput("--lags: expected joint forces or currents; --method simulation fits positions")
    if asked.method != "auto":
        if asked.method != "simulation" and not forces:
            raise BadInput(f"--method {asked.method}: the record contains neither joint forces nor currents")
        return asked.method
    if not forces or recording.model.topology.loops:
        return "simulation"
    return "linear" if "standard" in blocks else "torque"


def _estimator(kind: str, parameters: Parameters, motion: PreparedMotion, lags: int | None) -> Estimator:
    """The estimator of a method."""
    if kind == "torque":
        return TorqueFit(lags=lags)
    if kind == "linear":
        return LinearFit(base_parameters(parameters), lags=lags)
    assert isinstance(motion.samples, SensorRecords)
    nodes = len(next(iter(motion.samples.channels.values())).values)
    steps = max(2, min(nodes - 1, round(WINDOW / float(motion.samples.dt))))
    return SimulationFit(window_steps=steps, estimate_noise=True)


def _found(
    asked: IdentificationRequest, parameters: Parameters, motion: PreparedMotion, estimator: Estimator
) -> Fit | None:
    """The fit; None if Ctrl-C ended it."""
    if isinstance(estimator, LinearFit):
        # a few linear solves, no checkpoint needed
        with bad_input("--method linear: "):
            return fit(parameters, motion.samples, estimator, motion.validation)
    kept = files.checkpoint(asked.out)
    files.begin_search(kept, asked.restart)
    # enter the watch first: Ctrl-C must not interrupt a compilation
    with FitWatch() as watch, bad_input("the record: "):
        found = fit(parameters, motion.samples, estimator, motion.validation, progress=watch, checkpoint=kept)
    if bool(found.estimate.result == RESULTS.interrupted):
        done = counted(int(found.estimate.iterations), "iteration")
        note(f"interrupted after {done}; the search is saved in {kept}, the same command continues it")
        return None
    return found


def _outputs(asked: IdentificationRequest, joints: str) -> list[Output]:
    """The files that will be written or removed, with their options."""
    outputs = [Output("--out", asked.out, "fit", joints)]
    if asked.report is not None:
        outputs.append(Output("--report", asked.report, "report"))
    if asked.write is not None:
        outputs.append(Output("--write", asked.write, "urdf"))
    if asked.plot:
        outputs += [Output("--plot", asked.out.with_name(f"{asked.out.stem}-{name}.png"), "plot") for name in PLOTS]
    return [*outputs, Output("--restart", files.checkpoint(asked.out), "checkpoint")] if asked.restart else outputs


def _save(
    asked: IdentificationRequest, machine: Path, found: Fit, motion: PreparedMotion, what: str
) -> tuple[list[Path], tuple[str, ...]]:
    """Write all files; return them, and the parameters that URDF cannot represent."""
    made, lost = [found.save(asked.out)], ()
    if asked.write is not None:
        lost = write_urdf(machine, _changed(found.parameters.plant.model, found.model), asked.write) + _signals(found)
        made.append(asked.write)
    # for example missing glyphs in matplotlib's font
    with warnings_as_notes():
        if asked.plot:
            for name, figure in fit_figures(found, motion.recording, motion.shown).items():
                made.append(asked.out.parent / f"{asked.out.stem}-{name}.png")
                pictures.save_figure(figure, made[-1], dpi=150)
        if asked.report is not None:
            page = report_fit(
                found, motion.recording, motion.shown, title=f"Identification of {machine.stem}",
                subtitle=f"{motion.recording.source} · {what}", files=[path.name for path in made], remarks=lost,
                step_check=not asked.no_step_check,
            )  # fmt: skip
            made.append(page.save(asked.report))
    return made, lost


def _changed(before: Model, after: Model) -> Model:
    """The model ``after`` with exactly the values of the one before where they differ by rounding only."""
    old, new = (np.asarray(m.inertias) for m in (before, after))
    size = np.max(np.abs(old), axis=1, keepdims=True)
    same = np.all(np.abs(new - old) <= SAME * size, axis=1, keepdims=True)
    drives = np.where(np.isclose(after.drives, before.drives, rtol=SAME, atol=0), before.drives, after.drives)
    return after.replace(inertias=np.where(same, old, new), drives=drives)


def _signals(found: Fit) -> tuple[str, ...]:
    """Parameters of signals, which no robot description contains, as text."""
    before, after = found.parameters.plant, found.plant
    remarks = []
    motors = MOTOR_UNITS if isinstance(before, CoupledPlant) else ()
    for name in ("scale", "offset", "stribeck", "stribeck_speed", *FRICTION_PARTS, *motors):
        if not eqx.tree_equal(getattr(before, name), getattr(after, name)):
            what = f"{name.replace('_', ' ')}{' of joints' * (name not in motors)}"
            remarks.append(f"{what}, which URDF cannot represent: see the .npz file")
    return tuple(remarks)


def _show(found: Fit, wall: float, made: list[Path], lost: tuple[str, ...], steps: FitStepError | None) -> None:
    """Print a table of the parameters and the quality of the fit."""
    rows = []
    for name, value in found.values.items():
        deviation = found.deviations[name]
        seen_by_records = name not in found.not_identifiable and math.isfinite(deviation)
        shown = f"{deviation:.2g}" if seen_by_records else "not identifiable"
        if name in found.profiles:
            shown = "from {:.3g} to {:.3g}".format(*found.intervals[name])
        if any(bound.startswith(f"{name.rpartition(', ')[0]} at its ") for bound in found.verdict.bounds):
            low, high = found.intervals[name]
            shown = f"at bound, < {high:.2g}" if low == value else f"at bound, > {low:.2g}"
        rows.append((name, f"{found.prior[name]:.6g}", f"{value:.6g}", shown))
    print_table(("parameter", "prior", "estimate", "standard error"), rows)
    seen = found.identifiability
    columns = found.estimator.columns(found.parameters, found.samples)
    facts: list[tuple[str, RenderableType]] = [
        ("identifiable", f"{seen.rank} of {found.parameters.size} combinations of the parameters"),
        ("residuals (rms)", _rows(columns, found.rmse())),
    ]
    if found.goodness is not None:
        facts.append(("explained", ", ".join(found.goodness.line(i) for i in range(len(columns)))))
    if found.validation is not None:
        facts.append(("held-out (rms)", _rows(columns, found.rmse(found.validation))))
    facts.append(("whiteness", f"{found.whiteness()[1]:.3g} (1: white)"))
    if steps is not None:
        facts.append(("steps", steps.summary().partition(": ")[2] if steps.resolved else "not converged, see below"))
    facts.append(("iterations", f"{int(found.estimate.iterations)} in {wall:.2f} s"))
    if lost:
        facts.append(("not in the URDF", lines(lost)))
    show_facts([*facts, ("files", lines(made))])


def _rows(columns: Sequence[str], numbers: Float[ndarray, " columns"]) -> str:
    """Values with the names of their columns."""
    return ", ".join(f"{name} {number:.3g}" for name, number in zip(columns, numbers, strict=True))
