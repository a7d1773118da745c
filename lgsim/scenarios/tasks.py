"""Tasks of a scenario: goals of a robot as costs and as constraints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import ArrayLike, Float, Int, PyTree

from lgsim._compile.xla import compiled
from lgsim.dynamics.kinematics import frame_index
from lgsim.integrators.method import Number
from lgsim.lie import quaternion, so3
from lgsim.lie.action import Point
from lgsim.multibody import Model
from lgsim.multibody.topology import WORLD
from lgsim.optimize.constraints.clearance import Clearance, ClearanceCost, ObstacleCost
from lgsim.optimize.constraints.constraint import Constraint, EndConstraint
from lgsim.optimize.cost import Residual
from lgsim.optimize.problem import Problem
from lgsim.optimize.solver import Solution
from lgsim.optimize.standard_costs import FrameAttitude, FramePath, FramePose, FramePosePath, FramePosition, Posture
from lgsim.scenarios.states import numbers, read_configuration
from lgsim.simulation.limits import TURNS
from lgsim.support.messages import one_line, unknown_name
from lgsim.support.reading.size_limits import FileSizeError, read_bytes
from lgsim.support.scenario_error import ScenarioError
from lgsim.support.toml_table import Table

WEIGHT = 1e4
"""Default weight of a task."""
UNIT = 1e-2
"""Largest deviation from one of the norm of a quaternion written with few digits."""
SLACK = 1e-9
"""Relative tolerance of durations and distances for rounding."""


class Setting(NamedTuple):
    """The parts of a scenario that its tasks depend on.

    Attributes:
        duration: Duration of the motion, s.
        limited: True if the position limits of the joints are enforced.
    """

    model: Model
    duration: float
    limited: bool


class Task(NamedTuple):
    """A goal: a pose, a configuration, a path or a clearance.

    Attributes:
        cost: Weighted residuals, zero if the goal is reached.
        along: True if the goal applies at all times, False if it applies at the end.
        exact: True if the goal is a constraint too.
        condition: That constraint; None for the residuals at the end.
    """

    name: str
    cost: Residual
    along: bool = False
    exact: bool = False
    condition: Constraint | None = None

    @property
    def constraint(self) -> Constraint:
        """The constraint of an exact task: its own, or all weighted residuals at the end are zero."""
        return EndConstraint(function=_WeightedRows(self.cost)) if self.condition is None else self.condition

    def errors(self, problem: Problem, result: Solution) -> list[tuple[float, str]]:
        """Errors of a solution in this task.

        Args:
            problem: The solved problem.
            result: A single solution, not a batch.

        Returns:
            Norm and unit of the position errors and of the orientation errors that have a weight: at the end, or the
            largest one over time for a task along the motion.
        """
        rows = np.asarray(_residuals(problem, self.cost, result.ts, result.ys))
        rows = rows if self.along else rows[-1:]
        rows = rows * (np.broadcast_to(np.asarray(self.cost.weight), rows.shape[1:]) > 0)
        parts = self._parts(rows.shape[1])
        return [(float(np.linalg.norm(rows[:, part], axis=1).max()), unit) for part, unit in parts]

    def _parts(self, length: int) -> Sequence[tuple[slice | Int[np.ndarray, " part"], str]]:
        """Entries of the residuals and their unit: lengths first, then angles."""
        if isinstance(self.cost, ClearanceCost):
            return [(slice(None), "m")]
        if isinstance(self.cost, Posture):
            tree = self.cost.model.topology
            weights = np.broadcast_to(np.asarray(self.cost.weight), (length,))
            turns = np.zeros(length, bool)
            turns[tree.row_v] = tree.row_turns
            kinds = ((~turns & (weights > 0), "m"), (turns & (weights > 0), "rad"))
            return [(np.flatnonzero(rows), unit) for rows, unit in kinds if rows.any()]
        angles = isinstance(self.cost, FrameAttitude)
        return [(slice(0, 3), "rad" if angles else "m"), (slice(3, 6), "rad")][: (length + 2) // 3]


@compiled
def _residuals(problem: Problem, cost: Residual, ts: Float[Array, " nodes"], ys: Point) -> Float[Array, "nodes rows"]:
    """The residuals of a cost at the nodes of a solution."""
    return jax.vmap(lambda t, y: cost.residual(t, y, None, problem.args))(ts, ys)


class _WeightedRows(eqx.Module):
    """The residuals of a terminal cost; those without a weight are replaced by zero."""

    cost: Residual

    def __call__(self, t: Number, y: Point, args: PyTree) -> Float[Array, " rows"]:
        r = self.cost.residual(t, y, None, args)
        weight = jnp.broadcast_to(jnp.asarray(self.cost.weight, r.dtype), r.shape)
        return jnp.where(weight > 0, r, 0)


def reach(table: Table, setting: Setting) -> Task:
    """The task of a table `[[reach]]`: a frame reaches a pose, a position or an orientation at the end.

    Raises:
        ScenarioError: an invalid value, or a position out of reach.
    """
    table.only("frame", "position", "rotation", "quaternion", "weight", "exact")
    model, frame = setting.model, _frame(table, setting.model)
    p, R = table.vector("position", 3), rotation_of(table)
    exact = table.flag("exact", False)
    if p is not None:
        _within_reach(table, "position", (), setting, frame, p)
    if p is None and R is None:
        raise table.fault(None, "expected a position, or a rotation or quaternion, or both")
    weight = _weight(table, 6 if p is not None and R is not None else 3)
    made: type[FramePose | FramePosition | FrameAttitude]
    if p is not None and R is not None:
        made, goal, what = FramePose, pose_of(R, p), "a pose"
    elif p is not None:
        made, goal, what = FramePosition, p, "a position"
    else:
        made, goal, what = FrameAttitude, np.asarray(R), "an attitude"
    cost = made(model=model, frame=frame, target=_like(model, goal), weight=weight)
    return Task(f"{frame} to {what}", cost, exact=exact)


def posture(table: Table, setting: Setting) -> Task:
    """The task of a table `[[posture]]`: the named joints reach a configuration at the end.

    Raises:
        ScenarioError: an invalid value, or a joint outside of its limits.
    """
    table.only("q", "weight", "exact")
    model = setting.model
    q, given = read_configuration(table.need("q"), "q", model, np.array(model.neutral()))
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
                f" {', '.join(f'{x:g}' for x in q[part])}; change it, or set position = false in [limits]", joint
            )  # fmt: skip
    if not named.any():
        raise table.fault("q", "expected at least one joint")
    cost = Posture(model=model, target=_like(model, q), weight=_like(model, np.asarray(_weight(table, 1)) * named))
    return Task("posture", cost, exact=table.flag("exact", False))


def follow(table: Table, setting: Setting) -> Task:
    """The task of a table `[[follow]]`: a frame follows a path of positions or poses.

    Raises:
        ScenarioError: an invalid value or line of the file of points, or a point out of reach.
    """
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
    places: list[tuple[int, ...]] = [(i,) if lines is None else () for i in range(len(rows))]
    where = [""] * len(rows) if lines is None else [f"line {line}: " for line in lines]
    for i in range(1, len(rows)):
        if rows[i, 0] <= rows[i - 1, 0]:
            raise table.fault(key, f"{where[i]}expected increasing times, got {rows[i, 0]:g} s", *places[i])
    if rows[0, 0] < 0 or rows[-1, 0] > setting.duration * (1 + SLACK):
        raise table.fault(
            key, f"expected times from 0 to the duration, {setting.duration:g} s, got {rows[0, 0]:g} to"
            f" {rows[-1, 0]:g} s"
        )  # fmt: skip
    for i, row in enumerate(rows):
        _within_reach(table, key, places[i], setting, frame, row[1:4], where[i])
    times = _like(model, rows[:, 0])
    if rows.shape[1] == 4:
        weight, points = _weight(table, 3), _like(model, rows[:, 1:])
        cost = FramePath(model=model, frame=frame, times=times, points=points, weight=weight)
        return Task(f"{frame} along a path", cost, along=True)
    poses = []
    for i, row in enumerate(rows):
        with table.at(key, *places[i]):
            poses.append(pose_of(_matrix(row[4:]), row[1:4]))
    weight, path = _weight(table, 6), _like(model, np.array(poses))
    cost = FramePosePath(model=model, frame=frame, times=times, poses=path, weight=weight)
    return Task(f"{frame} along a path of poses", cost, along=True)


def clear(table: Table, setting: Setting) -> Task:
    """The task of a table `[[clear]]`: collision avoidance with a margin, at all nodes of the motion.

    Raises:
        ScenarioError: an invalid value, or a model without collision geometry.
    """
    table.only("margin", "solids", "weight", "exact")
    model = setting.model
    margin = table.needed_number("margin")
    names = named_solids(table, "solids", model)
    pairs = model.solid_pairs(names or None)
    if not pairs[0]:
        raise table.fault(None, "no collision pairs: set `solids = true` and `[[machine.obstacles]]` in `[machine]`")
    weight, exact = table.number("weight", WEIGHT, least=0.0), table.flag("exact", False)
    with table.at("margin"):
        cost = ObstacleCost(model=model, margin=_like(model, margin), weight=weight, pairs=pairs)
        condition = Clearance(model=model, margin=_like(model, margin), pairs=pairs) if exact else None
    return Task(f"{margin:g} m clearance", cost, along=True, exact=exact, condition=condition)


def named_solids(table: Table, key: str, model: Model) -> list[str]:
    """Names of the collision geometries in a list of their names or names of their frames.

    Raises:
        ScenarioError: an unknown name.
    """
    found: list[str] = []
    for i, name in enumerate(table.of(key, list, [])):
        found += solids_of(table, key, model, name, i)
    return found


def solids_of(table: Table, key: str, model: Model, name: object, *inner: int) -> list[str]:
    """Names of the collision geometries of one such name.

    Raises:
        ScenarioError: an unknown name.
    """
    solids = model.topology.solids
    found = [s.name for s in solids if s.name == name] or [s.name for s in solids if s.frame == name]
    if not found:
        known = list(dict.fromkeys([*(s.name for s in solids), *(s.frame for s in solids)]))
        raise table.fault(key, unknown_name("expected the name of a solid or of its link", str(name), known), *inner)
    return found


TASKS = {"reach": reach, "posture": posture, "follow": follow, "clear": clear}
"""Reader of each kind of task."""


def _within_reach(
    table: Table,
    key: str,
    inner: tuple[int, ...],
    setting: Setting,
    frame: str,
    p: Float[np.ndarray, " 3"],
    where: str = "",
) -> None:
    """Check that a point is within reach: no farther from the base than the total length of the links.

    Args:
        inner: Index path of the point in the value of the key.
        frame: Name of the frame that reaches the point.
        p: The point in the world frame, m.
        where: Location of the point in another file, for the message.

    Raises:
        ScenarioError: the point is out of reach.
    """
    base, length, joint = longest(setting.model, frame, setting.limited)
    distance = float(np.linalg.norm(p - base))
    if distance > length * (1 + SLACK):
        raise table.fault(
            key, f"{where}out of reach: {distance:.4g} m from the joint {joint!r}, and the total length of the links"
            f" from there to the frame {frame!r} is {length:.4g} m", *inner
        )  # fmt: skip


def longest(model: Model, frame: str, limited: bool) -> tuple[Float[np.ndarray, " 3"], float, str]:
    """A ball about the base that a frame cannot leave.

    Args:
        limited: True if the limits of prismatic joints are enforced.

    Returns:
        Center of the ball in the world frame, m; radius, m, infinite for prismatic joints without limits; name of the
        joint at the center.
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
    """Largest translation of a body by its joint, m."""
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
    """The name of a frame under the key "frame"."""
    name, names = table.text("frame"), model.topology.body_names + model.topology.frame_names
    if name is None:
        raise table.fault(None, "the key 'frame' is missing")
    if name not in names:
        raise table.fault("frame", unknown_name("expected the name of a frame", name, names))
    return name


