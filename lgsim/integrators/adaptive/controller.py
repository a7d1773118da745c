"""Step-size control from an error estimate in the algebra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, PyTree

from lgsim._compile.xla import number_field
from lgsim.lie.action import Action, Point
from lgsim.lie.group import norm
from lgsim.support.check import is_traced

Scalar = int | float | Float[Array, ""] | Float[np.ndarray, ""]
Truth = bool | Bool[Array, ""] | Bool[np.ndarray, ""]
FieldFunction = Callable[[diffrax.AbstractTerm, Scalar, Point, Any], Float[Array, " algebra"]]
"""``func(terms, t, y, args)``, the field as diffrax gives it to a controller."""


class AlgebraController(diffrax.AbstractStepSizeController):
    """A diffrax step-size controller applied to algebra vectors: the error e, and the sizes ``action.sizes`` as state.

    With the sizes w ``diffrax.PIDController`` keeps ``rms(e_i / (atol + rtol max(|w_i(y0)|, |w_i(y1)|))) < 1``. Where
    the estimate is a distance of points (commutator-free methods), the size is the Euclidean norm of all entries of the
    point. A step that is not finite is rejected; a step too short to change the time ends the integration with
    ``diffrax.RESULTS.dt_min_reached``.
    """

    controller: diffrax.AbstractStepSizeController
    action: Action

    def wrap(self, direction: int | Int[Array, ""]) -> AlgebraController:
        """The controller for one direction of time, 1 or -1."""
        return AlgebraController(self.controller.wrap(direction), self.action)

    def init(
        self,
        terms: diffrax.AbstractTerm,
        t0: Scalar,
        t1: Scalar,
        y0: Point,
        dt0: Scalar | None,
        args: Any,
        func: FieldFunction,
        error_order: Scalar | None,
    ) -> tuple[Scalar, PyTree]:
        """The end of the first step and the controller's state; the field is probed in coordinates about y0."""
        origin = self.action.sizes(y0)

        def field(
            terms: diffrax.AbstractTerm, t: Scalar, coordinates: Float[Array, " algebra"], args: Any
        ) -> Float[Array, " algebra"]:
            return func(terms, t, self.action.move(coordinates - origin, y0), args)

        return self.controller.init(terms, t0, t1, origin, dt0, args, field, error_order)

    def adapt_step_size(
        self,
        t0: Scalar,
        t1: Scalar,
        y0: Point,
        y1_candidate: Point,
        args: Any,
        y_error: Float[Array, "*estimate"] | None,
        error_order: Scalar,
        controller_state: PyTree,
    ) -> tuple[Truth, Scalar, Scalar, Truth, PyTree, diffrax.RESULTS]:
        """Decide on a step from t0 to t1 with the error estimate ``y_error``, an algebra vector or a distance.

        Returns:
            Whether the step is accepted, the start and the end of the next one, whether it starts at a jump, the
            controller's state, and the result code.
        """
        finite = _all_finite(y1_candidate)
        size = _size if y_error is None or y_error.ndim == 0 else self.action.sizes
        before = size(y0)
        after = jnp.where(finite, size(y1_candidate), before)
        if y_error is not None:
            y_error = jnp.where(finite, y_error, jnp.inf)
        keep, start, end, jump, state, result = self.controller.adapt_step_size(
            t0, t1, before, after, args, y_error, error_order, controller_state
        )
        shorter = jnp.logical_or(keep, end < t1)  # near its last bit a time can round back to the rejected one
        stalled = jnp.logical_not(jnp.logical_and(end > start, shorter))  # also true for NaN times
        return keep, start, end, jump, state, diffrax.RESULTS.where(stalled, diffrax.RESULTS.dt_min_reached, result)


