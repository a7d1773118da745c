"""Bars that show how far long work is, and Ctrl-C that ends it where its result is whole."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterable
from types import FrameType
from typing import Any, TypeVar

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from lgsim.cli.terminal import console
from lgsim.support.printable import printable

Own = TypeVar("Own", bound="Interruptible")


def literal_column(template: str) -> TextColumn:
    """A column of text whose fields are shown as they are: a console's ``markup=False`` does not reach a column.

    Args:
        template: The text, with fields such as ``{task.fields[rate]}``.
    """
    return _LiteralColumn(template, markup=False)


class _LiteralColumn(TextColumn):
    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.plain = printable(text.plain)
        return text


class Interruptible:
    """Work that Ctrl-C ends where its result is whole, in a ``with`` block; a second Ctrl-C ends the program at once.

    Attributes:
        interrupted: Whether Ctrl-C was pressed.
        where: The next place where the work stops, for the message.
    """

    where = "the next state that is saved"

    def __init__(self) -> None:
        self.interrupted = False
        self._before: Any = None

    def __enter__(self: Own) -> Own:
        # only the main thread may set handlers; elsewhere nobody presses Ctrl-C
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._pressed)
        self._show()
        return self

    def __exit__(self, *error: object) -> None:
        self._hide()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _show(self) -> None:
        """Begin to show what the block shows."""

    def _hide(self) -> None:
        """End what ``_show`` began."""

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        # not print, which the main program may be in the middle of
        os.write(2, f"\nstopping at {self.where}; Ctrl-C again stops at once\n".encode())


class ProgressBar(Interruptible):
    """``Interruptible`` with a bar on a terminal, which says what is done before the columns.

    Args:
        total: Number that the bar counts to.
        fields: Names of the fields of the columns, empty at first.
    """

    def __init__(self, *columns: ProgressColumn, total: int, fields: Iterable[str]) -> None:
        super().__init__()
        output = console(error=True)
        first = literal_column("{task.description}")
        self._bar = Progress(first, *columns, console=output, disable=not output.is_terminal)
        empty: dict[str, Any] = dict.fromkeys(fields, "")
        self._task = self._bar.add_task("compiling", total=total, **empty)
        self._start = time.perf_counter()

    def _show(self) -> None:
        self._bar.start()

    def _hide(self) -> None:
        self._bar.stop()


class Watch(ProgressBar):
    """``progress`` of a simulation: it shows a bar, measures, and ends the simulation between two chunks on Ctrl-C."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            BarColumn(bar_width=30),
            literal_column("{task.percentage:>3.0f} %"),
            literal_column("{task.fields[rate]}"),
            TimeRemainingColumn(),
            total=steps,
            fields=["rate"],
        )
        self._first: tuple[float, int] | None = None
        self._last = (self._start, 0)

    def __call__(self, done: int, steps: int) -> None:
        """Take note of what is done.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed, and there is more to do.
        """
        self._last = (time.perf_counter(), done)
        self._first = self._first or self._last
        rate = "" if self.rate is None else f"{self.rate:,.0f} steps/s"
        self._bar.update(self._task, description="simulating", completed=done, rate=rate)
        if self.interrupted and done < steps:
            raise KeyboardInterrupt

    @property
    def compiling(self) -> float:
        """Time until the first chunk was there, s."""
        return (self._first or self._last)[0] - self._start

    @property
    def first_steps(self) -> int:
        """Number of steps of the first chunk."""
        return (self._first or self._last)[1]

    @property
    def wall(self) -> float:
        """Time until the last chunk was there, s."""
        return self._last[0] - self._start

    @property
    def rate(self) -> float | None:
        """Number of steps per second after the first chunk; None before."""
        if self._first is None or self._last[1] == self._first[1]:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])
