"""Derivatives with respect to a configuration in its tangent space, with one entry for each degree of freedom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import zeros_beside
from lgsim.multibody.model import Model, check_model
from lgsim.support import check


def tangent_grad(f: Callable[[Array], Array], model: Model, q: Float[Array, " nq"]) -> Float[Array, " nv"]:
    """The gradient of a scalar function of the configuration: ``df(retract(q, s e_i))/ds`` at s = 0.

    ``jax.grad(f)(q)`` has nq entries and depends on the values of f at quaternions that are not unit; this gradient
    does not.

    Args:
        f: Function from a configuration (nq,) to a number.
        q: Configuration, (nq,).

    Raises:
        TypeError: q is not an array of floats, or ``model`` is not a model.
        ValueError: q has a wrong length.
    """
    q = _checked(model, q)
    return jax.grad(_along(f, model, q))(_zero(model, q))


def tangent_jacobian(f: Callable[[Array], Any], model: Model, q: Float[Array, " nq"]) -> Any:
    """The Jacobian (..., nv) of a function of the configuration, by forward mode; see ``tangent_grad``."""
    q = _checked(model, q)
    return jax.jacfwd(_along(f, model, q))(_zero(model, q))


def tangent_hessian(f: Callable[[Array], Array], model: Model, q: Float[Array, " nq"]) -> Float[Array, "nv nv"]:
    """The second derivatives of a scalar function in exponential coordinates about q; see ``tangent_grad``."""
    q = _checked(model, q)
    return jax.hessian(_along(f, model, q))(_zero(model, q))


def _checked(model: Model, q: Any) -> Array:
    check_model(model)
    return check.floating("q", q, model.nq, dtype=model.dtype)


def _along(f: Callable[[Array], Any], model: Model, q: Array) -> Callable[[Array], Any]:
    return lambda dv: f(model.retract(q, dv))


def _zero(model: Model, q: Array) -> Array:
    return zeros_beside(model.nv, q)
