"""The command ``lgsim``: inspect, simulate, optimize, identify and visualize robots from a shell.

It needs an extra: ``pip install 'lgsim[cli]'``. Only ``main`` is meant for programs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from lgsim.cli.exit_status import Exit

__all__ = ["main"]


@contextmanager
def leaving_at_once() -> Iterator[None]:
    """A context in which Ctrl-C ends the process immediately, with one line.

    While packages are imported and programs are compiled there is no result to keep. A KeyboardInterrupt raised there
    could be printed or swallowed by third-party code. Long runs install their own handler, ``progress.Interruptible``.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, frame: object) -> None:
        os.write(2, b"error: interrupted\n")
        os._exit(Exit.INTERRUPTED.status)

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def main() -> None:
    """Run the command with the arguments of the process and exit with its status."""
    missing = [name for name in ("typer", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"error: the command lgsim needs the packages {' and '.join(missing)}, which are missing:"
            " pip install 'lgsim[cli]'",
            file=sys.stderr,
        )
        sys.exit(Exit.FAILED.status)
    with leaving_at_once():
        from lgsim.cli.app import app

        app(prog_name="lgsim")
