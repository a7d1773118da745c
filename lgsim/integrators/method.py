"""The interface of one-step methods: a step, its order, and the required operations of the action; and the argument
checks of all integrations.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, Real

from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action, Point
from lgsim.support import check
from lgsim.support.check import is_traced
from lgsim.support.full_repr import is_full

Number = int | float | np.integer | np.floating | Real[np.ndarray, ""] | Real[Array, ""]
"""A real scalar, as a Python number or an array without axes."""
Field = Callable[[Float[Array, ""], Point, Any], Float[Array, " algebra"]]
"""``field(t, y, args)``: the algebra vector (action.dim,) that moves y at time t."""


class Tableau(Protocol):
    """The coefficients of a method; a tableau is hashable and holds no arrays."""

    @property
    def name(self) -> str:
        """The name that messages use."""
        ...

    @property
    def order(self) -> int:
        """The order of convergence."""
        ...

    @property
    def embedded_order(self) -> int | None:
        """The order of the embedded scheme, or None without one."""
        ...


class Method(eqx.Module):
    """A one-step method for ``y' = field(t, y, args) . y``; static data, hashable, no arrays.

    Attributes:
        tableau: the coefficients, with the name and the order.
    """

    if TYPE_CHECKING:  # a field here would be the first argument of subclasses

        @property
        def tableau(self) -> Tableau: ...

    else:
        tableau: eqx.AbstractVar[Tableau]

    def __repr__(self) -> str:
        """The name; in a fingerprint all coefficients."""
        return eqx.Module.__repr__(self) if is_full() else self.name

    @property
    def name(self) -> str:
        """The name of the method, which messages use."""
        return self.tableau.name

    @property
    def order(self) -> int:
        """The order of convergence."""
        return self.tableau.order

    @property
    def embedded_order(self) -> int | None:
        """The order of the embedded scheme, which estimates the error, or None without one."""
        return self.tableau.embedded_order

    @property
    def requires(self) -> tuple[str, ...]:
        """The names of the operations, beyond ``move``, that the action must define, such as "dexpinv"."""
        return ()

    @property
    def by_exponentials(self) -> bool:
        """True if every point is reached by ``action.move`` only, as states between adaptive steps require."""
        return True

    @property
    def fixed_step_reason(self) -> str | None:
        """The reason why steps of changing length would destroy the method's structure, or None."""
        return None

    @abstractmethod
    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, "*estimate"] | None]:
        """Take one step from (t, y), whose dtype is that of t, dt and all arrays of y.

        Args:
            action: the group action on the state.
            field: ``field(t, y, args)``, the algebra vector (action.dim,).
            t: the time at the start of the step.
            y: the state at the start of the step.
            dt: the length of the step, of either sign.
            args: anything the field needs.

        Returns:
            The state at t + dt, and the error estimate of an embedded pair, else None. The estimate is an algebra
            vector (action.dim,) where the pair differs in the algebra (Munthe-Kaas), and the scalar
            ``action.distance`` of the two points where it does not (commutator-free).
        """

    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, Float[Array, "*estimate"] | None, Float[Array, ""] | None]:
        """Take one step and return the residual of its equations; arguments as for ``step``.

        Returns:
            The results of ``step``, and the relative residual () of the equations of an implicit method, else None.
        """
        return (*self.step(action, field, t, y, dt, args), None)

    def largest_residual(self, dtype: DTypeLike) -> float | Float[Array, ""] | None:
        """The relative residual above which the equations of an implicit method count as not solved, else None."""
        return None

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks an operation that the method needs."""
        missing = [verb for verb in self.requires if not action.provides(verb)]
        if missing:
            raise TypeError(
                f"action: {self.name} needs {' and '.join(missing)}, which {type(action).__name__} does not define; "
                "define it, or take a commutator-free method (CF4, CG4, ...), which needs only move"
            )

    def check_problem(self, action: Action, field: Field, t0: Float[Array, ""], y0: Point, args: Any) -> None:
        """Raise if the method cannot start from y0 with this field; like ``check_field`` and ``action.check_point``."""
        check_field(action, field, t0, y0, args)
        action.check_point(y0, "y0")


class ImplicitMethod(Method):
    """A method whose step solves equations by Newton's method."""

    if TYPE_CHECKING:  # a field here would be the first argument of subclasses

        @property
        def newton(self) -> Newton: ...

    else:
        newton: eqx.AbstractVar[Newton]

    def step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, None]:
        """The step of ``monitored_step`` without its residual; there is no error estimate."""
        return self.monitored_step(action, field, t, y, dt, args)[:2]

    @abstractmethod
    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Point, dt: Float[Array, ""], args: Any
    ) -> tuple[Point, None, Float[Array, ""]]:
        """Take one step; returns the state at t + dt, None, and the relative residual () of the equations."""

    def largest_residual(self, dtype: DTypeLike) -> float | Float[Array, ""]:
        """The relative residual above which the equations count as not solved in this dtype."""
        return self.newton.largest_residual(dtype)


