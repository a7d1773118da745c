"""The model of a machine: a static topology and all physical numbers as array leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from lgsim.multibody.number_checks import check_numbers, check_types
from lgsim.multibody.topology import ROOT, ModelError, Topology
from lgsim.support import check
from lgsim.support.check import is_traced
from lgsim.support.messages import unknown_name
from lgsim.support.value_equality import ValueEquality


@dataclass(frozen=True, eq=False)
class Model(ValueEquality):
    """A tree of rigid bodies. ``jax.grad``, ``jax.vmap`` and ``jax.jit`` work over it as over any array.

    The numbers are stored by kind, stacked over bodies, degrees of freedom or frames; n bodies, k rows (degrees of
    freedom, those of joints that mimic included), nv degrees of freedom, f frames. SI units.

    Few arrays make a call cheap: each costs a fraction of a microsecond. What they hold has names of its own.

    Attributes:
        topology: How the bodies hang together; static.
        placements: Pose of the joint's frame in the parent's, (n, 4, 4).
        screws: ``axes`` and ``pitches`` of the rows, (k, 4).
        inertias: Ten parameters of each body in its own frame, (n, 10); ``lgsim.multibody.inertia`` has their order.
        drives: The numbers of each degree of freedom, (nv, 15), in the order of ``DRIVES``. Limits that are not given
            are infinite, and zero times infinity is not a number: arithmetic on the whole array, such as
            ``drives.at[:, 1].mul(d)``, has derivatives that are NaN. Change columns by their names,
            ``model.replace(damping=d * model.damping)``.
        mimic: (k, b) of each joint that mimics, ``q_i = k q_j + b``, (n, 2); (1, 0) for the others.
        frames: Pose of each frame in its body's, (f, 4, 4).
        gravity: Acceleration of free fall in world axes, (3,), m/s^2.
        loops: The numbers of all loops, one after another, see ``loop_slices``: lengths of rods, m, and coefficients of
            couplings; None where no loop has any.
        contacts: Numbers of each contact, (c, k), see ``contact_numbers``; None without contacts.
        heights: The heights of all height fields, one after another, m, see ``height_slices``; None without any.
        solids: Sizes of each solid, (s, k), see ``solid_numbers``; None without solids.
        solid_poses: Pose of each solid in its frame, (s, 4, 4), m.
        grids: The coefficients of all solids that are sampled, one after another; None where there are none.
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

    @classmethod
    def of(cls, topology: Topology, **numbers: Any) -> Model:
        """A model of all its numbers by name: those of the arrays or of what they hold."""
        return cls(topology, **stored(numbers))

    @property
    def axes(self) -> Array:
        """Axis of each row in the joint's frame, of any length but zero, (k, 3)."""
        return self.screws[:, :3]

    @property
    def pitches(self) -> Array:
        """Advance of each turning row, (k,), m/rad; 0 but for screws."""
        return self.screws[:, 3]

    @property
    def armature(self) -> Array:
        """Inertia of the drive seen at the joint, (nv,), kg m^2 or kg."""
        return self.drives[:, 0]

    @property
    def damping(self) -> Array:
        """Viscous friction, (nv,), N m s/rad or N s/m."""
        return self.drives[:, 1]

    @property
    def friction(self) -> Array:
        """Dry friction, (nv,), N m or N: its size at speeds well above ``friction_speed``."""
        return self.drives[:, 2]

    @property
    def stiffness(self) -> Array:
        """Spring of a joint that has one number for each degree of freedom, (nv,), N m/rad or N/m."""
        return self.drives[:, 3]

    @property
    def rest(self) -> Array:
        """Where those springs are slack, (nv,), rad or m."""
        return self.drives[:, 4]

    @property
    def lower(self) -> Array:
        """Lower limit of the coordinates, (nv,), -infinity where there is none; of a ball the third is of its twist."""
        return self.drives[:, 5]

    @property
    def upper(self) -> Array:
        """Upper limit of the coordinates, (nv,), infinite where there is none; of a ball (swing, angle, twist).

        Swing is the angle between the z axes of the joint on parent and child, angle that of the whole rotation, twist
        the turn about the child's z axis.
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
        """The speed below which dry friction is like a damper, (nv,), rad/s or m/s."""
        return self.drives[:, 9]

    @property
    def limit_stiffness(self) -> Array:
        """Spring that acts beyond ``lower`` and ``upper``, (nv,), N m/rad or N/m; 0 for no stop."""
        return self.drives[:, 10]

    @property
    def limit_damping(self) -> Array:
        """Damper beyond the limits, for each rad or m beyond, (nv,), N m s/rad^2 or N s/m^2."""
        return self.drives[:, 11]

    @property
    def stribeck(self) -> Array:
        """Breakaway friction less dry friction, (nv,), N m or N: what dry friction has more at small speeds."""
        return self.drives[:, 12]

    @property
    def stribeck_speed(self) -> Array:
        """The speed at which that part has fallen to 1/e, (nv,), rad/s or m/s."""
        return self.drives[:, 13]

    @property
    def nq(self) -> int:
        """Length of a configuration q."""
        return self.topology.nq

    @property
    def nv(self) -> int:
        """Degrees of freedom: length of a velocity v and of joint forces tau."""
        return self.topology.nv

    @property
    def dtype(self) -> jnp.dtype:
        """The type of the numbers."""
        return self.inertias.dtype

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that move a body, in the order of q and v."""
        return self.topology.joint_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of the bodies that move."""
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
        """The points of each contact, by its name, in what ``contact_forces`` gives of points."""
        return sizes.point_slices(self.topology.contacts)

    @cached_property
    def height_slices(self) -> Mapping[str, slice]:
        """The part of ``heights`` that is the height field of a frame, ``heights[i, j]`` row by row, by its name."""
        return sizes.height_slices(self.topology.contacts)

    def contact_numbers(self, contact: str) -> dict[str, Array]:
        """The numbers of a contact by name: ``lgsim.contacts.LAW``, sizes of its shape, ``surface_...`` of its surface.

        Raises:
            ModelError: there is no such contact.
        """
        place = self._contact(contact)
        return dict(zip(self.topology.contacts[place].columns, self.contacts[place], strict=False))

    def replace_contact(self, contact: str | Sequence[str], **numbers: Any) -> Model:
        """The same machine with other numbers of a contact or of several, by the names in ``contact_numbers``.

        Raises:
            ModelError: there is no such contact or number, or no contact has such a value where it is known.
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
        """Names of the solids."""
        return tuple(solid.name for solid in self.topology.solids)

    def solid_numbers(self, solid: str) -> dict[str, Array]:
        """The sizes of a solid by name.

        Raises:
            ModelError: there is no such solid.
        """
        place = solid_checks.place_of(self.topology, solid)
        return dict(zip(self.topology.solids[place].geometry.sizes, self.solids[place], strict=False))

    def solid_pairs(self, among: Sequence[str] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The pairs of solids that can meet, (names, names of the others), as ``lgsim.distance`` takes them.

        Left out are those on one body, on bodies that a joint joins, those that never move against each other, and the
        pairs of ``exclude``, such as files name; what is drawn alone is in none.

        Args:
            among: Names of the solids of which one is in each pair; by default all.

        Raises:
            ModelError: there is no such solid.
        """
        return solid_checks.meeting_pairs(self.topology, among)

    def replace_solid(self, solid: str, pose: Any = None, **sizes: Any) -> Model:
        """The same machine with another pose (4, 4) of a solid in its frame, or other sizes of it.

        Raises:
            ModelError: there is no such solid or size, or no solid has such a number where it is known.
        """
        return self.replace(**solid_edits.replaced(*self._parts, solid, pose, sizes))

    @property
    def loop_names(self) -> tuple[str, ...]:
        """Names of the loops that close rings of bodies or couple joints."""
        return tuple(loop.name for loop in self.topology.loops)

    @cached_property
    def loop_slices(self) -> Mapping[str, slice]:
        """The part of ``loops`` that has the numbers of a loop, by its name."""
        starts = self.topology.loop_number_starts
        return {name: slice(*ends) for name, ends in zip(self.loop_names, pairwise(starts), strict=True)}

    @cached_property
    def q_slices(self) -> Mapping[str, slice]:
        """The part of q that belongs to a joint, by its name, or to a part of a compound joint, see ``JointSlices``."""
        own = {name: self.topology.q_slice(i) for i, name in enumerate(self.joint_names)}
        return JointSlices(own, self.topology)

    @cached_property
    def v_slices(self) -> Mapping[str, slice]:
        """The part of v that belongs to a joint, by its name, or to a part of a compound joint, see ``JointSlices``."""
        own = {name: self.topology.v_slice(i) for i, name in enumerate(self.joint_names)}
        return JointSlices(own, self.topology)

    def placement_of(self, joint: str) -> int:
        """The place in ``placements`` of a joint's frame, by the joint's name.

        ``model.placements[model.placement_of("elbow")]`` is the pose of that frame in the parent's, (4, 4), m; a design
        that moves it is ``model.replace(placements=model.placements.at[model.placement_of("elbow"), :3, 3].add(dx))``.

        Raises:
            ModelError: there is no such joint.
        """
        if joint not in self.joint_names:
            raise ModelError(unknown_name("joint: expected the name of a joint", joint, self.joint_names))
        return self.joint_names.index(joint)

    def replace(self, **numbers: Any) -> Model:
        """The same machine with other numbers, by any of their names: ``model.replace(gravity=..., damping=0.1)``.

        A single number is that of all degrees of freedom. With another ``topology`` nothing is checked. Where drives
        begin to lag or none does any more, the motion gets or loses states and is compiled again, and so it is where
        ``stribeck`` is the first that is not zero; numbers that JAX traces count as such.

        Raises:
            ModelError: there is no such number, a shape is wrong, or where the value is known, no machine has it: a
                negative damper or mass, a placement that is no pose, an axis of zero.
        """
        if "topology" in numbers:
            return replace(self, **stored(numbers))
        parts = [name for part in _PARTS for name in part]
        for name in numbers:
            if name not in (*_NUMBERS, *parts):
                raise ModelError(f"replace: there is no {name}; a model has {', '.join((*_NUMBERS, *parts))}")
        given = dict(numbers)
        if hasattr(self.inertias, "dtype"):  # else it holds the axes of jax.vmap in place of numbers
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
        """A number of the model's dtype in the shape of the one that it replaces, or with axes for ``jax.vmap``."""
        if name == "loops" and self.loops is None:
            raise ModelError("loops: this machine has no rods and no couplings, whose numbers they are")
        if name == "contacts" and self.contacts is None:
            raise ModelError(
                "contacts: the model has no contacts, whose numbers they are; see ModelBuilder.add_contact"
            )
        if name == "heights" and self.heights is None:
            raise ModelError("heights: no contact of the model is with a height field; see lgsim.contacts.height_field")
        if name in solid_checks.LEAVES and getattr(self, name) is None:
            raise ModelError(f"{name}: the model has no such solids, whose numbers they are; see Model.add_solid")
        array, own = check.cast(name, value, self.dtype), getattr(self, name).shape
        single, whole = name in (*DRIVES, "pitches"), name in _NUMBERS
        if array.ndim == 0 and single:
            return jnp.broadcast_to(array, own)
        if array.shape != own and not (whole and array.shape[max(array.ndim - len(own), 0) :] == own):
            raise ModelError(f"{name}: expected {'a number or ' if single else ''}shape {own}, got {array.shape}")
        return array

    def neutral(self) -> Array:
        """The configuration (nq,) in which every joint is at rest."""
        return configuration.neutral(self.topology, self.dtype)

    def random(self, key: Array, shape: tuple[int, ...] = ()) -> Array:
        """Configurations (*shape, nq): within the limits where both are finite, else as the joint's ``random`` says."""
        return configuration.random(self.topology, self.lower, self.upper, key, shape)

    def retract(self, q: Array, dv: Array) -> Array:
        """The configuration that the constant velocity ``dv`` (..., nv) reaches from ``q`` (..., nq) in unit time."""
        return configuration.retract(self.topology, q, dv)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The smallest ``dv`` (..., nv) with ``retract(q0, dv) = q1``."""
        return configuration.difference(self.topology, q0, q1)

    def interpolate(self, q0: Array, q1: Array, s: Array | float) -> Array:
        """The configuration at s in [0, 1] on the shortest way: ``retract(q0, s difference(q0, q1))``."""
        return configuration.interpolate(self.topology, q0, q1, s)

    def rate(self, q: Array, v: Array) -> Array:
        """``dq/dt`` (..., nq) at velocity v (..., nv)."""
        return configuration.rate(self.topology, q, v)

    def velocity(self, q: Array, dq: Array) -> Array:
        """The velocity (..., nv) of a configuration that moves with ``dq`` (..., nq)."""
        return configuration.velocity(self.topology, q, dq)

    @property
    def _parts(self) -> edit.Parts:
        return edit.Parts(self.topology, {name: getattr(self, name) for name in _NUMBERS})

    def lock(self, joints: Sequence[str], q: Any) -> Model:
        """The machine with some joints frozen where the configuration q (nq,) has them; differentiable like any number.

        Their bodies join the bodies that carry them and become frames, joints that mimic a frozen one freeze with it.
        The others' coordinates keep their order; ``q[model.q_slices[name]]`` of the joints that stay make the new q.

        Raises:
            ModelError: there is no such joint, it mimics one that stays free, a coupling holds it, all joints are
                locked, or both ends of a loop would be on one body; q has a wrong shape or entries that are not finite.
        """
        return _model(edit.lock(self._parts, joints, q))

    def add_frame(self, name: str, frame: str, placement: Any = None) -> Model:
        """The machine with one more frame, at the pose ``placement`` (4, 4) in another frame, a body's or "world".

        Raises:
            ModelError: the name is taken, there is no such frame, the pose has a wrong shape or is not finite.
        """
        return _model(edit.add_frame(self._parts, name, frame, placement))

    def attach(self, other: Model, frame: str, prefix: str = "") -> Model:
        """The machine with another one, e.g. a tool, whose world is fixed to a frame.

        The other's bodies come after all that the frame's body carries, so that the order stays depth first; its
        gravity counts for nothing. What has mass and is fixed to its world is not in a model: of a tool with a heavy
        base make a floating one, attach it, and lock its ``root_joint``. The other's loops come too; ends on its world
        are then on the frame.

        Args:
            other: Another model of the same dtype.
            frame: Name of a frame, of a body or "world".
            prefix: Put before all names of the other, so that the same tool fits twice.

        Raises:
            ModelError: there is no such frame, a name is taken, or dtypes differ.
        """
        if not isinstance(other, Model):
            raise ModelError(f"attach: expected an lgsim.Model, got {type(other).__name__}")
        return _model(edit.attach(self._parts, other._parts, frame, prefix))

    def add_loop(self, name: str, frame_a: str, frame_b: str, joint: Any) -> Model:
        """The machine with a loop closed by a joint between two frames; see ``ModelBuilder.add_loop``.

        Raises:
            ModelError: the joint closes no loop, there is no such frame, both are on one body, or the name is taken.
        """
        loop = Loop(name, frame_a, frame_b, loop_checks.closing_joint(name, joint))
        return _model(edit.add_loop(self._parts, loop, []))

    def add_rod(self, name: str, frame_a: str, frame_b: str, length: Any) -> Model:
        """The machine with a rod of that length, m, between two frames; see ``ModelBuilder.add_rod``.

        Raises:
            ModelError: the length is not positive; as ``add_loop``.
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
        """The machine with one more contact; see ``ModelBuilder.add_contact``.

        Raises:
            ModelError: as ``ModelBuilder.add_contact`` and ``build``.
        """
        found = described(name, frame, shape, plane() if surface is None else surface, against, law, smooth)
        return _model(edit.add_contact(self._parts, *found))

    def add_solid(self, name: str, frame: str, geometry: Any, pose: Any = None) -> Model:
        """The machine with one more solid, which ``lgsim.distance`` knows; it exerts no force.

        Args:
            name: Name of the solid.
            frame: Name of the frame that carries it, of a body or "world".
            geometry: A solid of ``lgsim.geometry``, such as ``Capsule(0.05, 0.3)``.
            pose: Of its own frame in that one, (4, 4), m; by default the same.

        Raises:
            ModelError: the name is taken, there is no such frame, the geometry is none, a size is negative, or the pose
                is none.
        """
        return self.add_solids([(name, frame, geometry, pose)])

    def add_solids(self, solids: Sequence[tuple[str, str, Any, Any]]) -> Model:
        """The machine with more solids, each as (name, frame, geometry, pose); see ``add_solid``."""
        given = [solid_checks.described(*each) for each in solids]
        topology, numbers = solid_edits.add_solids(self.topology, self._parts.numbers, given)
        return replace(self, topology=topology, **numbers)

    def exclude(self, pairs: Sequence[tuple[str, str]]) -> Model:
        """The machine without some pairs of solids among its ``solid_pairs``.

        Raises:
            ModelError: there is no such solid, or a pair is of one solid alone.
        """
        return replace(self, topology=solid_edits.exclude(self.topology, pairs))

    def add_coupling(self, name: str, joint_a: str, joint_b: str, coefficients: Sequence[Any]) -> Model:
        """The machine with ``q_b = c_0 + c_1 q_a + ...`` between two joints; see ``ModelBuilder.add_coupling``.

        Raises:
            ModelError: the joints have not one coordinate of their own, or a coefficient is no finite number.
        """
        given = loop_checks.coefficients(name, coefficients)
        return _model(edit.add_loop(self._parts, Loop(name, joint_a, joint_b, Coupling(len(given) - 1)), given))

    def cut(self, joint: str, loop: str | None = None) -> Model:
        """The same machine with a ring of its bodies cut elsewhere: it moves as before.

        The joint becomes a loop of its name between the new frames ``"<joint>.a"`` and ``"<joint>.b"``, and the joint
        that closed the ring a joint of the loop's name in the tree. Bodies between are hung from the other side: their
        joints are turned round, parent for child, and their own frames are at these joints now; ``"<body>.uncut"`` is
        the frame that a body had. Other frames stay where they are. ``cut_state`` has the coordinates.

        A loop has no forces of its own: limits of the joint are lost, and no torque acts on it.

        Args:
            joint: Name of a joint in the ring, of a type that can close loops, see ``ModelBuilder.add_loop``.
            loop: Name of the loop, if the joint is in several rings.

        Raises:
            ModelError: the joint is in no ring that a joint closes, or in several; it cannot close a loop; it has
                damping, armature or another number that acts, mimics or is coupled; a ball between has such a number;
                a name is taken.
        """
        return _model(ring_cut.cut(self._parts, joint, loop))

    def cut_state(self, joint: str, q: Any, v: Any = None, loop: str | None = None) -> tuple[Array, Array]:
        """The state of ``cut(joint, loop)`` in which it lies and moves as this machine does at (q, v).

        Joints of screws between have the numbers that they had, the new joint those of the loop's frames: angles within
        [-pi, pi].

        Args:
            joint: As in ``cut``.
            q: Configuration (nq,) in which the ring is closed.
            v: Velocity (nv,), by default zero.
            loop: As in ``cut``.

        Returns:
            Configuration and velocity of the other machine.

        Raises:
            ModelError: as ``cut``; q or v has a wrong shape or entries that are not finite.
        """
        return ring_cut.cut_state(self._parts, joint, q, v, loop)

    def add_payload(self, frame: str, parameters: Any) -> Model:
        """The machine with a load fixed to a frame, of ten parameters (10,) in the frame's axes about its origin.

        ``lgsim.multibody.inertia.parameters`` makes them of mass, center and inertia.

        Raises:
            ModelError: there is no such frame, the world carries it, no body has such parameters.
        """
        return _model(edit.add_payload(self._parts, frame, parameters))


_PARTS = (("axes", "pitches"), DRIVES)
_NUMBERS = [name for name in Model.__dataclass_fields__ if name != "topology"]
jax.tree_util.register_dataclass(Model, data_fields=_NUMBERS, meta_fields=["topology"])


def _model(parts: edit.Parts) -> Model:
    return Model(parts.topology, **parts.numbers)


def check_model(model: object) -> None:
    """Check that an argument is a model whose numbers are of one type; of what JAX traces too, and at little cost.

    Raises:
        TypeError: it is no ``Model``, or its floats are of several types.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf makes one")
    dtype = getattr(model.inertias, "dtype", None)
    # float32 and float64 are one object each, so that mostly no types are compared; numpy takes None for float64
    known = dtype is not None and dtype in check.FLOATS
    if not known or any(getattr(getattr(model, name), "dtype", dtype) is not dtype for name in _NUMBERS):
        check_types({name: getattr(model, name) for name in _NUMBERS})