def _weight(table: Table, length: int) -> float | Float[Array, " length"]:
    """The weight of a task: one number, or one for each residual."""
    if not isinstance(table.values.get("weight"), list):
        return table.number("weight", WEIGHT, least=0.0)
    weight = table.vector("weight", length)
    if weight is None or np.any(weight < 0):
        raise table.fault("weight", "expected nonnegative numbers")
    return jnp.asarray(weight)


def rotation_of(table: Table) -> Float[np.ndarray, "3 3"] | None:
    """The rotation matrix of a rotation vector or a quaternion; None without either."""
    vector, wxyz = table.vector("rotation", 3), table.vector("quaternion", 4)
    if vector is not None and wxyz is not None:
        raise table.fault("quaternion", "expected either a rotation vector or a quaternion")
    if vector is not None:
        angle = float(np.linalg.norm(vector))
        if angle > TURNS:
            what = f"expected a rotation vector in rad, got a norm of {angle:g}: looks like degrees"
            raise table.fault("rotation", what)
        return np.asarray(so3.exp(jnp.asarray(vector)))
    if wxyz is None:
        return None
    with table.at("quaternion"):
        return _matrix(wxyz)


def _matrix(wxyz: Float[np.ndarray, " 4"]) -> Float[np.ndarray, "3 3"]:
    """The rotation matrix of a quaternion with norm one up to rounding."""
    norm = float(np.linalg.norm(wxyz))
    if abs(norm - 1) > UNIT:
        raise ValueError(f"expected a unit quaternion (w, x, y, z), got a norm of {norm:g}")
    return np.asarray(quaternion.Ad(jnp.asarray(wxyz / norm)))


