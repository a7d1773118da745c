"""The page about a trajectory: how far it uses the machine's limits, its joints and energy, and the motion itself."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Float

from lgsim.simulation import Trajectory
from lgsim.simulation.limits import ROUNDING, limit_parts
from lgsim.simulation.trajectory import energy_drift
from lgsim.support.messages import counted, listed
from lgsim.support.packages import own_version, package
from lgsim.view import plots
from lgsim.view.panels import panels
from lgsim.view.reports.page import Cell, Page
from lgsim.view.reports.replays import MISSING, add_replay, can_play, finite_part, machine_shapes

BOUND = 1e100
"""States with larger numbers, in SI units, are not shown: their squares are no floats."""


def report_trajectory(
    trajectory: Trajectory, *, title: str = "Trajectory", subtitle: str = "", machine: str | PathLike[str] | None = None
) -> Page:
    """Make one page about a trajectory: limits used, plots of joints and energy, and the motion in three dimensions.

    A motion that diverged is shown up to the last state that is finite. Without the package viser it is not played,
    which one warning says.

    Args:
        trajectory: The motion, such as ``lgsim.simulate`` or ``optimize.to_trajectory`` gives it.
        machine: A URDF file with the machine's shapes; None for rods between the joints.

    Returns:
        The page: ``.save("motion.html")`` or ``.html()``.

    Raises:
        ValueError: there is no state, or the times do not increase.
        ModuleNotFoundError: matplotlib is missing: ``pip install 'lgsim[plot]'``.
    """
    package("matplotlib", "plot", "a report")
    if not len(trajectory):
        raise ValueError("trajectory: expected at least one state, got none")
    page = Page(title, subtitle, f"Made by lgsim {own_version()}.")
    seen = finite_part(trajectory, BOUND)
    _summary(page, trajectory, seen)
    if not len(seen):
        return page
    add_limits(page, seen)
    page.add_section("Joints")
    page.add_figure(plots.joints(seen), "Limits that the motion comes near are dashed lines.")
    page.add_section("Energy")
    caption = (
        "Springs in joints count as potential energy; what the work of the joint forces does not explain is friction."
    )
    page.add_figure(plots.energy(seen), caption)
    page.add_section("Motion")
    if can_play():
        add_replay(page, seen, title, machine_shapes(None if machine is None else Path(machine), seen.model))
    else:
        page.add_remark(MISSING)
    return page


def _summary(page: Page, trajectory: Trajectory, seen: Trajectory) -> None:
    """Add the facts that one looks for first, and how the motion ended."""
    page.add_section("Summary")
    facts: list[tuple[str, Cell]] = [
        ("states", len(trajectory)),
        ("duration", f"{trajectory.time[-1] - trajectory.time[0]:.4g} s"),
        ("degrees of freedom", trajectory.model.nv),
        ("method", trajectory.method or None),
        ("step", f"{trajectory.dt:.3g} s" if np.isfinite(trajectory.dt) else None),
    ]
    if trajectory.step_error is not None:
        facts.append(("error of the steps", str(trajectory.step_error)))
    page.add_facts(facts)
    if trajectory.result:
        page.add_remark(trajectory.result, "bad")
    if len(seen) < len(trajectory):
        page.add_remark(
            f"From t = {trajectory.time[len(seen)]:.6g} s on the motion is not finite: of"
            f" {counted(len(trajectory), 'state')} {len(seen)} {'is' if len(seen) == 1 else 'are'} shown.", "bad"
        )  # fmt: skip
    if len(seen):
        page.add_text(f"Change of the energy: {energy_drift(seen)}.")


def add_limits(page: Page, motion: Trajectory) -> None:
    """Add a table of the positions, speeds and forces of all degrees of freedom, and the limits that they use.

    Args:
        motion: The motion, whose numbers are finite.
    """
    rows: list[list[Cell]] = []
    beyond: list[str] = []
    model = motion.model
    parts = [_largest(part) for part in limit_parts(model, motion.q, motion.v, motion.tau) if part is not None]
    for panel in panels(model):
        for k, i in enumerate(panel.v):
            name = f"{panel.joint} {panel.v_names[k]}".strip()
            speed, force = (np.abs(np.asarray(x[:, i], float)).max() for x in (motion.v, motion.tau))
            share, fastest, strongest = (part[i] for part in parts)
            position: list[Cell] = [None, None]
            if not panel.quaternion:
                q = np.asarray(motion.q[:, panel.q[k]], float)
                position = [q.min(), q.max()]
            unit = "rad" if panel.turns else "m"
            rows.append([
                f"{name} ({unit})", *position, _percent(share), speed, _percent(fastest), force, _percent(strongest)
            ])  # fmt: skip
            if any(part[i] > 1 + ROUNDING for part in parts):
                beyond.append(name)
    page.add_section("Limits")
    if beyond:
        page.add_remark(f"Beyond a limit: {listed(beyond)}.", "bad")
    page.add_table(
        ["joint", "smallest position", "largest", "of its limits", "largest speed", "of its limit", "largest force",
         "of its limit"], rows, "In rad, m, s, N m and N. At 100 % a number is at its limit; a dash has none. Of a ball"
        " the limits of positions are those of swing, angle and twist.",
    )  # fmt: skip


def _largest(parts: Float[np.ndarray, "times nv"]) -> Float[np.ndarray, " nv"]:
    """The largest part of each limit that is used; NaN where there is none."""
    return np.where(np.isnan(parts).all(axis=0), np.nan, np.fmax.reduce(parts, axis=0))


def _percent(share: float) -> str | None:
    """A share in percent; None for none."""
    return None if np.isnan(share) else f"{100 * share:.3g} %" if np.isfinite(share) else "passed"
