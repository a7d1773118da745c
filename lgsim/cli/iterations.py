"""Tables of iterations during a search, and an orderly stop on Ctrl-C."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from rich import box
from rich.live import Live
from rich.table import Table

from lgsim.cli.progress import Interruptible
from lgsim.cli.terminal import console

if TYPE_CHECKING:
    from lgsim.identify.estimators.estimator import Iteration as FitIteration
    from lgsim.optimize.solve import Iteration

Row = TypeVar("Row")

SHOWN = 16
"""Largest number of rows: the latest iterations."""
UNITS = ("iteration", "cost", "gradient", "feasibility", "step", "regularization")
OUTER = ("outer iteration", "cost", "gradient", "violation", "inner iterations", "penalty")
FIT = ("iteration", "cost", "falls by", "damping", "round")


class TableWatch(Interruptible, Generic[Row]):
    """``progress`` of an iterative search: a live table on a terminal, printed once at the end elsewhere."""

    where = "the next iteration"

    def __init__(self, columns: tuple[str, ...]) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self._columns = columns
        self._output = console(error=True)
        self._live = Live(self, console=self._output, refresh_per_second=8) if self._output.is_terminal else None

    def _show(self) -> None:
        if self._live:
            self._live.start()

    def _hide(self) -> None:
        if self._live:
            self._live.stop()
        elif self.rows:
            self._output.print(self.table())

    def __call__(self, row: Row) -> None:
        """Record an iteration.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        self.rows.append(row)
        self.mark(len(self.rows))
        if self.interrupted:
            raise KeyboardInterrupt

    def __rich__(self) -> str | Table:
        if not self.rows:
            return f"compiling for {self.compiling:.0f} s ..."
        return self.table()

    def table(self) -> Table:
        """The table of the latest iterations."""
        table = Table(box=box.SIMPLE_HEAD)
        for name in self._columns:
            table.add_column(name, justify="right")
        for row in self.rows[-SHOWN:]:
            table.add_row(*self.cells(row))
        return table

    @abstractmethod
    def cells(self, row: Row) -> list[str]:
        """The cells of an iteration, one for each column."""


class IterationWatch(TableWatch["Iteration"]):
    """``progress`` of ``lgsim.optimize.solve``.

    Args:
        outer: True for the outer iterations of an augmented Lagrangian method.
    """

    def __init__(self, outer: bool, most: int) -> None:
        super().__init__(OUTER if outer else UNITS)
        self._most = most

    def cells(self, row: Iteration) -> list[str]:
        number, cost, *others = row
        return [f"{number} of {self._most}", f"{cost:.6g}", *(f"{x:.3g}" for x in others)]


class NoiseWatch(TableWatch[tuple[int, Mapping[str, float], float]]):
    """``progress`` of ``estimate.RobotRecord.likely_factors``: the factors of the noises, and the likelihood."""

    where = "the next trial"

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(("trial", *names, "log likelihood"))

    def cells(self, row: tuple[int, Mapping[str, float], float]) -> list[str]:
        number, factors, likelihood = row
        return [f"{number}", *(f"× {x:.3g}" for x in factors.values()), f"{likelihood:.6g}"]


class FitWatch(TableWatch["FitIteration"]):
    """``progress`` of ``lgsim.identify.fit``."""

    def __init__(self) -> None:
        super().__init__(FIT)

    def cells(self, row: FitIteration) -> list[str]:
        before = {(each.number, each.round): each.cost for each in self.rows[-SHOWN - 1 :]}
        fall = before.get((row.number - 1, row.round), math.nan) - row.cost
        return [
            f"{row.number}", f"{row.cost:.8g}", f"{fall:.3g}" if math.isfinite(fall) else "–", f"{row.damping:.2g}",
            f"{row.round} of at most {row.rounds}",
        ]  # fmt: skip
