"""Samples of states with joint torques: the input of estimators from joint torques."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.identify.recording.recording import Recording
from lgsim.identify.unknowns.plant import NumbersLike
from lgsim.multibody.model import Model
from lgsim.support.check import is_traced

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
