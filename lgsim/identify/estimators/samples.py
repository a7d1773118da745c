"""Recorded motion as arrays: what estimators from joint forces take."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.identify.recording.recording import Recording
from lgsim.multibody.model import Model


class TorqueSamples(eqx.Module):
    """States with what drove them, one row for each time; in any order but for uncertainties of correlated noise.

    Attributes:
        q: Configurations (n, nq).
        v: Velocities (n, nv).
        a: Their time derivatives (n, nv).
        signals: Recorded joint forces or currents (n, nv); of a floating base the wrench on it, zero in flight.
        weight: Of each signal, 0 where there is none, (n, nv).
        wrenches: External wrenches on the bodies (n, bodies, 6) in their frames, N and N m, or None.
    """

    q: Array
    v: Array
    a: Array
    signals: Array
    weight: Array
    wrenches: Array | None = None

    def __init__(self, q: Any, v: Any, a: Any, signals: Any, weight: Any = 1.0, wrenches: Any = None):
        self.q, self.v, self.a, self.signals = (jnp.asarray(x) for x in (q, v, a, signals))
        self.weight = jnp.broadcast_to(jnp.asarray(weight, self.signals.dtype), self.signals.shape)
        self.wrenches = None if wrenches is None else jnp.asarray(wrenches)

    @classmethod
    def of(cls, motion: Recording, signals: Recording | None = None) -> TorqueSamples:
        """The samples of a recording.

        A joint force depends on the whole motion: at a time when any degree of freedom does not count no signal does.

        Args:
            motion: With q, v and a, such as ``smooth`` gives.
            signals: With tau, or where it has none with current, at the same times; ``motion`` if None. The recording
                before smoothing has noise that is still white, for which the reported deviations hold without ``lags``.

        Raises:
            ValueError: velocities, accelerations or signals are missing, or times differ.
        """
        if motion.v is None or motion.a is None:
            raise ValueError("motion: expected a recording with v and a, got one without; smooth(recording) makes them")
        source = motion if signals is None else signals
        name = "tau" if source.tau is not None else "current"
        if name not in source.channels:
            raise ValueError("signals: expected a recording with tau or current, got one with neither")
        if source.time.shape != motion.time.shape or not np.allclose(source.time, motion.time, rtol=0, atol=1e-9):
            raise ValueError("signals: expected the times of the motion, got others; smooth with rate=None keeps them")
        seen = np.min(np.concatenate([motion.weights[part] for part in "qva"], axis=1), axis=1, keepdims=True)
        arrays = (motion.q, motion.v, motion.a, source.channels[name], source.weights[name] * (seen > 0))
        return cls(*(jnp.asarray(x, motion.model.dtype) for x in arrays))

    def __len__(self) -> int:
        return self.q.shape[-2]

    def check(self, model: Model) -> None:
        """Raise where the arrays do not fit a model.

        Raises:
            ValueError: a shape is wrong, or a number with a weight is not finite.
            TypeError: a dtype is not the model's.
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
            if not isinstance(array, Tracer):
                rows = np.isfinite(array).reshape(*array.shape[: array.ndim - len(shape) + 1], -1)
                used = np.any(np.asarray(self.weight) > 0, axis=-1)
                bad = np.flatnonzero((~rows.all(axis=-1) & used).ravel())
                if bad.size and name != "wrenches":
                    raise ValueError(
                        f"{name}: row {bad[0]} is not finite and has a weight; give it weight 0 and any finite number"
                    )

    def moving(self, speed: Any) -> TorqueSamples:
        """With weight 0 at all times at which a joint is slower than ``speed``, one number or (nv,), rad/s or m/s.

        Where joints turn back, dry friction is what no smooth model of it tells, and smoothing blurs what follows.
        """
        least = jnp.broadcast_to(jnp.asarray(speed, self.v.dtype), self.v.shape[-1:])
        fast = jnp.all(jnp.abs(self.v) >= least.reshape((1,) * (self.v.ndim - 1) + least.shape), axis=-1, keepdims=True)
        return eqx.tree_at(lambda s: s.weight, self, jnp.where(fast, self.weight, 0))

    def tiles(self, size: int) -> TorqueSamples:
        """In tiles (count, size, ...) of which the last is filled with rows of weight zero."""
        count = -(-len(self) // size)

        def cut(x: Array) -> Array:
            missing = count * size - len(x)
            filled = jnp.concatenate([x, jnp.broadcast_to(x[-1:], (missing, *x.shape[1:]))])
            return filled.reshape(count, size, *x.shape[1:])

        cutted = jax.tree.map(cut, self)
        used = (jnp.arange(count * size) < len(self)).reshape(count, size, 1)
        return eqx.tree_at(lambda s: s.weight, cutted, jnp.where(used, cutted.weight, 0))
