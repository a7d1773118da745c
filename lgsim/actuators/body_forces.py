"""Forces on bodies that take no commands: gravity compensation and the drag and lift of a fluid."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.actuators.actuators import Actuators, States
from lgsim.actuators.stage import Signal
from lgsim.actuators.transmission import Transmission
from lgsim.dynamics.kinematics import forward_kinematics, frame_index, frame_twists
from lgsim.lie.group import norm
from lgsim.multibody.model import Model

Twists = Float[Array, "n 6"]
"""Twists (v, w) or wrenches (f, m), linear first."""


class BodyForces(Actuators):
    """Wrenches on bodies that depend on the configuration and the velocity: actuators without commands.

    ``tau = sum J_i(q)^T W_i`` with the Jacobians J_i of frames at the places i, in whose axes the wrenches W_i are.

    Attributes:
        frames: Name of the frame of each place; static.
        places: Poses of the places in their frames (n, 4, 4), m.
    """

    frames: tuple[str, ...] = eqx.field(static=True)
    places: Float[Array, "n 4 4"]

    def __init__(self, model: Model, frames: tuple[str, ...], places: Float[Array, "n 4 4"]) -> None:
        super().__init__(Transmission(jnp.zeros((0, model.nv), model.dtype)))
        self.frames, self.places = frames, places

    @abstractmethod
    def wrenches(self, R: Float[Array, "n 3 3"], gravity: Float[Array, " 3"], V: Twists) -> Twists:
        """The wrenches at the places, in their axes, N and N m.

        Args:
            R: Rotations from the axes of the world to those of the places.
            gravity: Gravitational acceleration in world axes, m/s^2.
            V: Twists of the places, in their axes, m/s and rad/s.
        """

    def respond(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], states: States, command: Signal
    ) -> tuple[Float[Array, " nv"], States]:
        """See ``Actuators.respond``; the command is empty."""
        del command
        at = np.array([frame_index(model.topology, name) for name in self.frames])
        R, p = self.places[:, :3, :3], self.places[:, :3, 3]

        def twists(v: Array) -> Array:
            V = frame_twists(model, q, v)[at]
            linear = V[:, :3] + jnp.cross(V[:, 3:], p)
            return jnp.concatenate([jnp.einsum("nji,nj->ni", R, x) for x in (linear, V[:, 3:])], axis=1)

        V, pulled = jax.vjp(twists, v)
        to_places = jnp.einsum("nji,nkj->nik", R, forward_kinematics(model, q)[at][:, :3, :3])
        (tau,) = pulled(self.wrenches(to_places, model.gravity, V))
        return tau, states


class GravityCompensation(BodyForces):
    """Forces against gravity at the centers of mass of bodies: ``f = -c m g``.

    Attributes:
        masses: Compensated masses c m (n,), kg.
    """

    masses: Signal

    def __init__(self, model: Model, frames: tuple[str, ...], places: Float[Array, "n 4 4"], masses: Signal) -> None:
        super().__init__(model, frames, places)
        self.masses = masses

    def wrenches(self, R: Float[Array, "n 3 3"], gravity: Float[Array, " 3"], V: Twists) -> Twists:
        """See ``BodyForces.wrenches``."""
        force = -self.masses[:, None] * (R @ gravity)
        return jnp.concatenate([force, jnp.zeros_like(force)], axis=1)


class BodyDrag(BodyForces):
    """Drag that is linear and quadratic in each component of the twist relative to a wind: ``W = -(k + c |V|) V``.

    Attributes:
        wind: Velocity of the fluid in world axes (3,), m/s.
        linear: k at each place (n, 6), N s/m and N m s/rad.
        quadratic: c at each place (n, 6), N s^2/m^2 and N m s^2/rad^2.
    """

    wind: Float[Array, " 3"]
    linear: Twists
    quadratic: Twists

    def __init__(
        self,
        model: Model,
        frames: tuple[str, ...],
        places: Float[Array, "n 4 4"],
        wind: Float[Array, " 3"],
        linear: Twists,
        quadratic: Twists,
    ) -> None:
        super().__init__(model, frames, places)
        self.wind, self.linear, self.quadratic = wind, linear, quadratic

    def wrenches(self, R: Float[Array, "n 3 3"], gravity: Float[Array, " 3"], V: Twists) -> Twists:
        """See ``BodyForces.wrenches``."""
        V = V.at[:, :3].add(-R @ self.wind)
        return -(self.linear + self.quadratic * jnp.abs(V)) * V


class Ellipsoids(NamedTuple):
    """Ellipsoids in a fluid.

    Attributes:
        semiaxes: Semiaxes (n, 3), m.
        coefficients: Coefficients of blunt, slender and angular drag, of Kutta and Magnus lift (n, 5).
        volumes: Virtual mass per density of the fluid along the axes (n, 3), m^3.
        moments: Virtual inertia per density of the fluid about the axes (n, 3), m^5.
    """

    semiaxes: Float[Array, "n 3"]
    coefficients: Float[Array, "n 5"]
    volumes: Float[Array, "n 3"]
    moments: Float[Array, "n 3"]


class EllipsoidDrag(BodyForces):
    """Drag, lift and the added mass of ellipsoids in a fluid.

    With the velocity v relative to the wind, its direction u, the angular velocity w, the areas ``a_i = s_j s_k`` of
    the semiaxes s, the projected area ``A = pi |a^2 u| / |a u|``, the largest one ``A_max``, the volume V, the virtual
    momenta p and l, and the diameter ``D = 2/3 (s_1 + s_2 + s_3)``:

        f = p x w + c_M rho V w x v - (3 pi eta D + rho |v| (c_B A + c_S (A_max - A))) v
            + c_K rho pi |v|^2 |a u| / |a^2 u| ((a^2 u) x u) x u
        n = p x v + l x w - (pi eta D^3 + rho |(c_A J + c_S (J_max - J)) w|) w

    with the moments ``J_i = 8/15 pi s_i max(s_j, s_k)^4``. Forces by the acceleration of the added mass are left out.

    Attributes:
        wind: Velocity of the fluid in world axes (3,), m/s.
        density: rho, kg/m^3.
        viscosity: eta, Pa s.
        shapes: The ellipsoids, with their axes along those of the places.

    Source: MuJoCo's documentation, chapter "Computation", section "Fluid forces", ellipsoid model.
    """

    wind: Float[Array, " 3"]
    density: Float[Array, ""]
    viscosity: Float[Array, ""]
    shapes: Ellipsoids

    def __init__(
        self,
        model: Model,
        frames: tuple[str, ...],
        places: Float[Array, "n 4 4"],
        fluid: tuple[Float[Array, " 3"], Float[Array, ""], Float[Array, ""]],
        shapes: Ellipsoids,
    ) -> None:
        super().__init__(model, frames, places)
        self.wind, self.density, self.viscosity = fluid
        self.shapes = shapes

    def wrenches(self, R: Float[Array, "n 3 3"], gravity: Float[Array, " 3"], V: Twists) -> Twists:
        """See ``BodyForces.wrenches``."""
        shapes = Ellipsoids(*self.shapes)  # a record has a plain tuple
        s, rho, eta = shapes.semiaxes, self.density, self.viscosity
        blunt, slender, angular, kutta, magnus = shapes.coefficients.T[:, :, None]
        v, w = V[:, :3] - R @ self.wind, V[:, 3:]
        speed = norm(v)[:, None]
        # no direction at rest, where its forces are zero of the second order
        u = jnp.where(speed == 0, jnp.eye(3, dtype=v.dtype)[0], v / jnp.where(speed == 0, 1, speed))
        a = jnp.roll(s, -1, axis=1) * jnp.roll(s, 1, axis=1)
        along, across = norm(a * a * u)[:, None], norm(a * u)[:, None]
        A = jnp.pi * along / across
        ordered = jnp.sort(s, axis=1)
        largest, middle = ordered[:, 2:], ordered[:, 1:2]
        p, diameter = rho * shapes.volumes * v, 2 / 3 * jnp.sum(s, axis=1, keepdims=True)
        drag = 3 * jnp.pi * eta * diameter
        drag = drag + rho * speed * (blunt * A + slender * (jnp.pi * largest * middle - A))
        lift = kutta * rho * jnp.pi * speed**2 * across / along * jnp.cross(jnp.cross(a * a * u, u), u)
        volume = 4 / 3 * jnp.pi * jnp.prod(s, axis=1, keepdims=True)
        f = jnp.cross(p, w) + magnus * rho * volume * jnp.cross(w, v) + lift - drag * v
        J = 8 / 15 * jnp.pi * s * jnp.maximum(jnp.roll(s, -1, axis=1), jnp.roll(s, 1, axis=1)) ** 4
        most = 8 / 15 * jnp.pi * middle * largest**4
        spin = jnp.pi * eta * diameter**3 + rho * norm((angular * J + slender * (most - J)) * w)[:, None]
        n = jnp.cross(p, v) + jnp.cross(rho * shapes.moments * w, w) - spin * w
        return jnp.concatenate([f, n], axis=1)
