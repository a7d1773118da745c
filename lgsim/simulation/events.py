"""Events that end an adaptive simulation, such as a joint angle, a height or a contact that reaches a value.

They need the extra ``adaptive``, which is imported when an event is created.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.contacts.contact_forces import contact_points
from lgsim.dynamics.kinematics import forward_kinematics, frame_index
from lgsim.integrators.method import Number
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import split_state
from lgsim.support.messages import unknown_name
from lgsim.support.printable import printable

Configuration = Float[Array, " nq"]
Velocity = Float[Array, " nv"]
Quantity = Callable[[Number, Configuration, Velocity, Model], Float[Array, ""]]
"""``quantity(t, q, v, model)``: a scalar of the model's dtype."""


class ThresholdEvent(eqx.Module):
    """The condition that a quantity of the state reaches a value, in the form of ``adaptive.Event``.

    Attributes:
        quantity: ``quantity(t, q, v, model)``, a scalar.
        value: The value of the quantity at the event, in its unit, ().
        name: The name of the quantity, for messages.
        unit: The unit of the quantity, for messages.
    """

    quantity: Quantity
    value: Float[Array, ""]
    name: str = eqx.field(static=True)
    unit: str = eqx.field(static=True)

    def __call__(self, t: Number, y: Float[Array, " state"], args: Any) -> Float[Array, ""]:
        """The quantity less the value, (), in its unit; ``args`` are those of ``equations_of_motion``."""
        (model, *_), _ = args
        q, v = split_state(model, y)
        return self.quantity(t, q, v, model) - self.value.astype(y.dtype)

    def __str__(self) -> str:
        value = float(str(np.asarray(self.value)))  # the fewest digits that identify the value, in float32 too
        return printable(f"{self.name} is {value:.9g} {self.unit}".strip())


class Height(eqx.Module):
    """The height of a frame's origin in the world, m.

    Attributes:
        frame: Index of the frame in ``model.frame_names``.
    """

    frame: int = eqx.field(static=True)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Float[Array, ""]:
        """The height ``p_z`` () in the world, m."""
        return forward_kinematics(model, q)[self.frame, 2, 3]


class Coordinate(eqx.Module):
    """One coordinate of the configuration, rad or m.

    Attributes:
        place: Its index in q.
    """

    place: int = eqx.field(static=True)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Float[Array, ""]:
        """The coordinate ``q_i`` (), rad or m."""
        return q[self.place]


class ContactDepth(eqx.Module):
    """The penetration depth of a contact's deepest point, m; negative without contact.

    Attributes:
        points: Indices of its points among those of all contacts.
    """

    points: tuple[int, int] = eqx.field(static=True)

    def __call__(self, t: Number, q: Configuration, v: Velocity, model: Model) -> Float[Array, ""]:
        """The depth ``max_i d_i`` () over the contact's points, m."""
        return jnp.max(contact_points(model, q).depth[slice(*self.points)])


def threshold_event(
    quantity: Quantity, value: Number = 0.0, *, rising: bool | None = None, name: str = "the quantity", unit: str = ""
) -> eqx.Module:
    """The event that a user-defined quantity reaches a value, ``quantity(t, q, v, model) = value``.

    Args:
        quantity: A function of the state that JAX can trace; a scalar of the model's dtype.
        value: The value, in the quantity's unit; changing it does not recompile.
        rising: True for upward crossings only, False for downward ones only, None for both.
        name: The name of the quantity, for the trajectory's ``result``.
        unit: The unit of the quantity, for the trajectory's ``result``.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        ValueError: the value is not a finite number.
    """
    from lgsim.integrators.adaptive import Event

    number = jnp.asarray(value, float)
    if number.shape != () or not jnp.isfinite(number):
        raise ValueError(f"value: expected one finite number, got {value!r}")
    return Event(ThresholdEvent(quantity, number, name, unit), rising)


def joint_reaches(model: Model, joint: str, value: Number, *, rising: bool | None = None) -> eqx.Module:
    """The event that the coordinate of a joint reaches a value, ``q_i = value``; angles are not wrapped.

    Args:
        joint: Name of a joint of one coordinate: revolute, continuous, prismatic or helical.
        value: The value of the coordinate, rad or m.
        rising: True for upward crossings only, False for downward ones only, None for both.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        ValueError: there is no such joint, it does not have exactly one independent coordinate, or the value is not
            finite.
    """
    if joint not in model.q_slices:
        raise ValueError(f"joint: expected one of {', '.join(model.joint_names)}, got {joint!r}")
    part = model.q_slices[joint]
    count = part.stop - part.start
    if count != 1:
        raise ValueError(
            f"joint: expected a joint with one coordinate of its own, got {joint!r}, which has {count}; give a function"
            " of the state to events.threshold_event"
        )
    unit = "rad" if model.topology.joints[model.joint_names.index(joint)].rows[0].turns else "m"
    return threshold_event(Coordinate(part.start), value, rising=rising, name=f"the joint {joint!r}", unit=unit)


def height_reaches(model: Model, frame: str | int, value: Number, *, rising: bool | None = None) -> eqx.Module:
    """The event that the origin of a frame reaches a height in the world, ``p_z = value``.

    Args:
        frame: Name or index in ``model.frame_names``.
        value: The height, m.
        rising: True for upward crossings only, False for downward ones only, None for both.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        ValueError: there is no such frame, or the value is not finite.
    """
    place = frame_index(model.topology, frame)
    name = f"the height of the frame {model.frame_names[place]!r}"
    return threshold_event(Height(place), value, rising=rising, name=name, unit="m")


def touches(model: Model, contact: str) -> eqx.Module:
    """The event that a contact begins: the first of its points reaches the surface.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        ValueError: there is no such contact.
    """
    return _depth_event(model, contact, rising=True)


def leaves(model: Model, contact: str) -> eqx.Module:
    """The event that a contact ends: the last of its points leaves the surface.

    Raises:
        ModuleNotFoundError: diffrax is missing.
        ValueError: there is no such contact.
    """
    return _depth_event(model, contact, rising=False)


def _depth_event(model: Model, contact: str, rising: bool) -> eqx.Module:
    if contact not in model.contact_names:
        raise ValueError(unknown_name("contact: expected the name of a contact", contact, model.contact_names))
    part = model.point_slices[contact]
    depth = ContactDepth((part.start, part.stop))
    return threshold_event(depth, 0.0, rising=rising, name=f"the depth of the contact {contact!r}", unit="m")
