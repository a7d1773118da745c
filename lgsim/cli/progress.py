"""Progress bars of long runs, and an orderly stop on Ctrl-C."""

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
    """A text column that shows its fields literally; the console's ``markup=False`` does not apply to columns.

    Args:
        template: Format string, with fields such as ``{task.fields[rate]}``.
    """
    return _LiteralColumn(template, markup=False)


class _LiteralColumn(TextColumn):
    def render(self, task: Task) -> Text:
        text = super().render(task)
        text.plain = printable(text.plain)
        return text


class Interruptible:
    """A context in which Ctrl-C stops the work at its next consistent state; a second Ctrl-C exits at once.

    Attributes:
        interrupted: True after Ctrl-C.
        where: The place where the work stops, for the message.
    """

    where = "the next state that is saved"

    def __init__(self) -> None:
        self.interrupted = False
        self._before: Any = None
        self._start = time.perf_counter()
        self._marks: list[tuple[float, int]] = []

    def mark(self, done: int) -> None:
        """Record the current time for this amount of work."""
        self._marks.append((time.perf_counter(), done))

    @property
    def compiling(self) -> float:
        """Time until the first part of the work was finished, s."""
        return self._marks[0][0] - self._start if self._marks else time.perf_counter() - self._start

    @property
    def wall(self) -> float:
        """Time until the last part of the work was finished, s."""
        return self._marks[-1][0] - self._start if self._marks else time.perf_counter() - self._start

    @property
    def rate(self) -> float | None:
        """Work per second after the first part; None before the second part is finished."""
        if not self._marks:
            return None
        (start, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / (end - start) if end > start and last > first else None

    def __enter__(self: Own) -> Own:
        # only the main thread may install signal handlers
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._pressed)
        self._show()
        return self

    def __exit__(self, *error: object) -> None:
        self._hide()
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _show(self) -> None:
        """Start the display."""

    def _hide(self) -> None:
        """Stop the display."""

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        # not print, which the interrupted code may be executing
        os.write(2, f"\nstopping at {self.where}; Ctrl-C again stops at once\n".encode())


class ProgressBar(Interruptible):
    """``Interruptible`` with a progress bar on a terminal.

    Args:
        total: Total amount of work.
        fields: Names of the fields of the columns, initially empty.
    """

    def __init__(self, *columns: ProgressColumn, total: int, fields: Iterable[str]) -> None:
        super().__init__()
        output = console(error=True)
        first = literal_column("{task.description}")
        self._bar = Progress(first, *columns, console=output, disable=not output.is_terminal)
        empty: dict[str, Any] = dict.fromkeys(fields, "")
        self._task = self._bar.add_task("compiling", total=total, **empty)

    def _show(self) -> None:
        self._bar.start()

    def _hide(self) -> None:
        self._bar.stop()


class Watch(ProgressBar):
    """``progress`` of a simulation: shows a bar, measures the rate, and stops between two chunks on Ctrl-C.

    Args:
        steps: Total number of steps or saved states.
        counted: Noun for the counted items; a rate of steps is shown for steps only.
    """

    def __init__(self, steps: int, counted: str = "step") -> None:
        super().__init__(
            BarColumn(bar_width=30),
            literal_column("{task.percentage:>3.0f} %"),
            literal_column("{task.fields[rate]}"),
            TimeRemainingColumn(),
            total=steps,
            fields=["rate"],
        )
        self.counted = counted

    def __call__(self, done: int, steps: int) -> None:
        """Record the finished steps.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed and steps remain.
        """
        self.mark(done)
        rate = "" if self.rate is None else f"{self.rate:,.0f} steps/s"
        self._bar.update(self._task, description="simulating", completed=done, rate=rate)
        if self.interrupted and done < steps:
            raise KeyboardInterrupt

    @property
    def first_steps(self) -> int:
        """Number of steps of the first chunk."""
        return self._marks[0][1] if self._marks else 0

    @property
    def rate(self) -> float | None:
        """Steps per second after the first chunk; None before."""
        return super().rate if self.counted == "step" else None
