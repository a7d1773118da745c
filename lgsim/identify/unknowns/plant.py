"""The plant to be identified: a model, and signal parameters of its joints."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.actuators.actuators import Actuators, ActuatorSum, check
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.passive_forces import FRICTION, passive_forces
from lgsim.identify.recording.coordinates import dof_names
from lgsim.multibody import inertia
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import DRIVES, Model, check_model
from lgsim.multibody.topology import ModelError

NumbersLike = ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]]
"""Input that ``jax.numpy.asarray`` accepts: a number, an array, or lists of numbers."""

_AFFINE_DRIVES = ("armature", "damping", "friction", "stiffness", "stribeck")
"""The parameters of ``lgsim.multibody.model.DRIVES`` in which joint torques are affine."""

AFFINE_JOINTS = (*_AFFINE_DRIVES, "offset")
"""All parameters of degrees of freedom in which signals are affine, in the order of ``Plant.dynamic_parameters``."""


FRICTION_PARTS = ("friction_asymmetry", "damping_asymmetry", "load_friction")
"""The fields of ``Plant`` for friction that a model does not have."""


class Plant(eqx.Module):
    """A model whose joint torques are recorded as signals: ``scale signal = tau + offset``.

    ``tau`` is the joint torque of the drive: inverse dynamics minus passive forces, including dry friction with its
    Stribeck part. Friction may differ by direction and grow with the load: with ``s = tanh(v / friction_speed)`` and
    the torque ``load`` on the bodies, tau contains ``friction_asymmetry |s| + damping_asymmetry |v| + load_friction
    |load| s``. If the plant has actuators, the records contain their commands.

    Attributes:
        scale: Joint torque per unit of the signal (nv,), N m or N: gear ratio times torque constant; 1 for torques.
        offset: Offset of the scaled signal from the joint torque (nv,), N m or N.
        friction_asymmetry: Half the difference of dry friction for positive and negative v (nv,), N m or N; None for
            zero.
        damping_asymmetry: The same of the damping (nv,), N m s/rad or N s/m; None for zero.
        load_friction: Dry friction of a gear relative to the torque that it transmits to the bodies (nv,); None for
            zero.
        actuators: Actuators from ``lgsim.actuators`` that convert recorded commands to joint torques; None: signals are
            recorded.

    Raises:
        TypeError: the model or the actuators have the wrong type, or dtypes differ.
        ValueError: a parameter is neither a scalar nor of shape (nv,), or the actuators do not fit the model.
    """

    model: Model
    scale: Float[Array, " nv"]
    offset: Float[Array, " nv"]
    actuators: Actuators | ActuatorSum | None
    friction_asymmetry: Float[Array, " nv"] | None
    damping_asymmetry: Float[Array, " nv"] | None
    load_friction: Float[Array, " nv"] | None

    def __init__(
        self,
        model: Model,
        scale: NumbersLike = 1.0,
        offset: NumbersLike = 0.0,
        stribeck: NumbersLike | None = None,
        stribeck_speed: NumbersLike | None = None,
        actuators: Actuators | ActuatorSum | None = None,
        friction_asymmetry: NumbersLike | None = None,
        damping_asymmetry: NumbersLike | None = None,
        load_friction: NumbersLike | None = None,
    ) -> None:
        """Parameters may be scalars or (nv,); those of Stribeck friction are stored in the model."""
        check_model(model)
        friction = {"stribeck": stribeck, "stribeck_speed": stribeck_speed}
        given = {name: _for_each_dof(name, x, model) for name, x in friction.items() if x is not None}
        self.model = model.replace(**given) if given else model
        self.scale, self.offset = _for_each_dof("scale", scale, model), _for_each_dof("offset", offset, model)
        parts = friction_asymmetry, damping_asymmetry, load_friction
        self.friction_asymmetry, self.damping_asymmetry, self.load_friction = (
            None if x is None else _for_each_dof(name, x, model) for name, x in zip(FRICTION_PARTS, parts, strict=True)
        )
        self.actuators = actuators
        if actuators is not None:
            check(actuators, model)

    @property
    def stribeck(self) -> Float[Array, " nv"]:
        """The model's breakaway friction minus dry friction (nv,), N m or N."""
        return self.model.stribeck

    @property
    def stribeck_speed(self) -> Float[Array, " nv"]:
        """The model's speed at which the Stribeck part has decayed to 1/e (nv,), rad/s or m/s."""
        return self.model.stribeck_speed

    def joint_forces(
        self,
        q: Float[Array, "*batch nq"],
        v: Float[Array, "*batch nv"],
        a: Float[Array, "*batch nv"],
        wrenches: Float[Array, "*batch bodies 6"] | None = None,
    ) -> Float[Array, "*batch nv"]:
        """The joint torques tau of the drives for an acceleration, N m or N.

        Args:
            q: Configurations, rad or m.
            v: Velocities, rad/s or m/s.
            a: Time derivatives of v, rad/s^2 or m/s^2.
            wrenches: External wrenches (f, n) on the bodies in the body frames, N and N m.

        Raises:
            ModelError: the model has closed kinematic loops or contacts, whose forces are unknown.
        """
        refuse_contacts(self.model)
        refuse_loops(
            self.model.topology,
            "a fit of joint torques",
            "joint torques and loop forces cannot be distinguished from accelerations",
            "use SimulationFit",
        )
        tau = inverse_dynamics(self.model, q, v, a, wrenches)
        found = tau - passive_forces(self.model, q, v)
        direction = jnp.tanh(v / _broadcast(self.model.friction_speed, v))
        if self.load_friction is not None:
            # the rotor's inertia is on the motor's side of the gear
            load = tau - _broadcast(self.model.armature, a) * a
            found = found + _broadcast(self.load_friction, v) * jnp.abs(load) * direction
        if not self.is_symmetric:
            parts = [_broadcast(x, v) for x in self.friction_parameters[:, len(FRICTION) :].T]
            found = found + asymmetric_friction(parts, direction, v)
        return found

    @property
    def is_symmetric(self) -> bool:
        """True if friction does not depend on the direction of v."""
        return self.friction_asymmetry is None and self.damping_asymmetry is None

    @property
    def friction_parameters(self) -> Float[Array, "nv 7"]:
        """The parameters ``FRICTION`` of the model, then the asymmetries of friction and damping."""
        drives = self.model.drives[:, np.array([DRIVES.index(name) for name in FRICTION])]
        parts = self.friction_asymmetry, self.damping_asymmetry
        return jnp.column_stack([drives, *(jnp.zeros_like(self.offset) if x is None else x for x in parts)])

    def signals(
        self,
        q: Float[Array, "*batch nq"],
        v: Float[Array, "*batch nv"],
        a: Float[Array, "*batch nv"],
        wrenches: Float[Array, "*batch bodies 6"] | None = None,
    ) -> Float[Array, "*batch nv"]:
        """The recorded signals ``(tau + offset) / scale`` for an acceleration; arguments as in ``joint_forces``."""
        tau = self.joint_forces(q, v, a, wrenches)
        return (tau + _broadcast(self.offset, tau)) / _broadcast(self.scale, tau)

    @property
    def dynamic_parameters(self) -> Float[Array, " parameters"]:
        """All parameters in which the signals are affine, as one vector, while the others are held fixed.

        The ten standard inertial parameters of each body, then armature, damping, dry friction, stiffness, Stribeck
        friction and offset, each for all degrees of freedom; names are in ``dynamic_parameter_names``.
        """
        drives = self.model.drives[:, np.array([DRIVES.index(name) for name in _AFFINE_DRIVES])]
        return jnp.concatenate([self.model.inertias.reshape(-1), drives.T.reshape(-1), self.offset])

    @property
    def dynamic_parameter_names(self) -> list[str]:
        """Names of the ``dynamic_parameters``."""
        names = [f"{symbol} of {body}" for body in self.model.body_names for symbol in inertia.PARAMETERS]
        return names + [f"{what} of {joint}" for what in AFFINE_JOINTS for joint in dof_names(self.model)]

    def with_dynamic_parameters(self, values: Float[Array, " parameters"]) -> Plant:
        """The plant with new ``dynamic_parameters``."""
        bodies, nv = self.model.inertias.size, self.model.nv
        columns = values[bodies:].reshape(-1, nv)
        drives = self.model.drives
        for name, column in zip(_AFFINE_DRIVES, columns, strict=False):
            drives = drives.at[:, DRIVES.index(name)].set(column)
        model = with_drives(self.model, drives, columns[_AFFINE_DRIVES.index("stribeck")])
        new = (eqx.tree_at(lambda m: m.inertias, model, values[:bodies].reshape(-1, 10)), columns[-1])
        return eqx.tree_at(lambda p: (p.model, p.offset), self, new)


