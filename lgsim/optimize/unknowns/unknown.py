"""Unknowns of a plan other than its controls: the final time, the initial state, parameters of the problem."""

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
    """An unknown of a plan other than its controls."""


class FreeTime(Unknown):
    """Free final time: one unknown, the time between nodes, which is equal for all of them.

    The duration H dt from the dynamics is the guess.

    Attributes:
        lower: The shortest duration from the first node to the last one, s, positive.
        upper: The longest duration, s.
        weight: Cost per second; 1 without any other cost gives the minimum-time motion.

    Raises:
        ValueError: a bound is not positive, or they are not in order.
    """

    lower: Any = number_field()
    upper: Any = number_field()
    weight: Any = number_field(0.0)

    def __check_init__(self):
        check_order("FreeTime: lower, upper", self.lower, self.upper)
        if not is_traced(self.lower) and not np.all(np.asarray(self.lower) > 0):
            raise ValueError(f"FreeTime: lower: expected a positive time in s, got {self.lower}")


class FreeStart(Unknown):
    """Free initial state: ``move(x, y0)`` with bounded tangent coordinates x; y0 is the guess.

    Attributes:
        lower: Lower bounds of x, a scalar or (action.dim,), at most zero; zero in both bounds for fixed components.
        upper: Upper bounds, likewise, at least zero.

    Raises:
        ValueError: zero is outside of the bounds.
    """

    lower: Any = number_field()
    upper: Any = number_field()

    def __check_init__(self):
        check_order("FreeStart: lower, 0", self.lower, 0.0)
        check_order("FreeStart: 0, upper", 0.0, self.upper)


class FreeParameters(Unknown):
    """Free parameters of the problem, such as a mass or a spring of the model, a gain or a waypoint.

    ::

        FreeParameters(lambda p, k: eqx.tree_at(lambda p: p.args, p, k), guess=1.0, lower=0.0, upper=5.0)

    Attributes:
        put: ``put(problem, value)``, the problem with new values, of the same structure. Keep the function object:
            another one compiles again.
        guess: The initial values; an array of any shape.
        lower: Lower bounds, one value or one for each.
        upper: Upper bounds, likewise.

    Raises:
        ValueError: a lower bound exceeds its upper one.
    """

    put: Callable[[Any, Any], Any]
    guess: Array = eqx.field(converter=jnp.asarray)
    lower: Any = number_field(-np.inf)
    upper: Any = number_field(np.inf)

    def __check_init__(self):
        check_order("FreeParameters: lower, upper", self.lower, self.upper)


def check_unknowns(unknowns: Any) -> tuple[Unknown, ...]:
    """Validate the unknowns of a problem: at most one each of time and start.

    Raises:
        TypeError: an item is not an unknown.
        ValueError: the time or the start is free twice.
    """
    if isinstance(unknowns, Unknown) or not isinstance(unknowns, Sequence):
        raise TypeError(f"free: expected a list such as [FreeTime(0.5, 3.0)], got {type(unknowns).__name__}")
    for i, unknown in enumerate(unknowns):
        if not isinstance(unknown, Unknown):
            raise TypeError(f"free[{i}]: expected FreeTime, FreeStart or FreeParameters, got {type(unknown).__name__}")
    for kind in (FreeTime, FreeStart):
        if sum(isinstance(unknown, kind) for unknown in unknowns) > 1:
            raise ValueError(f"free: expected at most one {kind.__name__}, got several")
    return tuple(unknowns)
