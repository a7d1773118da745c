"""A Monte Carlo study as a user asked for it, from the check of the file to the store that it leaves."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from lgsim.cli import runs
from lgsim.cli.errors import DIVERGED, INTERRUPTED, BadInput, Stop, counted, needs, one_line
from lgsim.cli.montecarlo_progress import SampleWatch, failure_interval, spread_rows
from lgsim.cli.terminal import console, note
from lgsim.montecarlo import Engine, Results, Store, open_store
from lgsim.montecarlo.low_discrepancy import LatinPoints, SobolPoints
from lgsim.montecarlo.run import fill
from lgsim.montecarlo.study import FAILED
from lgsim.multibody import Model
from lgsim.multibody.serialization import from_record, to_record
from lgsim.scenarios.machine import keep_compiled, remark, use_float64
from lgsim.scenarios.study import Changes, Loaded, load
from lgsim.support.files import write_whole

STUDY, MACHINE = "study.toml", "machine.json"
"""What the command adds to a store: the study's file, and the machine with where its file is."""
KINDS = {SobolPoints: "Sobol", LatinPoints: "Latin hypercube"}
"""Of sequences, for people."""
PIECES = 50
"""Chunks that a study has at least, so that one sees it go on, and little is lost when it is killed."""
SHOWN = 12
"""Rows of the table at the end."""


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


def run_study(asked: StudyRequest) -> int:
    """Runs the study into its store and shows a table; the exit code.

    Raises:
        BadInput: the file or a word is wrong, or the store is of something else.
        Stop: a package is missing, or the store cannot be written.
    """
    needs("pyarrow", "montecarlo", "a store")
    if asked.ray:
        needs("ray", "ray", "the engine ray")
    elif asked.address is not None:
        raise BadInput("--address: only with --engine ray")
    runs.check_folder("--out", asked.out.absolute().parent)
    for option, value, least in (("--samples", asked.samples, 1), ("--seed", asked.seed, 0)):
        if value is not None and value < least:
            raise BadInput(f"{option}: expected a whole number from {least} on, got {value}")
    loaded = load(asked.file, Changes(asked.samples, asked.seed))
    if loaded.report is not None:
        remark(loaded.report, loaded.floating)
    console(error=True).print(f"{asked.file}: {_summary(loaded)}", soft_wrap=True)
    if asked.check:
        return 0
    keep_compiled()
    engine = Engine(loaded.study)
    try:
        with open_store(engine, asked.out, resume=asked.resume, chunk=_chunk(engine, asked.out)) as store:
            _describe(asked.file, loaded, store)
            return _run(asked, engine, store)
    except FileExistsError as error:
        text = one_line(error).replace("resume=True goes on with it", "--resume goes on with it")
        raise BadInput(f"--out: {text}") from error
    except (ValueError, RuntimeError, MemoryError) as error:
        raise BadInput(one_line(error)) from error
    except OSError as error:
        raise Stop(error.strerror if error.errno and error.strerror else one_line(error)) from error


def _run(asked: StudyRequest, engine: Engine, store: Store) -> int:
    known = [store.bounds(k) for k in range(store.chunks) if store.has(k)]
    watch = SampleWatch(engine.study, sum(stop - start for start, stop in known))
    with watch:
        if asked.ray:
            from lgsim.montecarlo import ray_cluster

            results = ray_cluster.fill(engine, store, address=asked.address, progress=watch)
        else:
            results = fill(engine, store, watch)
    if not results.finished:
        note(f"interrupted after {counted(results.samples, 'sample')}; the same command with --resume goes on")
    if results.running.diverged < results.samples:
        _show(results, watch, asked.out)
    elif results.samples:
        note(f"all samples diverged: take a smaller dt, or look at one: lgsim montecarlo report {asked.out}")
        return DIVERGED if results.finished else INTERRUPTED
    return 0 if results.finished else INTERRUPTED


def opened(path: Path) -> tuple[Loaded, Results, Path | None]:
    """(study, results, file of the machine if it is still there) of a store that the command made.

    Raises:
        BadInput: there is none.
    """
    needs("pyarrow", "montecarlo", "a store")
    use_float64()
    try:
        store = Store(path)
        about = json.loads((path / MACHINE).read_text(encoding="utf-8"))
        model = from_record(about["topology"], about["numbers"])
        loaded = load(path / STUDY, Changes(store.about.samples, store.about.seed), model)
        results = Results.open(loaded.study, path)
    except FileNotFoundError as error:
        missing = f"it has no {Path(error.filename).name}" if error.filename else one_line(error)
        raise BadInput(f"{path}: expected a store that lgsim montecarlo made; {missing}") from error
    except (ValueError, KeyError) as error:
        raise BadInput(f"{path}: {one_line(error).removeprefix(f'{path}: ')}") from error
    file = Path(about["file"])
    return loaded, results, file if file.is_file() else None


