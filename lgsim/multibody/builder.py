"""Builder of models, body by body."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lgsim.multibody import inertia as ten
from lgsim.multibody.contacts import Contact, plane
from lgsim.multibody.contacts.contact_checks import check_contacts, described, new_heights
from lgsim.multibody.contacts.sizes import rows
from lgsim.multibody.geometry.solid_checks import Described, check_frames
from lgsim.multibody.geometry.solid_checks import described as described_solid
from lgsim.multibody.geometry.solid_edits import numbers_of
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.joint_numbers import USUAL
from lgsim.multibody.joints import Fixed
from lgsim.multibody.loops import Coupling, Loop, LoopKind, Rod, loop_checks
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT, WORLD, ModelError, Topology

GRAVITY = (0.0, 0.0, -9.81)


@dataclass
class _Body:
    name: str
    parent: str
    joint: Joint
    joint_name: str
    placement: np.ndarray
    axes: np.ndarray
    parameters: np.ndarray
    numbers: dict[str, Any]
    mimic: tuple[str, float, float] | None


@dataclass
class ModelBuilder:
    """Collects bodies, joints and frames in any order; ``build`` checks them and returns a ``Model``.

    Attributes:
        gravity: Gravitational acceleration in world axes, m/s^2.
        dtype: float32 or float64; None for JAX's default float.
        physical: True rejects non-physical inertias, False accepts them.
    """

    gravity: Any = GRAVITY
    dtype: Any = None
    physical: bool = True
    _bodies: dict[str, _Body] = field(default_factory=dict, repr=False)
    _frames: dict[str, tuple[str, np.ndarray]] = field(default_factory=dict, repr=False)
    _contacts: dict[str, tuple[Contact, dict[str, float], Any]] = field(default_factory=dict, repr=False)
    _solids: list[Described] = field(default_factory=list, repr=False)
    _loops: list[tuple[str, str, str, LoopKind, list[float]]] = field(default_factory=list, repr=False)

    def add_body(
        self,
        name: str,
        parent: str,
        joint: Joint,
        *,
        joint_name: str | None = None,
        placement: Any = None,
        axis: Any = None,
        pitch: Any = 0.0,
        mass: float = 0.0,
        center: Any = (0.0, 0.0, 0.0),
        inertia: Any = None,
        parameters: Any = None,
        mimic: tuple[str, float, float] | None = None,
        **numbers: Any,
    ) -> ModelBuilder:
        """Add a body and the joint that connects it to ``parent``.

        Args:
            name: Name of the body and of its frame.
            parent: Name of the parent body, or "world".
            joint: From ``lgsim.joints``; a ``Fixed`` one merges the body into its parent and keeps its frame.
            joint_name: By default the body's name.
            placement: Pose of the joint's frame in the parent's, (4, 4); at zero it is the body's frame.
            axis: Axis of the joint, (3,), or one for each degree of freedom, (k, 3); by default the joint's own.
            pitch: Pitch of a screw, m/rad.
            mass: kg.
            center: Center of mass in the body's frame, m.
            inertia: Inertia about the center of mass in the body's axes, (3, 3), kg m^2.
            parameters: The ten inertial parameters (10,) instead of mass, center and inertia.
            mimic: (joint, k, b) for ``q = k q_joint + b``; for joints of one degree of freedom. Armature, damping and
                friction of such a joint are added to those of the mimicked joint; its spring and limits are ignored.
            **numbers: ``armature damping friction stiffness rest lower upper velocity_limit effort_limit friction_speed
                limit_stiffness limit_damping stribeck stribeck_speed``, a number or one for each degree of freedom; see
                ``Model``. By default dry friction is smooth below a speed of 0.1 rad/s or m/s, and limits have no
                stops. For a spherical joint ``upper`` is (swing, angle, twist), see ``passive_forces``.

        Raises:
            ModelError: a name is taken, an axis is zero, a shape is wrong, a number is not finite, the mass is
                negative, or the inertia is non-physical.
        """
        if name in self._bodies or name in self._frames or name == ROOT:
            raise ModelError(f"body {name!r}: the name is taken")
        if not isinstance(joint, Joint):
            raise ModelError(f"body {name!r}: joint: expected a joint such as lgsim.joints.Revolute(), got {joint!r}")
        unknown = set(numbers) - set(USUAL)
        if unknown:
            raise ModelError(f"body {name!r}: unknown {', '.join(sorted(unknown))}; known are {', '.join(USUAL)}")
        what = f"joint {joint_name or name!r}"
        pose = _finite(f"body {name!r}: placement", np.eye(4) if placement is None else placement, (4, 4))
        if parameters is None:
            moment = np.zeros((3, 3)) if inertia is None else inertia
            _finite(f"body {name!r}: mass", mass, ())
            parts = (np.asarray(mass, float), np.asarray(_finite(f"body {name!r}: center", center, (3,)), float))
            parameters = ten_parameters(*parts, _finite(f"body {name!r}: inertia", moment, (3, 3)))
        values = _finite(f"body {name!r}: parameters", parameters, (10,))
        fault = ten.defect(values) if self.physical or values[0] < 0 else None
        if fault:
            raise ModelError(f"body {name!r} {fault}")
        given = {key: _each(f"{what}: {key}", value, joint.nv) for key, value in numbers.items()}
        dofs = _usual(joint.nv) | given | {"pitch": _each(f"{what}: pitch", pitch, joint.nv)}
        if not joint.pitched and np.any(dofs["pitch"]):
            raise ModelError(f"{what}: a {type(joint).__name__} has no pitch, got {dofs['pitch']}; use Helical")
        for key in ("friction_speed", "stribeck_speed"):
            if key in given and np.any(given[key] <= 0):
                raise ModelError(f"{what}: expected a positive {key}, got {given[key]}")
        if "lower" in given or "upper" in given:
            if np.any(dofs["lower"] > dofs["upper"]):
                raise ModelError(f"{what}: expected lower <= upper, got {dofs['lower']} and {dofs['upper']}")
        if joint.stopped and np.any(dofs["upper"][:2] < 0):
            raise ModelError(f"{what}: expected nonnegative upper limits of swing and angle, got {dofs['upper']}")
        if mimic is not None and joint.nv != 1:
            raise ModelError(f"{what}: only a joint of one degree of freedom can mimic, this one has {joint.nv}")
        axes = _axes(what, axis, joint)
        self._bodies[name] = _Body(name, parent, joint, joint_name or name, pose, axes, values, dofs, mimic)
        return self

    def add_frame(self, name: str, body: str, placement: Any = None) -> ModelBuilder:
        """Add a frame fixed to a body (or "world") at a pose (4, 4) in the body's frame."""
        if name in self._bodies or name in self._frames or name == ROOT:
            raise ModelError(f"frame {name!r}: the name is taken")
        pose = _finite(f"frame {name!r}: placement", np.eye(4) if placement is None else placement, (4, 4))
        self._frames[name] = (body, pose)
        return self

    def add_contact(
        self,
        name: str,
        frame: str,
        shape: Any,
        surface: Any = None,
        *,
        against: str = ROOT,
        smooth: bool = False,
        **law: Any,
    ) -> ModelBuilder:
        """Add a contact: if a shape on one frame penetrates a surface on another, a force acts on both bodies.

        With the depth d >= 0, its rate d' and the slip velocity u of each point of the shape the force is
        ``stiffness d^exponent (1 + dissipation d')_+`` along the normal and
        ``- (friction f_n / sqrt(u.u + slip_speed^2) + viscous d^exponent) u`` along the surface, see
        ``contact_forces``.

        Args:
            name: Name of the contact.
            frame: Name of the shape's frame: a body, or a frame fixed to a body or the world.
            shape: ``sphere``, ``capsule``, ``box`` or ``vertices`` of ``lgsim.contacts``.
            surface: ``plane``, ``height_field`` or ``round_surface``; by default the plane of the x and y axes.
            against: Name of the surface's frame; by default the world.
            smooth: True sets the exponent to 2, for which derivatives of fixed steps converge at a higher order.
            **law: ``stiffness``, N/m^exponent; ``exponent``, 1.5 by default; ``dissipation``, s/m, ``friction``, 1,
                ``viscous``, N s/m^(1 + exponent), all 0 by default; ``slip_speed``, m/s, 0.01 by default: friction is
                viscous below it. ``suggest_contact`` returns stiffness and dissipation. Optional:
                ``stribeck``, 1, additional static friction, with ``stribeck_speed``, m/s, 0.1 by default; ``torsion``
                and ``rolling``, m, resistance to spinning and rolling, with ``spin_speed``, rad/s, 0.1 by default.

        Raises:
            ModelError: the name is taken, the shape or surface is invalid, or a parameter is unknown, missing or
                invalid. ``build`` reports unknown frames, and frames on one body.

        Warns:
            UserWarning: the exponent is below 3/2.
        """
        if name in self._contacts:
            raise ModelError(f"contact {name!r}: the name is taken")
        self._contacts[name] = described(
            name, frame, shape, plane() if surface is None else surface, against, law, smooth
        )
        return self

    def add_solid(self, name: str, frame: str, geometry: Any, pose: Any = None) -> ModelBuilder:
        """Add collision geometry for ``lgsim.distance``; see ``Model.add_solid``.

        Raises:
            ModelError: an invalid geometry or pose, or a negative size. ``build`` checks the names.
        """
        self._solids.append(described_solid(name, frame, geometry, pose))
        return self

    def add_loop(self, name: str, frame_a: str, frame_b: str, joint: Any) -> ModelBuilder:
        """Close a kinematic loop: a joint constrains frame b relative to frame a, with its usual axes in frame b.

        Args:
            name: Name of the loop.
            frame_a: Frame of a body, or "world"; it coincides with ``frame_b`` at zero displacement of the joint.
            frame_b: Frame of another body, or "world" if the first one is not.
            joint: ``Spherical`` (3 rows), ``Revolute`` (5, about z), ``Fixed`` (6), ``Prismatic`` (5, along z),
                ``Cylindrical`` (4, z), ``Planar`` (3, x and y) or ``Translational`` (3) of ``lgsim.joints``.

        Raises:
            ModelError: another joint, whose motions are not a subgroup of SE(3). ``build`` checks the frames.
        """
        self._loops.append((name, frame_a, frame_b, loop_checks.closing_joint(name, joint), []))
        return self

    def add_rod(self, name: str, frame_a: str, frame_b: str, length: Any) -> ModelBuilder:
        """Close a kinematic loop by a massless rod: the origins of two frames keep the distance ``length``, m.

        Raises:
            ModelError: the length is not a finite number. ``build`` checks the frames, and that it is positive.
        """
        self._loops.append((name, frame_a, frame_b, Rod(), [float(_finite(f"loop {name!r}: length", length, ()))]))
        return self

    def add_coupling(self, name: str, joint_a: str, joint_b: str, coefficients: Any) -> ModelBuilder:
        """Couple two joints of one coordinate: ``q_b = c_0 + c_1 q_a + c_2 q_a^2 + ...``, rad or m.

        Raises:
            ModelError: the coefficients are not a list of numbers. ``build`` checks the joints.
        """
        given = list(loop_checks.coefficients(name, coefficients))
        self._loops.append((name, joint_a, joint_b, Coupling(len(given) - 1), given))
        return self

    def build(self) -> Model:
        """Check the bodies, joints and frames, and return the model.

        Raises:
            ModelError: a missing or circular parent, joints with one name, a missing or circular mimic joint, a loop
                with missing frames or joints or with both ends on one body, or no joint.
        """
        order = self._order()
        moving = [body for body in order if not isinstance(body.joint, Fixed)]
        names = [body.joint_name for body in moving]
        if len(set(names)) < len(names):
            clash = next(name for name in names if names.count(name) > 1)
            raise ModelError(f"joint {clash!r}: the name is taken by another joint")
        index = {body.name: i for i, body in enumerate(moving)}
        holder, pose = self._holders(order)
        parameters = [body.parameters.copy() for body in moving]
        for body in order:
            if isinstance(body.joint, Fixed) and holder[body.name] != ROOT:
                parameters[index[holder[body.name]]] += _transformed(body.parameters, pose[body.name])
        parents = [index.get(holder.get(body.parent, ROOT), WORLD) for body in moving]
        placements = [pose[body.parent] @ body.placement if body.parent != ROOT else body.placement for body in moving]
        fixed = {body.name: (body.name, np.eye(4)) for body in order if isinstance(body.joint, Fixed)}
        frames = fixed | self._frames
        for name, (body, _) in frames.items():
            if body not in holder and body != ROOT:
                raise ModelError(f"frame {name!r}: there is no body {body!r}; bodies are {', '.join(self._bodies)}")
        mimics, ratios = self._mimics(moving)
        topology = Topology(
            joints=tuple(body.joint for body in moving),
            joint_names=tuple(names),
            body_names=tuple(body.name for body in moving),
            parents=tuple(parents),
            mimics=tuple(mimics),
            frame_names=tuple(frames),
            frame_bodies=tuple(index.get(holder.get(body, ROOT), WORLD) for body, _ in frames.values()),
            contacts=tuple(contact for contact, *_ in self._contacts.values()),
            loops=self._closed(moving),
            solids=tuple(each.solid for each in self._solids),
        )
        lengths = np.array([x for *_, own in self._loops for x in own], float)
        loop_checks.check_loops(topology, lengths)
        check_contacts(topology)
        check_frames(topology, topology.solids)
        if topology.floats and not np.array_equal(moving[0].axes, np.tile(np.eye(3), (2, 1))):
            raise ModelError(
                f"joint {names[0]!r}: axis: a floating base has the axes of its body, rotate the placements"
            )
        own = [body for body, mimic in zip(moving, mimics, strict=True) if mimic is None]
        felt = {body.name: dict(body.numbers) for body in own}
        for body, mimic, (k, _) in zip(moving, mimics, ratios, strict=True):
            if mimic is not None:
                source = felt[moving[mimic].name]
                source |= {key: source[key] + abs(k) ** power * body.numbers[key] for key, power in _FELT.items()}
        numbers = {key: _joined([felt[body.name][key] for body in own]) for key in USUAL}
        numbers |= {
            "placements": np.array(placements).reshape(-1, 4, 4),
            "axes": np.concatenate([np.zeros((0, 3)), *(body.axes for body in moving)]),
            "pitches": _joined([body.numbers["pitch"] for body in moving]),
            "inertias": np.array(parameters).reshape(-1, 10),
            "mimic": np.array(ratios).reshape(-1, 2),
            "frames": np.array([pose.get(b, np.eye(4)) @ T for b, T in frames.values()]).reshape(-1, 4, 4),
            "gravity": _finite("gravity", self.gravity, (3,)),
        }
        if self._contacts:
            numbers["contacts"] = rows(topology.contacts, [given for _, given, _ in self._contacts.values()])
            heights = np.zeros(0)
            for i, (contact, _, given) in enumerate(self._contacts.values()):
                new = new_heights(topology.contacts[:i], heights, contact, given)
                heights = heights if new is None else np.concatenate([heights, new])
            if heights.size:
                numbers["heights"] = heights
        if lengths.size:
            numbers["loops"] = lengths
        if self._solids:
            numbers |= {name: x for name, x in numbers_of(self._solids, float).items() if x is not None}
        dtype = np.dtype(jnp.zeros(()).dtype if self.dtype is None else self.dtype)
        with np.errstate(over="ignore"):
            for key in ("placements", "inertias", "frames", "mimic"):
                _finite(f"{key} of the model as {dtype}", numbers[key].astype(dtype), numbers[key].shape)
        topology = topology.sticking(numbers["stribeck"])
        # one transfer: jnp.asarray would compile a program for each shape
        return jax.device_put(Model.of(topology, **{key: value.astype(dtype) for key, value in numbers.items()}))

    def _order(self) -> list[_Body]:
        """Bodies depth first, children in the order in which they were added."""
        children: dict[str, list[_Body]] = {}
        for body in self._bodies.values():
            if body.parent != ROOT and body.parent not in self._bodies:
                raise ModelError(f"body {body.name!r}: its parent {body.parent!r} is missing")
            children.setdefault(body.parent, []).append(body)
        order, stack = [], list(reversed(children.get(ROOT, [])))
        while stack:
            body = stack.pop()
            order.append(body)
            stack += reversed(children.get(body.name, []))
        left = set(self._bodies) - {body.name for body in order}
        if left:
            raise ModelError(f"bodies {', '.join(sorted(left))} have circular parents; expected a path to the world")
        if all(isinstance(body.joint, Fixed) for body in order):
            raise ModelError("expected at least one joint that is not fixed, got none")
        return order

    def _holders(self, order: list[_Body]) -> tuple[dict[str, str], dict[str, np.ndarray]]:
        """For each body the moving body that it is part of, itself unless its joint is fixed, and its pose there."""
        holder, pose = {ROOT: ROOT}, {ROOT: np.eye(4)}
        for body in order:
            fixed = isinstance(body.joint, Fixed)
            holder[body.name] = holder[body.parent] if fixed else body.name
            pose[body.name] = pose[body.parent] @ body.placement if fixed else np.eye(4)
        return holder, pose

    def _closed(self, moving: list[_Body]) -> tuple[Loop, ...]:
        """The loops, with the type of the second joint of couplings."""
        turns = {body.joint_name: body.joint.rows[0].turns for body in moving} if self._loops else {}
        found = []
        for name, a, b, kind, _ in self._loops:
            own = replace(kind, turns=turns.get(b, False)) if isinstance(kind, Coupling) else kind
            found.append(Loop(name, a, b, own))
        return tuple(found)

    def _mimics(self, moving: list[_Body]) -> tuple[list[int | None], list[tuple[float, float]]]:
        """The independent joint that each joint mimics, through chains of mimic joints, and (k, b)."""
        place = {body.joint_name: i for i, body in enumerate(moving)}
        found: dict[int, tuple[int, float, float]] = {}  # index of the independent joint, k and b
        for i, body in enumerate(moving):
            way, at = {i: None}, i
            while at not in found and (mimic := moving[at].mimic) is not None:
                other = mimic[0]
                if other not in place:
                    name = moving[at].joint_name
                    raise ModelError(f"joint {name!r}: it mimics {other!r}, which does not exist or is fixed")
                at = place[other]
                count = moving[at].joint.nv
                if count != 1:
                    raise ModelError(f"joint {body.joint_name!r}: it mimics {other!r}, which has {count} coordinates")
                if at in way:
                    names = ", ".join(moving[j].joint_name for j in way)
                    raise ModelError(f"joint {body.joint_name!r}: joints mimic each other in a circle: {names}")
                way[at] = None
            for j in reversed(way):
                mimic = moving[j].mimic
                if j not in found and mimic is not None:
                    source, k, b = found[place[mimic[0]]]
                    found[j] = source, mimic[1] * k, mimic[1] * b + mimic[2]
                else:
                    found.setdefault(j, (j, 1.0, 0.0))
        resolved = [found[i] for i in range(len(moving))]
        return [None if j == i else j for i, (j, *_) in enumerate(resolved)], [(k, b) for _, k, b in resolved]


