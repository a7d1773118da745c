"""``lgsim info``: summary of a robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from lgsim.cli.files import read_machine
from lgsim.cli.terminal import console, lines, note
from lgsim.formats import FileError, Report
from lgsim.formats.urdf import FLOATS
from lgsim.multibody import Model
from lgsim.multibody.joints import Free
from lgsim.multibody.loops import JointTie
from lgsim.multibody.topology import ROOT, WORLD
from lgsim.scenarios.machine import first_tag
from lgsim.simulation.limits import limited_joints
from lgsim.support.messages import counted
from lgsim.support.printable import printable
from lgsim.view.urdf_visuals import missing_meshes

ENDLESS = "∞"
MESHES = 5
"""Largest number of missing meshes that are listed."""


def show_machine(file: Path, floating_base: bool, loops: Path | None) -> None:
    """Print the structure and parameters of a robot, and findings in its file.

    Raises:
        FileError: the file describes no valid model, or the loop file names unknown joints or frames.
    """
    model, report = _read(file, floating_base, loops)
    out = console()
    out.print(f"{file}: {_summary(model)}", soft_wrap=True)
    out.print()
    out.print(_tree(model))
    out.print()
    out.print(_joints(model))
    out.print()
    if model.topology.loops:
        out.print(_loops(model))
        out.print()
    if (limited_joints(model) & (np.asarray(model.limit_stiffness) == 0)).any():
        out.print("Position limits are not enforced by default; lgsim simulate --stops turns them into stops.")
        out.print()
    out.print(lines(str(report).split("\n")), soft_wrap=True)
    _show_missing_meshes(file)


def _read(file: Path, floating_base: bool, loops: Path | None) -> tuple[Model, Report]:
    """The model and its report.

    Equality constraints of an MJCF file that loops cannot represent are ignored, and a URDF or MJCF file without a
    moving joint gets a floating base.
    """
    try:
        return read_machine(file, floating_base=floating_base, loops=loops)
    except FileError as error:
        tag = first_tag(file)
        if tag == "mujoco" and FLOATS not in error.message:
            return read_machine(file, floating_base=floating_base, loops=loops, ignore_equalities=True)
        if tag not in ("robot", "mujoco") or FLOATS not in error.message:
            raise
    note("no joint of the file moves: this is the model of --floating-base")
    return read_machine(file, floating_base=True, loops=loops)


def _loops(model: Model) -> Table:
    table = Table("loop", "kind", "a", "b", "rows", "numbers", box=box.SIMPLE_HEAD)
    numbers = None if model.loops is None else np.asarray(model.loops)
    for loop in model.topology.loops:
        kind = type(loop.kind.joint if isinstance(loop.kind, JointTie) else loop.kind).__name__.lower()
        own = [] if numbers is None else numbers[model.loop_slices[loop.name]]
        named = zip(loop.kind.number_names, own, strict=True) if len(own) else ()
        words = ", ".join(f"{name} {_number(float(x))}" for name, x in named)
        table.add_row(loop.name, kind, loop.a, loop.b, str(loop.kind.rows), words)
    return table


def _show_missing_meshes(file: Path) -> None:
    """List the missing meshes of a URDF file; simulation does not need them, and the viewer shows rods instead."""
    lost = [] if first_tag(file) != "robot" else missing_meshes(file)
    if lost:
        more = [f"and {len(lost) - MESHES} more"] if len(lost) > MESHES else []
        where = "searched next to the file and in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH"
        head = f"{counted(len(lost), 'mesh file')} not found, {where}:"
        console().print(lines(["", head, *(f"  {line}" for line in [*lost[:MESHES], *more])]), soft_wrap=True)


def _summary(model: Model) -> str:
    tree = model.topology
    roots = [joint for joint, parent in zip(tree.joints, tree.parents, strict=True) if parent == WORLD]
    free = sum(isinstance(joint, Free) for joint in roots)
    base = "a floating base" if free == 1 else f"{free} floating bases" if free else ""
    if free < len(roots):
        base = f"a fixed base{' and ' * bool(base)}{base}"
    gravity = ", ".join(f"{float(x):g}" for x in model.gravity)
    mass = float(model.inertias[:, 0].sum())
    bodies = f"{tree.bodies} moving {'body' if tree.bodies == 1 else 'bodies'} on {base}, {mass:.6g} kg in total"
    freedom = f"{counted(model.nv, 'degree')} of freedom (nq = {model.nq}, nv = {model.nv})"
    ring = f"; {counted(len(tree.loops), 'loop')}, {counted(tree.loop_rows, 'row')}" if tree.loops else ""
    return f"{bodies}; {freedom}{ring}; gravity ({gravity}) m/s²"


def _tree(model: Model) -> Tree:
    """The tree of bodies with the frames fixed to each."""
    tree = model.topology
    root = Tree(Text(ROOT, "bold"))
    nodes = {WORLD: root}
    for body, name in enumerate(tree.body_names):
        label = Text.assemble(
            printable(f"{tree.joint_names[body]} ({_kind(model, body)}) → "),
            (printable(name), "bold"),
            f", {float(model.inertias[body, 0]):.6g} kg",
        )
        nodes[body] = nodes[tree.parents[body]].add(label)
    for body, node in nodes.items():
        frames = [name for name, of in zip(tree.frame_names, tree.frame_bodies, strict=True) if of == body]
        if frames:
            node.children.insert(0, Tree(Text(printable(f"frames: {', '.join(frames)}"), "dim")))
    return root


def _joints(model: Model) -> Table:
    tree = model.topology
    table = Table("joint", "type", "in q", "in v", "limits", "velocity", "force", "damping", box=box.SIMPLE_HEAD)
    for body, name in enumerate(tree.joint_names):
        rows = tree.joints[body].rows
        turns = {row.turns for row in rows}
        unit, force = (
            ("rad", "N m") if turns == {True} else ("m", "N") if turns == {False} else ("rad or m", "N m or N")
        )
        at = tree.v_slice(body)
        numbers = (model.velocity_limit, model.effort_limit, model.damping)
        velocity, effort, damping = (_each([float(x) for x in array[at]]) for array in numbers)
        limits = zip(model.lower[at], model.upper[at], strict=True)
        bounds = _each([f"{_number(float(low))} … {_number(float(high))}" for low, high in limits])
        free = bounds == f"-{ENDLESS} … {ENDLESS}"
        table.add_row(
            name,
            _kind(model, body),
            _places(tree.q_slice(body)),
            _places(at),
            "none" if free else f"{bounds} {unit}".strip() if bounds else "",
            f"{velocity} {unit}/s" if velocity not in ("", ENDLESS) else "",
            f"{effort} {force}" if effort not in ("", ENDLESS) else "",
            damping if damping != "0" else "",
        )
    return table


def _kind(model: Model, body: int) -> str:
    tree = model.topology
    kind, other = type(tree.joints[body]).__name__.lower(), tree.mimics[body]
    if other is None:
        return kind
    factor, offset = (float(x) for x in model.mimic[body])
    return f"{kind}, {factor:g} × {tree.joint_names[other]}" + (f" {offset:+g}" if offset else "")


def _places(part: slice) -> str:
    count = part.stop - part.start
    return "" if not count else str(part.start) if count == 1 else f"{part.start}-{part.stop - 1}"


def _each(values: list[float] | list[str]) -> str:
    """Format values; equal values are printed once."""
    shown = [value if isinstance(value, str) else _number(value) for value in values]
    return shown[0] if len(set(shown)) == 1 else "; ".join(shown)


def _number(value: float) -> str:
    return f"{value:.4g}".replace("inf", ENDLESS)
