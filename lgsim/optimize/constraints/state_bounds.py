"""Bounds of states as conditions: of any coordinates, and of the joints of a machine."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.integrators.method import Number
from lgsim.lie.action import Point
from lgsim.multibody.joint_slices import single_numbers
from lgsim.multibody.model import Model
from lgsim.optimize.constraints.constraint import Constraint
from lgsim.optimize.cost import Control
from lgsim.support.check import is_traced


class StateBounds(Constraint):
    """``lower <= coordinates(y) <= upper`` at every node.

    Attributes:
        lower: Lower bounds (entries,), minus infinity where there are none.
        upper: Upper bounds (entries,), infinity where there are none.
        coordinates: ``coordinates(y)``, the bounded numbers (entries,) of a state; by default the state itself, an
            array.

    Raises:
        ValueError: a lower bound lies above its upper one, or a bound is no number.
    """

    lower: Any
    upper: Any
    coordinates: Callable[[Point], Array] | None = None
    equality: bool = eqx.field(static=True, default=False, init=False)
    on_path: bool = eqx.field(static=True, default=True, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def __check_init__(self):
        check_order("state bounds", self.lower, self.upper)

    @property
    def curved(self) -> bool:
        return not (self.coordinates is None or isinstance(self.coordinates, _Entries))

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.state_value(y)

    def state_value(self, y: Point) -> Float[Array, " rows"]:
        """``(lower - coordinates, coordinates - upper)`` of a state."""
        x = y if self.coordinates is None else self.coordinates(y)
        return jnp.concatenate([jnp.asarray(self.lower, x.dtype) - x, x - jnp.asarray(self.upper, x.dtype)])


class _Entries(eqx.Module):
    """The numbers at given places of a state that is an array."""

    places: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, y: Float[Array, " n"]) -> Float[Array, " entries"]:
        """The numbers."""
        return y[np.array(self.places)]


def joint_limits(model: Model, velocities: bool = True) -> StateBounds:
    """The position limits of a machine's joints, rad or m, and the limits of their speeds, as bounds of (q, v).

    Joints without a limit, and groups, which have none, are left out; a speed limit of zero, as files write for one
    that is not given, is none.

    Args:
        velocities: Whether speeds are bounded too, by ``model.velocity_limit``, rad/s or m/s.

    Raises:
        ValueError: the model has no limit at all.
    """
    low, high, speed = (np.asarray(x) for x in (model.lower, model.upper, model.velocity_limit))
    at, joints = single_numbers(model.q_slices, model.v_slices)
    limited = np.isfinite(low[joints]) & np.isfinite(high[joints])
    fast = np.flatnonzero(np.isfinite(speed) & (speed != 0) & velocities)
    places = [*at[limited].tolist(), *(model.nq + fast).tolist()]
    if not places:
        raise ValueError("model: no joint has a limit, so that there is nothing to bound")
    lower, upper = (
        jnp.asarray(np.concatenate([x[joints[limited]], y[fast]]), model.dtype)
        for x, y in ((low, -speed), (high, speed))
    )
    return StateBounds(jnp.asarray(lower, model.dtype), jnp.asarray(upper, model.dtype), _Entries(tuple(places)))


def check_order(name: str, lower: ArrayLike, upper: ArrayLike) -> None:
    """Raise ValueError where a lower bound lies above its upper one; inside ``jit`` nothing happens."""
    if is_traced(lower, upper):
        return
    low, high = np.broadcast_arrays(np.asarray(lower), np.asarray(upper))
    bad = np.flatnonzero(~(low <= high))
    if bad.size:
        i = int(bad[0])
        raise ValueError(
            f"{name}: infeasible, entry {i} has the lower bound {low.ravel()[i]:.6g} and the upper bound "
            f"{high.ravel()[i]:.6g}; swap or widen them"
        )