def _all_finite(y: Point) -> Bool[Array, ""]:
    """True if all entries of a point are finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(y)]))


def _size(y: Point) -> Float[Array, ""]:
    """The Euclidean norm of all entries of a point."""
    return norm(jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(y)]))


class ElementaryController(diffrax.AbstractStepSizeController):
    """The elementary step-size rule, which uses only the last step.

    With e, the norm of the error estimate, and p, the order of the embedded scheme,

        h_next = h safety (tolerance / e)^(1 / (p + 1)),    a step is accepted if e < tolerance,

    and a rejected step is repeated with h_next. e is the Euclidean norm of the algebra vector (Munthe-Kaas) or the
    distance of the two points (commutator-free). It is an absolute error, whatever the size of the state.
    ``diffrax.PIDController`` scales each component by its size instead, and uses earlier steps too.

        solve(MK54, action, field, y0, t1=3.0, controller=ElementaryController(1e-6))

    Attributes:
        tolerance: the bound of e, a scalar in the units of the algebra or of the state's entries.
        safety: the safety factor, usually between 0.8 and 0.9.
        shrink: the smallest h_next/h; without it the rule would stop at an error that is not finite.
        grow: the largest h_next/h; without it the rule would take an infinite step after an error of zero.

    Source: Celledoni et al. 2021, (33) and the algorithm below it; Hairer, Norsett, Wanner, Solving ODEs I, (II.4.12).
    """

    tolerance: Float[Array, ""] = eqx.field(converter=lambda value: jnp.asarray(value, float))
    safety: float = number_field(0.85)
    shrink: float = number_field(0.1)
    grow: float = number_field(10.0)

    def __check_init__(self) -> None:
        if not is_traced(self.tolerance) and not float(self.tolerance) > 0:
            raise ValueError(f"tolerance: expected a positive number, got {float(self.tolerance)}")
        if not 0 < self.safety < 1:
            raise ValueError(f"safety: expected a number between 0 and 1, got {self.safety}")
        if not 0 < self.shrink < 1 < self.grow:
            raise ValueError(f"shrink, grow: expected 0 < shrink < 1 < grow, got {self.shrink} and {self.grow}")

    def wrap(self, direction: int | Int[Array, ""]) -> ElementaryController:
        """The controller for one direction of time: itself."""
        return self

    def init(
        self,
        terms: diffrax.AbstractTerm,
        t0: Scalar,
        t1: Scalar,
        y0: PyTree,
        dt0: Scalar | None,
        args: Any,
        func: FieldFunction,
        error_order: Scalar | None,
    ) -> tuple[Scalar, None]:
        """The end of the first step, of length dt0 or of one chosen from the field for the tolerance, and no state."""
        if dt0 is not None:
            return t0 + dt0, None
        first = diffrax.PIDController(rtol=0.0, atol=self.tolerance.astype(jnp.result_type(t0))).init(
            terms, t0, t1, y0, None, args, func, error_order
        )
        return first[0], None

    def adapt_step_size(
        self,
        t0: Scalar,
        t1: Scalar,
        y0: PyTree,
        y1_candidate: PyTree,
        args: Any,
        y_error: Float[Array, "*estimate"] | None,
        error_order: Scalar,
        controller_state: None,
    ) -> tuple[Truth, Scalar, Scalar, Truth, None, diffrax.RESULTS]:
        """Decide on a step from t0 to t1 by the size of its error estimate ``y_error``.

        Returns:
            Whether the step is accepted, the start and the end of the next one, False for no jump, no state, success.

        Raises:
            ValueError: the method has no error estimate.
        """
        if y_error is None:
            raise ValueError("controller: ElementaryController needs a method with an error estimate")
        error = jax.lax.stop_gradient(norm(jnp.ravel(y_error)))
        tolerance = self.tolerance.astype(error.dtype)
        keep = error < tolerance
        ratio = tolerance / jnp.where(error == 0, 1, error)
        wanted = jnp.where(error == 0, self.grow, self.safety * ratio ** (1 / error_order))
        start = jnp.where(keep, t1, t0)
        end = start + (t1 - t0) * jnp.clip(wanted, self.shrink, self.grow)
        return keep, start, end, False, None, diffrax.RESULTS.successful
