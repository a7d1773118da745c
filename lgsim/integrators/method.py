"""What every one-step method offers: a step, its order, and what it needs from an action."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import equinox as eqx
from jax import Array

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

    @abstractmethod
    def step(
        self, action: Action, field: Field, t: Array, y: Point, dt: Array, args: Any
    ) -> tuple[Point, Array | None]:
        """One step from (t, y): the state at t + dt, and the error estimate of an embedded pair, else None.

        The estimate is an algebra vector (action.dim,) where the pair differs in the algebra (Munthe-Kaas), and the
        scalar ``action.distance`` of the two points where it does not (commutator-free).
        """

    def check(self, action: Action) -> None:
        """Raise TypeError if the action lacks a verb that the method needs."""
        missing = [verb for verb in self.requires if not action.provides(verb)]
        if missing:
            raise TypeError(
                f"action: {self.name} needs {' and '.join(missing)}, which {type(action).__name__} does not define; "
                "define it, or take a commutator-free method (CF4, CG4, ...), which needs only move"
            )
