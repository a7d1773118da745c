"""``lgsim montecarlo``: run a Monte Carlo study into a store of samples, and report on it."""

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
    """A group with the default command ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Prepend the default command if none is given."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args or ["--help"])


app = typer.Typer(
    cls=Group,
    epilog=epilog("montecarlo run"),
    help=(
        "Run Monte Carlo studies: random states, parameters and wind.\n\n"
        "Start with `lgsim montecarlo --example hover > study.toml`, then `lgsim montecarlo study.toml --out store`,"
        " then `lgsim montecarlo report store`. `run` is the default: see `lgsim montecarlo run --help`."
    ),
)


@app.command(cls=Command, epilog=epilog("montecarlo run"))
@command(StudyRequest)
def run(asked: StudyRequest) -> Exit:
    """Run a Monte Carlo study and write its samples to a store.

    Ctrl-C stops the study after the current chunk. The same command with --resume continues it, also after a crash,
    with bitwise identical results. Some samples are repeated with smaller steps at the end: a statistic that changes by
    more than its confidence interval is not converged in the step size.
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
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Read this store of a study.")],
    out: Annotated[Path | None, typer.Option(help="Write the page to this file.", show_default="STORE.html")] = None,
    cases: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Replay the N worst samples.", show_default="as in the study"),
    ] = None,
    force: Force = False,
) -> None:
    """Write a report of a study as one HTML page.

    The page needs no network. It shows distributions, attitudes on the sphere, fan charts of the motions, failed and
    diverged samples, and 3D replays of the worst samples.
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
    # for example a damaged chunk
    with warnings_as_notes(), bad_input():
        report_study(stored, cases=cases).save(path)
    console().print(f"{path}: {counted(stored.results.samples, 'sample')}", soft_wrap=True)
