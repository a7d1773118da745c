"""The tasks of a scenario: what a machine should do, as costs and conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.cli.errors import BadInput, unknown
from lgsim.dynamics.kinematics import frame_index
from lgsim.lie import quaternion, so3
from lgsim.multibody import Model
from lgsim.multibody.topology import WORLD
from lgsim.optimize.constraints import Constraint, EndConstraint
from lgsim.optimize.cost import Residual
from lgsim.optimize.standard_costs import FrameAttitude, FramePath, FramePose, FramePosePath, FramePosition, Posture
from lgsim.scenarios.states import numbers, unit_quaternions
from lgsim.scenarios.toml_table import Table

WEIGHT = 1e4
"""Of a task where none is given."""
UNIT = 1e-2
"""How far the norm of a quaternion that a user wrote may be from one."""
SLACK = 1e-9
"""Share of a duration or a distance that is rounding."""


class Setting(NamedTuple):
    """What tasks need to know of the rest of a scenario.

    Attributes:
        model: The machine.
        duration: s.
        limited: Whether the joints stay within the limits of their positions.
    """

    model: Model
    duration: float
    limited: bool


class Task(NamedTuple):
    """What a machine should do.

    Attributes:
        name: For people.
        cost: Weighted.
        along: Whether it holds all the time; else at the end.
        exact: Whether it is a condition too.
    """

    name: str
    cost: Residual
    along: bool = False
    exact: bool = False

    @property
    def constraint(self) -> Constraint:
        """The condition, where it is exact: all that has a weight is zero."""
        return EndConstraint(function=_Rows(self.cost))

    def parts(self, length: int) -> list[tuple[slice, str]]:
        """(which of the residuals, their unit): lengths first, then angles."""
        if isinstance(self.cost, Posture):
            return [(slice(0, length), "rad or m")]
        angles = isinstance(self.cost, FrameAttitude)
        return [(slice(0, 3), "rad" if angles else "m"), (slice(3, 6), "rad")][: (length + 2) // 3]


class _Rows(eqx.Module):
    """The residuals of a cost that have a weight, at the end; the others are zero."""

    cost: Residual

    def __call__(self, t: Any, y: Any, args: Any) -> Array:
        r = self.cost.residual(t, y, None, args)
        weight = jnp.broadcast_to(jnp.asarray(self.cost.weight, r.dtype), r.shape)
        return jnp.where(weight > 0, r, 0)


def reach(table: Table, setting: Setting) -> Task:
    """``[[reach]]``: a frame has a pose, a position or an attitude at the end."""
    table.only("frame", "position", "rotation", "quaternion", "weight", "exact")
    model, frame = setting.model, _frame(table, setting.model)
    p, R = table.vector("position", 3), _rotation(table)
    exact = table.flag("exact", False)
    if p is not None:
        within_reach(table, "position", (), setting, frame, p)
    if p is None and R is None:
        raise table.fault(None, "expected a position, or a rotation or quaternion, or both")
    weight = _weight(table, 6 if p is not None and R is not None else 3)
    if R is None:
        cost = FramePosition(model=model, frame=frame, target=_like(model, p), weight=weight)
        return Task(f"{frame} to a position", cost, exact=exact)
    if p is None:
        cost = FrameAttitude(model=model, frame=frame, target=_like(model, R), weight=weight)
        return Task(f"{frame} to an attitude", cost, exact=exact)
    cost = FramePose(model=model, frame=frame, target=_like(model, _pose(R, p)), weight=weight)
    return Task(f"{frame} to a pose", cost, exact=exact)


def posture(table: Table, setting: Setting) -> Task:
    """``[[posture]]``: joints have a configuration at the end; those that are not named may do as they like."""
    table.only("q", "weight", "exact")
    model = setting.model
    table.need("q")
    q, given = table.by_joint("q", model.q_slices, np.array(model.neutral()))
    with table.at("q"):
        q = unit_quaternions(model, q)
    low, high = np.asarray(model.lower), np.asarray(model.upper)
    named = np.zeros(model.nv)
    for joint, part in model.q_slices.items():
        rows = model.v_slices[joint]
        named[rows] = float(given[part].any())
        if not given[part].any() or not setting.limited or part.stop - part.start != rows.stop - rows.start:
            continue
        if np.any((q[part] < low[rows]) | (q[part] > high[rows])):
            raise table.fault(
                "q", f"expected the joint {joint!r} within its limits, {low[rows][0]:g} to {high[rows][0]:g}, got"
                f" {', '.join(f'{x:g}' for x in q[part])}; change it, or take position = false in [limits]", joint
            )  # fmt: skip
    if not named.any():
        raise table.fault("q", "expected at least one joint")
    cost = Posture(model=model, target=_like(model, q), weight=_like(model, _weight(table, 1) * named))
    return Task("posture", cost, exact=table.flag("exact", False))


def follow(table: Table, setting: Setting) -> Task:
    """``[[follow]]``: a frame goes along a path of positions or poses."""
    table.only("frame", "points", "file", "weight")
    model, frame = setting.model, _frame(table, setting.model)
    if ("points" in table) == ("file" in table):
        raise table.fault(None, "expected either points or a file of them")
    key = "points" if "points" in table else "file"
    if key == "points":
        rows, lines = table.rows("points", 4, 8), None
    else:
        rows, lines = _csv(table)
    if len(rows) < 2:
        raise table.fault(key, f"expected two points or more, got {len(rows)}")
    place = (lambda i: (i,)) if lines is None else (lambda i: ())
    where = (lambda i: "") if lines is None else (lambda i: f"line {lines[i]}: ")
    for i in range(1, len(rows)):
        if rows[i, 0] <= rows[i - 1, 0]:
            raise table.fault(key, f"{where(i)}expected rising times, got {rows[i, 0]:g} s", *place(i))
    if rows[0, 0] < 0 or rows[-1, 0] > setting.duration * (1 + SLACK):
        raise table.fault(
            key, f"expected times from 0 to the duration, {setting.duration:g} s, got {rows[0, 0]:g} to"
            f" {rows[-1, 0]:g} s"
        )  # fmt: skip
    for i, row in enumerate(rows):
        within_reach(table, key, place(i), setting, frame, row[1:4], where(i))
    times = _like(model, rows[:, 0])
    if rows.shape[1] == 4:
        weight, points = _weight(table, 3), _like(model, rows[:, 1:])
        cost = FramePath(model=model, frame=frame, times=times, points=points, weight=weight)
        return Task(f"{frame} along a path", cost, along=True)
    poses = []
    for i, row in enumerate(rows):
        with table.at(key, *place(i)):
            poses.append(_pose(_matrix(row[4:]), row[1:4]))
    weight, path = _weight(table, 6), _like(model, np.array(poses))
    cost = FramePosePath(model=model, frame=frame, times=times, poses=path, weight=weight)
    return Task(f"{frame} along a path of poses", cost, along=True)


TASKS = {"reach": reach, "posture": posture, "follow": follow}
"""The tables of a scenario that say what is wanted."""


def within_reach(
    table: Table, key: str, inner: tuple, setting: Setting, frame: str, p: np.ndarray, where: str = ""
) -> None:
    """Raises where a point is farther from a machine's base than its links are long together.

    Raises:
        BadInput: it is.
    """
    base, length, joint = longest(setting.model, frame, setting.limited)
    distance = float(np.linalg.norm(p - base))
    if distance > length * (1 + SLACK):
        raise table.fault(
            key, f"{where}out of reach: {distance:.4g} m from the joint {joint!r}, and the links from there to the"
            f" frame {frame!r} are {length:.4g} m long together", *inner
        )  # fmt: skip


def longest(model: Model, frame: str, limited: bool) -> tuple[np.ndarray, float, str]:
    """(a point that does not move, how far from it a frame may be at most, the joint there); infinite if unbounded.

    Args:
        model: The machine.
        frame: Name of the frame.
        limited: Whether joints that slide stay within their limits.
    """
    tree = model.topology
    index = frame_index(tree, frame)
    length, body = 0.0, index
    if index >= tree.bodies:
        offset = np.asarray(model.frames[index - tree.bodies])[:3, 3]
        body = tree.frame_bodies[index - tree.bodies]
        if body == WORLD:
            return offset, 0.0, "world"
        length = float(np.linalg.norm(offset))
    placements = np.asarray(model.placements)
    while True:
        length += _slides(model, body, limited)
        if tree.parents[body] == WORLD:
            return placements[body, :3, 3], length, tree.joint_names[body]
        length += float(np.linalg.norm(placements[body, :3, 3]))
        body = tree.parents[body]


def _slides(model: Model, body: int, limited: bool) -> float:
    """How far a joint carries its child away at most."""
    tree = model.topology
    rows = slice(tree.row_starts[body], tree.row_starts[body + 1])
    turning = np.array([row.turns for row in tree.joints[body].rows], bool)
    pitches = np.where(turning, np.abs(np.asarray(model.pitches[rows])), 1.0)
    if not pitches.any():
        return 0.0
    if not limited or tree.mimics[body] is not None or tree.joints[body].nq != tree.joints[body].nv:
        return float("inf")
    at = tree.v_slice(body)
    far = np.maximum(np.abs(np.asarray(model.lower[at])), np.abs(np.asarray(model.upper[at])))
    return float(np.sum(np.where(pitches > 0, pitches * far, 0.0)))


def _frame(table: Table, model: Model) -> str:
    name, names = table.text("frame"), model.topology.body_names + model.topology.frame_names
    if name is None:
        raise table.fault(None, "the key 'frame' is missing")
    if name not in names:
        with table.at("frame"):
            raise unknown("expected the name of a frame", name, names)
    return name


def _weight(table: Table, length: int) -> Any:
    """One number, or one for each residual."""
    if not isinstance(table.values.get("weight"), list):
        return float(table.number("weight", WEIGHT, least=0.0))
    weight = table.vector("weight", length)
    if weight is None or np.any(weight < 0):
        raise table.fault("weight", "expected numbers of zero or more")
    return jnp.asarray(weight)


def _rotation(table: Table) -> np.ndarray | None:
    """The matrix of a rotation vector or a quaternion."""
    vector, wxyz = table.vector("rotation", 3), table.vector("quaternion", 4)
    if vector is not None and wxyz is not None:
        raise table.fault("quaternion", "expected either a rotation vector or a quaternion")
    if vector is not None:
        return np.asarray(so3.exp(jnp.asarray(vector)))
    if wxyz is None:
        return None
    with table.at("quaternion"):
        return _matrix(wxyz)


def _matrix(wxyz: np.ndarray) -> np.ndarray:
    norm = float(np.linalg.norm(wxyz))
    if abs(norm - 1) > UNIT:
        raise BadInput(f"expected a unit quaternion (w, x, y, z), got one of norm {norm:g}")
    return np.asarray(quaternion.Ad(jnp.asarray(wxyz / norm)))


def _pose(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def _like(model: Model, value: Any) -> Array:
    return jnp.asarray(value, model.dtype)


def _csv(table: Table) -> tuple[np.ndarray, list[int]]:
    """(rows of a file of points, their lines); its first line may hold names."""
    given = table.text("file")
    path = table.document.file.parent / Path(str(given))
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise table.fault("file", f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    rows, lines = [], []
    for line, entry in enumerate(text.splitlines(), start=1):
        if not entry.strip() or (line == 1 and any(letter.isalpha() for letter in entry)):
            continue
        row = numbers(f"{path}:{line}", entry)
        wanted = len(rows[0]) if rows else 0
        if len(row) not in ((wanted,) if wanted else (4, 8)):
            count = str(wanted) if wanted else "4 (t, x, y, z) or 8 (and the quaternion w, x, y, z)"
            raise BadInput(f"{path}:{line}: expected {count} numbers, got {len(row)}")
        rows.append(row)
        lines.append(line)
    return np.array(rows), lines