def signal_sensitivities(
    plant: Plant,
    indices: Int[np.ndarray, " p"] | Int[Array, " p"],
    q: Float[Array, "n nq"],
    v: Float[Array, "n nv"],
    a: Float[Array, "n nv"],
    wrenches: Float[Array, "n bodies 6"] | None = None,
) -> tuple[Float[Array, "n nv p"], Float[Array, "n nv"]]:
    """Derivatives of the signals with respect to the dynamic parameters at some indices, and the signals, see
    ``Plant.signals``.
    """
    every = plant.dynamic_parameters

    def signals(part: Float[Array, " p"]) -> tuple[Float[Array, "n nv"], Float[Array, "n nv"]]:
        found = plant.with_dynamic_parameters(every.at[indices].set(part)).signals(q, v, a, wrenches)
        return found, found

    return jax.jacfwd(signals, has_aux=True)(every[indices])


def asymmetric_friction(asymmetries: Sequence[Array] | Array, direction: Array, v: Array) -> Array:
    """Friction torques that have the same sign for both directions, N m or N; see ``Plant``."""
    friction, damping = asymmetries
    return friction * jnp.abs(direction) + damping * jnp.abs(v)


def refuse_contacts(model: Model) -> None:
    """Check that joint torques follow from the motion.

    Raises:
        ModelError: the model has contacts, whose penetration depth cannot be recorded accurately enough.
    """
    if model.topology.contacts:
        raise ModelError(
            "model: expected a model without contacts for joint torques of a recorded motion, got the contact"
            f" {model.contact_names[0]!r}; fit by simulation (SimulationFit), or provide measured wrenches and a"
            " model without contacts"
        )


