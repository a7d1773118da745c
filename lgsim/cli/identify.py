"""An identification as a user asked for it, from the check of the words to the files that it leaves."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import typer
from rich import box
from rich.table import Table

from lgsim.cli import identify_preparation, pictures, runs
from lgsim.cli.errors import DIVERGED, INTERRUPTED, BadInput, Stop, counted, one_line
from lgsim.cli.identify_preparation import Motion
from lgsim.cli.iterations import SHOWN, IterationWatch
from lgsim.cli.terminal import console, note
from lgsim.formats import FileError, write_urdf
from lgsim.identify import (  # fmt: skip
    RESULTS,
    Estimator,
    Fit,
    Iteration,
    LinearFit,
    Parameters,
    Plant,
    Recording,
    Search,
    SimulationFit,
    TorqueFit,
    base_parameters,
    fit,
)
from lgsim.reports import identification
from lgsim.scenarios import recording_map, unknowns
from lgsim.scenarios.machine import first_tag, keep_compiled, read_machine, remark
from lgsim.support.checkpoint import CheckpointError, fingerprint, read, write
from lgsim.support.version import own_version

WINDOW = 0.5
"""Duration of the windows that are simulated, s."""
EVERY = 5.0
"""Seconds between checkpoints."""


class IdentificationRequest(NamedTuple):
    """The words of ``lgsim identify``; its help says what they mean."""

    machine: Path
    motion: Path
    map: Path | None
    fit: str | None
    method: str
    held_out: float
    lags: int
    floating_base: bool
    out: Path
    report: Path | None
    write: Path | None
    plot: bool
    check: bool
    restart: bool


class FitWatch(IterationWatch):
    """``IterationWatch`` of a ``Search``.

    Attributes:
        rounds: How many the search has.
        steps: All iterations so far.
    """

    def __init__(self) -> None:
        super().__init__(False, 0)
        self.rounds = 0
        # the table asks only whether there are rows
        self.steps: list[Iteration] = []
        self.rows = self.steps  # pyright: ignore[reportAttributeAccessIssue]

    def note(self, step: Iteration) -> None:
        """Takes note of an iteration.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        self.steps.append(step)
        self._first = self._first or time.perf_counter()
        if self.interrupted:
            raise KeyboardInterrupt

    def table(self) -> Table:
        """The latest iterations."""
        table = Table(box=box.SIMPLE_HEAD)
        for name in ("iteration", "cost", "falls by", "damping", "round"):
            table.add_column(name, justify="right")
        before = {step.number: step.cost for step in self.steps}
        for step in self.steps[-SHOWN:]:
            fall = before.get(step.number - 1, math.nan) - step.cost
            same = any(s.number == step.number - 1 and s.round == step.round for s in self.steps)
            table.add_row(
                f"{step.number}", f"{step.cost:.8g}", f"{fall:.3g}" if same else "–", f"{step.damping:.2g}",
                f"{step.round} of {self.rounds}",
            )  # fmt: skip
        return table


def run_identification(asked: IdentificationRequest) -> int:
    """Reads, fits, saves, and shows a table; the exit code.

    Raises:
        BadInput: a file or a word is wrong; this is found before anything is compiled.
        Stop: a package is missing, or there is nothing to save.
    """
    _check_words(asked)
    model, report = read_machine(asked.machine, floating_base=asked.floating_base)
    remark(report, asked.floating_base)
    given = recording_map.load(asked.map, model)
    plant = Plant(model, scale=given.scale)
    blocks = unknowns.chosen(asked.fit, given.unknowns, plant)
    recording = identify_preparation.recorded(asked.motion, model, given)
    _show_record(asked, recording)
    estimated = _kind(asked, recording, blocks)
    recording = identify_preparation.in_step(recording, plant, given)
    if asked.check:
        return 0
    keep_compiled()
    motion = identify_preparation.prepared(recording, given, estimated == "simulation", asked.held_out)
    with _said("--fit: "):
        parameters = Parameters(plant, list(blocks.values()), given.beliefs)
        estimator = _estimator(estimated, parameters, motion, asked.lags)
    what = f"{counted(parameters.size, 'unknown')} of {unknowns.named(blocks)}, by {type(estimator).__name__}"
    console(error=True).print(f"{asked.motion}: {what}", soft_wrap=True)
    start = time.perf_counter()
    found = _found(asked, parameters, motion, estimator)
    if found is None:
        return INTERRUPTED
    wall = time.perf_counter() - start
    if not np.all(np.isfinite(found.estimate.x)) or bool(found.estimate.status == RESULTS.nonfinite):
        failed = Stop(f"{asked.motion}: {found.message or 'the numbers found are not finite.'}")
        failed.code = DIVERGED
        raise failed
    files, lost = _save(asked, found, motion, what)
    _checkpoint(asked).unlink(missing_ok=True)
    if found.message:
        note(f"{found.message} What was found is in {asked.out}")
    _show(found, wall, files, lost)
    return DIVERGED if found.message else 0


