"""``lgsim montecarlo``: a study, from the check of the file to the store that it leaves, and the report about it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.errors import BadInput, Stop, bad_input, needs
from lgsim.cli.exit_status import Exit, epilog
from lgsim.cli.montecarlo_progress import SampleWatch
from lgsim.cli.terminal import Command, LiteralGroup, console, echo_file, note, warnings_as_notes
from lgsim.support.messages import counted, one_line, unknown_choice

if TYPE_CHECKING:
    from lgsim.montecarlo import Engine, Results, Rollout, Study
    from lgsim.montecarlo.store import Store
    from lgsim.scenarios.study import StudyScenario

PIECES = 50
"""The least number of chunks of a study, so that one sees it go on, and little is lost when it is killed."""
SHOWN = 12
"""The largest number of rows of the table at the end."""


class StudyRequest(NamedTuple):
    """The words of ``lgsim montecarlo``; its help says what they mean."""

    file: Path
    out: Path
    samples: int | None
    seed: int | None
    ray: bool
    address: str | None
    resume: bool
    check: bool
    step_check: bool


def _run_study(asked: StudyRequest) -> Exit:
    """Run the study into its store, show a table, and return why it ended.

    Raises:
        ScenarioError: the file is wrong.
        BadInput: a word is wrong, or the store is of something else.
        Stop: a package is missing, or the store cannot be written.
    """
    from lgsim.cli import files
    from lgsim.cli.checks import starts
    from lgsim.montecarlo import Engine, open_store
    from lgsim.scenarios import load_study
    from lgsim.scenarios.study_store import describe_study

    files.configure_jax()
    needs("pyarrow", "montecarlo", "a store")
    if asked.ray:
        needs("ray", "ray", "the engine ray")
    elif asked.address is not None:
        raise BadInput("--address: only with --engine ray")
    files.check_folder("--out", asked.out.absolute().parent)
    if asked.resume and not (asked.out.is_dir() and any(asked.out.iterdir())):
        raise BadInput(f"--resume: there is no store at {str(asked.out)!r} to go on with; without --resume one is made")
    for option, value, least in (("--samples", asked.samples, 1), ("--seed", asked.seed, 0)):
        if value is not None and value < least:
            raise BadInput(f"{option}: expected a whole number from {least} on, got {value}")
    loaded = load_study(asked.file, samples=asked.samples, seed=asked.seed)
    files.remark(loaded.machine.report, loaded.machine.floating_base)
    starts.remark_study(_rollout(loaded.study))
    console(error=True).print(f"{asked.file}: {_summary(loaded)}", soft_wrap=True)
    if loaded.remark:
        note(loaded.remark)
    if asked.check:
        return Exit.DONE
    files.keep_compiled()
    engine = Engine(loaded.study)
    try:
        with open_store(engine, asked.out, resume=asked.resume, chunk=_chunk(engine, asked.out)) as store:
            describe_study(store, loaded, asked.file.read_bytes())
            return _run(asked, engine, store)
    except FileExistsError as error:
        text = one_line(error).replace("resume=True goes on with it", "--resume goes on with it")
        raise BadInput(f"--out: {text}") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        raise BadInput(one_line(error)) from error
    except OSError as error:
        raise Stop(error.strerror if error.errno and error.strerror else one_line(error)) from error


def _run(asked: StudyRequest, engine: Engine, store: Store) -> Exit:
    """Compute what the store lacks, show a table, and return why it ended."""
    from lgsim.cli.checks import starts
    from lgsim.montecarlo.engine import fill
    from lgsim.montecarlo.study import DIVERGED

    known = [store.bounds(k) for k in range(store.chunks) if store.has(k)]
    watch = SampleWatch(engine.study, sum(stop - start for start, stop in known))
    with watch:
        if asked.ray:
            from lgsim.montecarlo import ray_cluster

            results = ray_cluster.fill(
                engine, store, address=asked.address, progress=watch, step_check=asked.step_check
            )
        else:
            results = fill(engine, store, watch, step_check=asked.step_check)
    if not results.finished:
        note(f"interrupted after {counted(results.samples, 'sample')}; the same command with --resume goes on")
    if results.running.diverged < results.samples:
        _show(results, watch, asked.out)
    elif results.samples:
        flipped = 0.0 if results.step_error is None else results.step_error.flipped[DIVERGED]
        less = f"; {100 * flipped:.3g} % do not with dt/2" if flipped else ""
        advice = starts.missing_inertia(_rollout(engine.study)) or "take a smaller dt"
        note(f"all samples diverged{less}: {advice}, or look at one: lgsim montecarlo report {asked.out}")
        return Exit.ALL_DIVERGED if results.finished else Exit.INTERRUPTED
    if not results.finished:
        return Exit.INTERRUPTED
    found = results.step_error
    if found is None or found.resolved:
        return Exit.DONE
    note(found.summary())
    return Exit.NOT_RESOLVED


def _chunk(engine: Engine, path: Path) -> int | None:
    """The number of samples of a chunk, whole tiles on all devices; None for that of a store that is there."""
    from lgsim.montecarlo.store import Store

    if Store.exists(path):
        return None
    tiles = engine.study.samples // (PIECES * engine.width)
    return max(1, min(tiles, engine.chunk_size // engine.width)) * engine.width


def _summary(loaded: StudyScenario) -> str:
    """The study in a line."""
    from lgsim.montecarlo.low_discrepancy import LatinPoints, SobolPoints

    kinds = {SobolPoints: "Sobol", LatinPoints: "Latin hypercube"}
    wanted, rollout = loaded.study, _rollout(loaded.study)
    sampler = wanted.sampler
    kind = "random" if sampler.points is None else kinds[type(sampler.points)]
    rule = wanted.stop
    until = "" if rule is None else f", until {rule.output} is known to {rule.half_width:g} at {100 * rule.level:g} %"
    return (
        f"{counted(wanted.samples, 'sample')} ({kind}, seed {wanted.seed}){until};"
        f" {loaded.machine.path.name},"
        f" {counted(rollout.steps, 'step')} of {float(rollout.dt):g} s; varies {', '.join(sampler.names)}"
    )


def _rollout(study: Study) -> Rollout:
    """The motion of a study that was read from a file."""
    from lgsim.montecarlo import Rollout

    assert isinstance(study.rollout, Rollout)
    return study.rollout


def _show(results: Results, watch: SampleWatch, path: Path) -> None:
    """Write a table of the outputs, and how many samples there are."""
    from rich import box
    from rich.table import Table

    from lgsim.montecarlo.limits import study_limit_uses
    from lgsim.montecarlo.study import FAILED
    from lgsim.simulation.limits import limit_rows, limit_warnings
    from lgsim.view.reports.estimates import failure_interval, spread_rows
    from lgsim.view.reports.study import label

    half, found = f"± {100 * watch.level:g} %", results.step_error
    steps = () if found is None else ("steps",)
    table = Table("output", "mean", half, *steps, "std", "smallest", "largest", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    rows = spread_rows(results.running, watch.level)
    # what is asked for first, histories last
    rows.sort(key=lambda row: (row.output != watch.shown, results.moments(row.output).mean.size))
    for row in rows[:SHOWN]:
        cells = [f"{x:.5g}" for x in row[2:]]
        if row.output.startswith(FAILED):
            cells[1] = failure_interval(results.moments(row.output), watch.level)
        if found is not None:
            cells.insert(2, found.mean_error(row.output, row.entry))
        plain = row.output if row.entry is None else f"{row.output}[{row.entry}]"
        table.add_row(known if (known := label(results, row.output, row.entry)) is not None else plain, *cells)
    output = console()
    output.print(table)
    if len(rows) > SHOWN:
        output.print(f"and {len(rows) - SHOWN} more numbers", soft_wrap=True)
    facts = Table.grid(padding=(0, 2))
    facts.add_row("samples", f"{results.samples:,}, {results.running.diverged:,} of them diverged")
    uses = study_limit_uses(results)
    for name, text in limit_rows(uses):
        facts.add_row(name, f"{text}, in the worst sample")
    if found is not None:
        facts.add_row("steps", found.summary().partition(": ")[2] if found.resolved else "not resolved, see below")
    if watch.rate is not None:
        facts.add_row("rate", f"{watch.rate:,.0f} samples/s after the first chunk, {watch.wall:.1f} s in all")
    facts.add_row("store", str(path))
    facts.add_row("report", f"lgsim montecarlo report {path}")
    output.print(facts)
    for warning in limit_warnings(uses):
        note(warning)


class Group(LiteralGroup):
    """A group whose first word may be left out: what is none of its commands goes to ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in front where it is not."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args or ["--help"])


