"""The page about a trajectory: how far it uses the machine's limits, its joints and energy, and the motion itself."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Float

from lgsim.multibody import Model
from lgsim.reports.page import Cell, Page
from lgsim.reports.replays import MISSING, add_replay, can_play, finite_part, machine_shapes
from lgsim.simulation import Trajectory
from lgsim.support.messages import counted, listed
from lgsim.support.packages import own_version, package
from lgsim.view import plots
from lgsim.view.panels import panels

BOUND = 1e100
"""States with larger numbers, in SI units, are not shown: their squares are no floats."""
ROUNDING = 1e-6
"""The share of a limit by which a number may be beyond it through rounding."""


def report_trajectory(
    trajectory: Trajectory, *, title: str = "Trajectory", subtitle: str = "", machine: str | PathLike[str] | None = None
) -> Page:
    """Make one page about a trajectory: limits used, plots of joints and energy, and the motion in three dimensions.

    A motion that diverged is shown up to the last state that is finite. Without the package viser it is not played,
    which one warning says.

    Args:
        trajectory: The motion, such as ``lgsim.simulate`` or ``optimize.to_trajectory`` gives it.
        title: The title of the page.
        subtitle: The line below it.
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


def energy_drift(trajectory: Trajectory) -> str:
    """The largest change of the energy as a share of the largest kinetic energy, and what else changes it, in words."""
    energy, largest = trajectory.energy, float(trajectory.kinetic_energy.max())
    # just before it diverges, a motion may have finite velocities whose squares are not
    if not (np.isfinite(energy).all() and np.isfinite(largest)):
        return "the energy is too large for floats"
    change = float(np.abs(energy - energy[0]).max())
    if largest == 0:
        return "none: nothing moved"
    causes = ["the joint forces"] if np.any(trajectory.tau) else []
    causes += _dissipation(trajectory.model)
    why = f"; {' and '.join(causes)} change it too" if causes else ""
    return f"{change / largest:.2g} of the largest kinetic energy, {largest:.4g} J{why}"


def _dissipation(model: Model) -> list[str]:
    """The parts of a machine that take energy from it, in words."""
    names = {"damping": "dampers", "friction": "dry friction", "limit_stiffness": "stops"}
    return [text for name, text in names.items() if np.asarray(getattr(model, name)).any()]


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
        page: The page.
        motion: The motion, whose numbers are finite.
    """
    rows: list[list[Cell]] = []
    beyond: list[str] = []
    model = motion.model
    for panel in panels(model):
        for k, i in enumerate(panel.v):
            name = f"{panel.joint} {panel.v_names[k]}".strip()
            speed, force = (np.abs(np.asarray(x[:, i], float)) for x in (motion.v, motion.tau))
            fastest, strongest = float(model.velocity_limit[i]), float(model.effort_limit[i])
            shares = [_share(speed, -fastest, fastest), _share(force, -strongest, strongest)]
            position: list[Cell] = [None, None, None]
            if not panel.quaternion:
                q = np.asarray(motion.q[:, panel.q[k]], float)
                shares.append(_share(q, float(model.lower[i]), float(model.upper[i])))
                position = [q.min(), q.max(), _percent(shares[-1])]
            unit = "rad" if panel.turns else "m"
            rows.append([
                f"{name} ({unit})", *position, speed.max(), _percent(shares[0]), force.max(), _percent(shares[1])
            ])  # fmt: skip
            if any(share is not None and share > 1 + ROUNDING for share in shares):
                beyond.append(name)
    page.add_section("Limits")
    if beyond:
        page.add_remark(f"Beyond a limit: {listed(beyond)}.", "bad")
    page.add_table(
        ["joint", "smallest position", "largest", "of its limits", "largest speed", "of its limit", "largest force",
         "of its limit"], rows, "In rad, m, s, N m and N. At 100 % a number is at its limit; a dash has none.",
    )  # fmt: skip


def _share(values: Float[np.ndarray, " n"], low: float, high: float) -> float | None:
    """The largest distance from the middle of an interval in halves of its length; None for an interval without end."""
    if not (np.isfinite(low) and np.isfinite(high) and high > low):
        return None
    return float(np.max(np.abs(values - (low + high) / 2)) / ((high - low) / 2))


def _percent(share: float | None) -> str | None:
    """A share in percent."""
    return None if share is None else f"{100 * share:.3g} %"
