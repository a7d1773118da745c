"""The plant that is identified: a machine and the numbers of its joints that a model does not have."""

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
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.identify.recording.coordinates import dof_names
from lgsim.multibody import inertia
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import DRIVES, Model, check_model
from lgsim.multibody.topology import ModelError

NumbersLike = ArrayLike | Sequence[ArrayLike] | Sequence[Sequence[ArrayLike]]
"""What ``jax.numpy.asarray`` makes an array of: a number, an array, or lists of numbers."""

_AFFINE_DRIVES = ("armature", "damping", "friction", "stiffness", "stribeck")
"""The numbers of ``lgsim.multibody.model.DRIVES`` in which joint forces are affine."""

AFFINE_JOINTS = (*_AFFINE_DRIVES, "offset")
"""All numbers of degrees of freedom in which signals are affine, in the order of ``Plant.dynamic_parameters``."""


class Plant(eqx.Module):
    """A machine whose joint forces are recorded as signals: ``scale signal = tau + offset``.

    ``tau`` is the joint force of the drive: inverse dynamics less passive forces, dry friction with its Stribeck part
    among them. Where actuators make it, what is recorded are their commands.

    Attributes:
        scale: Joint force for each unit of the signal (nv,), N m or N: gear ratio times motor constant; 1 for torques.
        offset: What the signal shows beside the joint force (nv,), N m or N.
        actuators: What makes joint forces of recorded commands, from ``lgsim.actuators``; None: signals are recorded.

    Raises:
        TypeError: the model or the actuators are none, or dtypes differ.
        ValueError: a number is neither a single one nor one for each joint force, or actuators do not fit the model.
    """

    model: Model
    scale: Float[Array, " nv"]
    offset: Float[Array, " nv"]
    actuators: Actuators | ActuatorSum | None

    def __init__(
        self,
        model: Model,
        scale: NumbersLike = 1.0,
        offset: NumbersLike = 0.0,
        stribeck: NumbersLike | None = None,
        stribeck_speed: NumbersLike | None = None,
        actuators: Actuators | ActuatorSum | None = None,
    ) -> None:
        """Numbers may be one for all degrees of freedom or (nv,); those of Stribeck friction become the model's."""
        check_model(model)
        friction = {"stribeck": stribeck, "stribeck_speed": stribeck_speed}
        given = {name: _for_each_dof(name, x, model) for name, x in friction.items() if x is not None}
        self.model = model.replace(**given) if given else model
        self.scale, self.offset = _for_each_dof("scale", scale, model), _for_each_dof("offset", offset, model)
        self.actuators = actuators
        if actuators is not None:
            check(actuators, model)

    @property
    def stribeck(self) -> Float[Array, " nv"]:
        """The model's breakaway friction less dry friction (nv,), N m or N."""
        return self.model.stribeck

    @property
    def stribeck_speed(self) -> Float[Array, " nv"]:
        """The model's speed at which the Stribeck part has fallen to 1/e (nv,), rad/s or m/s."""
        return self.model.stribeck_speed

    def joint_forces(
        self,
        q: Float[Array, "*batch nq"],
        v: Float[Array, "*batch nv"],
        a: Float[Array, "*batch nv"],
        wrenches: Float[Array, "*batch bodies 6"] | None = None,
    ) -> Float[Array, "*batch nv"]:
        """The joint forces tau of the drives behind an acceleration, N m or N.

        Args:
            q: Configurations, rad or m.
            v: Velocities, rad/s or m/s.
            a: Time derivatives of v, rad/s^2 or m/s^2.
            wrenches: External wrenches (f, n) on the bodies in their frames, N and N m.

        Raises:
            ModelError: the machine has loops or contacts, whose forces are not known.
        """
        refuse_contacts(self.model)
        refuse_loops(
            self.model.topology,
            "a fit of joint forces",
            "what the drives give and what the loops do is not told apart by accelerations",
            "take SimulationFit",
        )
        return inverse_dynamics(self.model, q, v, a, wrenches) - passive_forces(self.model, q, v)

    def signals(
        self,
        q: Float[Array, "*batch nq"],
        v: Float[Array, "*batch nv"],
        a: Float[Array, "*batch nv"],
        wrenches: Float[Array, "*batch bodies 6"] | None = None,
    ) -> Float[Array, "*batch nv"]:
        """The recorded signals ``(tau + offset) / scale`` behind an acceleration, arguments as of ``joint_forces``."""
        tau = self.joint_forces(q, v, a, wrenches)
        return (tau + _broadcast(self.offset, tau)) / _broadcast(self.scale, tau)

    @property
    def dynamic_parameters(self) -> Float[Array, " parameters"]:
        """All numbers in which the signals are affine while the others stay, as one vector.

        The ten standard inertial parameters body by body, then armature, damping, dry friction, stiffness, Stribeck
        friction and offset, each of all degrees of freedom; ``dynamic_parameter_names`` in order.
        """
        drives = self.model.drives[:, np.array([DRIVES.index(name) for name in _AFFINE_DRIVES])]
        return jnp.concatenate([self.model.inertias.reshape(-1), drives.T.reshape(-1), self.offset])

    @property
    def dynamic_parameter_names(self) -> list[str]:
        """A name for each of ``dynamic_parameters``."""
        names = [f"{symbol} of {body}" for body in self.model.body_names for symbol in inertia.PARAMETERS]
        return names + [f"{what} of {joint}" for what in AFFINE_JOINTS for joint in dof_names(self.model)]

    def with_dynamic_parameters(self, values: Float[Array, " parameters"]) -> Plant:
        """The plant with other ``dynamic_parameters``."""
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
    """(derivatives of the signals by the dynamic parameters at some indices, the signals), see ``Plant.signals``."""
    every = plant.dynamic_parameters

    def signals(part: Float[Array, " p"]) -> tuple[Float[Array, "n nv"], Float[Array, "n nv"]]:
        found = plant.with_dynamic_parameters(every.at[indices].set(part)).signals(q, v, a, wrenches)
        return found, found

    return jax.jacfwd(signals, has_aux=True)(every[indices])