def names_of_methods(namespace: Mapping[str, object]) -> list[str]:
    """The names of the methods in a namespace, such as ``globals()`` of a module, in the order of definition."""
    return [name for name, value in namespace.items() if isinstance(value, Method)]


def state(y0: Point) -> tuple[Point, jnp.dtype]:
    """The initial state as strongly typed arrays of one floating dtype, and that dtype.

    Raises:
        TypeError: y0 is empty, contains something other than floating arrays, or arrays of several dtypes.
    """
    leaves, structure = jax.tree.flatten_with_path(y0)
    if not leaves:
        raise TypeError("y0: expected an array or a tuple of arrays, got nothing")
    arrays = {f"y0{jax.tree_util.keystr(path)}": leaf for path, leaf in leaves}
    checked = {name: check.floating(name, leaf) for name, leaf in arrays.items()}
    if len({a.dtype for a in checked.values()}) > 1:
        kinds = ", ".join(f"{name} is {a.dtype}" for name, a in checked.items())
        raise TypeError(f"y0: expected leaves of one dtype, but {kinds}")
    # A Python number would make the carry weakly typed, so that the step would be traced twice.
    strong = [jax.lax.convert_element_type(a, a.dtype) for a in checked.values()]
    return jax.tree.unflatten(structure, strong), strong[0].dtype


def scalar(name: str, value: Number, dtype: jnp.dtype) -> Float[Array, ""]:
    """``value`` as a scalar of the dtype; ``name`` is the argument's name in errors.

    Raises:
        TypeError: it is not a number.
        ValueError: it is not a scalar, or not finite.
    """
    check.number(name, value)
    if not is_traced(value) and not math.isfinite(float(value)):
        raise ValueError(f"{name}: expected a finite number, got {float(value)}")
    return jnp.asarray(value).astype(dtype)


def check_field(action: Action, field: Field, t0: Float[Array, ""], y0: Point, args: Any) -> None:
    """Raise unless the field returns an algebra vector of the action and the action preserves the shape of the state.

    Raises:
        ValueError: the field's value has another shape than (action.dim,), or the action changes the shape of y0.
        TypeError: the field's value has another dtype than y0.
    """
    xi = eqx.filter_eval_shape(partial(field), t0, y0, args)  # args may hold functions
    dtype = jax.tree.leaves(y0)[0].dtype
    if not hasattr(xi, "shape") or xi.shape != (action.dim,):
        came = getattr(xi, "shape", type(xi).__name__)
        raise ValueError(
            f"field: expected one algebra vector of shape ({action.dim},), got {came}; use jax.vmap for batches"
        )
    if xi.dtype != dtype:
        raise TypeError(f"field: expected the dtype of y0, {dtype}, got {xi.dtype}; look for arrays of it in args")
    # not for xi: in a shard_map over some axes, JAX refuses the shapes of what differs between devices
    moved = jax.eval_shape(lambda y: action.move(jnp.zeros(xi.shape, xi.dtype), y), y0)
    shapes = [jax.tree.map(jnp.shape, tree) for tree in (y0, moved)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"y0: expected one state of {type(action).__name__}, got shapes {shapes[0]}, moved to {shapes[1]}; "
            "use jax.vmap for a batch"
        )
