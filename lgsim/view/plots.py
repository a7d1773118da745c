"""Plots of motions as matplotlib figures, shown by a notebook or saved by ``figure.savefig("motion.png")``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.multibody.model import Model
from lgsim.simulation.trajectory import energies, momenta
from lgsim.view.figures import COLORS, DARK, DOUBLE, HEAD, OUTSIDE, RED, SINGLE, SMALL, TEXT, axes_grid, literal
from lgsim.view.motion import MotionLike, series, times
from lgsim.view.panels import Panel, panel_title, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["differences", "energy", "joints", "momentum", "phase", "step_sizes"]


@runtime_checkable
class Timed(Protocol):
    """Any object with times."""

    @property
    def time(self) -> ArrayLike:
        """Times, (N,), s, increasing."""
        ...


LIMIT = {"color": RED, "linewidth": 0.8, "linestyle": (0, (4, 3))}
ROW = 1.05
"""Height of a row of plots, inches."""
MOST_ROWS = 8
"""Largest number of rows with one joint each."""
TOGETHER = 6
"""Number of joints that share a row in a figure of more joints."""
FLAT = 1e-6
"""Changes below this fraction of the largest value are drawn as constant."""
COLUMNS = (("configuration", "q"), ("velocity", "v"), ("joint force", "τ"))


def joints(
    motion: MotionLike, names: Sequence[str] | None = None, *, width: float | None = None, held: bool | None = None
) -> Figure:
    """Plot configuration, velocity and joint force of each joint over time.

    A joint with translation and rotation has a row for each; beyond eight rows, up to six joints of one unit share a
    row. A quantity that is zero for all joints has no column. Joint limits near the motion are dashed lines. Values
    that change by less than 1e-6 of the largest are drawn as constant.

    Args:
        motion: Any object with ``model``, ``time`` (N,), ``q`` (N, nq), ``v`` and ``tau`` (N, nv).
        names: Names of the joints to show; None for all.
        width: Width of the figure, inches; None for 7.2, or less for a single column of plots.
        held: True to draw forces as steps that last until the next time; None to detect them: most values, or only
            the last one, equal the one before, as for the controls of a plan.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
        ValueError: the motion has wrong shapes, or there is no such joint.
    """
    model, time = motion.model, times(motion)
    data = (series(motion, "q", model.nq), series(motion, "v", model.nv), series(motion, "tau", model.nv))
    groups = _groups(panels(model, names))
    shown = [column for column in range(3) if column == 0 or any(data[column][:, p.v].any() for g in groups for p in g)]
    steps = is_held(data[2]) if held is None else held
    wide = any(len(group) > 1 for group in groups)
    size = width or (DOUBLE if len(shown) > 1 else SINGLE + wide)
    figure, axes = axes_grid(len(groups), len(shown), size, ROW * len(groups) + 0.6)
    rows = [panel for group in groups for panel in group]
    for row, group in enumerate(groups):
        for place, column in enumerate(shown):
            ax = axes[row, place]
            _draw_group(ax, time, data[column], group, column, column == 2 and steps)
            keep_noise_flat(ax, max(_size(data[column], panel, column) for panel in rows if _alike(panel, group[0])))
            if len(group) == 1:
                _limits(ax, model, group[0], column)
            ax.set_ylabel(f"{COLUMNS[column][1]} ({group[0].units[column]})")
            labels = _labels(group, column)
            if len(labels) > 1 and (place == len(shown) - 1 or labels != _labels(group, shown[-1])):
                ax.legend(**OUTSIDE)
        if len(group) == 1:
            axes[row, 0].set_title(literal(panel_title(group[0], rows)), **HEAD)
    for place, column in enumerate(shown):
        axes[0, place].annotate(
            COLUMNS[column][0], (0.5, 1.0), (0, 20), xycoords="axes fraction", textcoords="offset points", ha="center",
            fontsize=TEXT,
        )  # fmt: skip
    figure.align_ylabels()
    return figure


def _groups(rows: list[Panel]) -> list[list[Panel]]:
    """Groups of panels that share axes: one each, or consecutive ones of one unit if there are many."""
    if len(rows) <= MOST_ROWS:
        return [[panel] for panel in rows]
    groups: list[list[Panel]] = []
    for panel in rows:
        last = groups[-1] if groups else []
        single = len(panel.v) == 1 and not panel.quaternion
        if single and last and len(last) < TOGETHER and len(last[0].v) == 1 and _alike(panel, last[0]):
            last.append(panel)
        else:
            groups.append([panel])
    return groups


def _alike(panel: Panel, other: Panel) -> bool:
    """True if two panels have the same units."""
    return panel.units == other.units


def _draw_group(
    ax: Axes, time: Float[np.ndarray, " N"], values: Float[np.ndarray, "N k"], group: list[Panel], column: int,
    steps: bool,
) -> None:  # fmt: skip
    """Draw one quantity of some joints."""
    number = 0
    for panel in group:
        places = panel.q if column == 0 else panel.v
        for place, name in zip(places, panel.q_names if column == 0 else panel.v_names, strict=True):
            label = panel.joint if len(group) > 1 else name or COLUMNS[column][1]
            style = {"color": COLORS[number % len(COLORS)], "linewidth": 1.0, "label": literal(label)}
            ax.plot(time, values[:, place], drawstyle="steps-post" if steps else "default", **style)
            number += 1


def _labels(group: list[Panel], column: int) -> list[str]:
    """Labels of the lines in one set of axes."""
    if len(group) > 1:
        return [panel.joint for panel in group]
    return list(group[0].q_names if column == 0 else group[0].v_names)


def _size(values: Float[np.ndarray, "N k"], panel: Panel, column: int) -> float:
    """Largest finite magnitude of a quantity of a joint."""
    own = np.abs(values[:, list(panel.q if column == 0 else panel.v)])
    return float(np.max(own, where=np.isfinite(own), initial=0.0))


def is_held(tau: Float[np.ndarray, "N nv"]) -> bool:
    """True if forces are held between times: most values, or only the last one, equal the one before."""
    changes = np.any(np.diff(tau, axis=0) != 0, axis=1)
    if not changes.any():
        return False
    return bool(np.mean(changes) < 0.5 or (len(changes) > 2 and not changes[-1] and changes[:-1].all()))


def keep_noise_flat(ax: Axes, scale: float, noise: float = FLAT, shown: float = 0.1) -> None:
    """Widen the vertical range of axes that would only show rounding noise.

    Args:
        scale: Typical magnitude of the values.
        noise: Changes below this fraction of the scale are noise.
        shown: Range that is shown for noise, as a fraction of the scale.
    """
    bottom, top = ax.get_ylim()
    if np.isfinite([bottom, top, scale]).all() and top - bottom < noise * scale:
        middle = (bottom + top) / 2
        ax.set_ylim(middle - shown * scale / 2, middle + shown * scale / 2)


def energy(motion: MotionLike, *, width: float = DOUBLE) -> Figure:
    """Plot kinetic, potential and total energy over time, and the change of the total.

    Springs in joints count as potential energy. For nonzero joint forces, their work since the start,
    ``integral of tau . v dt`` by the trapezoidal rule, is shown with the change: the difference is friction and
    integration error.

    Args:
        motion: Any object with the attributes that ``joints`` takes.
        width: Width of the figure, inches.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
        ValueError: the motion has wrong shapes.
    """
    model, time = motion.model, times(motion)
    v, tau = series(motion, "v", model.nv), series(motion, "tau", model.nv)
    kinetic, potential = (np.asarray(x, float) for x in energies(model, *_states(motion)))
    total = kinetic + potential
    figure, axes = axes_grid(2, 1, width, 0.4 * width, heights=(2.0, 1.0))
    ax, below = axes[0, 0], axes[1, 0]
    for values, name, color, width in (
        (kinetic, "kinetic", COLORS[0], 1.2),
        (potential, "potential", COLORS[1], 1.2),
        (total, "total", DARK, 1.8),
    ):
        ax.plot(time, values, label=name, color=color, linewidth=width)
    ax.set_ylabel("energy (J)")
    ax.set_title("Energy", **HEAD)
    ax.legend(**OUTSIDE)
    below.plot(time, total - total[0], label="change of\nthe total", color=DARK, linewidth=1.2)
    if np.any(tau):
        power = np.sum(tau * v, axis=1)
        work = np.concatenate([[0.0], np.cumsum(0.5 * (power[1:] + power[:-1]) * np.diff(time))])
        below.plot(time, work, label="work of the\njoint forces", color=COLORS[2], linewidth=1.2, linestyle="--")
    # changes at the level of rounding errors are noise
    rounding = 1e3 * float(np.finfo(model.dtype).eps)
    largest = float(np.max(np.abs([kinetic, potential]), where=np.isfinite([kinetic, potential]), initial=0.0))
    keep_noise_flat(below, largest, rounding, rounding)
    keep_noise_flat(ax, largest)
    below.set_ylabel("change (J)")
    below.legend(**OUTSIDE)
    figure.align_ylabels()
    return figure


def momentum(motion: MotionLike, *, width: float = DOUBLE) -> Figure:
    """Plot linear and angular momentum over time, about the origin of the world and in its axes.

    Args:
        motion: Any object with the attributes that ``joints`` takes.
        width: Width of the figure, inches.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
        ValueError: the motion has wrong shapes.
    """
    time = times(motion)
    values = np.asarray(momenta(motion.model, *_states(motion)), float)
    figure, axes = axes_grid(2, 1, width, 0.5 * width)
    for row, (name, unit) in enumerate(
        (
            ("Linear momentum", "kg m/s"),
            ("Angular momentum about the world's origin", "kg m²/s"),
        )
    ):
        ax = axes[row, 0]
        for number, axis in enumerate("xyz"):
            ax.plot(time, values[:, 3 * row + number], color=COLORS[number], linewidth=1.2, label=axis)
        part = np.abs(values[:, 3 * row : 3 * row + 3])
        keep_noise_flat(ax, float(np.max(part, where=np.isfinite(part), initial=0.0)))
        ax.set_ylabel(f"momentum ({unit})")
        ax.set_title(name, **HEAD)
        ax.legend(**OUTSIDE)
    figure.align_ylabels()
    return figure


def step_sizes(time: Timed | Float[Array, " N"] | Float[np.ndarray, " N"]) -> Figure:
    """Plot the step sizes of a motion on a logarithmic axis.

    Args:
        time: Times, (N,), s, increasing; or an object with an attribute ``time``.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
        ValueError: there are fewer than two times, or they do not increase.
    """
    own = np.asarray(getattr(time, "time", time), float)
    steps = np.diff(own)
    if own.ndim != 1 or len(own) < 2 or not np.all(steps > 0):
        raise ValueError(f"time: expected at least two times that increase, (N,), got shape {own.shape}")
    figure, axes = axes_grid(1, 1, DOUBLE, 2.2)
    ax = axes[0, 0]
    ax.stairs(steps, own, color=COLORS[0], linewidth=1.2, baseline=None)
    ax.set_yscale("log")
    # equal steps differ by rounding errors, which must not fill the axis
    ax.set_ylim(steps.min() / 2, steps.max() * 2)
    ax.set_ylabel("step size (s)")
    ax.set_title(f"{len(steps)} steps, {_range(steps)}", **HEAD)
    return figure


def differences(
    time: Float[np.ndarray, " N"], curves: Mapping[str, Float[np.ndarray, " N"]], *, width: float = DOUBLE
) -> Figure:
    """Plot differences of two motions over time on logarithmic axes: straight lines for chaotic motions.

    Args:
        time: Times, (N,), s.
        curves: Differences (N,), by name with unit; zeros are not drawn.
        width: Width of the figure, inches.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
    """
    figure, axes = axes_grid(len(curves), 1, width, 1.35 * len(curves) + 0.6)
    for ax, (name, values), color in zip(axes[:, 0], curves.items(), COLORS, strict=False):
        seen = np.where((values > 0) & np.isfinite(values), values, np.nan)
        if np.isfinite(seen).any():
            ax.set_yscale("log")
            ax.plot(time, seen, color=color, linewidth=1.0)
        else:
            ax.set_yticks([])
            ax.annotate("no difference", (0.5, 0.5), xycoords="axes fraction", ha="center", fontsize=SMALL)
        ax.set_ylabel(literal(name))
    axes[0, 0].set_title("Largest difference", **HEAD)
    figure.align_ylabels()
    return figure


def phase(motion: MotionLike, joint: str) -> Figure:
    """Plot the phase portrait of a joint; a filled dot marks the start, an open dot the end.

    Args:
        motion: Any object with the attributes that ``joints`` takes.
        joint: Name of a joint; each component has its own axes.

    Raises:
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
        ValueError: the motion has wrong shapes, there is no such joint, or its velocities are not the rates of its
            coordinates (free, spherical and planar joints).
    """
    model = motion.model
    q, v = series(motion, "q", model.nq), series(motion, "v", model.nv)
    shown = [panel for panel in panels(model, [joint]) if panel.plain]
    planes = [
        (place, speed, name, panel)
        for panel in shown
        for place, speed, name in zip(panel.q, panel.v, panel.v_names, strict=True)
    ]
    if not planes:
        raise ValueError(
            f"joint: expected one whose velocities are the rates of its coordinates, got {joint!r}; use joints()"
        )
    figure, axes = axes_grid(1, len(planes), max(SINGLE, 2.4 * len(planes)), 2.8, time=False)
    for ax, (place, speed, name, panel) in zip(axes[0], planes, strict=True):
        ax.plot(q[:, place], v[:, speed], color=COLORS[0], linewidth=1.0)
        ax.plot(q[0, place], v[0, speed], "o", color=COLORS[1], markersize=6, label="start")
        ax.plot(q[-1, place], v[-1, speed], "o", color=COLORS[1], markersize=6, markerfacecolor="none", label="end")
        ax.set_xlabel(f"q ({panel.units[0]})")
        ax.set_ylabel(f"v ({panel.units[1]})")
        ax.set_title(literal(f"{joint} {name}".strip()), **HEAD)
    axes[0, -1].legend(**OUTSIDE)
    return figure


def _limits(ax: Axes, model: Model, panel: Panel, column: int) -> None:
    """Draw dashed lines for the limits within the range that is shown."""
    speed, effort = np.asarray(model.velocity_limit, float), np.asarray(model.effort_limit, float)
    low = (np.asarray(model.lower, float), -speed, -effort)[column]
    high = (np.asarray(model.upper, float), speed, effort)[column]
    if panel.quaternion and column == 0:
        return
    bottom, top = ax.get_ylim()
    reach = 0.15 * (top - bottom)
    for value in {*low[list(panel.v)], *high[list(panel.v)]}:
        if bottom - reach <= value <= top + reach:
            ax.axhline(value, **LIMIT)


def _range(steps: Float[np.ndarray, " steps"]) -> str:
    """Range of the step sizes as text."""
    low, high = f"{steps.min():.3g}", f"{steps.max():.3g}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def _states(motion: MotionLike) -> tuple[Float[Array, "N nq"], Float[Array, "N nv"]]:
    """States q and v of a motion in the dtype of its model."""
    model = motion.model
    q, v = series(motion, "q", model.nq), series(motion, "v", model.nv)
    return jnp.asarray(q, model.dtype), jnp.asarray(v, model.dtype)