def pose_of(R: Float[np.ndarray, "3 3"], p: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "4 4"]:
    """The homogeneous matrix of a rotation and a position."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return T


def _like(model: Model, value: ArrayLike) -> Float[Array, " ..."]:
    """An array of the model's dtype."""
    return jnp.asarray(value, model.dtype)


def _csv(table: Table) -> tuple[Float[np.ndarray, "points columns"], list[int]]:
    """The rows of a file of points and their line numbers; the first line may be a header."""
    path = table.document.file.parent / str(table.text("file"))
    try:
        text = read_bytes(path).decode()
    except FileSizeError as error:
        raise table.fault("file", str(error)) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or one_line(error)
        raise table.fault("file", f"{path} cannot be read: {why}") from error
    rows: list[list[float]] = []
    lines = []
    for line, entry in enumerate(text.splitlines(), start=1):
        if not entry.strip() or (line == 1 and any(letter.isalpha() for letter in entry)):
            continue
        try:
            row = numbers(entry)
        except ValueError as error:
            raise ScenarioError(path, line, "", one_line(error)) from None
        wanted = len(rows[0]) if rows else 0
        if len(row) not in ((wanted,) if wanted else (4, 8)):
            count = str(wanted) if wanted else "4 (t, x, y, z) or 8 (and the quaternion w, x, y, z)"
            raise ScenarioError(path, line, "", f"expected {count} numbers, got {len(row)}")
        rows.append(row)
        lines.append(line)
    return np.array(rows, float).reshape(len(rows), len(rows[0]) if rows else 4), lines