class Computer(StrEnum):
    """The engine that computes."""

    local = "local"
    ray = "ray"


app = typer.Typer(
    cls=Group,
    epilog=epilog("montecarlo run"),
    help=(
        "Dispersions: a motion many times, each time with other starts, masses, frictions, winds.\n\n"
        "Start with `lgsim montecarlo --example hover > study.toml`, then `lgsim montecarlo study.toml --out store`,"
        " then `lgsim montecarlo report store`. `run` may be left out; `lgsim montecarlo run --help` shows its options."
    ),
)


@app.command(cls=Command, epilog=epilog("montecarlo run"))
def run(
    study: Annotated[
        Path | None,
        typer.Argument(metavar="STUDY", help="What varies and what is kept: a TOML file.", show_default=False),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(metavar="N", help="How many; else as the file says.", show_default=False)
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Of the random numbers; else as the file says.", show_default=False)
    ] = None,
    engine: Annotated[
        Computer, typer.Option(help="This process on all its devices, or a Ray cluster, chunk by chunk.")
    ] = Computer.local,
    address: Annotated[
        str | None,
        typer.Option(
            help="Of a Ray cluster: host:port, ray://host:port or auto; else one is started here.", show_default=False
        ),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="STORE", help="The folder of the results; a new one.")] = Path("study"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a store, also with more samples than it was made for.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the file is right, and end.")] = False,
    no_step_check: Annotated[
        bool,
        typer.Option("--no-step-check", help="Run no samples again by shorter steps: how wrong dt makes the numbers."),
    ] = False,
    example: Annotated[
        str | None, typer.Option(help="Print a study to start from, and end: hover or arm.", show_default=False)
    ] = None,
) -> None:
    """Run a study into a store.

    Ctrl-C ends it after the chunk that is being computed; the same command with --resume goes on to the same numbers,
    bit for bit, and so it does after a crash. At the end some samples are run again by shorter steps: where that
    changes a number by more than its statistical interval, the number is not resolved.
    """
    if example is not None:
        from lgsim import data

        if study is not None:
            raise BadInput("--example: without a STUDY; it prints one, and your shell can keep it: > study.toml")
        if example not in data.STUDIES:
            raise BadInput(unknown_choice("--example: expected one of", example, data.STUDIES))
        echo_file(data.study(example).read_text(encoding="utf-8"))
        raise typer.Exit
    if study is None:
        raise BadInput("STUDY: expected a TOML file; lgsim montecarlo --example hover > study.toml makes one")
    request = StudyRequest(study, out, samples, seed, engine is Computer.ray, address, resume, check, not no_step_check)
    raise typer.Exit(_run_study(request).status)


