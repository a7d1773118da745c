"""The errors that end the command early: one line for the user, and an exit status."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lgsim.cli.exit_status import Exit
from lgsim.support.messages import one_line


class Stop(Exception):
    """The command ends here with this line.

    Args:
        reason: The reason, which has the exit status; None for that of the class.
    """

    reason = Exit.FAILED

    def __init__(self, text: str, reason: Exit | None = None) -> None:
        super().__init__(text)
        self.reason = reason or self.reason


class BadInput(Stop):
    """The user gave what the command cannot take."""

    reason = Exit.BAD_INPUT


def needs(package: str, extra: str, what: str) -> None:
    """End the command now, not after an hour of simulation, where a package is missing.

    Args:
        extra: The extra of lgsim that brings it.
        what: The thing that is made by it, for the message.

    Raises:
        Stop: the package is missing.
    """
    if find_spec(package) is None:
        raise Stop(f"{what} needs the package {package}, which is missing: pip install 'lgsim[{extra}]'")


@contextmanager
def bad_input(what: str = "", kinds: tuple[type[Exception], ...] = (ValueError, TypeError)) -> Iterator[None]:
    """Within the block, what the library refuses is bad input; a checkpoint of other work is, whatever the word.

    Args:
        what: The word of the command that is refused, such as "--q: ".
        kinds: The errors that say that the input is wrong.

    Raises:
        BadInput: such an error was raised that no line of a file belongs to.
    """
    try:
        yield
    except kinds as error:
        if _of_a_file(error):
            raise
        from lgsim.support.checkpoint import CheckpointError

        if isinstance(error, CheckpointError):
            raise BadInput(f"{one_line(error)}; --restart begins anew") from error
        raise BadInput(f"{what}{one_line(error)}") from error


def _of_a_file(error: Exception) -> bool:
    """Whether an error names the file that is wrong, and so is one line for the user as it stands."""
    # without lgsim's numerics where no error was raised
    from lgsim.formats import FileError
    from lgsim.scenarios import ScenarioError

    return isinstance(error, FileError | ScenarioError)


def stop_of(error: Exception) -> Stop | None:
    """The end of the command after an error of the library; None for a fault of lgsim itself."""
    if isinstance(error, Stop):
        return error
    if isinstance(error, ModuleNotFoundError) and "pip install 'lgsim[" in str(error):
        return Stop(one_line(error))
    return BadInput(one_line(error)) if _of_a_file(error) else None
