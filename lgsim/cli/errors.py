"""Errors that end the command: one line for the user and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lgsim.cli.exit_status import Exit
from lgsim.support.messages import one_line


class Stop(Exception):
    """Ends the command with a message.

    Args:
        reason: The reason, which determines the exit status; None uses that of the class.
    """

    reason = Exit.FAILED

    def __init__(self, text: str, reason: Exit | None = None) -> None:
        super().__init__(text)
        self.reason = reason or self.reason


class BadInput(Stop):
    """Invalid input from the user."""

    reason = Exit.BAD_INPUT


def needs(package: str, extra: str, what: str) -> None:
    """Raise before any computation if a package is missing.

    Args:
        extra: The extra of lgsim that installs the package.
        what: The feature that needs it, for the message.

    Raises:
        Stop: the package is missing.
    """
    if find_spec(package) is None:
        raise Stop(f"{what} needs the package {package}, which is missing: pip install 'lgsim[{extra}]'")


@contextmanager
def bad_input(what: str = "", kinds: tuple[type[Exception], ...] = (ValueError, TypeError)) -> Iterator[None]:
    """A context that converts errors of the library to ``BadInput``.

    Errors that name a file and line pass through. A checkpoint of another problem is reported without ``what``.

    Args:
        what: The prefix of the message, such as "--q: ".
        kinds: The error classes that mean invalid input.

    Raises:
        BadInput: the library raised one of ``kinds``.
    """
    try:
        yield
    except kinds as error:
        if _of_a_file(error):
            raise
        from lgsim.support.checkpoint import CheckpointError

        if isinstance(error, CheckpointError):
            raise BadInput(f"{one_line(error)}; --restart starts again") from error
        raise BadInput(f"{what}{one_line(error)}") from error


def _of_a_file(error: Exception) -> bool:
    """True if the error names the invalid file, so that its message is complete."""
    # imported here because they load lgsim's numerics
    from lgsim.formats import FileError
    from lgsim.scenarios import ScenarioError

    return isinstance(error, FileError | ScenarioError)


def stop_of(error: Exception) -> Stop | None:
    """The message and status that end the command after a library error; None for an internal error of lgsim."""
    if isinstance(error, Stop):
        return error
    if isinstance(error, ModuleNotFoundError) and "pip install 'lgsim[" in str(error):
        return Stop(one_line(error))
    return BadInput(one_line(error)) if _of_a_file(error) else None
