"""How long a simulation will take and what memory it needs, and a question before one that is larger than meant."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import NamedTuple

import typer

from lgsim.cli.errors import BadInput
from lgsim.cli.progress import Watch
from lgsim.multibody import Model

TIMED_STEPS = 1_000_000
"""Steps from which on some are timed first."""
_TRIAL = 4096
"""Steps that are timed: some chunks, of which the first one, which compiles, does not count."""
LONG = 3600.0
"""Seconds of computing that are begun without a question."""
SHARE = 0.5
"""The share of the computer's memory that is used without a question."""
_COPIES = 3
"""How often the states are in memory at most: as computed, as one array, and as what the table is made of."""
UNITS = (("year", 365.25 * 86400), ("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))

_BYTES = ("bytes", "kB", "MB", "GB", "TB")


class RunSize(NamedTuple):
    """What a simulation needs.

    Attributes:
        steps: The number of its steps; None where it is not known before, as of adaptive ones.
        rate: Steps per second; None where they were not timed.
        states: The number of states that are kept.
        memory: Bytes of these states, all their copies counted.
    """

    steps: int | None
    rate: float | None
    states: int
    memory: float

    @property
    def seconds(self) -> float:
        """The time that the steps take, s; 0 where it is not known."""
        return 0.0 if self.steps is None or self.rate is None else self.steps / self.rate

    def __str__(self) -> str:
        time = "" if not self.seconds else (
            f"{self.steps:.3g} steps take about {_duration(self.seconds)} at {self.rate:,.0f} steps/s, and "
        )  # fmt: skip
        return f"{time}the {self.states:.3g} states that are kept need about {_bytes(self.memory)} of memory"


def run_size(model: Model, steps: int, save_every: int, adaptive: bool, trial: Callable[[int, Watch], bool]) -> RunSize:
    """What a simulation needs; where its steps are many, the first ones are computed and timed.

    Args:
        steps: The number of steps, or of states of a simulation with adaptive steps.
        save_every: Steps from one state that is kept to the next.
        trial: ``trial(count, watch)`` computes the first steps with the watch as ``progress``, and says whether the
            motion goes on after them.
    """
    states = steps if adaptive else steps // save_every
    memory = _COPIES * float(states) * (1 + model.nq + 2 * model.nv) * model.dtype.itemsize
    rate = None
    if not adaptive and steps >= TIMED_STEPS:
        watch = Watch(steps)
        rate = watch.rate if trial(_TRIAL, watch) else None
    return RunSize(None if adaptive else steps, rate, states, memory)


def confirm(size: RunSize, yes: bool) -> None:
    """Ask before a simulation that takes more than an hour, or most of the memory; without a terminal ``yes`` must say.

    Raises:
        BadInput: the answer is no, or nobody can be asked.
    """
    if yes or (size.seconds <= LONG and size.memory <= SHARE * _memory()):
        return
    remedy = "a larger --save-every keeps fewer" if size.steps is not None else "a larger --dt keeps fewer"
    if not _can_ask():
        raise BadInput(f"--duration: {size}; {remedy}, --yes begins all the same")
    if not typer.confirm(f"{size}. Begin all the same?", err=True):
        raise BadInput(f"--duration: not begun; {remedy}")


def _can_ask() -> bool:
    """Whether there is somebody at a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _memory() -> float:
    """The computer's memory, bytes; infinite where the system does not tell."""
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(names):
        return math.inf
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")


def _duration(seconds: float) -> str:
    """A time in the largest unit that fits."""
    name, unit = next(((name, unit) for name, unit in UNITS if seconds >= unit), UNITS[-1])
    return f"{seconds / unit:,.3g} {name}s"


def _bytes(count: float) -> str:
    """Bytes in the largest unit that fits."""
    power = min(int(math.log10(max(count, 1))) // 3, len(_BYTES) - 1)
    return f"{count / 1000**power:,.3g} {_BYTES[power]}"
