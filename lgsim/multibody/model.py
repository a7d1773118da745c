"""The model of a multibody system: a static topology and all physical parameters as array leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.multibody import configuration, edit, ring_cut
from lgsim.multibody.contacts import plane, sizes
from lgsim.multibody.contacts.contact_checks import check_rows, described
from lgsim.multibody.geometry import solid_checks, solid_edits
from lgsim.multibody.joint_numbers import DRIVES, stored
from lgsim.multibody.joint_slices import JointSlices
from lgsim.multibody.loops import Coupling, Loop, Rod, loop_checks
from lgsim.multibody.model_summary import summary
from lgsim.multibody.number_checks import check_numbers, check_types
from lgsim.multibody.topology import ROOT, ModelError, Topology
from lgsim.support import check
from lgsim.support.check import is_traced
from lgsim.support.full_repr import is_full
from lgsim.support.messages import unknown_name
from lgsim.support.value_equality import ValueEquality


@dataclass(frozen=True, eq=False)
class Model(ValueEquality):
    """A tree of rigid bodies, optionally with closed kinematic loops; a pytree for ``jax.grad``, ``vmap`` and ``jit``.

    The parameters are stored by kind, stacked over bodies, degrees of freedom or frames; n bodies, k rows (degrees of
    freedom, including those of mimic joints), nv degrees of freedom, f frames. SI units. Properties name the columns of
    the arrays; few arrays keep the overhead of a call low.

    Attributes:
        topology: Structure of the tree; static.
        placements: Pose of the joint's frame in the parent's, (n, 4, 4).
        screws: ``axes`` and ``pitches`` of the rows, (k, 4).
        inertias: Ten inertial parameters of each body in its own frame, (n, 10), in the order of
            ``lgsim.multibody.inertia.PARAMETERS``.
        drives: Parameters of each degree of freedom, (nv, 15), in the order of ``DRIVES``. Missing limits are infinite,
            and zero times infinity is NaN: arithmetic on the whole array, such as ``drives.at[:, 1].mul(d)``, has NaN
            derivatives. Change columns by name, ``model.replace(damping=d * model.damping)``.
        mimic: (k, b) of each mimic joint, ``q_i = k q_j + b``, (n, 2); (1, 0) for the others.
        frames: Pose of each frame in its body's, (f, 4, 4).
        gravity: Gravitational acceleration in world axes, (3,), m/s^2.
        loops: Parameters of all loops in sequence, see ``loop_slices``: lengths of rods, m, and coefficients of
            couplings; None if no loop has any.
        contacts: Values of each contact, (c, k), see ``contact_numbers``; None without contacts.
        heights: Heights of all height fields in sequence, m, see ``height_slices``; None without any.
        solids: Sizes of each collision geometry, (s, k), see ``solid_numbers``; None without any.
        solid_poses: Pose of each collision geometry in its frame, (s, 4, 4), m.
        grids: Coefficients of all sampled collision geometries in sequence; None without any.
    """

    topology: Topology
    placements: Any
    screws: Any
    inertias: Any
    drives: Any
    mimic: Any
    frames: Any
    gravity: Any
    loops: Any = None
    contacts: Any = None
    heights: Any = None
    solids: Any = None
    solid_poses: Any = None
    grids: Any = None

    def __repr__(self) -> str:
        """Summary in at most ten lines; within ``full_reprs``, which fingerprints use, all fields."""
        if not is_full():
            return summary(self.topology, self.inertias, self.drives)
        return f"Model({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in fields(self))})"

    @classmethod
    def of(cls, topology: Topology, **numbers: Any) -> Model:
        """A model from its parameters by name: those of the arrays or of their columns."""
        return cls(topology, **stored(numbers))

    @property
    def axes(self) -> Array:
        """Axis of each row in the joint's frame, of any nonzero length, (k, 3)."""
        return self.screws[:, :3]

    @property
    def pitches(self) -> Array:
        """Pitch of each rotational row, (k,), m/rad; 0 except for screws."""
        return self.screws[:, 3]

    @property
    def armature(self) -> Array:
        """Inertia of the actuator reflected to the joint, (nv,), kg m^2 or kg."""
        return self.drives[:, 0]

    @property
    def damping(self) -> Array:
        """Viscous friction, (nv,), N m s/rad or N s/m."""
        return self.drives[:, 1]

    @property
    def friction(self) -> Array:
        """Dry friction, (nv,), N m or N: its magnitude at speeds well above ``friction_speed``."""
        return self.drives[:, 2]

    @property
    def stiffness(self) -> Array:
        """Spring of a joint with one coordinate for each degree of freedom, (nv,), N m/rad or N/m."""
        return self.drives[:, 3]

    @property
    def rest(self) -> Array:
        """Rest position of these springs, (nv,), rad or m."""
        return self.drives[:, 4]

    @property
    def lower(self) -> Array:
        """Lower limit of the coordinates, (nv,), -infinity without one; for a ball joint the third is of its twist."""
        return self.drives[:, 5]

    @property
    def upper(self) -> Array:
        """Upper limit of the coordinates, (nv,), infinite without one; for a ball joint (swing, angle, twist).

        Swing is the angle between the z axes of the joint on parent and child, angle that of the whole rotation, twist
        the rotation about the child's z axis.
        """
        return self.drives[:, 6]

    @property
    def velocity_limit(self) -> Array:
        """Limit of |v|, (nv,)."""
        return self.drives[:, 7]

    @property
    def effort_limit(self) -> Array:
        """Limit of |tau|, (nv,)."""
        return self.drives[:, 8]

    @property
    def friction_speed(self) -> Array:
        """Speed below which dry friction is viscous, (nv,), rad/s or m/s."""
        return self.drives[:, 9]

    @property
    def limit_stiffness(self) -> Array:
        """Stiffness of the stops at ``lower`` and ``upper``, (nv,), N m/rad or N/m; 0 for no stop."""
        return self.drives[:, 10]

    @property
    def limit_damping(self) -> Array:
        """Damping of the stops per rad or m of penetration, (nv,), N m s/rad^2 or N s/m^2."""
        return self.drives[:, 11]

    @property
    def stribeck(self) -> Array:
        """Breakaway friction minus dry friction, (nv,), N m or N: the additional friction at low speeds."""
        return self.drives[:, 12]

    @property
    def stribeck_speed(self) -> Array:
        """Speed at which the additional friction has decreased to 1/e, (nv,), rad/s or m/s."""
        return self.drives[:, 13]

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom: length of a velocity v and of joint forces tau."""
        return self.topology.nv

    @property
    def dtype(self) -> jnp.dtype:
        """Data type of the parameters."""
        return self.inertias.dtype

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints with a moving body, in the order of q and v."""
        return self.topology.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the moving bodies."""
        return self.topology.body_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of the frames: the bodies' own, then those fixed to bodies or to the world."""
        return self.topology.body_names + self.topology.frame_names

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts."""
        return tuple(contact.name for contact in self.topology.contacts)

    @cached_property
    def point_slices(self) -> dict[str, slice]:
        """Slice of the points of each contact, by contact name, in the point forces of ``contact_forces``."""
        return sizes.point_slices(self.topology.contacts)

    @cached_property
    def height_slices(self) -> Mapping[str, slice]:
        """Slice of ``heights`` of each height field, ``heights[i, j]`` row by row, by frame name."""
        return sizes.height_slices(self.topology.contacts)

    def contact_numbers(self, contact: str) -> dict[str, Array]:
        """Values of a contact by name: ``lgsim.contacts.LAW``, sizes of its shape, ``surface_...`` of its surface.

        Raises:
            ModelError: an unknown contact.
        """
        place = self._contact(contact)
        return dict(zip(self.topology.contacts[place].columns, self.contacts[place], strict=False))

    def replace_contact(self, contact: str | Sequence[str], **numbers: Any) -> Model:
        """A model with other values of one or several contacts, by the names in ``contact_numbers``.

        Raises:
            ModelError: an unknown contact or name, or an invalid value, if it is concrete.
        """
        array = self.contacts
        for name in (contact,) if isinstance(contact, str) else contact:
            place = self._contact(name)
            columns = self.topology.contacts[place].columns
            for key, value in numbers.items():
                if key not in columns:
                    raise ModelError(unknown_name(f"contact {name!r}: expected a number", key, columns))
                array = array.at[place, columns.index(key)].set(value)
        return self.replace(contacts=array)

    def _contact(self, name: str) -> int:
        if name not in self.contact_names:
            if not self.contact_names:
                raise ModelError(f"contact {name!r}: the model has no contacts; see Model.add_contact")
            raise ModelError(unknown_name("contact: expected the name of a contact", name, self.contact_names))
        return self.contact_names.index(name)

    @property
    def solid_names(self) -> tuple[str, ...]:
        """Names of the collision geometries."""
        return tuple(solid.name for solid in self.topology.solids)

    def solid_numbers(self, solid: str) -> dict[str, Array]:
        """Sizes of a collision geometry by name.

        Raises:
            ModelError: an unknown name.
        """
        place = solid_checks.place_of(self.topology, solid)
        return dict(zip(self.topology.solids[place].geometry.sizes, self.solids[place], strict=False))

    def solid_pairs(self, among: Sequence[str] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The collision pairs, (names, names of the others), as ``lgsim.distance`` accepts them.

        Excluded are pairs on one body, on bodies connected by a joint, pairs without relative motion, and the pairs of
        ``exclude``, for example from a file; geometry that is only drawn is in no pair.

        Args:
            among: Names of collision geometries, one of which is in each pair; by default all.

        Raises:
            ModelError: an unknown name.
        """
        return solid_checks.meeting_pairs(self.topology, among)

    def replace_solid(self, solid: str, pose: Any = None, **sizes: Any) -> Model:
        """A model with another pose (4, 4) of a collision geometry in its frame, or other sizes of it.

        Raises:
            ModelError: an unknown name or size, or an invalid value, if it is concrete.
        """
        return self.replace(**solid_edits.replaced(*self._parts, solid, pose, sizes))

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Names of the loops, which close kinematic loops or couple joints."""
        return tuple(loop.name for loop in self.topology.loops)

    @cached_property
    def loop_slices(self) -> Mapping[str, slice]:
        """Slice of the parameters of each loop in ``loops``, by name."""
        starts = self.topology.loop_number_starts
        return {name: slice(*ends) for name, ends in zip(self.loop_names, pairwise(starts), strict=True)}

    @cached_property
    def q_slices(self) -> Mapping[str, slice]:
        """Slice of q of each joint, by name, or of a part of a compound joint, see ``JointSlices``."""
        own = {name: self.topology.q_slice(i) for i, name in enumerate(self.joint_names)}
        return JointSlices(own, self.topology)

    @cached_property
    def v_slices(self) -> Mapping[str, slice]:
        """Slice of v of each joint, by name, or of a part of a compound joint, see ``JointSlices``."""
        own = {name: self.topology.v_slice(i) for i, name in enumerate(self.joint_names)}
        return JointSlices(own, self.topology)

    def placement_of(self, joint: str) -> int:
        """Index in ``placements`` of a joint's frame, by the joint's name.

        ``model.placements[model.placement_of("elbow")]`` is the pose of that frame in the parent's, (4, 4), m. To move
        it: ``model.replace(placements=model.placements.at[model.placement_of("elbow"), :3, 3].add(dx))``.

        Raises:
            ModelError: an unknown joint.
        """
        if joint not in self.joint_names:
            raise ModelError(unknown_name("joint: expected the name of a joint", joint, self.joint_names))
        return self.joint_names.index(joint)

    def replace(self, **numbers: Any) -> Model:
        """A model with other parameters, by any of their names: ``model.replace(gravity=..., damping=0.1)``.

        A single number applies to all degrees of freedom. With another ``topology`` nothing is checked. Programs are
        compiled again if the first actuator gets a lag or the last one loses it, which changes the states, and if
        ``stribeck`` becomes nonzero; traced values count as nonzero.

        Raises:
            ModelError: an unknown name, a wrong shape, or, if the value is concrete, an invalid one: negative damping
                or mass, a placement that is not a pose, a zero axis.
        """
        if "topology" in numbers:
            return replace(self, **stored(numbers))
        parts = [name for part in _PARTS for name in part]
        for name in numbers:
            if name not in (*_NUMBERS, *parts):
                raise ModelError(f"replace: there is no {name}; a model has {', '.join((*_NUMBERS, *parts))}")
        given = dict(numbers)
        if hasattr(self.inertias, "dtype"):  # else the leaves are the axes of jax.vmap
            given = {name: self._fitting(name, value) for name, value in numbers.items()}
            ends = {name: getattr(self, name) for name in ("lower", "upper") if {"lower", "upper"} & set(given)}
            if not all(is_traced(x) for x in given.values()):
                check_numbers(self.topology, ends | given, DRIVES)
                if given.get("contacts") is not None and not is_traced(given["contacts"]):
                    check_rows(self.topology.contacts, given["contacts"])
                solid_checks.check_solid_numbers(self.topology, given)
        tree = self.topology
        if "stribeck" in given:
            tree = tree.sticking(given["stribeck"])
        if "drives" in given and not is_traced(given["drives"]) and hasattr(given["drives"], "dtype"):
            tree = tree.sticking(given["drives"][..., DRIVES.index("stribeck")])
        for names in _PARTS:
            if set(names) & set(given):
                given = {name: getattr(self, name) for name in names} | given
        return replace(self, topology=tree, **stored(given))

    def _fitting(self, name: str, value: Any) -> Array:
        """A value in the model's dtype and in the shape of the replaced one, or with axes for ``jax.vmap``."""
        if name == "loops" and self.loops is None:
            raise ModelError("loops: expected None, the model has no rods and no couplings")
        if name == "contacts" and self.contacts is None:
            raise ModelError("contacts: expected None, the model has no contacts; see ModelBuilder.add_contact")
        if name == "heights" and self.heights is None:
            raise ModelError("heights: expected None, no contact has a height field; see lgsim.contacts.height_field")
        if name in solid_checks.LEAVES and getattr(self, name) is None:
            raise ModelError(f"{name}: expected None, the model has no such solids; see Model.add_solid")
        array, own = check.cast(name, value, self.dtype), getattr(self, name).shape
        single, whole = name in (*DRIVES, "pitches"), name in _NUMBERS
        if array.ndim == 0 and single:
            return jnp.broadcast_to(array, own)
        if array.shape != own and not (whole and array.shape[max(array.ndim - len(own), 0) :] == own):
            raise ModelError(f"{name}: expected {'a number or ' if single else ''}shape {own}, got {array.shape}")
        return array

    def neutral(self) -> Array:
        """The configuration (nq,) with all joints at zero."""
        return configuration.neutral(self.topology, self.dtype)

    def random(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Random configurations (*shape, nq): within finite limits, otherwise as the joint's ``random`` defines."""
        return configuration.random(self.topology, self.lower, self.upper, key, shape)

    def retract(self, q: Array, dv: Array) -> Array:
        """The configuration that the constant velocity ``dv`` (..., nv) reaches from ``q`` (..., nq) in unit time."""
        return configuration.retract(self.topology, q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The smallest ``dv`` (..., nv) with ``retract(q0, dv) = q1``."""
        return configuration.difference(self.topology, q0, q1)

    def interpolate(self, q0: Array, q1: Array, s: Array | float) -> Array:
        """The configuration at s in [0, 1] on the geodesic: ``retract(q0, s difference(q0, q1))``."""
        return configuration.interpolate(self.topology, q0, q1, s)

    def rate(self, q: Array, v: Array) -> Array:
        """``dq/dt`` (..., nq) at velocity v (..., nv)."""
        return configuration.rate(self.topology, q, v)

    def velocity(self, q: Array, dq: Array) -> Array:
        """The velocity (..., nv) of a configuration with the time derivative ``dq`` (..., nq)."""
        return configuration.velocity(self.topology, q, dq)

    @property
    def _parts(self) -> edit.Parts:
        return edit.Parts(self.topology, {name: getattr(self, name) for name in _NUMBERS})

    def lock(self, joints: Sequence[str], q: Any = None) -> Model:
        """Lock joints in the configuration q (nq,), by default the neutral one; differentiable in all parameters.

        Their bodies are merged into the parents and become frames; joints that mimic a locked one are locked with it.
        The other coordinates keep their order; ``q[model.q_slices[name]]`` of the remaining joints form the new q.

        Raises:
            ModelError: an unknown joint, a mimic joint or a coupled joint, all joints, or both ends of a loop on one
                body; q has a wrong shape or entries that are not finite.
        """
        return _model(edit.lock(self._parts, joints, self.neutral() if q is None else q))

    def add_frame(self, name: str, frame: str, placement: Any = None) -> Model:
        """Add a frame at the pose ``placement`` (4, 4) in another frame, of a body or "world".

        Raises:
            ModelError: the name is taken, an unknown frame, or a pose of a wrong shape or not finite.
        """
        return _model(edit.add_frame(self._parts, name, frame, placement))

    def attach(self, other: Model, frame: str, prefix: str = "") -> Model:
        """Attach another model, e.g. a tool, whose world is fixed to a frame of this one.

        Its bodies come after all descendants of the frame's body, so that the order stays depth first; its gravity is
        ignored. Masses fixed to its world are not part of a model: give a tool with a heavy base a floating base,
        attach it, and lock its ``root_joint``. Its loops are attached too; their ends on its world are then on the
        frame.

        Args:
            other: Another model of the same dtype.
            frame: Name of a frame, of a body or "world".
            prefix: Prepended to all names of the other model, so that the same tool can be attached twice.

        Raises:
            ModelError: an unknown frame, a name is taken, or dtypes differ.
        """
        if not isinstance(other, Model):
            raise ModelError(f"attach: expected an lgsim.Model, got {type(other).__name__}")
        return _model(edit.attach(self._parts, other._parts, frame, prefix))

    def add_loop(self, name: str, frame_a: str, frame_b: str, joint: Any) -> Model:
        """Close a kinematic loop by a joint between two frames; see ``ModelBuilder.add_loop``.

        Raises:
            ModelError: the joint cannot close a loop, an unknown frame, both frames on one body, or the name is taken.
        """
        loop = Loop(name, frame_a, frame_b, loop_checks.closing_joint(name, joint))
        return _model(edit.add_loop(self._parts, loop, []))

    def add_rod(self, name: str, frame_a: str, frame_b: str, length: Any) -> Model:
        """Close a kinematic loop by a rod of that length, m, between two frames; see ``ModelBuilder.add_rod``.

        Raises:
            ModelError: the length is not positive; see ``add_loop``.
        """
        return _model(edit.add_loop(self._parts, Loop(name, frame_a, frame_b, Rod()), [length]))

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
    ) -> Model:
        """Add a contact; see ``ModelBuilder.add_contact``.

        Raises:
            ModelError: see ``ModelBuilder.add_contact`` and ``build``.
        """
        found = described(name, frame, shape, plane() if surface is None else surface, against, law, smooth)
        return _model(edit.add_contact(self._parts, *found))

    def add_solid(self, name: str, frame: str, geometry: Any, pose: Any = None) -> Model:
        """Add collision geometry for ``lgsim.distance``; it exerts no forces.

        Args:
            name: Name of the collision geometry.
            frame: Name of its frame, of a body or "world".
            geometry: A geometry of ``lgsim.geometry``, such as ``Capsule(0.05, 0.3)``.
            pose: Pose in that frame, (4, 4), m; the identity by default.

        Raises:
            ModelError: the name is taken, an unknown frame, an invalid geometry or pose, or a negative size.
        """
        return self.add_solids([(name, frame, geometry, pose)])

    def add_solids(self, solids: Sequence[tuple[str, str, Any, Any]]) -> Model:
        """Add collision geometries, each as (name, frame, geometry, pose); see ``add_solid``."""
        given = [solid_checks.described(*each) for each in solids]
        topology, numbers = solid_edits.add_solids(self.topology, self._parts.numbers, given)
        return replace(self, topology=topology, **numbers)

    def exclude(self, pairs: Sequence[tuple[str, str]]) -> Model:
        """Exclude pairs of collision geometries from ``solid_pairs``.

        Raises:
            ModelError: an unknown name, or a pair of a geometry with itself.
        """
        return replace(self, topology=solid_edits.exclude(self.topology, pairs))

    def add_coupling(self, name: str, joint_a: str, joint_b: str, coefficients: Sequence[Any]) -> Model:
        """Couple two joints by ``q_b = c_0 + c_1 q_a + ...``; see ``ModelBuilder.add_coupling``.

        Raises:
            ModelError: a joint does not have exactly one independent coordinate, or a coefficient is not finite.
        """
        given = loop_checks.coefficients(name, coefficients)
        return _model(edit.add_loop(self._parts, Loop(name, joint_a, joint_b, Coupling(len(given) - 1)), given))

    def cut(self, joint: str, loop: str | None = None) -> Model:
        """Cut a closed kinematic loop at another joint: an equivalent model with another spanning tree.

        The joint becomes a loop with its name between the new frames ``"<joint>.a"`` and ``"<joint>.b"``, and the joint
        that closed the loop becomes a joint of the tree with the loop's name. Bodies between are re-rooted at the other
        side: their joints are reversed, parent for child, and their own frames are now at these joints;
        ``"<body>.uncut"`` is the original frame of a body. Other frames do not change. ``cut_state`` converts states.
        A loop has no joint forces: limits of the joint are lost, and no torque acts on it.

        Args:
            joint: Name of a joint in the loop, of a type that can close loops, see ``ModelBuilder.add_loop``.
            loop: Name of the loop, if the joint is in several loops.

        Raises:
            ModelError: the joint is in no loop that a joint closes, or in several; it cannot close a loop; it has
                damping, armature or another active parameter, is a mimic joint or coupled; a ball joint between has
                such a parameter; a name is taken.
        """
        return _model(ring_cut.cut(self._parts, joint, loop))

    def cut_state(self, joint: str, q: Any, v: Any = None, loop: str | None = None) -> tuple[Array, Array]:
        """The state of ``cut(joint, loop)`` with the same poses and velocities as this model at (q, v).

        Screw joints between keep their coordinates; the new joint has those of the loop's frames, with angles within
        [-pi, pi].

        Args:
            joint: See ``cut``.
            q: Configuration (nq,) with a closed loop.
            v: Velocity (nv,), by default zero.
            loop: See ``cut``.

        Returns:
            Configuration and velocity of the other model.

        Raises:
            ModelError: see ``cut``; q or v has a wrong shape or entries that are not finite.
        """
        return ring_cut.cut_state(self._parts, joint, q, v, loop)

    def add_payload(self, frame: str, parameters: Any) -> Model:
        """Add a payload to a frame, with ten inertial parameters (10,) in the frame's axes about its origin.

        ``lgsim.multibody.inertia.parameters`` computes them from mass, center of mass and inertia.

        Raises:
            ModelError: an unknown frame, a frame fixed to the world, or non-physical parameters.
        """
        return _model(edit.add_payload(self._parts, frame, parameters))


_PARTS = (("axes", "pitches"), DRIVES)
_NUMBERS = [name for name in Model.__dataclass_fields__ if name != "topology"]
jax.tree_util.register_dataclass(Model, data_fields=_NUMBERS, meta_fields=["topology"])


def _model(parts: edit.Parts) -> Model:
    return Model(parts.topology, **parts.numbers)


def check_model(model: object) -> None:
    """Check that an argument is a model with parameters of one dtype; for traced models too, at low cost.

    Raises:
        TypeError: not a ``Model``, or several floating-point types.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf returns one")
    dtype = getattr(model.inertias, "dtype", None)
    # identity checks suffice mostly: float32 and float64 are one object each; NumPy takes None for float64
    known = dtype is not None and dtype in check.FLOATS
    if not known or any(getattr(getattr(model, name), "dtype", dtype) is not dtype for name in _NUMBERS):
        check_types({name: getattr(model, name) for name in _NUMBERS})