def _describe(file: Path, loaded: Loaded, store: Store) -> None:
    """Puts into a store what a report needs, wherever the store is carried."""
    rollout: Any = loaded.study.rollout
    model: Model = rollout.model
    topology, numbers = to_record(model)
    about = {
        "file": str(loaded.machine.absolute()),
        "topology": topology,
        "numbers": {name: x.tolist() for name, x in numbers.items()},
    }
    write_whole(store.path / STUDY, file.read_bytes())
    write_whole(store.path / MACHINE, json.dumps(about).encode())


def _chunk(engine: Engine, path: Path) -> int | None:
    """Whole tiles on all devices; of a store that is there its own."""
    if Store.exists(path):
        return None
    tiles = engine.study.samples // (PIECES * engine.width)
    return max(1, min(tiles, engine.chunk_size // engine.width)) * engine.width


def _summary(loaded: Loaded) -> str:
    wanted = loaded.study
    rollout: Any = wanted.rollout
    sampler = wanted.sampler
    kind = "random" if sampler.points is None else KINDS[type(sampler.points)]
    rule = wanted.stop
    until = "" if rule is None else f", until {rule.output} is known to {rule.half_width:g} at {100 * rule.level:g} %"
    return (
        f"{counted(wanted.samples, 'sample')} ({kind}, seed {wanted.seed}){until}; {loaded.machine.name},"
        f" {counted(rollout.steps, 'step')} of {float(rollout.dt):g} s; varies {', '.join(sampler.names)}"
    )


def _show(results: Results, watch: SampleWatch, path: Path) -> None:
    from rich import box
    from rich.table import Table

    half = f"± {100 * watch.level:g} %"
    table = Table("output", "mean", half, "std", "smallest", "largest", box=box.SIMPLE_HEAD)
    for column in table.columns[1:]:
        column.justify = "right"
    rows = spread_rows(results.running, watch.level)
    # what is asked for first, histories last
    rows.sort(key=lambda row: (row[0] != watch.shown, results.moments(row[0]).mean.size))
    for name, entry, *values in rows[:SHOWN]:
        cells = [f"{x:.5g}" for x in values]
        if name.startswith(FAILED):
            cells[1] = failure_interval(results.moments(name), watch.level)
        table.add_row(name if entry is None else f"{name}[{entry}]", *cells)
    output = console()
    output.print(table)
    if len(rows) > SHOWN:
        output.print(f"and {len(rows) - SHOWN} more numbers", soft_wrap=True)
    facts = Table.grid(padding=(0, 2))
    facts.add_row("samples", f"{results.samples:,}, {results.running.diverged:,} of them diverged")
    if watch.rate is not None:
        facts.add_row("rate", f"{watch.rate:,.0f} samples/s after the first chunk, {watch.wall:.1f} s in all")
    facts.add_row("store", str(path))
    facts.add_row("report", f"lgsim montecarlo report {path}")
    output.print(facts)


class Group(TyperGroup):
    """A group whose first word may be left out: what is none of its commands goes to ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts the command in front where it is not."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args or ["--help"])


class Computer(StrEnum):
    """What computes."""

    local = "local"
    ray = "ray"


app = typer.Typer(
    cls=Group,
    help=(
        "Dispersions: a motion many times, each time with other starts, masses, frictions, winds.\n\n"
        "Start with `lgsim montecarlo --example hover > study.toml`, then `lgsim montecarlo study.toml --out store`,"
        " then `lgsim montecarlo report store`. `run` may be left out; `lgsim montecarlo run --help` shows its options."
    ),
)


@app.command()
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
    example: Annotated[
        str | None, typer.Option(help="Print a study to start from, and end: hover or arm.", show_default=False)
    ] = None,
) -> None:
    """Run a study into a store.

    Ctrl-C ends it after the chunk that is being computed; the same command with --resume goes on to the same numbers,
    bit for bit, and so it does after a crash.
    """
    from lgsim.cli.errors import BadInput

    if example is not None:
        from lgsim.scenarios import study as studies

        if study is not None:
            raise BadInput("--example: without a STUDY; it prints one, and your shell can keep it: > study.toml")
        typer.echo(studies.example(example), nl=False)
        raise typer.Exit
    if study is None:
        raise BadInput("STUDY: expected a TOML file; lgsim montecarlo --example hover > study.toml makes one")
    pass

    request = StudyRequest(study, out, samples, seed, engine is Computer.ray, address, resume, check)
    raise typer.Exit(run_study(request))


@app.command()
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
) -> None:  # fmt: skip
    """Write one page about a store, which any browser shows without a network.

    Distributions, attitudes on the sphere, fan charts of the motions, failures and divergences with their samples, and
    the worst samples played in three dimensions.
    """
    from lgsim.reports import study

    raise typer.Exit(study.write(store, out, cases))
