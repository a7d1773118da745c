"""Samples of states with joint torques: the input of estimators from joint torques."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.dynamics.kinematics import forward_kinematics, frame_accelerations, frame_twists
from lgsim.identify.recording.recording import Recording
from lgsim.identify.unknowns.plant import NumbersLike
from lgsim.multibody.inertia import parameters, rotational_inertia
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced, unknown_name

SATURATED = 10.0
"""The ratio of a speed to that of the changeover from which dry friction is constant: ``1 - tanh(10)`` is 4e-9."""


class TorqueSamples(eqx.Module):
    """States with the measured joint torques, one row for each of n times.

    The order of the rows matters only for the uncertainty under correlated noise.

    Attributes:
        q: Configurations (n, nq), rad or m.
        v: Velocities (n, nv), rad/s or m/s.
        a: Time derivatives of v (n, nv), rad/s^2 or m/s^2.
        signals: Recorded joint torques or currents (n, nv), in the units of ``Plant.signals``; for a floating base the
            wrench on it, zero in flight.
        weight: Weight of each signal (n, nv), 0 for a missing one.
        wrenches: External wrenches (f, n) on the bodies in the body frames (n, bodies, 6), N and N m, or None.
    """

    q: Float[Array, "*sets n nq"]
    v: Float[Array, "*sets n nv"]
    a: Float[Array, "*sets n nv"]
    signals: Float[Array, "*sets n nv"]
    weight: Float[Array, "*sets n nv"]
    wrenches: Float[Array, "*sets n bodies 6"] | None = None

    def __init__(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        signals: ArrayLike,
        weight: NumbersLike = 1.0,
        wrenches: ArrayLike | None = None,
    ) -> None:
        """Weights may have any shape that broadcasts to the signals."""
        self.q, self.v, self.a, self.signals = (jnp.asarray(x) for x in (q, v, a, signals))
        self.weight = jnp.broadcast_to(jnp.asarray(weight, self.signals.dtype), self.signals.shape)
        self.wrenches = None if wrenches is None else jnp.asarray(wrenches)

    @classmethod
    def from_recording(cls, motion: Recording, signals: Recording | None = None) -> TorqueSamples:
        """Build the samples of a recording.

        A joint torque depends on the whole motion: at a time at which any degree of freedom is invalid, all signals get
        weight 0.

        Args:
            motion: A recording with q, v and a, for example from ``smooth``.
            signals: A recording with tau, or else with current, at the same times; ``motion`` if None. The noise of the
                recording before smoothing is still white; standard errors then hold without ``lags``.

        Raises:
            ValueError: velocities, accelerations or signals are missing, or times differ.
        """
        if motion.v is None or motion.a is None:
            raise ValueError(
                "motion: expected a recording with v and a, got one without; compute them with smooth(recording)"
            )
        source = motion if signals is None else signals
        name = "tau" if source.tau is not None else "current"
        if name not in source.channels:
            raise ValueError("signals: expected a recording with tau or current, got one with neither")
        if source.time.shape != motion.time.shape or not np.allclose(source.time, motion.time, rtol=0, atol=1e-9):
            raise ValueError(
                "signals: expected the times of the motion, got others; smooth with rate=None keeps the times"
            )
        seen = np.min(np.concatenate([motion.weights[part] for part in "qva"], axis=1), axis=1, keepdims=True)
        arrays = (motion.q, motion.v, motion.a, source.channels[name], source.weights[name] * (seen > 0))
        return cls(*(jnp.asarray(x, motion.model.dtype) for x in arrays))

    def __len__(self) -> int:
        """Number of samples n."""
        return self.q.shape[-2]

    def check(self, model: Model) -> None:
        """Validate the arrays against a model.

        Raises:
            ValueError: a shape is wrong, or a value with a weight is not finite.
            TypeError: a dtype differs from the model's.
        """
        n = len(self)
        shapes: dict[str, tuple[int, ...]] = {
            "q": (n, model.nq), "v": (n, model.nv), "a": (n, model.nv), "signals": (n, model.nv)
        }  # fmt: skip
        if self.wrenches is not None:
            shapes["wrenches"] = (n, model.topology.bodies, 6)
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape[-len(shape) :] != shape:
                raise ValueError(f"{name}: expected shape {shape}, got {array.shape}")
            if array.dtype != model.dtype:
                raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {array.dtype}")
            if not is_traced(array):
                rows = np.isfinite(array).reshape(*array.shape[: array.ndim - len(shape) + 1], -1)
                used = np.any(np.asarray(self.weight) > 0, axis=-1)
                bad = np.flatnonzero((~rows.all(axis=-1) & used).ravel())
                if bad.size and name != "wrenches":
                    raise ValueError(
                        f"{name}: row {bad[0]} is not finite and has a weight; give it weight 0 and any finite number"
                    )

    def without_slow_samples(self, speed: NumbersLike) -> TorqueSamples:
        """Set the weight to 0 at all times at which a joint is slower than a speed.

        At reversals, smooth friction models do not represent dry friction, and smoothing blurs the jump.

        Args:
            speed: The lowest speed, one value or (nv,), rad/s or m/s.
        """
        least = jnp.broadcast_to(jnp.asarray(speed, self.v.dtype), self.v.shape[-1:])
        fast = jnp.all(jnp.abs(self.v) >= least.reshape((1,) * (self.v.ndim - 1) + least.shape), axis=-1, keepdims=True)
        return eqx.tree_at(lambda s: s.weight, self, jnp.where(fast, self.weight, 0))

    def with_payload(
        self, model: Model, frame: str, mass: ArrayLike, center: NumbersLike = (0.0, 0.0, 0.0), inertia: ArrayLike = 0.0
    ) -> TorqueSamples:
        """The samples of a motion with a known load that is not part of the model: its wrench is added to ``wrenches``.

        Records with and without a known load, joined by ``joined``, determine the constants of currents together with
        the bodies. The load moves as the frame does in ``model``, so that placements must be known.

        Args:
            model: The model without the load.
            frame: The frame of the model to which the load is fixed.
            mass: The mass, kg.
            center: The center of mass in the frame (3,), m.
            inertia: The inertia about the center of mass in the frame's axes (3, 3), kg m^2; zero for a point mass.

        Raises:
            ValueError: there is no such frame.
        """
        if frame not in model.frame_names:
            raise unknown_name("frame: expected the name of a frame", frame, model.frame_names)
        index, bodies = model.frame_names.index(frame), model.topology.bodies
        body = index if index < bodies else model.topology.frame_bodies[index - bodies]
        T = jnp.eye(4, dtype=model.dtype) if index < bodies else model.frames[index - bodies]
        given = (jnp.asarray(x, model.dtype) for x in (mass, center, inertia))
        load = parameters(*(jnp.broadcast_to(x, shape) for x, shape in zip(given, ((), (3,), (3, 3)), strict=True)))
        h, turning = load[1:4], rotational_inertia(load)
        V = frame_twists(model, self.q, self.v)[..., index, :]
        A = frame_accelerations(model, self.q, self.v, self.a)[..., index, :]
        R = forward_kinematics(model, self.q)[..., index, :3, :3]
        w, dw = V[..., 3:], A[..., 3:]
        point = A[..., :3] + jnp.cross(w, V[..., :3]) - jnp.einsum("...ij,i->...j", R, model.gravity)
        # Newton and Euler about the origin of the frame, then in the frame of the body
        force = load[0] * point + jnp.cross(dw, h) + jnp.cross(w, jnp.cross(w, h))
        moment = dw @ turning.T + jnp.cross(w, w @ turning.T) + jnp.cross(h, point)
        f, n = force @ T[:3, :3].T, moment @ T[:3, :3].T
        wrench = jnp.concatenate([f, n + jnp.cross(T[:3, 3], f)], axis=-1)
        wrenches = self._wrenches(bodies).at[..., body, :].add(-wrench)
        return eqx.tree_at(lambda s: s.wrenches, self, wrenches, is_leaf=lambda x: x is None)

    def _wrenches(self, bodies: int) -> Float[Array, "*sets n bodies 6"]:
        return jnp.zeros((*self.q.shape[:-1], bodies, 6), self.q.dtype) if self.wrenches is None else self.wrenches

    @staticmethod
    def joined(parts: Sequence[TorqueSamples]) -> TorqueSamples:
        """The rows of several records of one plant, one after the other.

        Raises:
            ValueError: there are none.
        """
        if not parts:
            raise ValueError("parts: expected at least one record, got none")
        counts = [part.wrenches.shape[-2] for part in parts if part.wrenches is not None]
        whole = [TorqueSamples(p.q, p.v, p.a, p.signals, p.weight, p._wrenches(counts[0]) if counts else None)
                 for p in parts]  # fmt: skip
        return jax.tree.map(lambda *x: jnp.concatenate(x, axis=parts[0].q.ndim - 2), *whole)

    def padded(self, tile: int) -> TorqueSamples:
        """The samples with rows of weight zero up to a number that many other lengths are padded to.

        Programs are compiled for the number of rows; those of similar numbers share them. The number is a multiple of
        the tile by at most four binary digits, so that at most an eighth is added to eight tiles or more.

        Args:
            tile: Number of samples of a tile.

        Returns:
            The padded samples; themselves if they are traced, empty, several sets, or of such a number.
        """
        if is_traced(self) or self.q.ndim != 2 or not len(self):
            return self
        count = -(-len(self) // tile)
        step = 1 << max(count.bit_length() - 4, 0)
        missing = -(-count // step) * step * tile - len(self)
        if not missing:
            return self

        def extend(x: Array) -> Array:
            # on the host, where another length compiles nothing
            rows = np.asarray(x)
            return jax.device_put(np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]))

        longer: TorqueSamples = jax.tree.map(extend, self)
        weight = np.where(np.arange(len(longer))[:, None] < len(self), longer.weight, 0)
        return eqx.tree_at(lambda s: s.weight, longer, jax.device_put(weight))

    def speed_range(self) -> tuple[Float[Array, " nv"], Float[Array, " nv"]]:
        """The speeds between which dry friction may change over, of each degree of freedom, rad/s or m/s.

        The highest one is the record's, 0 without motion. At the lowest one, a tenth of the record's lowest speed,
        ``tanh(10)`` is 1 to 4e-9 at all samples.
        """
        speed = jnp.where(self.weight > 0, jnp.abs(self.v), 0).reshape(-1, self.v.shape[-1])
        lowest = jnp.min(jnp.where(speed > 0, speed, jnp.inf), axis=0)
        return lowest / SATURATED, jnp.max(speed, axis=0)

    def tiles(self, size: int) -> TorqueSamples:
        """The samples in tiles (count, size, ...); the last one is padded with rows of weight zero."""
        count = -(-len(self) // size)

        def cut(x: Float[Array, " n *shape"]) -> Float[Array, "count size *shape"]:
            missing = count * size - len(x)
            filled = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (missing, *x.shape[1:]))])
            return filled.reshape(count, size, *x.shape[1:])

        tiles: TorqueSamples = jax.tree.map(cut, self)
        used = (jnp.arange(count * size) < len(self)).reshape(count, size, 1)
        return eqx.tree_at(lambda s: s.weight, tiles, jnp.where(used, tiles.weight, 0))