def _check_words(asked: IdentificationRequest) -> None:
    """What can be refused before a file is read."""
    for option, path, ending in (
        ("--out", asked.out, ".npz"), ("--report", asked.report, ".html"), ("--write", asked.write, ".urdf"),
    ):  # fmt: skip
        if path is not None:
            if path.suffix != ending:
                raise BadInput(f"{option}: expected a name that ends in {ending}, got {path.name!r}")
            runs.check_file(option, path)
    if not 0 <= asked.held_out < 1:
        raise BadInput(f"--held-out: expected a part of the motion, from 0 to less than 1, got {asked.held_out:g}")
    if asked.plot or asked.report is not None:
        pictures.check_plots()
    if asked.write is not None and asked.machine.exists() and first_tag(asked.machine) == "mujoco":
        raise BadInput("--write: only for URDF files; --out keeps the numbers of any machine")


def _show_record(asked: IdentificationRequest, recording: Recording) -> None:
    """What was read, and each repair."""
    seconds = recording.time[-1] - recording.time[0]
    heard = ", ".join(recording.channels)
    line = f"{asked.motion}: {counted(len(recording), 'sample')} in {seconds:.4g} s, of {heard}"
    output = console(error=True)
    output.print(line, soft_wrap=True)
    for finding in recording.report:
        output.print(f"  {'to answer: ' if finding.open else ''}{finding}", soft_wrap=True)
    if recording.report.open:
        note("the record may not be what the model is; look at what is to answer before you trust the numbers")


def _kind(asked: IdentificationRequest, recording: Recording, blocks: dict[str, Any]) -> str:
    """The method, chosen where it is left open."""
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


def _estimator(kind: str, parameters: Parameters, motion: Motion, lags: int) -> Estimator:
    if kind == "torque":
        return TorqueFit(lags=lags)
    if kind == "linear":
        return LinearFit(base_parameters(parameters), lags=lags)
    nodes = len(next(iter(motion.samples.channels.values())).values)
    steps = max(2, min(nodes - 1, round(WINDOW / float(motion.samples.dt))))
    return SimulationFit(steps=steps, estimate_noise=True)


class _said:
    """What the library refuses is bad input."""

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, ValueError | TypeError):
            raise BadInput(f"{self.what}{one_line(error)}") from error


def _found(asked: IdentificationRequest, parameters: Parameters, motion: Motion, estimator: Estimator) -> Fit | None:
    """The fit; None where Ctrl-C ended it."""
    if isinstance(estimator, LinearFit):
        # a few linear solutions: nothing to go on from
        with _said("--method linear: "):
            return fit(parameters, motion.samples, estimator, motion.validation)
    kept = _checkpoint(asked)
    if asked.restart:
        kept.unlink(missing_ok=True)
    elif kept.exists():
        note(f"going on from {kept}; --restart begins anew")
    mark = fingerprint(parameters, motion.samples, estimator)
    watch = FitWatch()
    # from here on, for Ctrl-C must not reach a compilation
    with watch:
        with _said("the record: "):
            search = Search(parameters, motion.samples, estimator, motion.validation)
        watch.rounds = search.rounds
        if kept.exists():
            try:
                search.stage = read(kept, mark, search.stage)
            except CheckpointError as error:
                raise BadInput(f"{one_line(error)}; --restart begins anew") from error
        last = time.perf_counter()
        try:
            while not search.done:
                watch.note(search.step())
                if time.perf_counter() - last > EVERY:
                    write(kept, mark, search.stage)
                    last = time.perf_counter()
        except KeyboardInterrupt:
            write(kept, mark, search.stage)
            done = counted(int(search.stage.iterations), "iteration")
            note(f"interrupted after {done}; the search is kept in {kept}, and the same command goes on")
            return None
    return search.result()


