"""Conditions on states and controls: equalities ``c = 0`` and inequalities ``c <= 0``, along the way or at the end."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.lie.action import Point
from lgsim.multibody.model import Model
from lgsim.optimize.cost import Cost, Residual, Sum


class Constraint(eqx.Module):
    """A condition on a node, ``value(t, y, u, args)`` with values (rows,); u is None at the end of the horizon.

    Attributes:
        equality: Whether all rows are zero; else none is positive.
        along: Whether it holds at the nodes with a control.
        end: Whether it holds at the last node.
    """

    equality: eqx.AbstractVar[bool]
    along: eqx.AbstractVar[bool]
    end: eqx.AbstractVar[bool]

    @abstractmethod
    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        """The rows (rows,)."""

    def of_state(self, y: Point) -> Array | None:
        """The rows where they depend on the state alone, else None: a start that breaks them is infeasible."""
        return None


class PathConstraint(Constraint):
    """``function(t, y, u, args)``, (rows,), at every node with a control."""

    function: Callable[..., Any]
    equality: bool = eqx.field(static=True, default=True)
    along: bool = eqx.field(static=True, default=True, init=False)
    end: bool = eqx.field(static=True, default=False, init=False)

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.function(t, y, u, args)


def _at_end(condition: Any) -> Any:
    return condition.at_end if isinstance(condition, Residual) else condition


class EndConstraint(Constraint):
    """``function(t, y, args)``, (rows,), at the last node; or a cost that is squares, whose residuals are the rows.

    ``EndConstraint(FramePose(model, "flange", target))`` puts a frame at a pose. Weights count for nothing.
    """

    function: Callable[..., Any] = eqx.field(converter=_at_end)
    equality: bool = eqx.field(static=True, default=True)
    along: bool = eqx.field(static=True, default=False, init=False)
    end: bool = eqx.field(static=True, default=True, init=False)

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.function(t, y, args)


class StateBounds(Constraint):
    """``lower <= coordinates(y) <= upper`` at every node.

    Attributes:
        lower, upper: (entries,), finite numbers.
        coordinates: The bounded numbers (entries,) in a state, by default the state itself, an array.
    """

    lower: Any
    upper: Any
    coordinates: Callable[[Point], Array] | None = None
    equality: bool = eqx.field(static=True, default=False, init=False)
    along: bool = eqx.field(static=True, default=True, init=False)
    end: bool = eqx.field(static=True, default=True, init=False)

    def __check_init__(self):
        ordered("state bounds", self.lower, self.upper)
        if not isinstance(self.lower, Tracer) and not np.all(np.isfinite(self.lower) & np.isfinite(self.upper)):
            raise ValueError("state bounds: expected finite numbers; choose the bounded ones by coordinates")

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.of_state(y)

    def of_state(self, y: Point) -> Array:
        x = y if self.coordinates is None else self.coordinates(y)
        return jnp.concatenate([jnp.asarray(self.lower, x.dtype) - x, x - jnp.asarray(self.upper, x.dtype)])


class _Entries(eqx.Module):
    places: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, y: Array) -> Array:
        return y[np.array(self.places)]


def joint_limits(model: Model, velocities: bool = True) -> StateBounds:
    """The limits of a machine's joints, and with ``velocities`` of their speeds, as bounds of the state (q, v).

    Joints without a limit, and groups, which have none, are left out.

    Raises:
        ValueError: the model has no limit at all.
    """
    slices = [(model.q_slices[name], model.v_slices[name]) for name in model.q_slices]
    places, lower, upper = [], [], []
    low, high, speed = (np.asarray(x) for x in (model.lower, model.upper, model.velocity_limit))
    for q, v in slices:
        if q.stop - q.start != v.stop - v.start:
            continue
        for i, j in zip(range(q.start, q.stop), range(v.start, v.stop), strict=True):
            if np.isfinite(low[j]) and np.isfinite(high[j]):
                places, lower, upper = [*places, i], [*lower, low[j]], [*upper, high[j]]
    for j in range(model.nv if velocities else 0):
        if np.isfinite(speed[j]):
            places, lower, upper = [*places, model.nq + j], [*lower, -speed[j]], [*upper, speed[j]]
    if not places:
        raise ValueError("model: no joint has a limit, so that there is nothing to bound")
    return StateBounds(jnp.asarray(lower, model.dtype), jnp.asarray(upper, model.dtype), _Entries(tuple(places)))


def ordered(name: str, lower: Any, upper: Any) -> None:
    """Raise ValueError where a lower bound lies above its upper one; inside ``jit`` nothing happens."""
    if isinstance(lower, Tracer) or isinstance(upper, Tracer):
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
    """``rho/2 |c + m/rho|^2`` of equalities, and of inequalities its positive part; m are multipliers, rho the weight.

    Source: Nocedal and Wright, Numerical Optimization, 2nd ed., sec. 17.3 and 17.4.
    """

    constraints: tuple[Constraint, ...]
    multipliers: tuple[Array, ...]
    weight: Array

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        rows = []
        for constraint, m in zip(self.constraints, self.multipliers, strict=True):
            shifted = constraint.value(t, y, u, args) + m / self.weight
            rows.append(shifted if constraint.equality else jnp.maximum(shifted, 0))
        return jnp.concatenate(rows)


class Penalties(eqx.Module):
    """Multipliers of all nodes, and the weight of all penalties.

    Attributes:
        along: For each constraint along the way (H, rows).
        end: For each constraint at the end (rows,).
        weight: The penalty rho.
    """

    along: tuple[Array, ...]
    end: tuple[Array, ...]
    weight: Array

    def at(self, constraints: tuple[Constraint, ...], k: Any) -> Cost:
        """The cost that is added at node k."""
        held = tuple(c for c in constraints if c.along)
        return (
            Penalty(constraints=held, multipliers=tuple(m[k] for m in self.along), weight=self.weight)
            if held
            else Sum(())
        )

    def at_end(self, constraints: tuple[Constraint, ...]) -> Cost:
        """The cost that is added at the last node."""
        held = tuple(c for c in constraints if c.end)
        return Penalty(constraints=held, multipliers=self.end, weight=self.weight) if held else Sum(())