def with_drives(model: Model, drives: Float[Array, "nv _"], stribeck: Array | np.ndarray | None = None) -> Model:
    """The model with new drive parameters and unchanged states; Stribeck friction where a joint has it."""
    # not by Model.replace of one parameter, since a traced one may change the states of a motion
    tree = model.topology if stribeck is None else model.topology.sticking(stribeck)
    return model.replace(topology=tree, drives=drives)


def with_part(plant: Plant, name: str, values: Float[Array, " nv"]) -> Plant:
    """The plant with a new field, which may have been None."""
    return eqx.tree_at(lambda p: getattr(p, name), plant, values, is_leaf=lambda x: x is None)


def first_index(model: Model, what: str) -> int:
    """The index in ``Plant.dynamic_parameters`` of the first parameter of a kind of ``AFFINE_JOINTS``."""
    return model.inertias.size + AFFINE_JOINTS.index(what) * model.nv


def _for_each_dof(name: str, value: NumbersLike, model: Model) -> Float[Array, " nv"]:
    array = jnp.asarray(value, model.dtype)
    if array.shape not in ((), (model.nv,)):
        raise ValueError(
            f"{name}: expected a scalar or shape ({model.nv},), one value for each degree of freedom, got {array.shape}"
        )
    return jnp.broadcast_to(array, (model.nv,))


def _broadcast(numbers: Float[Array, " nv"], like: Float[Array, "*batch nv"]) -> Float[Array, "*ones nv"]:
    """The values with leading axes of length one, as many as an array has."""
    return numbers.reshape((1,) * (like.ndim - 1) + numbers.shape)
