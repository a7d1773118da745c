"""Conditions on states and controls: along the path, at its end, at given nodes or times."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim.integrators.method import Number
from lgsim.lie.action import Point
from lgsim.optimize.cost import Control, Residual
from lgsim.support.check import is_traced

_ROUNDING = 64
"""How many units of rounding a time may lie from its node."""


class Grid(NamedTuple):
    """The nodes of a problem, ``t_k = t0 + k dt`` for k from 0 to the horizon.

    Attributes:
        t0: Time of the first node, s.
        dt: Time between nodes, s.
        fixed: Whether that is the same between all of them and no unknown of the problem.
    """

    t0: Float[Array, ""]
    dt: Any
    horizon: int
    fixed: bool


class Price(NamedTuple):
    """What a violation s >= 0 of a row costs, ``linear s + quadratic s^2 / 2``.

    Attributes:
        linear: The largest multiplier that the row can have; infinite for a row that must be met.
    """

    linear: Any
    quadratic: Any


class Constraint(eqx.Module):
    """A condition on a node, ``value = 0`` or ``value <= 0`` in each of its rows.

    Attributes:
        equality: Whether all rows are zero; else none is positive.
        on_path: Whether it holds at the nodes with a control.
        at_end: Whether it holds at the last node, where u is None.
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

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        """Whether the constraint is asked for at node k, at time t (s)."""
        return True

    def on_grid(self, grid: Grid) -> "Constraint":
        """The constraint as a problem with these nodes takes it.

        Raises:
            ValueError: it asks for a node or time that the problem does not have.
        """
        return self

    def at_step(self, dt: Number) -> "Constraint":
        """The constraint for another time between nodes, s, than that of its grid."""
        return self

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def curved(self) -> bool:
        """False where the rows are linear in the tangent coordinates of the state and in the control."""
        return True

    @property
    def price(self) -> Price:
        """What a violation costs: without limit, unless the constraint is ``Soft``."""
        return Price(np.inf, 0.0)

    def priced(self, factor: Float[Array, ""]) -> "Constraint":
        """The constraint with a price that is a factor of its own, where it has a finite one."""
        return self


class PathConstraint(Constraint):
    """A condition at every node with a control.

    Attributes:
        function: ``function(t, y, u, args)``, the rows (rows,).
        equality: Whether all rows are zero; else none is positive.
        at_end: Whether it holds at the last node too, where the function gets u = None.
    """

    function: Callable[..., Any]
    equality: bool = eqx.field(static=True, default=True)
    at_end: bool = eqx.field(static=True, default=False, kw_only=True)
    on_path: bool = eqx.field(static=True, default=True, init=False)

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


class NodeConstraint(Constraint):
    """A condition at given nodes, or at the nodes nearest to given times.

    Nodes are those of the problem; times are absolute, so that with a horizon that recedes, as in ``mpc``, the
    condition comes nearer, and counts for nothing once its time is over.

    Attributes:
        function: ``function(t, y, u, args)``, the rows (rows,). It is evaluated at all nodes and counts at the given
            ones; at the last node u is None, where that may be one of them: with nodes below the horizon it never is.
        nodes: Numbers of nodes from 0 to the horizon, one or several; other numbers never compile again.
        times: Times, s, one or several, in place of nodes.
        equality: Whether all rows are zero; else none is positive.

    Raises:
        ValueError: neither or both of nodes and times are given, or there is none; in a problem, a node that it does
            not have, a time outside of its horizon, or between two nodes by more than rounding, or a time where that
            between nodes is free or that of phases.
        TypeError: nodes are not whole numbers.
    """

    function: Callable[..., Any]
    nodes: Any = eqx.field(default=None, kw_only=True)
    times: Any = eqx.field(default=None, kw_only=True)
    equality: bool = eqx.field(static=True, default=True, kw_only=True)
    on_path: bool = eqx.field(static=True, default=True, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def __check_init__(self):
        if (self.nodes is None) == (self.times is None):
            raise ValueError("nodes, times: expected one of the two, the nodes or the times of the condition")
        name, given = ("nodes", self.nodes) if self.times is None else ("times", self.times)
        if np.ndim(given) > 1 or np.size(given) == 0:
            raise ValueError(f"{name}: expected one number or several in a row, got shape {np.shape(given)}")
        if self.times is None and not jnp.issubdtype(jnp.asarray(given).dtype, jnp.integer):
            raise TypeError(f"nodes: expected whole numbers, got {given}; times in seconds go into times=")

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, u, args)

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        return self.near(k, t, 0.0)

    def near(self, k: Int[Array, ""] | int, t: Number, half_step: Number) -> Bool[Array, ""]:
        """Whether node k is a given one, or its time t (s) at most half a step from a given time."""
        if self.times is None:
            return jnp.any(jnp.asarray(self.nodes) == k)
        return jnp.any(jnp.abs(jnp.asarray(self.times, jnp.asarray(t).dtype) - t) <= half_step)

    def on_grid(self, grid: Grid) -> "Constraint":
        if self.times is not None and not grid.fixed:
            raise ValueError("times: the time of a node is not known before the plan is; expected nodes=, got times=")
        half = jnp.asarray(grid.dt, grid.t0.dtype) / 2
        if is_traced(self, grid):
            return _OnGrid(self, half)
        places = self.nodes if self.times is None else _places(self.times, grid)
        first, last = int(np.min(places)), int(np.max(places))
        if first < 0 or last > grid.horizon:
            raise ValueError(
                f"nodes: expected numbers from 0 to {grid.horizon}, the last node, got {first if first < 0 else last}"
            )
        moves = self.times is not None
        return _OnGrid(self, half, moves or first < grid.horizon, moves or last == grid.horizon)


class _OnGrid(Constraint):
    """A condition at some nodes of a problem, whose steps are known.

    Attributes:
        half_step: Half the time between nodes, s.
    """

    inner: NodeConstraint
    half_step: Float[Array, ""]
    on_path: bool = eqx.field(static=True, default=True)
    at_end: bool = eqx.field(static=True, default=True)

    @property
    def equality(self) -> bool:
        return self.inner.equality

    @property
    def name(self) -> str:
        return self.inner.name

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.inner.value(t, y, u, args)

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        return self.inner.near(k, t, self.half_step)

    def on_grid(self, grid: Grid) -> "Constraint":
        return self.inner.on_grid(grid)


def _places(times: Any, grid: Grid) -> Float[np.ndarray, " times"]:
    """The nodes at given times.

    Raises:
        ValueError: a time lies outside of the horizon, or between two nodes.
    """
    t0, dt, last = float(grid.t0), float(grid.dt), grid.horizon
    places = (np.ravel(times).astype(float) - t0) / dt
    nodes = np.clip(np.round(places), 0, last)
    slack = _ROUNDING * float(jnp.finfo(grid.t0.dtype).eps) * (last + abs(t0) / dt)
    for i in np.flatnonzero(~(np.abs(places - nodes) <= slack)):
        raise ValueError(
            f"times: expected times of nodes from {t0:.9g} to {t0 + last * dt:.9g} s, {dt:.9g} s apart, got "
            f"{np.ravel(times)[i]:.9g} s; the nearest one is {t0 + nodes[i] * dt:.9g} s"
        )
    return nodes
