"""State bounds as constraints: for arbitrary coordinates, and for joint limits."""

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
        lower: Lower bounds (entries,), minus infinity for none.
        upper: Upper bounds (entries,), infinity for none.
        coordinates: ``coordinates(y)``, the bounded quantities (entries,) of a state; by default the state itself, an
            array.

    Raises:
        ValueError: a lower bound exceeds its upper one, or a bound is NaN.
    """

    lower: Any
    upper: Any
    coordinates: Callable[[Point], Array] | None = None
    equality: bool = eqx.field(static=True, default=False, init=False)
    on_path: bool = eqx.field(static=True, default=True, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def __check_init__(self):
        check_order("state bounds", self.lower, self.upper)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.state_value(y)

    def state_value(self, y: Point) -> Float[Array, " rows"]:
        """``(lower - coordinates, coordinates - upper)`` of a state."""
        x = y if self.coordinates is None else self.coordinates(y)
        return jnp.concatenate([jnp.asarray(self.lower, x.dtype) - x, x - jnp.asarray(self.upper, x.dtype)])


class _Entries(eqx.Module):
    """The entries at given indices of a state that is an array."""

    places: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, y: Float[Array, " n"]) -> Float[Array, " entries"]:
        """The entries."""
        return y[np.array(self.places)]


def joint_limits(model: Model, velocities: bool = True) -> StateBounds:
    """Joint limits of position, rad or m, and of speed, as bounds of (q, v).

    Joints without a limit, and joints on groups, which have none, are omitted; a speed limit of zero, which model files
    use for an unspecified limit, means no limit.

    Args:
        velocities: Add speed limits, ``model.velocity_limit``, rad/s or m/s.

    Raises:
        ValueError: the model has no joint limits.
    """
    low, high, speed = (np.asarray(x) for x in (model.lower, model.upper, model.velocity_limit))
    at, joints = single_numbers(model.q_slices, model.v_slices)
    limited = np.isfinite(low[joints]) & np.isfinite(high[joints])
    fast = np.flatnonzero(np.isfinite(speed) & (speed != 0) & velocities)
    places = [*at[limited].tolist(), *(model.nq + fast).tolist()]
    if not places:
        raise ValueError("model: expected joint limits, got none, so that there is nothing to bound")
    lower, upper = (
        jnp.asarray(np.concatenate([x[joints[limited]], y[fast]]), model.dtype)
        for x, y in ((low, -speed), (high, speed))
    )
    return StateBounds(jnp.asarray(lower, model.dtype), jnp.asarray(upper, model.dtype), _Entries(tuple(places)))


def check_order(name: str, lower: ArrayLike, upper: ArrayLike) -> None:
    """Raise ValueError if a lower bound exceeds its upper one; no check inside ``jit``."""
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