def _checkpoint(asked: IdentificationRequest) -> Path:
    return asked.out.with_suffix(".checkpoint.npz")


def _save(asked: IdentificationRequest, found: Fit, motion: Motion, what: str) -> tuple[list[Path], tuple[str, ...]]:
    """(files, what the URDF file could not hold)."""
    files, lost = [found.save(asked.out)], ()
    if asked.write is not None:
        try:
            lost = write_urdf(asked.machine, found.model, asked.write)
        except FileError as error:
            raise BadInput(one_line(error)) from error
        files.append(asked.write)
        lost += _signals(found)
    if asked.plot:
        for name, figure in identification.figures(found, motion).items():
            files.append(asked.out.parent / f"{asked.out.stem}-{name}.png")
            figure.savefig(files[-1], dpi=150)
    if asked.report is not None:
        lines = [f"{path.name}" for path in files]
        page = identification.page(found, motion, asked.machine.name, what, lines, lost, own_version())
        files.append(page.save(asked.report))
    return files, lost


def _signals(found: Fit) -> tuple[str, ...]:
    """Numbers of the signals that no description of a machine holds."""
    before, after = found.parameters.plant, found.plant
    remarks = []
    for name in ("scale", "offset", "stribeck", "stribeck_speed"):
        if not jnp.array_equal(getattr(before, name), getattr(after, name)):
            remarks.append(f"{name.replace('_', ' ')} of joints, for which URDF has no place: in the .npz file")
    return tuple(remarks)


def _show(found: Fit, wall: float, files: list[Path], lost: tuple[str, ...]) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for name, side in (("number", "left"), ("prior", "right"), ("found", "right"), ("deviation", "right")):
        table.add_column(name, justify=side)  # pyright: ignore[reportArgumentType]
    for name, value in found.values.items():
        deviation = found.deviations[name]
        shown = f"{deviation:.2g}" if math.isfinite(deviation) else "not seen"
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
    short.add_row("iterations", f"{int(found.estimate.iterations)} in {wall:.2f} s")
    if lost:
        short.add_row("not in the URDF", "\n".join(lost))
    short.add_row("files", "\n".join(map(str, files)))
    console().print(short)


def _rows(columns: list[str], numbers: np.ndarray) -> str:
    return ", ".join(f"{name} {number:.3g}" for name, number in zip(columns, numbers, strict=True))


METHODS = ("auto", "torque", "linear", "simulation")


def identify(
    machine: Annotated[
        Path | None, typer.Argument(metavar="MACHINE", help="A URDF or MJCF file: the prior.", show_default=False)
    ] = None,
    motion: Annotated[
        Path | None,
        typer.Argument(metavar="MOTION", help="What was recorded: .csv, .parquet or .npz.", show_default=False),
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
        int,
        typer.Option(min=0, help="Samples over which the noise of forces is correlated: deviations then count it."),
    ] = 0,
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
    example: Annotated[bool, typer.Option("--example", help="Print a map to start from, and end.")] = False,
) -> None:
    """Find masses, inertias, friction and other numbers of a machine from its recorded motion, and how sure they are.

    Columns with clear names, such as "time", "elbow_position" or "tau elbow", need no map. Ctrl-C ends the search; the
    same command then goes on, to the same numbers, from a checkpoint beside the output.
    """
    from lgsim.cli.errors import BadInput, needs, unknown

    if example:
        from lgsim.cli.identify_example import EXAMPLE

        if machine is not None:
            raise BadInput("--example: without MACHINE and MOTION; it prints a map, your shell can keep it: > map.toml")
        typer.echo(EXAMPLE, nl=False)
        raise typer.Exit
    if machine is None or motion is None:
        raise BadInput("MACHINE MOTION: expected a URDF or MJCF file and a recorded motion, .csv, .parquet or .npz")
    if method not in METHODS:
        raise unknown(f"--method: expected one of {', '.join(METHODS)}", method, METHODS)
    needs("scipy", "identify", "identification")
    pass

    asked = IdentificationRequest(
        machine, motion, map, fit, method, held_out, lags, floating_base, out, report, write, plot, check, restart
    )
    raise typer.Exit(run_identification(asked))
