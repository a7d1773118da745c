"""Differences between two runs of a robot, for ``lgsim compare``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from rich import box
from rich.table import Table

from lgsim.cli import files, pictures
from lgsim.cli.checks.replacement import Output, check_replaced
from lgsim.cli.errors import BadInput
from lgsim.cli.terminal import console, echo
from lgsim.multibody import Model
from lgsim.multibody.serialization import fingerprint
from lgsim.simulation import Trajectory
from lgsim.simulation.trajectory import v_names
from lgsim.support.messages import listed
from lgsim.view import plots

NEAR = 0.01
"""Tolerance for equal times, as a fraction of the step size."""
LEAST = 20
"""Smallest number of times from which a growth rate is estimated."""
_DECADES = 3.0
"""Smallest growth that is reported as exponential, in decades."""
UNEXPLAINED = 0.1
"""Largest unexplained fraction of the variance of the logarithm in a straight-line fit."""


class Row(NamedTuple):
    """The largest difference in one quantity.

    Attributes:
        what: The quantity: q, v or energy.
        time: Time of the largest difference, s.
        joint: The joint with the largest difference; "" for quantities of the whole system.
    """

    what: str
    size: float
    unit: str
    time: float
    joint: str


class Growth(NamedTuple):
    """Exponential growth of the difference between two runs.

    Attributes:
        tenfold: Time in which the difference grows by a factor of ten, s.
        start: Start of the interval of exponential growth, s.
        end: End of the interval, s.
        small: Difference at its start, rad or m.
        large: Difference at its end, rad or m.
    """

    tenfold: float
    start: float
    end: float
    small: float
    large: float

    def __str__(self) -> str:
        return (
            f"the difference in q grows tenfold every {self.tenfold:.3g} s, from {self.small:.2g} at {self.start:g} s"
            f" to {self.large:.2g} at {self.end:g} s: the motion is chaotic, and differences between later states do"
            " not measure the integration error"
        )


class Found(NamedTuple):
    """Differences between two runs.

    Attributes:
        time: Common times, s.
        curves: Largest difference at each common time, by quantity and unit.
        growth: Growth of the difference in q; None if it is not exponential.
    """

    rows: list[Row]
    time: Float[ndarray, " n"]
    curves: dict[str, Float[ndarray, " n"]]
    growth: Growth | None


def between(first: tuple[str, Trajectory], second: tuple[str, Trajectory]) -> Found:
    """The largest differences at common times; configurations are compared on their group.

    A float32 run and a float64 run belong to the same robot if their models agree in float32.

    Args:
        first: Name and trajectory of a run.
        second: Name and trajectory of the other run.

    Raises:
        BadInput: the robots differ, or the runs have no common times.
    """
    (_, a), (_, b) = first, second
    _same_machine(first, second)
    here, there = common(a.time, b.time)
    if not len(here):
        raise BadInput(
            f"the runs have no common times: {first[0]} has {_span(a)}, {second[0]} has {_span(b)}; expected runs"
            " saved at the same times"
        )
    # compare in the higher precision, with the model of that run
    model = a.model if a.model.dtype.itemsize >= b.model.dtype.itemsize else b.model
    q = [jnp.asarray(run.q[index], model.dtype) for run, index in ((a, here), (b, there))]
    gaps = np.abs(np.asarray(model.difference(*q)))
    speeds = np.abs(b.v[there].astype(float) - a.v[here])
    energies = np.abs(b.energy[there].astype(float) - a.energy[here])
    time, names = a.time[here], v_names(model)
    rows = [
        _largest("q", gaps, time, [f"{name.removesuffix('/s]')}]" for name in names]),
        _largest("v", speeds, time, names),
        _largest("energy", energies[:, None], time, [" [J]"]),
    ]
    curves = {"q (rad or m)": gaps.max(axis=1), "v (rad/s or m/s)": speeds.max(axis=1), "energy (J)": energies}
    return Found(rows, time, curves, growth(time, curves["q (rad or m)"]))


def growth(time: Float[ndarray, " n"], gap: Float[ndarray, " n"]) -> Growth | None:
    """Fit a straight line to the logarithm of a growing difference; None if the growth is not exponential.

    The line fits the running maximum between ten times its first value and a tenth of its largest value, which excludes
    round-off and saturation. It must rise by three decades and leave at most a tenth of the variance of the logarithm
    unexplained; a power law such as t^4 leaves more.

    Args:
        time: Increasing times, s.
        gap: Difference at these times.
    """
    rising = np.maximum.accumulate(np.nan_to_num(gap, posinf=np.finfo(float).max))
    if len(time) < LEAST or not rising[-1] > 0:
        return None
    part = (rising > 10 * rising[rising > 0][0]) & (rising < rising[-1] / 10)
    # the initial growth follows a power law; exponential growth appears later
    if part.sum() < LEAST or np.ptp(np.log10(rising[part])) < _DECADES:
        return None
    t, y = time[part], np.log10(rising[part])
    fits = [np.polyfit(x, y, 1, full=True) for x in (t, np.log(t - time[0] + (time[1] - time[0])))]
    left = [float(fit[1][0]) if len(fit[1]) else 0.0 for fit in fits]
    slope = float(fits[0][0][0])
    if slope <= 0 or left[0] > UNEXPLAINED * float(np.sum((y - y.mean()) ** 2)) or left[0] > left[1]:
        return None
    return Growth(1 / slope, float(t[0]), float(t[-1]), float(10 ** y[0]), float(10 ** y[-1]))


def common(
    first: Float[ndarray, " n"], second: Float[ndarray, " m"]
) -> tuple[Int[ndarray, " both"], Int[ndarray, " both"]]:
    """Indices of the common times in both runs, equal up to round-off."""
    if not len(first) or not len(second):
        return np.zeros(0, int), np.zeros(0, int)
    after = np.clip(np.searchsorted(second, first), 1, max(len(second) - 1, 1))
    nearest = np.minimum(after, len(second) - 1)
    before = after - 1
    nearest = np.where(np.abs(second[before] - first) <= np.abs(second[nearest] - first), before, nearest)
    steps = np.concatenate([np.diff(first), np.diff(second)])
    same = np.abs(second[nearest] - first) <= NEAR * (float(steps.min()) if len(steps) else 0.0)
    return np.flatnonzero(same), nearest[same]


def _same_machine(first: tuple[str, Trajectory], second: tuple[str, Trajectory]) -> None:
    """Raise BadInput for runs of different robots; a different dtype is allowed."""
    a, b = first[1].model, second[1].model
    if a.dtype != b.dtype:
        a, b = (jax.tree.map(lambda x: x.astype(jnp.float32), model) for model in (a, b))
    marks = fingerprint(a), fingerprint(b)
    if marks[0] != marks[1]:
        raise BadInput(
            f"the runs are of different robots: {first[0]} has the fingerprint {marks[0]},"
            f" {second[0]} has {marks[1]}; {_what_differs(a, b)}"
        )


def _what_differs(a: Model, b: Model) -> str:
    """Description of the first difference between two models."""
    if a.joint_names != b.joint_names:
        return f"the joints are {listed(a.joint_names)} and {listed(b.joint_names)}"
    if a.topology != b.topology:
        return "their joints have the same names but different types, bodies or frames"
    names = [field.name for field in fields(Model) if field.name != "topology"]
    odd = [name for name in names if not np.array_equal(getattr(a, name), getattr(b, name))]
    return f"they differ in {', '.join(odd)}"


def _largest(what: str, gaps: Float[ndarray, "n columns"], time: Float[ndarray, " n"], names: list[str]) -> Row:
    """The largest difference in one quantity."""
    when, entry = (int(i) for i in np.unravel_index(np.argmax(gaps), gaps.shape))
    joint, _, unit = names[entry].rpartition(" [")
    return Row(what, float(gaps[when, entry]), unit.rstrip("]"), float(time[when]), joint)


def _span(run: Trajectory) -> str:
    """Description of the times of a run."""
    return f"{len(run)} times from {run.time[0]:g} s to {run.time[-1]:g} s"


def show_differences(first: Path, second: Path, plot: Path | None, force: bool) -> None:
    """Print a table of the largest differences between two runs, and plot all differences on request.

    Raises:
        BadInput: invalid arguments, different robots, or no common times.
        Stop: a package is missing.
    """
    if plot is not None:
        pictures.check_plots()
        pictures.check_format(plot.suffix.removeprefix("."), None, "--plot")
        files.check_file("--plot", plot)
        check_replaced([Output("--plot", plot, "plot")], force)
    found = between((str(first), files.load(first)), (str(second), files.load(second)))
    table = Table("", "largest difference", "at", "joint", box=box.SIMPLE_HEAD)
    for row in found.rows:
        table.add_row(row.what, f"{row.size:.4g} {row.unit}", f"{row.time:g} s", row.joint)
    out = console()
    out.print(f"{len(found.time)} common times, from {found.time[0]:g} s to {found.time[-1]:g} s")
    out.print(table)
    if found.growth is not None:
        out.print(str(found.growth), soft_wrap=True)
    if plot is not None:
        pictures.save_figure(plots.differences(found.time, found.curves), plot)
        echo(plot)