def _study_of(results: Results) -> str:
    """The fingerprint of a stored study."""
    from lgsim.montecarlo.store import Store

    assert isinstance(results.source, Store)
    return results.source.metadata.study


@app.command(cls=Command, epilog=epilog("montecarlo report"))
def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What a study left.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes; else STORE.html.", show_default=False)
    ] = None,
    cases: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="How many of the worst samples are replayed; else as the study says.",
                     show_default=False),
    ] = None,
    force: Force = False,
) -> None:  # fmt: skip
    """Write one page about a store, which any browser shows without a network.

    Distributions, attitudes on the sphere, fan charts of the motions, failures and divergences with their samples, and
    the worst samples played in three dimensions.
    """
    from lgsim.cli import files, pictures
    from lgsim.scenarios.study_store import open_study
    from lgsim.view.reports import report_study

    pictures.check_plots()
    needs("pyarrow", "montecarlo", "a store")
    files.configure_jax()
    files.keep_compiled()
    stored = open_study(store)
    path = files.check_file("--out", store.with_suffix(".html") if out is None else out)
    check_replaced([Output("--out", path, "report", _study_of(stored.results))], force)
    # such as of a damaged chunk
    with warnings_as_notes(), bad_input():
        report_study(stored, cases=cases).save(path)
    console().print(f"{path}: {counted(stored.results.samples, 'sample')}", soft_wrap=True)
