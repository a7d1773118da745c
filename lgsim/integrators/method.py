"""What every one-step method offers: a step, its order, and what it needs from an action."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
from jax import Array

from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action, Point

Field = Callable[[Any, Point, Any], Array]
"""``field(t, y, args)``: the algebra vector (action.dim,) that moves y at time t."""


class Tableau(Protocol):
    """What all tableaus share; they are hashable and hold no arrays."""

    @property
    def name(self) -> str:
        """The name that messages use."""
        ...

    @property
    def order(self) -> int:
        """Order of convergence."""
        ...

    @property
    def embedded_order(self) -> int | None:
        """Order of the embedded scheme, or None."""
        ...


class Method(eqx.Module):
    """A one-step method for ``y' = field(t, y, args) . y``; static data, hashable, no arrays."""

    tableau: eqx.AbstractVar[Tableau]

    @property
    def name(self) -> str:
        """The name of the tableau."""
        return self.tableau.name

    @property
    def order(self) -> int:
        """Order of convergence."""
        return self.tableau.order

    @property
    def embedded_order(self) -> int | None:
        """Order of the embedded scheme, which estimates the error, or None."""
        return self.tableau.embedded_order

    @property
    @abstractmethod
    def requires(self) -> tuple[str, ...]:
        """The verbs, beyond ``move``, that the action must provide."""

    @property
    def by_exponentials(self) -> bool:
        """Whether every point is reached by ``action.move`` alone, as states between adaptive steps ask for."""
        return True

    @abstractmethod
    def step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None]:
        """One step from (t, y): the state at t + dt, and the error estimate of an embedded pair, else None.

        The estimate is an algebra vector (action.dim,) where the pair differs in the algebra (Munthe-Kaas), and the
        scalar ``action.distance`` of the two points where it does not (commutator-free).
        """

    def monitored_step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None, Array | None]:
        """What ``step`` gives, and the relative residual of the equations of an implicit method, else None."""
        return (*self.step(action, field, t, y, dt, args), None)

    def largest_residual(self, dtype: Any) -> float | None:
        """The relative residual above which the equations of an implicit method count as not solved, else None."""
        return None

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks a verb that the method needs."""
        missing = [verb for verb in self.requires if not action.provides(verb)]
        if missing:
            raise TypeError(
                f"action: {self.name} needs {' and '.join(missing)}, which {type(action).__name__} does not define; "
                "define it, or take a commutator-free method (CF4, CG4, ...), which needs only move"
            )


class ImplicitMethod(Method):
    """A method whose step solves equations by Newton's method."""

    newton: eqx.AbstractVar[Newton]

    def step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None]:
        """One step, without its residual."""
        return self.monitored_step(action, field, t, y, dt, args)[:2]

    @abstractmethod
    def monitored_step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, None, Array]:
        """One step from (t, y): the state at t + dt, None, and the relative residual of the equations."""

    def largest_residual(self, dtype: Any) -> float:
        """The relative residual above which the equations count as not solved."""
        return self.newton.largest_residual(dtype)
