"""A table of the iterations of a solver while it works, and Ctrl-C that ends them where the result is whole."""

from __future__ import annotations

import time
from typing import Any

from rich import box
from rich.live import Live
from rich.table import Table

from lgsim.cli.progress import Interruptible
from lgsim.cli.terminal import console
from lgsim.optimize import Iteration

SHOWN = 16
"""Rows of the table: the latest."""
UNITS = ("iteration", "cost", "gradient", "feasibility", "step", "regularization")
OUTER = ("outer iteration", "cost", "gradient", "violation", "inner iterations", "penalty")


class IterationWatch(Interruptible):
    """``progress`` of a solver: a table that grows on a terminal, and is printed once at the end elsewhere.

    Attributes:
        rows: All iterations so far.
    """

    where = "the next iteration"

    def __init__(self, outer: bool, most: int) -> None:
        super().__init__()
        self.rows: list[Iteration] = []
        self._names = OUTER if outer else UNITS
        self._most = most
        self._output = console(error=True)
        self._live = Live(self, console=self._output, refresh_per_second=8) if self._output.is_terminal else None
        self._start = time.perf_counter()
        self._first: float | None = None

    def _show(self) -> None:
        if self._live:
            self._live.start()

    def _hide(self) -> None:
        if self._live:
            self._live.stop()
        elif self.rows:
            self._output.print(self.table())

    def __call__(self, row: Iteration) -> None:
        """Takes note of an iteration.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        self.rows.append(row)
        self._first = self._first or time.perf_counter()
        if self.interrupted:
            raise KeyboardInterrupt

    def __rich__(self) -> Any:
        if not self.rows:
            return f"compiling for {time.perf_counter() - self._start:.0f} s ..."
        return self.table()

    @property
    def compiling(self) -> float:
        """Seconds until the first iteration was there."""
        return (self._first or time.perf_counter()) - self._start

    def table(self) -> Table:
        """The latest iterations."""
        table = Table(box=box.SIMPLE_HEAD)
        for name in self._names:
            table.add_column(name, justify="right")
        for row in self.rows[-SHOWN:]:
            table.add_row(f"{row.number} of {self._most}", *(f"{x:.6g}" if i == 0 else f"{x:.3g}" for i, x in
                                                             enumerate(row[1:])))  # fmt: skip
        return table
