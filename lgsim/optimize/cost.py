"""Costs as functions on the manifold, and their quadratic models in tangent coordinates."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.lie.action import Action, Point
from lgsim.linalg import dense
from lgsim.linalg.dense import product, times
from lgsim.xla import batch_last


class Quadratic(NamedTuple):
    """``value + gradient . z + 1/2 z . hessian z`` about a node, z = (dx, du) or dx at the end."""

    value: Array
    gradient: Array
    hessian: Array


class Cost(eqx.Module):
    """A cost of one node, ``value(t, y, u, args)``; u is None at the end of the horizon.

    Costs add up (``a + b``) and scale (``2.0 * a``).
    """

    @abstractmethod
    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        """One number."""

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        """The model about (y, u) in ``z -> (move(dx, y), u + du)``: of second order, exact."""

        def f(z: Array) -> Array:
            return self.value(t, *near(action, y, u, z), args)

        z = origin(action, y, u)
        value, gradient = jax.value_and_grad(f)(z)
        return Quadratic(value, gradient, jax.hessian(f)(z))

    def rows(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        """Numbers (rows,) half of whose squares add up to the cost.

        Raises:
            TypeError: the cost is no sum of squares.
        """
        raise TypeError(
            f"cost: expected a sum of squares such as Effort or LeastSquares, got {type(self).__name__}; take another "
            "solver, or write the cost as LeastSquares"
        )

    def __add__(self, other: Any) -> "Cost":
        return Sum((self, as_cost(other)))

    def __mul__(self, factor: Any) -> "Cost":
        return Scaled(self, factor)

    __rmul__ = __mul__


class Residual(Cost):
    """Half a weighted sum of squares, ``1/2 sum_i w_i r_i^2``, of residuals r(t, y, u, args).

    Its quadratic model is that of Gauss and Newton, ``J^T W J``, never indefinite, unless the full one is asked for.

    Attributes:
        weight: One number or one for each residual, not negative.
    """

    weight: eqx.AbstractVar[Any]

    @abstractmethod
    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        """The residuals before weighting, (rows,)."""

    def at_end(self, t: Any, y: Point, args: Any) -> Array:
        """The residuals at the end of the horizon, where there is no control."""
        return self.residual(t, y, None, args)

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        r = self.residual(t, y, u, args)
        return jnp.sum(self._weights(r) * r * r) / 2

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        if full:
            return super().quadratic(action, t, y, u, args, full)
        r, J = self.linear(action, t, y, u, args)
        return of_squares(J, self._weights(r), r, J.shape[1])

    def linear(self, action: Action, t: Any, y: Point, u: Array | None, args: Any) -> tuple[Array, Array]:
        """(r, J) about a node, J (rows, action.dim + controls).

        By the mode of differentiation with fewer passes; a subclass that has its derivative at hand gives it here.
        """

        def f(z: Array) -> Array:
            return self.residual(t, *near(action, y, u, z), args)

        z = origin(action, y, u)
        r = f(z)
        return r, (jax.jacrev if r.size < z.size else jax.jacfwd)(f)(z)

    def rows(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        r = self.residual(t, y, u, args)
        return jnp.sqrt(self._weights(r)) * r

    def _weights(self, r: Array) -> Array:
        return jnp.broadcast_to(jnp.asarray(self.weight, r.dtype), r.shape)


class OfState(Residual):
    """Residuals of the state alone: their model has no derivative by the control."""

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        model = super().quadratic(action, t, y, None, args, full)
        rest = 0 if u is None else u.size
        return Quadratic(model.value, jnp.pad(model.gradient, (0, rest)), jnp.pad(model.hessian, (0, rest)))


class FunctionCost(Cost):
    """Any function ``function(t, y, u, args)`` that JAX can trace and differentiate twice.

    Keep the function and let its numbers come through ``args``: another function object, such as a new ``lambda`` with
    the same text, compiles again.
    """

    function: Callable[..., Any]

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.function(t, y, u, args)


class EndFunctionCost(Cost):
    """A function ``function(t, y, args)`` as a cost of the end of the horizon."""

    function: Callable[..., Any]

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.function(t, y, args)


class LeastSquares(Residual):
    """Half the weighted squares of a function ``function(t, y, u, args)`` with values (rows,)."""

    function: Callable[..., Any]
    weight: Any = 1.0

    def residual(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        return self.function(t, y, u, args)


class Sum(Cost):
    """The sum of costs; without any it is zero."""

    costs: tuple[Cost, ...]

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        zero = jnp.zeros((), jax.tree.leaves(y)[0].dtype)
        return sum((cost.value(t, y, u, args) for cost in self.costs), zero)

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        z = origin(action, y, u)
        total = Quadratic(jnp.zeros((), z.dtype), z, jnp.zeros((z.size, z.size), z.dtype))
        for cost in self.costs:
            total = jax.tree.map(jnp.add, total, cost.quadratic(action, t, y, u, args, full))
        return total

    def rows(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        none = jnp.zeros(0, jax.tree.leaves(y)[0].dtype)
        return jnp.concatenate([none, *(cost.rows(t, y, u, args) for cost in self.costs)])


class Scaled(Cost):
    """A cost times a number."""

    cost: Cost
    factor: Any

    def value(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        value = self.cost.value(t, y, u, args)
        return value * jnp.asarray(self.factor, value.dtype)

    def quadratic(self, action: Action, t: Any, y: Point, u: Array | None, args: Any, full: bool) -> Quadratic:
        model = self.cost.quadratic(action, t, y, u, args, full)
        return jax.tree.map(lambda x: x * jnp.asarray(self.factor, x.dtype), model)

    def rows(self, t: Any, y: Point, u: Array | None, args: Any) -> Array:
        rows = self.cost.rows(t, y, u, args)
        return rows * jnp.sqrt(jnp.asarray(self.factor, rows.dtype))


def of_squares(J: Array, w: Array, r: Array, size: int) -> Quadratic:
    """The model ``1/2 (r + J z)^T W (r + J z)`` of z (size,), of which J (m, n) knows the first n entries.

    Residuals beyond the m are entries of z themselves, the following ones.
    """
    return Quadratic(*_squares(size)(J, w, r))


@cache
def _squares(size: int) -> Callable[..., tuple[Array, Array, Array]]:
    def core(J: Array, w: Array, r: Array) -> tuple[Array, Array, Array]:
        m, n = J.shape[:2]
        g, Jt = w * r, dense.transpose(J)
        own = jnp.zeros((size, *g.shape[1:]), g.dtype)
        gradient = own.at[:n].set(times(Jt, g[:m])).at[n : n + len(r) - m].set(g[m:])
        eye = jnp.eye(size, dtype=g.dtype).reshape((size, size) + (1,) * (g.ndim - 1))
        diagonal = eye * own.at[n : n + len(r) - m].set(w[m:])[None]
        return dense.dot(g, r) / 2, gradient, diagonal.at[:n, :n].set(product(Jt, w[:m, None] * J))

    return batch_last(core)


def as_cost(cost: Any, end: bool = False) -> Cost:
    """A cost from a cost, a function, or None for zero.

    Raises:
        TypeError: it is none of them.
    """
    if isinstance(cost, Cost):
        return cost
    if cost is None:
        return Sum(())
    if callable(cost):
        return EndFunctionCost(cost) if end else FunctionCost(cost)
    raise TypeError(f"cost: expected a cost of lgsim.optimize or a function, got {type(cost).__name__}")


def near(action: Action, y: Point, u: Array | None, z: Array) -> tuple[Point, Array | None]:
    """The state and control at tangent coordinates z = (dx, du) about a node."""
    n = action.dim
    return action.move(z[:n], y), None if u is None else u + z[n:]


def origin(action: Action, y: Point, u: Array | None) -> Array:
    """Zero tangent coordinates of a node."""
    return jnp.zeros(action.dim + (0 if u is None else u.size), jax.tree.leaves(y)[0].dtype)


def weight_of(owner: str, weight: Any) -> Any:
    """``weight`` if none is negative or not finite; ValueError otherwise."""
    if not isinstance(weight, Tracer) and not bool(np.all(np.isfinite(weight) & (np.asarray(weight) >= 0))):
        raise ValueError(f"weight: {owner} expected finite numbers that are not negative, got {weight}")
    return weight
