"""``lgsim identify``: an identification, from the check of the words to the files that it leaves."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from rich import box
from rich.table import Table

from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import BadInput, Stop, bad_input, needs
from lgsim.cli.exit_status import Exit
from lgsim.cli.iterations import FitWatch
from lgsim.cli.terminal import console, echo_file, lines, note, warnings_as_notes
from lgsim.support.messages import counted, listed, one_line, unknown_choice
from lgsim.support.verdict import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jaxtyping import Float
    from numpy import ndarray

    from lgsim.cli.identify_preparation import PreparedMotion
    from lgsim.identify import Block, Fit, Parameters, Recording
    from lgsim.identify.estimators.estimator import Estimator
    from lgsim.identify.step_error import FitStepError

METHODS = ("auto", "torque", "linear", "simulation")
PLOTS = ("record", "residuals", "whiteness", "singular-values", "changes")
"""The names of the plots of a fit."""
WINDOW = 0.5
"""The duration of the windows that are simulated, s."""


class IdentificationRequest(NamedTuple):
    """The words of ``lgsim identify``; its help says what they mean."""

    machine: Path
    motions: tuple[Path, ...]
    map: Path | None
    fit: str | None
    method: str
    held_out: float
    lags: int | None
    force: bool
    floating_base: bool
    out: Path
    report: Path | None
    write: Path | None
    plot: bool
    check: bool
    restart: bool
    step_check: bool

    @property
    def motion(self) -> str:
        """The names of the recordings."""
        return listed([str(path) for path in self.motions])


def _run_identification(asked: IdentificationRequest) -> Exit:
    """Read, fit, save, show a table, and return why it ended.

    Raises:
        ScenarioError, FileError, BadInput: a file or a word is wrong; this is found before anything is compiled.
        Stop: a package is missing, or there is nothing to save.
    """
    import jax.numpy as jnp

    from lgsim.cli import files, identify_preparation
    from lgsim.identify import RESULTS, LinearFit, Parameters, Plant, join_recordings
    from lgsim.scenarios import load_recording_map
    from lgsim.scenarios.unknowns import LINEAR

    _check_words(asked)
    model, report = files.read_machine(asked.machine, floating_base=asked.floating_base)
    files.remark(report, asked.floating_base)
    if not asked.check:
        check_replaced(_outputs(asked, files.joint_list(model)), asked.force)
    given = load_recording_map(asked.map, model)
    plant = Plant(model, scale=given.scale)
    with bad_input("--fit: "):
        blocks = given.blocks(plant, _unknowns(asked, bool(given.root.table("unknowns").values)))
    if asked.method == "linear" and (wrong := [name for name in blocks if name not in LINEAR]):
        raise BadInput(f"--method linear: {listed(wrong)} not linear; it takes {', '.join(LINEAR)}")
    recordings = []
    for path in asked.motions:
        with bad_input():
            recordings.append(given.read(path, model))
        _show_record(path, recordings[-1])
    estimated = _kind(asked, recordings[0], blocks)
    for path, recording in zip(asked.motions, recordings, strict=True):
        if recording.report.open and not (asked.check or asked.force):
            count = counted(len(recording.report.open), "finding")
            raise BadInput(
                f"{path}: {count} to answer, above: a fit of this record would not be of this machine. Mend the map"
                " or the record; --force fits it as it is",
                Exit.OPEN_FINDINGS,
            )
    recording = join_recordings([identify_preparation.in_step(each, plant, given) for each in recordings])
    if asked.check:
        return Exit.DONE
    files.keep_compiled()
    motion = identify_preparation.prepared(recording, given, estimated == "simulation", asked.held_out)
    with bad_input("--fit: "):
        parameters = Parameters(plant, list(blocks.values()), given.priors)
        estimator = _estimator(estimated, parameters, motion, asked.lags)
    what = f"{counted(parameters.size, 'unknown')} of {listed(list(blocks))}, by {type(estimator).__name__}"
    console(error=True).print(f"{asked.motion}: {what}", soft_wrap=True)
    start = time.perf_counter()
    found = _found(asked, parameters, motion, estimator)
    if found is None:
        return Exit.INTERRUPTED
    wall = time.perf_counter() - start
    if not jnp.all(jnp.isfinite(found.estimate.x)) or bool(found.estimate.result == RESULTS.nonfinite):
        raise Stop(f"{asked.motion}: {found.verdict}", Exit.NOT_CONVERGED)
    # the first line of what the command writes
    console().print(f"verdict: {found.verdict}", soft_wrap=True, highlight=False)
    made, lost = _save(asked, found, motion, what)
    if not isinstance(estimator, LinearFit):
        _checkpoint(asked).unlink(missing_ok=True)
    steps = found.step_error if asked.step_check else None
    _show(found, wall, made, lost, steps)
    ended = reason_of(found.verdict.outcome)
    if ended is not Exit.DONE:
        return ended
    if steps is None or steps.resolved:
        return Exit.DONE
    note(steps.summary())
    return Exit.NOT_RESOLVED


def reason_of(outcome: Outcome) -> Exit:
    """The reason for which the command ends after a fit; nothing stops a fit but Ctrl-C."""
    return {Outcome.STOPPED: Exit.INTERRUPTED, Outcome.FAILED: Exit.NOT_CONVERGED}.get(outcome, Exit.DONE)


def _unknowns(asked: IdentificationRequest, in_map: bool) -> list[str] | None:
    """The names of the unknowns that were asked for; None for those of the map, or the usual ones."""
    if asked.fit is not None:
        return _names(asked.fit)
    if asked.method != "linear" or in_map:
        return None
    note("--method linear: standard parameters, friction, damping; bodies that can exist are not linear")
    return ["standard", "friction", "damping"]


def _names(words: str) -> list[str]:
    """The names between commas."""
    return [word.strip() for word in words.split(",") if word.strip()]


def _check_words(asked: IdentificationRequest) -> None:
    """Refuse what can be refused before a file is read."""
    from lgsim.cli import files, pictures
    from lgsim.scenarios.machine import first_tag

    for option, path, ending in (
        ("--out", asked.out, ".npz"), ("--report", asked.report, ".html"), ("--write", asked.write, ".urdf"),
    ):  # fmt: skip
        if path is not None:
            if path.suffix != ending:
                raise BadInput(f"{option}: expected a name that ends in {ending}, got {path.name!r}")
            files.check_file(option, path)
    if not 0 <= asked.held_out < 1:
        raise BadInput(f"--held-out: expected a part of the motion, from 0 to less than 1, got {asked.held_out:g}")
    if asked.plot or asked.report is not None:
        pictures.check_plots()
    if asked.write is not None and asked.machine.exists() and first_tag(asked.machine) == "mujoco":
        raise BadInput("--write: only for URDF files; --out keeps the numbers of any machine")


def _show_record(path: Path, recording: Recording) -> None:
    """Write what was read, and each repair."""
    seconds = recording.time[-1] - recording.time[0]
    heard = ", ".join(recording.channels)
    line = f"{path}: {counted(len(recording), 'sample')} in {seconds:.4g} s, of {heard}"
    output = console(error=True)
    output.print(line, soft_wrap=True)
    for line in recording.report.lines():
        output.print(f"  {line}", soft_wrap=True)


def _kind(asked: IdentificationRequest, recording: Recording, blocks: Mapping[str, Block]) -> str:
    """The method, chosen by the record where it is left open."""
    forces = recording.tau is not None or recording.current is not None
    if asked.lags and (asked.method == "simulation" or not forces):
        raise BadInput("--lags: only for joint forces or currents, not for --method simulation")
    if asked.method != "auto":
        if asked.method != "simulation" and not forces:
            raise BadInput(f"--method {asked.method}: the record has neither joint forces nor currents")
        return asked.method
    if not forces:
        return "simulation"
    return "linear" if "standard" in blocks else "torque"


def _estimator(kind: str, parameters: Parameters, motion: PreparedMotion, lags: int | None) -> Estimator:
    """The estimator of a method."""
    from lgsim.identify import LinearFit, SensorRecords, SimulationFit, TorqueFit, base_parameters

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
    """The fit; None where Ctrl-C ended it."""
    from lgsim.identify import RESULTS, LinearFit, fit
    from lgsim.support.checkpoint import CheckpointError

    if isinstance(estimator, LinearFit):
        # a few linear solutions: nothing to go on from
        with bad_input("--method linear: "):
            return fit(parameters, motion.samples, estimator, motion.validation)
    kept = _checkpoint(asked)
    if asked.restart:
        kept.unlink(missing_ok=True)
    elif kept.exists():
        note(f"going on from {kept}; --restart begins anew")
    # the watch first, for Ctrl-C must not reach a compilation
    with FitWatch() as watch, bad_input("the record: "):
        try:
            found = fit(parameters, motion.samples, estimator, motion.validation, progress=watch, checkpoint=kept)
        except CheckpointError as error:
            raise BadInput(f"{one_line(error)}; --restart begins anew") from error
    if bool(found.estimate.result == RESULTS.interrupted):
        done = counted(int(found.estimate.iterations), "iteration")
        note(f"interrupted after {done}; the search is kept in {kept}, and the same command goes on")
        return None
    return found


def _outputs(asked: IdentificationRequest, joints: str) -> list[Output]:
    """The files that are going to be written, or removed, by their options."""
    outputs = [Output("--out", asked.out, "fit", joints)]
    if asked.report is not None:
        outputs.append(Output("--report", asked.report, "report"))
    if asked.write is not None:
        outputs.append(Output("--write", asked.write, "urdf"))
    if asked.plot:
        outputs += [Output("--plot", asked.out.with_name(f"{asked.out.stem}-{name}.png"), "plot") for name in PLOTS]
    return [*outputs, Output("--restart", _checkpoint(asked), "checkpoint")] if asked.restart else outputs


def _checkpoint(asked: IdentificationRequest) -> Path:
    """The place of the checkpoint."""
    return asked.out.with_suffix(".checkpoint.npz")


def _save(
    asked: IdentificationRequest, found: Fit, motion: PreparedMotion, what: str
) -> tuple[list[Path], tuple[str, ...]]:
    """Write all files; return them, and what the URDF file could not hold."""
    from lgsim.cli import pictures
    from lgsim.formats import write_urdf
    from lgsim.view.reports import fit_figures, report_fit

    made, lost = [found.save(asked.out)], ()
    if asked.write is not None:
        lost = write_urdf(asked.machine, found.model, asked.write) + _signals(found)
        made.append(asked.write)
    # such as of letters that matplotlib's font lacks
    with warnings_as_notes():
        if asked.plot:
            for name, figure in fit_figures(found, motion.recording, motion.shown).items():
                made.append(asked.out.parent / f"{asked.out.stem}-{name}.png")
                pictures.save_figure(figure, made[-1], dpi=150)
        if asked.report is not None:
            page = report_fit(
                found, motion.recording, motion.shown, title=f"Identification of {asked.machine.stem}",
                subtitle=f"{motion.recording.source} · {what}", files=[path.name for path in made], remarks=lost,
                step_check=asked.step_check,
            )  # fmt: skip
            made.append(page.save(asked.report))
    return made, lost


def _signals(found: Fit) -> tuple[str, ...]:
    """The numbers of the signals that no description of a machine holds, in words."""
    import jax.numpy as jnp

    before, after = found.parameters.plant, found.plant
    remarks = []
    for name in ("scale", "offset", "stribeck", "stribeck_speed"):
        if not jnp.array_equal(getattr(before, name), getattr(after, name)):
            remarks.append(f"{name.replace('_', ' ')} of joints, for which URDF has no place: in the .npz file")
    return tuple(remarks)


def _show(found: Fit, wall: float, made: list[Path], lost: tuple[str, ...], steps: FitStepError | None) -> None:
    """Write a table of the numbers, and how well they tell the record."""
    table = Table("number", box=box.SIMPLE_HEAD)
    for name in ("prior", "found", "deviation"):
        table.add_column(name, justify="right")
    for name, value in found.values.items():
        deviation = found.deviations[name]
        shown = f"{deviation:.2g}" if math.isfinite(deviation) else "not seen"
        if any(bound.startswith(f"{name.rpartition(', ')[0]} at its ") for bound in found.verdict.bounds):
            low, high = found.intervals[name]
            shown = f"at bound, < {high:.2g}" if low == value else f"at bound, > {low:.2g}"
        table.add_row(name, f"{found.prior[name]:.6g}", f"{value:.6g}", shown)
    console().print(table)
    short = Table.grid(padding=(0, 2))
    seen = found.identifiability
    short.add_row("seen", f"{seen.rank} of {found.parameters.size} combinations of the unknowns")
    columns = found.estimator.columns(found.parameters, found.samples)
    short.add_row("residuals (rms)", _rows(columns, found.rmse()))
    if found.validation is not None:
        short.add_row("held out (rms)", _rows(columns, found.rmse(found.validation)))
    short.add_row("whiteness", f"{found.whiteness()[1]:.3g} (1: white)")
    if steps is not None:
        short.add_row("steps", steps.summary().partition(": ")[2] if steps.resolved else "not resolved, see below")
    short.add_row("iterations", f"{int(found.estimate.iterations)} in {wall:.2f} s")
    if lost:
        short.add_row("not in the URDF", lines(lost))
    short.add_row("files", lines(made))
    console().print(short)


def _rows(columns: Sequence[str], numbers: Float[ndarray, " columns"]) -> str:
    """The numbers with the names of their columns."""
    return ", ".join(f"{name} {number:.3g}" for name, number in zip(columns, numbers, strict=True))


def identify(
    machine: Annotated[
        Path | None, typer.Argument(metavar="MACHINE", help="A URDF, SDF or MJCF file: the prior.", show_default=False)
    ] = None,
    motion: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MOTION",
            help="What was recorded, once or several times: .csv, .parquet, .npz, .mcap, .db3, the folder of a ROS 2"
            " bag or of a LeRobot data set.",
            show_default=False,
        ),
    ] = None,
    map: Annotated[
        Path | None,
        typer.Option(help="A TOML file: columns, units, delays, priors; see --example.", show_default=False),
    ] = None,
    fit: Annotated[
        str | None,
        typer.Option(
            help="What is unknown: masses, centers, bodies, friction, damping, armature, offsets, ..., with commas"
            " between; by default what the map says, or else bodies,friction,damping.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="torque: joint forces against inverse dynamics; linear: the same for base parameters; simulation:"
            " simulated motion against the positions. auto: torque where forces or currents were recorded."
        ),
    ] = "auto",
    held_out: Annotated[float, typer.Option(help="Part of the motion that is not fitted but compared; 0: none.")] = 0.3,
    lags: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Samples over which the noise of forces is correlated, 0 for white noise; by default deviations count"
            " the correlation that the residuals show.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Fit although the check of the record left findings to answer, and replace files that are no results"
            " of this kind, or of another machine; what --write names is replaced by it alone.",
        ),
    ] = False,
    floating_base: Annotated[bool, typer.Option("--floating-base", help="The root link moves freely.")] = False,
    out: Annotated[Path, typer.Option(help="Where numbers, covariance and model go: .npz.")] = Path("fit.npz"),
    report: Annotated[
        Path | None, typer.Option(help="A page with all that was found: .html, for any browser.", show_default=False)
    ] = None,
    write: Annotated[
        Path | None, typer.Option(help="The machine's URDF file with the numbers found.", show_default=False)
    ] = None,
    plot: Annotated[bool, typer.Option("--plot", help="The report's plots too, beside the .npz file.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only read and check the record, and end.")] = False,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, though an interrupted search of this name could go on.")
    ] = False,
    no_step_check: Annotated[
        bool,
        typer.Option(
            "--no-step-check", help="Do not simulate again by shorter steps: how wrong the steps make the fit."
        ),
    ] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a map to start from, and end.")] = False,
) -> None:
    """Find masses, inertias, friction and other numbers of a machine from its recorded motion, and how sure they are.

    Columns with clear names, such as "time", "elbow_position" or "tau elbow", need no map. Ctrl-C ends the search; the
    same command then goes on, to the same numbers, from a checkpoint beside the output.

    The first line of the output is the verdict. A fit that converged at a bound, or with combinations that the prior
    decides, has converged too. Steps of a simulation that decide the numbers are not resolved.
    """
    if example:
        from lgsim.data import recording_map

        if machine is not None:
            raise BadInput("--example: without MACHINE and MOTION; it prints a map, your shell can keep it: > map.toml")
        echo_file(recording_map().read_text(encoding="utf-8"))
        raise typer.Exit
    if machine is None or not motion:
        raise BadInput(
            "MACHINE MOTION: expected a URDF, SDF or MJCF file and a recorded motion, such as a .csv or .mcap file"
        )
    if method not in METHODS:
        raise BadInput(unknown_choice("--method: expected one of", method, METHODS))
    needs("scipy", "identify", "identification")
    asked = IdentificationRequest(
        machine, tuple(motion), map, fit, method, held_out, lags, force, floating_base, out, report, write, plot, check,
        restart, not no_step_check,
    )  # fmt: skip
    raise typer.Exit(_run_identification(asked).status)
