"""Conditions on states and controls, along the path and at its end, and the penalties that stand for them."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim._compile.xla import export_module
from lgsim.integrators.method import Number
from lgsim.lie.action import Point
from lgsim.multibody.joint_slices import single_numbers
from lgsim.multibody.model import Model
from lgsim.optimize.cost import Control, Cost, Residual, Sum
from lgsim.support.check import is_traced


class Constraint(eqx.Module):
    """A condition on a node, ``value = 0`` or ``value <= 0`` in each of its rows.

    Attributes:
        equality: Whether all rows are zero; else none is positive.
        on_path: Whether it holds at the nodes with a control.
        at_end: Whether it holds at the last node.
    """

    if TYPE_CHECKING:  # a field here would be the first argument of what inherits it

        @property
        def equality(self) -> bool: ...

        @property
        def on_path(self) -> bool: ...

        @property
        def at_end(self) -> bool: ...

    else:
        equality: eqx.AbstractVar[bool]
        on_path: eqx.AbstractVar[bool]
        at_end: eqx.AbstractVar[bool]

    @abstractmethod
    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        """The rows at time t (s) in state y under the control u, which is None at the end of the horizon."""

    def state_value(self, y: Point) -> Float[Array, " rows"] | None:
        """The rows where they depend on the state alone, else None: a start that breaks them is infeasible."""
        return None


class PathConstraint(Constraint):
    """A condition at every node with a control.

    Attributes:
        function: ``function(t, y, u, args)``, the rows (rows,).
        equality: Whether all rows are zero; else none is positive.
    """

    function: Callable[..., Any]
    equality: bool = eqx.field(static=True, default=True)
    on_path: bool = eqx.field(static=True, default=True, init=False)
    at_end: bool = eqx.field(static=True, default=False, init=False)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, u, args)


def _end_function(condition: Any) -> Any:
    """The function (t, y, args) of a condition at the end, or of the residuals of a cost there."""
    return condition.end_residual if isinstance(condition, Residual) else condition


class EndConstraint(Constraint):
    """A condition at the last node; ``EndConstraint(FramePose(model, "flange", target))`` puts a frame at a pose.

    Attributes:
        function: ``function(t, y, args)``, the rows (rows,); or a cost that is squares, of which the residuals before
            weighting are the rows.
        equality: Whether all rows are zero; else none is positive.
    """

    function: Callable[..., Any] = eqx.field(converter=_end_function)
    equality: bool = eqx.field(static=True, default=True)
    on_path: bool = eqx.field(static=True, default=False, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, args)


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


class Penalty(Residual):
    """``rho/2 |c + m/rho|^2`` of equalities c, and of inequalities the same of the positive part of ``c + m/rho``.

    Attributes:
        multipliers: A multiplier m for each row, of each constraint (rows,).
        weight: The penalty rho.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., sec. 17.3 and 17.4.
    """

    constraints: tuple[Constraint, ...]
    multipliers: tuple[Array, ...]
    weight: Array

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        rows = []
        for constraint, m in zip(self.constraints, self.multipliers, strict=True):
            shifted = constraint.value(t, y, u, args) + m / self.weight
            rows.append(shifted if constraint.equality else jnp.maximum(shifted, 0))
        return jnp.concatenate(rows)


@export_module("lgsim.optimize.Penalties")
class Penalties(eqx.Module):
    """The multipliers of all nodes, and the weight of all penalties.

    Attributes:
        path: Multipliers of each constraint on the path (H, rows).
        end: Multipliers of each constraint at the end (rows,).
        weight: The penalty rho.
    """

    path: tuple[Float[Array, "horizon _"], ...]
    end: tuple[Float[Array, " _"], ...]
    weight: Float[Array, ""]

    def at_node(self, constraints: tuple[Constraint, ...], k: Int[Array, ""] | int) -> Cost:
        """The cost that is added to the running cost of node k."""
        active = tuple(c for c in constraints if c.on_path)
        multipliers = tuple(m[k] for m in self.path)
        return Penalty(constraints=active, multipliers=multipliers, weight=self.weight) if active else Sum(())

    def at_end(self, constraints: tuple[Constraint, ...]) -> Cost:
        """The cost that is added to the terminal cost."""
        active = tuple(c for c in constraints if c.at_end)
        return Penalty(constraints=active, multipliers=self.end, weight=self.weight) if active else Sum(())
