"""Estimated wall time and memory of a simulation, and a confirmation before large runs."""

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
"""Number of steps from which the wall time is estimated from a trial."""
_TRIAL = 4096
"""Number of steps of the trial: several chunks, the first of which compiles and is not timed."""
LONG = 3600.0
"""Longest estimated wall time that needs no confirmation, s."""
SHARE = 0.5
"""Largest fraction of the computer's memory that needs no confirmation."""
_COPIES = 3
"""Largest number of simultaneous copies of the states: as computed, stacked, and in the output table."""
UNITS = (("year", 365.25 * 86400), ("day", 86400.0), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))

_BYTES = ("bytes", "kB", "MB", "GB", "TB")


class RunSize(NamedTuple):
    """Estimated resources of a simulation.

    Attributes:
        steps: Number of steps; None for adaptive steps, which are not known in advance.
        rate: Steps per second; None if not measured.
        states: Number of saved states.
        memory: Memory of all copies of the saved states, bytes.
    """

    steps: int | None
    rate: float | None
    states: int
    memory: float

    @property
    def seconds(self) -> float:
        """Estimated wall time, s; 0 if unknown."""
        return 0.0 if self.steps is None or self.rate is None else self.steps / self.rate

    def __str__(self) -> str:
        time = "" if not self.seconds else (
            f"{self.steps:.3g} steps take about {_duration(self.seconds)} at {self.rate:,.0f} steps/s, and "
        )  # fmt: skip
        return f"{time}the {self.states:.3g} saved states need about {_bytes(self.memory)} of memory"


def run_size(model: Model, steps: int, save_every: int, adaptive: bool, trial: Callable[[int, Watch], bool]) -> RunSize:
    """Estimate the resources of a simulation; long runs are timed on their first steps.

    Args:
        steps: Number of steps, or of saved states for adaptive steps.
        save_every: Number of steps between saved states.
        trial: ``trial(count, watch)`` computes the first steps with ``watch`` as ``progress``. It returns True if the
            motion continues after them.
    """
    states = steps if adaptive else steps // save_every
    memory = _COPIES * float(states) * (1 + model.nq + 2 * model.nv) * model.dtype.itemsize
    rate = None
    if not adaptive and steps >= TIMED_STEPS:
        watch = Watch(steps)
        rate = watch.rate if trial(_TRIAL, watch) else None
    return RunSize(None if adaptive else steps, rate, states, memory)


def confirm(size: RunSize, yes: bool) -> None:
    """Ask for confirmation of a run of more than an hour or most of the memory; without a terminal, require ``yes``.

    Raises:
        BadInput: the user declined, or there is no terminal to ask on.
    """
    if yes or (size.seconds <= LONG and size.memory <= SHARE * _memory()):
        return
    remedy = "a larger --save-every saves fewer" if size.steps is not None else "a larger --dt saves fewer"
    if not _can_ask():
        raise BadInput(f"--duration: {size}; {remedy}, --yes starts without confirmation")
    if not typer.confirm(f"{size}. Start anyway?", err=True):
        raise BadInput(f"--duration: run canceled; {remedy}")


def _can_ask() -> bool:
    """True if standard input and standard error are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _memory() -> float:
    """Memory of the computer, bytes; infinite if the operating system does not report it."""
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PAGE_SIZE", "SC_PHYS_PAGES"} <= set(names):
        return math.inf
    return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")


def _duration(seconds: float) -> str:
    """A duration in the largest unit that fits."""
    name, unit = next(((name, unit) for name, unit in UNITS if seconds >= unit), UNITS[-1])
    return f"{seconds / unit:,.3g} {name}s"


def _bytes(count: float) -> str:
    """A number of bytes in the largest unit that fits."""
    power = min(int(math.log10(max(count, 1))) // 3, len(_BYTES) - 1)
    return f"{count / 1000**power:,.3g} {_BYTES[power]}"
