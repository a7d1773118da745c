"""Constraints on states and controls: along the path, at the end, at given nodes or times."""

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
"""Largest distance of a time from its node, in units in the last place."""


class Grid(NamedTuple):
    """The nodes of a problem, ``t_k = t0 + k dt`` for k from 0 to the horizon.

    Attributes:
        t0: Time of the first node, s.
        dt: Time between nodes, s.
        fixed: True if dt is the same between all of them and not an unknown of the problem.
    """

    t0: Float[Array, ""]
    dt: Any
    horizon: int
    fixed: bool


class Price(NamedTuple):
    """The penalty of a violation s >= 0 of a soft row, ``linear s + quadratic s^2 / 2``.

    Attributes:
        linear: Upper bound of the row's multiplier; infinite for a hard row.
    """

    linear: Any
    quadratic: Any


class Constraint(eqx.Module):
    """A constraint at a node, ``value = 0`` or ``value <= 0`` in each of its rows.

    Attributes:
        equality: True for an equality; false for an inequality.
        on_path: True if it applies at the nodes with a control.
        at_end: True if it applies at the last node, where u = None.
    """

    if TYPE_CHECKING:  # a field here would become the first argument of subclasses

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
        """The rows at time t (s) in state y with the control u; u = None at the end of the horizon."""

    def state_value(self, y: Point) -> Float[Array, " rows"] | None:
        """The rows if they depend only on the state, else None: an initial state that violates them is infeasible."""
        return None

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        """True if the constraint applies at node k, at time t (s)."""
        return True

    def on_grid(self, grid: Grid) -> "Constraint":
        """Adapt the constraint to the nodes of a problem.

        Raises:
            ValueError: it refers to a node or time that the problem does not have.
        """
        return self

    def at_step(self, dt: Number) -> "Constraint":
        """The constraint for a step of dt, s, instead of that of its grid."""
        return self

    @property
    def name(self) -> str:
        """The name in messages."""
        return type(self).__name__

    @property
    def price(self) -> Price:
        """The penalty of a violation: infinite, unless the constraint is ``Soft``."""
        return Price(np.inf, 0.0)

    def priced(self, factor: Float[Array, ""]) -> "Constraint":
        """The constraint with its penalty multiplied by a factor, if it is finite."""
        return self


class PathConstraint(Constraint):
    """A constraint at every node with a control.

    Attributes:
        function: ``function(t, y, u, args)``, the rows (rows,).
        equality: True for an equality; false for an inequality.
        at_end: True if it applies at the last node too, where the function gets u = None.
    """

    function: Callable[..., Any]
    equality: bool = eqx.field(static=True, default=True)
    at_end: bool = eqx.field(static=True, default=False, kw_only=True)
    on_path: bool = eqx.field(static=True, default=True, init=False)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, u, args)


def _end_function(condition: Any) -> Any:
    """The function (t, y, args) of an end constraint, or of the residuals of a terminal cost."""
    return condition.end_residual if isinstance(condition, Residual) else condition


class EndConstraint(Constraint):
    """A constraint at the last node.

    ``EndConstraint(FramePose(model, "flange", target))`` prescribes an end effector pose.

    Attributes:
        function: ``function(t, y, args)``, the rows (rows,); or a least-squares cost, whose residuals before weighting
            are the rows.
        equality: True for an equality; false for an inequality.
    """

    function: Callable[..., Any] = eqx.field(converter=_end_function)
    equality: bool = eqx.field(static=True, default=True)
    on_path: bool = eqx.field(static=True, default=False, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, args)


class NodeConstraint(Constraint):
    """A constraint at given nodes, or at the nodes closest to given times.

    Nodes are those of the problem; times are absolute. With a receding horizon, as in ``mpc``, the constraint comes
    closer, and is inactive once its time has passed.

    Attributes:
        function: ``function(t, y, u, args)``, the rows (rows,). It is evaluated at all nodes and applies at the given
            ones; at the last node u = None, if that may be one of them: with nodes below the horizon it is not.
        nodes: Indices of nodes from 0 to the horizon, one or several; new values do not compile again.
        times: Times, s, one or several, instead of nodes.
        equality: True for an equality; false for an inequality.

    Raises:
        ValueError: neither or both of nodes and times are given, or they are empty; in a problem, a node does not
            exist, a time is outside of the horizon or between two nodes by more than rounding, or times are given
            although dt is free or that of phases.
        TypeError: nodes are not integers.
    """

    function: Callable[..., Any]
    nodes: Any = eqx.field(default=None, kw_only=True)
    times: Any = eqx.field(default=None, kw_only=True)
    equality: bool = eqx.field(static=True, default=True, kw_only=True)
    on_path: bool = eqx.field(static=True, default=True, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def __check_init__(self):
        if (self.nodes is None) == (self.times is None):
            raise ValueError("nodes, times: expected exactly one of them, the nodes or the times of the constraint")
        name, given = ("nodes", self.nodes) if self.times is None else ("times", self.times)
        if np.ndim(given) > 1 or np.size(given) == 0:
            raise ValueError(f"{name}: expected a scalar or a vector, got shape {np.shape(given)}")
        if self.times is None and not jnp.issubdtype(jnp.asarray(given).dtype, jnp.integer):
            raise TypeError(f"nodes: expected integers, got {given}; pass times in seconds as times=")

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, u, args)

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        return self.near(k, t, 0.0)

    def near(self, k: Int[Array, ""] | int, t: Number, half_step: Number) -> Bool[Array, ""]:
        """True if node k is a given one, or its time t (s) is at most half a step from a given time."""
        if self.times is None:
            return jnp.any(jnp.asarray(self.nodes) == k)
        return jnp.any(jnp.abs(jnp.asarray(self.times, jnp.asarray(t).dtype) - t) <= half_step)

    def on_grid(self, grid: Grid) -> "Constraint":
        if self.times is not None and not grid.fixed:
            raise ValueError("times: the times of nodes are unknown before the plan; expected nodes=, got times=")
        half = jnp.asarray(grid.dt, grid.t0.dtype) / 2
        if is_traced(self, grid):
            return _OnGrid(self, half)
        places = self.nodes if self.times is None else _places(self.times, grid)
        first, last = int(np.min(places)), int(np.max(places))
        if first < 0 or last > grid.horizon:
            raise ValueError(
                f"nodes: expected indices from 0 to {grid.horizon}, the last node, got {first if first < 0 else last}"
            )
        moves = self.times is not None
        return _OnGrid(self, half, moves or first < grid.horizon, moves or last == grid.horizon)


class _OnGrid(Constraint):
    """A constraint at some nodes of a problem with known dt.

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
        ValueError: a time is outside of the horizon, or between two nodes.
    """
    t0, dt, last = float(grid.t0), float(grid.dt), grid.horizon
    places = (np.ravel(times).astype(float) - t0) / dt
    nodes = np.clip(np.round(places), 0, last)
    slack = _ROUNDING * float(jnp.finfo(grid.t0.dtype).eps) * (last + abs(t0) / dt)
    for i in np.flatnonzero(~(np.abs(places - nodes) <= slack)):
        raise ValueError(
            f"times: expected times of nodes from {t0:.9g} to {t0 + last * dt:.9g} s, with a step of {dt:.9g} s, got"
            f" {np.ravel(times)[i]:.9g} s; the closest node is at {t0 + nodes[i] * dt:.9g} s"
        )
    return nodes
