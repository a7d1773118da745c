"""The group of commands and the handling of their errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from lgsim.cli import commands, montecarlo
from lgsim.cli.errors import stop_of
from lgsim.cli.exit_status import Exit, epilog
from lgsim.cli.terminal import Command, LiteralGroup, echo, end, printable_warnings
from lgsim.support.messages import one_line


class Group(LiteralGroup):
    """A group that reports user errors as one line with an exit status; all other errors keep their traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            end("interrupted", Exit.INTERRUPTED.status)

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:
        """Parse the arguments, run a command and exit."""
        extra["standalone_mode"] = False
        args = sys.argv[1:] if args is None else args
        try:
            with printable_warnings():
                code = super().main(args or ["--help"], prog_name, **extra)
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            end(f"{place}{error.strerror or one_line(error)}", Exit.FAILED.status)
        except Exception as error:
            # typer's own errors, whose class depends on the version of typer
            message = getattr(error, "format_message", None)
            if message is None:
                stop = stop_of(error)
                if stop is None:
                    raise
                end(one_line(stop), stop.reason.status)
            command = getattr(getattr(error, "ctx", None), "command_path", None) or "lgsim"
            end(f"{message().rstrip('.')}; see {command} --help", Exit.BAD_INPUT.status)
        sys.exit(code or 0)


app = typer.Typer(
    name="lgsim",
    cls=Group,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=epilog(),
)


def _version(wanted: bool) -> bool:
    if wanted:
        from lgsim.support.packages import own_version

        echo(f"lgsim {own_version()}")
        raise typer.Exit
    return wanted


@app.callback()
def lgsim(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Simulate, optimize and identify articulated rigid bodies on their Lie groups.

    Start with `lgsim demo`, then `lgsim info robot.urdf` and `lgsim simulate robot.urdf`.
    """
    del version


COMMANDS = (
    commands.demo, commands.info, commands.simulate, commands.optimize, commands.identify, commands.estimate,
    commands.plot, commands.view, commands.compare, commands.convert, commands.generate,
)  # fmt: skip
for command in COMMANDS:
    app.command(cls=Command, epilog=epilog(command.__name__))(command)
app.add_typer(montecarlo.app, name="montecarlo")