def refuse_contacts(model: Model) -> None:
    """Check that joint forces follow from the motion alone.

    Raises:
        ModelError: the machine has contacts: recorded motions say too little of how deep they are.
    """
    if model.topology.contacts:
        raise ModelError(
            f"model: expected one without contacts for joint forces of a recorded motion, got the contact"
            f" {model.contact_names[0]!r}; fit by simulation (SimulationFit), or give measured wrenches to a model"
            " without contacts"
        )


def with_drives(model: Model, drives: Float[Array, "nv _"], stribeck: Array | None = None) -> Model:
    """The model with other numbers of its drives, which keeps its states; Stribeck friction where it moves."""
    # not by Model.replace of one number, since a traced one may change what states a motion has
    tree = model.topology if stribeck is None else model.topology.sticking(stribeck)
    return model.replace(topology=tree, drives=drives)


def first_index(model: Model, what: str) -> int:
    """The place in ``Plant.dynamic_parameters`` of the first number of a kind of ``AFFINE_JOINTS``."""
    return model.inertias.size + AFFINE_JOINTS.index(what) * model.nv


def _for_each_dof(name: str, value: NumbersLike, model: Model) -> Float[Array, " nv"]:
    array = jnp.asarray(value, model.dtype)
    if array.shape not in ((), (model.nv,)):
        raise ValueError(
            f"{name}: expected a number or shape ({model.nv},), one for each joint force, got {array.shape}"
        )
    return jnp.broadcast_to(array, (model.nv,))


def _broadcast(numbers: Float[Array, " nv"], like: Float[Array, "*batch nv"]) -> Float[Array, "*ones nv"]:
    """Numbers with leading axes of length one, of as many axes as an array has."""
    return numbers.reshape((1,) * (like.ndim - 1) + numbers.shape)
