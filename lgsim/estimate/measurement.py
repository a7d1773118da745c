"""Measurements of a state: values in R^n or in a group, with noise, and the streams in which they come."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.estimate.factors import check_deviations
from lgsim.estimate.processes import matrix_of
from lgsim.lie.action import Action, Point
from lgsim.lie.group import LieGroup
from lgsim.support.check import is_traced


def _arrays(values: Any) -> Any:
    """A tree of arrays; a list is an array, a tuple or a dictionary has parts."""
    return jax.tree.map(jnp.asarray, values, is_leaf=lambda part: isinstance(part, list))


class Measurement(eqx.Module):
    """A measured function of the state: ``z = h(y) + N w`` in R^n, or ``z = h(y) exp(N w)`` in a group.

    Attributes:
        h: ``h(y)``, or ``h(y, u)`` with the held input u of the process where ``with_input`` is true; its value is a
            vector (n,), or an element of ``group``.
        noise: N: the standard deviation of all components, (n,) of each, or a factor (n, m) of their covariance.
        group: The group of the value; None for R^n.
        with_input: True for a function ``h(y, u)``.
        name: The name in messages and results.
    """

    h: Callable[..., Any]
    noise: Array = eqx.field(converter=jnp.asarray)
    group: LieGroup | None = None
    with_input: bool = eqx.field(static=True, default=False)
    name: str = eqx.field(static=True, default="measurement")

    def __check_init__(self) -> None:
        check_deviations(f"noise of '{self.name}'", self.noise)

    def predicted(self, y: Point, u: Any = None) -> Any:
        """The value without noise."""
        return self.h(y, u) if self.with_input else self.h(y)

    def residual(self, predicted: Any, z: Any) -> Float[Array, " m"]:
        """The difference of a reading from a predicted value, ``z - h``, or ``log(h^-1 z)`` in a group."""
        if self.group is None:
            return z - predicted
        return self.group.log(self.group.compose(self.group.inverse(predicted), z))

    def linearized(
        self, error: Action, y: Point, u: Any, z: Any
    ) -> tuple[Float[Array, " m"], Float[Array, "m n"], Float[Array, "m k"]]:
        """The residual r of a reading at y, the derivative H of the value with respect to the error, and N.

        ``r = H e + N w`` to first order, e the error of y.
        """
        at = self.predicted(y, u)
        r = self.residual(at, z)
        zero = jnp.zeros(error.dim, r.dtype)
        H = jax.jacfwd(lambda e: self.residual(at, self.predicted(error.move(e, y), u)))(zero)
        return r, H, self.factor(r.shape[0], r.dtype)

    def factor(self, m: int, dtype: jnp.dtype) -> Float[Array, "m k"]:
        """The factor N of the covariance of the noise, for m components."""
        if self.noise.ndim and self.noise.shape[0] != m:
            raise ValueError(
                f"noise of '{self.name}': expected a number, ({m},) or ({m}, k) for {m} components, got the shape "
                f"{self.noise.shape}"
            )
        return matrix_of(self.noise.astype(dtype), m)


class Stream(eqx.Module):
    """The readings of one measurement at their own times.

    Attributes:
        measurement: What is measured.
        ts: Times of the readings (k,), s, ascending.
        values: Readings with a leading axis k; NaN where one is missing.
        delay: Time by which the readings are late, s: that at ``ts[i]`` shows the state at ``ts[i] - delay``.
        gate: A probability such as 0.999: a reading whose squared, normalized residual is less probable than one in
            1000 for a consistent filter is shown and not used. None to use all.
    """

    measurement: Measurement
    ts: np.ndarray = eqx.field(converter=lambda ts: np.asarray(ts, float))
    values: Any = eqx.field(converter=_arrays)
    delay: float = 0.0
    gate: float | None = None

    def __check_init__(self) -> None:
        """Check a stream.

        Raises:
            TypeError: ``measurement`` has another type.
            ValueError: times do not ascend, there is no reading, lengths differ, or ``gate`` is no probability.
        """
        if not isinstance(self.measurement, Measurement):
            raise TypeError(f"measurement: expected a Measurement, got {type(self.measurement).__name__}")
        if not isinstance(self.ts, np.ndarray):
            return  # a tree without its arrays
        name = self.measurement.name
        check_times(f"ts of '{name}'", self.ts)
        for leaf in jax.tree.leaves(self.values):
            if leaf.shape[:1] != self.ts.shape:
                raise ValueError(
                    f"values of '{name}': expected one for each of {len(self.ts)} times, got the shape {leaf.shape}"
                )
            if not is_traced(leaf) and np.isnan(np.asarray(leaf)).reshape(len(self.ts), -1).any(axis=1).all():
                raise ValueError(f"values of '{name}': expected readings, but all are NaN; leave the stream out")
        if self.gate is not None and not 0 < self.gate < 1:
            raise ValueError(f"gate of '{name}': expected a probability such as 0.999, got {self.gate}")


class Inputs(eqx.Module):
    """The inputs of a process, each held until the next.

    Attributes:
        ts: Times (k,), s, ascending.
        values: Inputs with a leading axis k.
        ends: The times at which each ends (k,), of inputs that stand for one whole step, as of ``preintegrate``; None
            for those that are held.
    """

    ts: np.ndarray = eqx.field(converter=lambda ts: np.asarray(ts, float))
    values: Any = eqx.field(converter=_arrays)
    ends: np.ndarray | None = None

    def __check_init__(self) -> None:
        if not isinstance(self.ts, np.ndarray):
            return  # a tree without its arrays
        check_times("ts of the inputs", self.ts)
        for leaf in jax.tree.leaves(self.values):
            if leaf.shape[:1] != self.ts.shape:
                raise ValueError(
                    f"values of the inputs: expected one for each of {len(self.ts)} times, got the shape {leaf.shape}"
                )


def check_times(name: str, ts: np.ndarray) -> None:
    """Raise ValueError unless there are times, finite and ascending; the message names the first that is not."""
    if ts.ndim != 1 or not len(ts):
        raise ValueError(f"{name}: expected one or more times (k,), got the shape {ts.shape}")
    if not np.isfinite(ts).all():
        raise ValueError(
            f"{name}: expected finite numbers, got {ts[~np.isfinite(ts)][0]} at index {int(np.argmin(np.isfinite(ts)))}"
        )
    back = np.flatnonzero(np.diff(ts) <= 0)
    if len(back):
        i = int(back[0])
        raise ValueError(f"{name}: expected ascending times, got {ts[i + 1]:.9g} after {ts[i]:.9g} at index {i + 1}")


def missing(values: ArrayLike | Any) -> Array:
    """True if a reading has a component that is NaN."""
    return jnp.any(jnp.stack([jnp.isnan(leaf).any() for leaf in jax.tree.leaves(values)]))
