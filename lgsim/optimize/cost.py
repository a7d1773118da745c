"""Cost functions on the manifold, and their quadratic models in tangent coordinates."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg import dense
from lgsim._compile.linalg.dense import product, times
from lgsim._compile.xla import batch_last, number_field, zeros_beside
from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Point
from lgsim.support.check import is_traced

Control = Float[Array, " nu"] | None
"""The control of a node; None at the end of the horizon."""


class Quadratic(NamedTuple):
    """The quadratic model ``value + gradient . z + 1/2 z . hessian z`` of a cost in tangent coordinates of a node.

    Attributes:
        gradient: Its gradient (n,) with respect to z = (dx, du), or dx at the end of the horizon.
    """

    value: Float[Array, ""]
    gradient: Float[Array, " n"]
    hessian: Float[Array, "n n"]


class Cost(eqx.Module):
    """The cost of one node of a trajectory. Costs can be added (``a + b``) and scaled (``2.0 * a``)."""

    @abstractmethod
    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        """The cost at time t (s) in state y with the control u; u = None at the end of the horizon."""

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        """The second-order model about (y, u) in the chart ``z -> (move(dx, y), u + du)``.

        Args:
            action: The action of tangent vectors on states.
            t: Time of the node, as in ``value``.
            args: As in ``value``.
            exact: True for the exact Hessian of the cost; otherwise a subclass may omit terms.
        """

        def f(z: Array) -> Array:
            return self.value(t, *move_node(action, y, u, z), args)

        z = zero_tangent(action, y, u)
        value, gradient = jax.value_and_grad(f)(z)
        return Quadratic(value, gradient, jax.hessian(f)(z))

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> Float[Array, "n n"] | float:
        """The part of the Hessian that ``quadratic`` omits if it is not exact, zero if nothing."""
        return 0.0

    def rows(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        """Weighted residuals: half the sum of their squares is the cost.

        Raises:
            TypeError: the cost is not a sum of squares.
        """
        raise TypeError(
            f"cost: expected a sum of squares such as ControlEffort or LeastSquares, got {type(self).__name__}; use"
            " another solver, or write the cost as LeastSquares"
        )

    def __add__(self, other: Any) -> "Cost":
        return Sum((self, as_cost(other)))

    def __mul__(self, factor: Any) -> "Cost":
        return Scaled(self, factor)

    __rmul__ = __mul__


class Residual(Cost):
    """Half a weighted sum of squares, ``1/2 sum_i w_i r_i^2``, of residuals r(t, y, u, args).

    Its quadratic model is the Gauss-Newton model, ``J^T W J``, which is positive semidefinite, unless an exact one is
    requested.

    Attributes:
        weight: One value or one for each residual, nonnegative.
    """

    if TYPE_CHECKING:  # a field here would become the first argument of subclasses

        @property
        def weight(self) -> Any: ...

    else:
        weight: eqx.AbstractVar[Any]

    @abstractmethod
    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        """The residuals before weighting, at a node as in ``value``."""

    def end_residual(self, t: Number, y: Point, args: Any) -> Float[Array, " rows"]:
        """The residuals before weighting at the end of the horizon, without a control."""
        return self.residual(t, y, None, args)

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        r = self.residual(t, y, u, args)
        return jnp.sum(self._weights(r) * r * r) / 2

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        if exact:
            return super().quadratic(action, t, y, u, args, exact)
        r, J = self.linear(action, t, y, u, args)
        return gauss_newton_model(J, self._weights(r), r, J.shape[1])

    def linear(
        self, action: Action, t: Number, y: Point, u: Control, args: Any
    ) -> tuple[Float[Array, " rows"], Float[Array, "rows n"]]:
        """Residuals and their derivative with respect to z = (dx, du) at a node.

        By the mode of automatic differentiation with fewer passes; subclasses with a closed-form derivative override
        it.
        """

        def f(z: Array) -> Array:
            return self.residual(t, *move_node(action, y, u, z), args)

        z = zero_tangent(action, y, u)
        r = f(z)
        return r, (jax.jacrev if r.size < z.size else jax.jacfwd)(f)(z)

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> Float[Array, "n n"]:
        """The Hessian of the residuals, weighted by themselves: ``sum_i w_i r_i d2 r_i``."""
        r = self.residual(t, y, u, args)
        pull = self._weights(r) * r

        def weighted(z: Array) -> Array:
            return pull @ self.residual(t, *move_node(action, y, u, z), args)

        return jax.hessian(weighted)(zero_tangent(action, y, u))

    def rows(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        r = self.residual(t, y, u, args)
        return jnp.sqrt(self._weights(r)) * r

    def _weights(self, r: Float[Array, " rows"]) -> Float[Array, " rows"]:
        return jnp.broadcast_to(jnp.asarray(self.weight, r.dtype), r.shape)


class StateResidual(Residual):
    """Squares of residuals of the state only: their model has no derivative with respect to the control."""

    def __check_init__(self):
        check_weight(type(self).__name__, self.weight)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        model = super().quadratic(action, t, y, None, args, exact)
        rest = 0 if u is None else u.size
        return Quadratic(model.value, jnp.pad(model.gradient, (0, rest)), jnp.pad(model.hessian, (0, rest)))

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> Float[Array, "n n"]:
        return jnp.pad(super().remainder(action, t, y, None, args), (0, 0 if u is None else u.size))


class FunctionCost(Cost):
    """A cost given by a function that JAX can trace and differentiate twice.

    Keep the function object and pass changing values through ``args``: another function object, such as a new
    ``lambda`` with the same text, compiles again.

    Attributes:
        function: ``function(t, y, u, args)``, a scalar.
    """

    function: Callable[..., Any]

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        return self.function(t, y, u, args)


class EndFunctionCost(Cost):
    """A terminal cost given by a function.

    Attributes:
        function: ``function(t, y, args)``, a scalar.
    """

    function: Callable[..., Any]

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        return self.function(t, y, args)


class LeastSquares(Residual):
    """Half the weighted sum of squares of a function.

    Attributes:
        function: ``function(t, y, u, args)``, residuals (rows,).
        weight: One value or (rows,), nonnegative.
    """

    function: Callable[..., Any]
    weight: Any = number_field(1.0)

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return self.function(t, y, u, args)


class Sum(Cost):
    """The sum of costs; zero for none."""

    costs: tuple[Cost, ...]

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        zero = jnp.zeros((), jax.tree.leaves(y)[0].dtype)
        return sum((cost.value(t, y, u, args) for cost in self.costs), zero)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        z = zero_tangent(action, y, u)
        total = Quadratic(jnp.zeros((), z.dtype), z, jnp.zeros((z.size, z.size), z.dtype))
        for cost in self.costs:
            total = jax.tree.map(jnp.add, total, cost.quadratic(action, t, y, u, args, exact))
        return total

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> Float[Array, "n n"] | float:
        return sum((cost.remainder(action, t, y, u, args) for cost in self.costs), 0.0)

    def rows(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        none = jnp.zeros(0, jax.tree.leaves(y)[0].dtype)
        return jnp.concatenate([none, *(cost.rows(t, y, u, args) for cost in self.costs)])


class Scaled(Cost):
    """A cost times a factor."""

    cost: Cost
    factor: Any

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, ""]:
        value = self.cost.value(t, y, u, args)
        return value * jnp.asarray(self.factor, value.dtype)

    def quadratic(self, action: Action, t: Number, y: Point, u: Control, args: Any, exact: bool) -> Quadratic:
        model = self.cost.quadratic(action, t, y, u, args, exact)
        return jax.tree.map(lambda x: x * jnp.asarray(self.factor, x.dtype), model)

    def remainder(self, action: Action, t: Number, y: Point, u: Control, args: Any) -> Float[Array, "n n"] | float:
        part = self.cost.remainder(action, t, y, u, args)
        return part * jnp.asarray(self.factor, part.dtype) if isinstance(part, Array) else part

    def rows(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        rows = self.cost.rows(t, y, u, args)
        return rows * jnp.sqrt(jnp.asarray(self.factor, rows.dtype))


def gauss_newton_model(
    J: Float[Array, "m n"], w: Float[Array, " rows"], r: Float[Array, " rows"], size: int
) -> Quadratic:
    """The model ``1/2 (r + J z)^T W (r + J z)`` of z (size,).

    Args:
        J: Derivative of the first m residuals with respect to the first n entries of z. Further residuals are entries
            of z themselves, those that follow the n.
        w: Diagonal of W.
        r: Residuals at z = 0.
        size: Length of z.
    """
    value, gradient, hessian = _of_rows(size)(J, w, w * r, r)
    return Quadratic(value, gradient, hessian)


def model_of_rows(
    J: Float[Array, "m n"], w: Float[Array, " m"], slope: Float[Array, " m"], value: Float[Array, ""], size: int
) -> Quadratic:
    """The model ``value + slope . J z + 1/2 z^T J^T W J z`` of z (size,).

    Args:
        w: Diagonal of W.
    """
    _, gradient, hessian = _of_rows(size)(J, w, slope, slope)
    return Quadratic(value, gradient, hessian)


@cache
def _of_rows(size: int) -> Callable[..., tuple[Array, Array, Array]]:
    """(``r . g / 2``, gradient, hessian) of the models of rows, as one native function."""

    def model(J: Array, w: Array, g: Array, r: Array) -> tuple[Array, Array, Array]:
        m, n = J.shape[:2]
        Jt = dense.transpose(J)
        own = jnp.zeros((size, *g.shape[1:]), g.dtype)
        gradient = own.at[:n].set(times(Jt, g[:m])).at[n : n + len(r) - m].set(g[m:])
        eye = jnp.eye(size, dtype=g.dtype).reshape((size, size) + (1,) * (g.ndim - 1))
        diagonal = eye * own.at[n : n + len(r) - m].set(w[m:])[None]
        return dense.dot(g, r) / 2, gradient, diagonal.at[:n, :n].set(product(Jt, w[:m, None] * J))

    return batch_last(model)


def as_cost(cost: Any, end: bool = False) -> Cost:
    """Convert a cost, a function, or None for zero to a cost.

    Args:
        cost: The cost, ``function(t, y, u, args)``, or None.
        end: True if a function is ``function(t, y, args)``.

    Raises:
        TypeError: the argument has another type.
    """
    if isinstance(cost, Cost):
        return cost
    if cost is None:
        return Sum(())
    if callable(cost):
        return EndFunctionCost(cost) if end else FunctionCost(cost)
    raise TypeError(f"cost: expected a cost of lgsim.optimize or a function, got {type(cost).__name__}")


def move_node(action: Action, y: Point, u: Control, z: Float[Array, " n"]) -> tuple[Point, Control]:
    """The state and control at tangent coordinates z = (dx, du) of a node, or z = dx without a control."""
    n = action.dim
    return action.move(z[:n], y), None if u is None else u + z[n:]


def zero_tangent(action: Action, y: Point, u: Control) -> Float[Array, " n"]:
    """The tangent coordinates of the node itself, zero."""
    return zeros_beside(action.dim + (0 if u is None else u.size), y, u)


def check_weight(owner: str, weight: Any) -> None:
    """Raise ValueError if a weight is negative or not finite; no check inside ``jit``."""
    if not is_traced(weight) and not bool(np.all(np.isfinite(weight) & (np.asarray(weight) >= 0))):
        raise ValueError(f"weight: {owner} expected finite nonnegative numbers, got {weight}")
