"""The report of a trajectory: use of limits, joints, energy, 3D replay."""

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
"""States with larger values, in SI units, are not shown: their squares overflow."""


def report_trajectory(
    trajectory: Trajectory, *, title: str = "Trajectory", subtitle: str = "", machine: str | PathLike[str] | None = None
) -> Page:
    """Report of a trajectory: use of limits, plots of joints and energy, 3D replay.

    A diverged motion is shown up to its last finite state. Without the package viser there is no replay, and one
    warning reports it.

    Args:
        trajectory: Motion, as returned by ``lgsim.simulate`` or ``optimize.to_trajectory``.
        machine: URDF file with visual shapes; None for rods between the joints.

    Returns:
        The page: ``.save("motion.html")`` or ``.html()``.

    Raises:
        ValueError: there is no state, or the times do not increase.
        ModuleNotFoundError: matplotlib is missing; ``pip install 'lgsim[plot]'``.
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
    page.add_figure(plots.joints(seen), "Joint limits near the motion are dashed lines.")
    page.add_section("Energy")
    caption = "Springs in joints count as potential energy; the work of the joint forces does not include friction."
    page.add_figure(plots.energy(seen), caption)
    page.add_section("Motion")
    if can_play():
        add_replay(page, seen, title, machine_shapes(None if machine is None else Path(machine), seen.model))
    else:
        page.add_remark(MISSING)
    return page


def _summary(page: Page, trajectory: Trajectory, seen: Trajectory) -> None:
    """Add the key figures, and faults of the motion."""
    page.add_section("Summary")
    facts: list[tuple[str, Cell]] = [
        ("states", len(trajectory)),
        ("duration", f"{trajectory.time[-1] - trajectory.time[0]:.4g} s"),
        ("degrees of freedom", trajectory.model.nv),
        ("method", trajectory.method or None),
        ("step", f"{trajectory.dt:.3g} s" if np.isfinite(trajectory.dt) else None),
    ]
    if trajectory.step_error is not None:
        facts.append(("estimated integration error", str(trajectory.step_error)))
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
    """Add a table of positions, speeds and forces of all degrees of freedom, relative to their limits.

    Args:
        motion: Motion with finite values.
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
        ["joint", "smallest position", "largest", "of the limits", "largest speed", "of the limit", "largest force",
         "of the limit"], rows, "In rad, m, s, N m and N. 100 % is the limit; a dash marks a quantity without one. The"
        " position limits of a spherical joint are those of swing, angle and twist.",
    )  # fmt: skip


def _largest(parts: Float[np.ndarray, "times nv"]) -> Float[np.ndarray, " nv"]:
    """Largest use of each limit; NaN without a limit."""
    return np.where(np.isnan(parts).all(axis=0), np.nan, np.fmax.reduce(parts, axis=0))


def _percent(share: float) -> str | None:
    """A fraction in percent; None for NaN."""
    return None if np.isnan(share) else f"{100 * share:.3g} %" if np.isfinite(share) else "exceeded"