_FELT = {"armature": 2, "damping": 2, "friction": 1}
"""Parameters of a mimic joint that are added to the mimicked joint, with the power of the ratio as a factor."""


def _finite(what: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.array(value, float)
    if array.shape != shape:
        raise ModelError(f"{what}: expected shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what}: expected finite numbers, got {array.tolist()}")
    return array


@cache
def _usual(count: int) -> dict[str, np.ndarray]:
    """Default parameters of a joint with that many degrees of freedom; shared, not to be modified."""
    return {key: np.broadcast_to(np.float64(value), (count,)) for key, value in USUAL.items()}


def _each(what: str, value: Any, count: int) -> np.ndarray:
    if type(value) is float and not math.isnan(value):  # fast path for files
        return np.full(count, value)
    array = np.asarray(value, float)
    if array.shape not in ((), (count,)):
        raise ModelError(f"{what}: expected a number or shape ({count},), got shape {array.shape}")
    if np.any(np.isnan(array)):
        raise ModelError(f"{what}: expected numbers, got {array.tolist()}")
    return np.broadcast_to(array, (count,))


def _axes(what: str, axis: Any, joint: Joint) -> np.ndarray:
    if axis is None:
        return np.eye(3)[[row.axis for row in joint.rows]].reshape(-1, 3)
    array = np.asarray(axis, float)
    if array.shape not in ((3,), (joint.nv, 3)):
        raise ModelError(f"{what}: axis: expected shape (3,) or ({joint.nv}, 3), got {array.shape}")
    axes = np.broadcast_to(array, (joint.nv, 3))
    if not np.isfinite(axes).all() or not (axes != 0).any(axis=1).all():
        raise ModelError(f"{what}: axis: expected a finite nonzero vector, got {array.tolist()}")
    # scaled by the largest entry: squares of very large or small entries overflow or underflow
    axes = axes / np.abs(axes).max(axis=1, keepdims=True)
    axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    if isinstance(joint, GroupJoint):
        named = {row.axis: unit for row, unit in zip(joint.rows, axes, strict=True)}
        frame = np.stack([named[i] for i in range(3)])
        same = all(np.allclose(named[row.axis], unit) for row, unit in zip(joint.rows, axes, strict=True))
        if not (same and np.allclose(frame @ frame.T, np.eye(3)) and np.linalg.det(frame) > 0):
            raise ModelError(
                f"{what}: axis: expected the axes x, y, z of one right-handed frame for a {type(joint).__name__} joint,"
                f" got {array.tolist()}; rotate the placement instead"
            )
    return axes


def ten_parameters(mass: np.ndarray, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """``lgsim.multibody.inertia.parameters`` in float64, independent of JAX's default."""
    moved = inertia + mass * (center @ center * np.eye(3) - np.outer(center, center))
    return np.concatenate([[mass], mass * center, moved[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


def _transformed(values: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """The inertial parameters in the frame in which the body's frame has the given pose."""
    mass, h, R, p = values[0], values[1:4], pose[:3, :3], pose[:3, 3]
    inertia = R @ values[ten.PLACES] @ R.T
    turned = R @ h
    cross = np.outer(p, turned)
    inertia += 2 * (p @ turned) * np.eye(3) - cross - cross.T + mass * (p @ p * np.eye(3) - np.outer(p, p))
    return np.concatenate([[mass], turned + mass * p, inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([np.zeros(0), *parts])
