"""Checks of the arguments that all integrations share."""

from __future__ import annotations

import math
import operator
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.core import Tracer
from jaxtyping import Float

from lgsim.integrators.method import Field, Number
from lgsim.lie.action import Action, Point
from lgsim.support import check


def state(y0: Point) -> tuple[Point, jnp.dtype]:
    """The initial state as strongly typed arrays of one floating dtype, and that dtype.

    Raises:
        TypeError: y0 holds nothing, something that is no floating array, or arrays of several dtypes.
    """
    leaves, structure = jax.tree.flatten_with_path(y0)
    if not leaves:
        raise TypeError("y0: expected an array or a tuple of arrays, got nothing")
    arrays = {f"y0{jax.tree_util.keystr(path)}": leaf for path, leaf in leaves}
    checked = {name: check.floating(name, leaf) for name, leaf in arrays.items()}
    if len({a.dtype for a in checked.values()}) > 1:
        kinds = ", ".join(f"{name} is {a.dtype}" for name, a in checked.items())
        raise TypeError(f"y0: expected leaves of one dtype, but {kinds}")
    # A Python number would make the carry weakly typed and the step be traced twice.
    strong = [jax.lax.convert_element_type(a, a.dtype) for a in checked.values()]
    return jax.tree.unflatten(structure, strong), strong[0].dtype


def count(name: str, value: int) -> int:
    """``value`` as an integer of at least 1, the argument that errors call ``name``.

    Raises:
        TypeError: it is no integer that is known before compilation.
        ValueError: it is less than 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected an integer known before compilation, got {type(value).__name__}") from None
    if number < 1:
        raise ValueError(f"{name}: expected at least 1, got {number}")
    return number


def scalar(name: str, value: Number, dtype: jnp.dtype) -> Float[Array, ""]:
    """``value`` as one number of the dtype, the argument that errors call ``name``.

    Raises:
        ValueError: it is not a single number, or it is known and not finite.
    """
    if jnp.shape(value) != ():
        raise ValueError(f"{name}: expected a single number, got shape {jnp.shape(value)}")
    if not isinstance(value, Tracer) and not math.isfinite(float(value)):
        raise ValueError(f"{name}: expected a finite number, got {float(value)}")
    return jnp.asarray(value).astype(dtype)


def check_field(action: Action, field: Field, t0: Float[Array, ""], y0: Point, args: Any) -> None:
    """Raise if the field gives no algebra vector of the action at the state, or the action does not keep its shape.

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
    moved = jax.eval_shape(action.move, xi, y0)
    shapes = [jax.tree.map(jnp.shape, tree) for tree in (y0, moved)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"y0: expected one state of {type(action).__name__}, got shapes {shapes[0]}, moved to {shapes[1]}; "
            "use jax.vmap for a batch"
        )
