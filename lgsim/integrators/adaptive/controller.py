"""The choice of the step from an error that lies in the algebra."""

from __future__ import annotations

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Action, Point
from lgsim.lie.group import norm


class AlgebraController(diffrax.AbstractStepSizeController):
    """Lets a step controller of diffrax see algebra vectors: the error e, and the sizes w of ``action.sizes`` as state.

    So ``diffrax.PIDController`` keeps ``rms(e_i / (atol + rtol max(|w_i(y0)|, |w_i(y1)|))) < 1``. Where the estimate is
    a distance of points (commutator-free methods), the size is the Euclidean norm of all entries of the point. A step
    that is not finite is rejected; a step too short to change the time ends the integration with
    ``diffrax.RESULTS.dt_min_reached``.

    Attributes:
        controller: any step controller of diffrax.
        action: how the algebra moves the state.
    """

    controller: diffrax.AbstractStepSizeController
    action: Action

    def wrap(self, direction: Any) -> AlgebraController:
        """The controller for one direction of time."""
        return AlgebraController(self.controller.wrap(direction), self.action)

    def init(
        self, terms: Any, t0: Any, t1: Any, y0: Point, dt0: Any, args: Any, func: Any, error_order: Any
    ) -> tuple[Any, Any]:
        """The end of the first step and the controller's state; the field is probed in coordinates about y0."""
        origin = self.action.sizes(y0)

        def field(terms: Any, t: Any, coordinates: Array, args: Any) -> Array:
            return func(terms, t, self.action.move(coordinates - origin, y0), args)

        return self.controller.init(terms, t0, t1, origin, dt0, args, field, error_order)

    def adapt_step_size(
        self,
        t0: Any,
        t1: Any,
        y0: Point,
        y1_candidate: Point,
        args: Any,
        y_error: Array | None,
        error_order: Any,
        controller_state: Any,
    ) -> tuple[Any, Any, Any, Any, Any, diffrax.RESULTS]:
        """Whether the step is kept, and the next one."""
        finite = _all_finite(y1_candidate)
        size = _size if y_error is None or y_error.ndim == 0 else self.action.sizes
        before = size(y0)
        after = jnp.where(finite, size(y1_candidate), before)
        if y_error is not None:
            y_error = jnp.where(finite, y_error, jnp.inf)
        keep, start, end, jump, state, result = self.controller.adapt_step_size(
            t0, t1, before, after, args, y_error, error_order, controller_state
        )
        shorter = jnp.logical_or(keep, end < t1)  # near its last bit a time can round back to the one rejected
        stalled = jnp.logical_not(jnp.logical_and(end > start, shorter))  # also where a time is not a number
        return keep, start, end, jump, state, diffrax.RESULTS.where(stalled, diffrax.RESULTS.dt_min_reached, result)


def _all_finite(y: Point) -> Array:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(y)]))


def _size(y: Point) -> Array:
    return norm(jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(y)]))
