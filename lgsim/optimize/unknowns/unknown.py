"""What a plan may choose beside its controls: the final time, the start, numbers of the problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim._compile.xla import number_field
from lgsim.optimize.constraints.state_bounds import check_order
from lgsim.support.check import is_traced


class Unknown(eqx.Module):
    """What a plan chooses beside its controls."""


class FreeTime(Unknown):
    """The time of the last node: one unknown, the time between nodes, which is the same for all of them.

    The time that the dynamics give, H dt, is the guess.

    Attributes:
        lower: The shortest time from the first node to the last one, s, above zero.
        upper: The longest one, s.
        weight: Cost of a second; 1 with no other cost plans the shortest motion.

    Raises:
        ValueError: a bound is not above zero, or not in order.
    """

    lower: Any = number_field()
    upper: Any = number_field()
    weight: Any = number_field(0.0)

    def __check_init__(self):
        check_order("FreeTime: lower, upper", self.lower, self.upper)
        if not is_traced(self.lower) and not np.all(np.asarray(self.lower) > 0):
            raise ValueError(f"FreeTime: lower: expected a time above 0 s, got {self.lower}")


class FreeStart(Unknown):
    """The first state: ``move(x, y0)`` with tangent coordinates x between bounds; y0 is the guess.

    Attributes:
        lower: Lower bounds of x, one number or (action.dim,), at most zero; zero in both for what is given.
        upper: Upper bounds, likewise, at least zero.

    Raises:
        ValueError: zero is not within the bounds.
    """

    lower: Any = number_field()
    upper: Any = number_field()

    def __check_init__(self):
        check_order("FreeStart: lower, 0", self.lower, 0.0)
        check_order("FreeStart: 0, upper", 0.0, self.upper)


class FreeParameters(Unknown):
    """Numbers of the problem, such as a mass or a spring of the machine, a gain or a waypoint.

    ::

        FreeParameters(lambda p, k: eqx.tree_at(lambda p: p.args, p, k), guess=1.0, lower=0.0, upper=5.0)

    Attributes:
        put: ``put(problem, value)``, the problem with other numbers, of the same structure. Keep the function: another
            one compiles again.
        guess: The numbers to start from; an array of any shape.
        lower: Lower bounds, one number or one for each.
        upper: Upper bounds, likewise.

    Raises:
        ValueError: a lower bound lies above its upper one.
    """

    put: Callable[[Any, Any], Any]
    guess: Array = eqx.field(converter=jnp.asarray)
    lower: Any = number_field(-np.inf)
    upper: Any = number_field(np.inf)

    def __check_init__(self):
        check_order("FreeParameters: lower, upper", self.lower, self.upper)


def check_unknowns(unknowns: Any) -> tuple[Unknown, ...]:
    """The unknowns of a problem, if each is one and there are no two of time or start.

    Raises:
        TypeError: one is no unknown.
        ValueError: the time or the start is free twice.
    """
    if isinstance(unknowns, Unknown) or not isinstance(unknowns, Sequence):
        raise TypeError(f"free: expected a list such as [FreeTime(0.5, 3.0)], got {type(unknowns).__name__}")
    for i, unknown in enumerate(unknowns):
        if not isinstance(unknown, Unknown):
            raise TypeError(f"free[{i}]: expected FreeTime, FreeStart or FreeParameters, got {type(unknown).__name__}")
    for kind in (FreeTime, FreeStart):
        if sum(isinstance(unknown, kind) for unknown in unknowns) > 1:
            raise ValueError(f"free: expected one {kind.__name__} at most, got several")
    return tuple(unknowns)
