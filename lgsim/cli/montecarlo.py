"""``lgsim montecarlo``: a study into a store of samples, and the report about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lgsim.cli.checks.replacement import Force, Output, check_replaced
from lgsim.cli.errors import bad_input, needs
from lgsim.cli.exit_status import Exit, epilog
from lgsim.cli.options import command, file_or_example
from lgsim.cli.requests import StudyRequest
from lgsim.cli.terminal import Command, LiteralGroup, console, warnings_as_notes
from lgsim.support.messages import counted

if TYPE_CHECKING:
    from lgsim.montecarlo import Results


class Group(LiteralGroup):
    """A group whose first word may be left out: what is none of its commands goes to ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in front where it is not."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args or ["--help"])


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
@command(StudyRequest)
def run(asked: StudyRequest) -> Exit:
    """Run a study into a store.

    Ctrl-C ends it after the chunk that is being computed; the same command with --resume goes on to the same numbers,
    bit for bit, and so it does after a crash. At the end some samples are run again by shorter steps: where that
    changes a number by more than its statistical interval, the number is not resolved.
    """
    from lgsim import data

    maker = "lgsim montecarlo --example hover > study.toml"
    study = file_or_example("STUDY", asked.study, asked.example, data.STUDIES, data.study, maker)
    from lgsim.cli.work.study import run_study

    return run_study(asked, study)


def _study_of(results: Results) -> str:
    """The fingerprint of a stored study."""
    from lgsim.montecarlo.store import Store

    assert isinstance(results.source, Store)
    return results.source.metadata.study


@app.command(cls=Command, epilog=epilog("montecarlo report"))
def report(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="What a study left.")],
    out: Annotated[Path | None, typer.Option(help="Where the page goes; else STORE.html.")] = None,
    cases: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="How many of the worst samples are replayed; else as the study says."),
    ] = None,
    force: Force = False,
) -> None:
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
