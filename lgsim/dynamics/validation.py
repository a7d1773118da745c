"""Shared checks of arguments, and the call of the recursions with the batch axis last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.multibody.model import Model, check_model
from lgsim.support import check

_MEANS = {"q": "nq", "v": "nv"}


def call(core: Callable[..., Any], model: Model, **named: tuple[Any, str]) -> Any:
    """``core(model, *arrays)`` over the broadcast leading axes of the arrays.

    ``named`` has for each array its value and its kind: "q" (nq,), "v" (nv,), or "wrenches" (bodies, 6), which may be
    None. Python numbers are converted to the model's dtype.

    Raises:
        TypeError: the model is not a ``Model`` of one dtype, or an array has another dtype.
        ValueError: an array has a wrong length, or leading axes do not broadcast.
    """
    check_model(model)
    own = {"q": (model.nq,), "v": (model.nv,), "wrenches": (model.topology.bodies, 6)}
    given = {name: (value, kind) for name, (value, kind) in named.items() if value is not None or kind in _MEANS}
    floats = {
        name: (_floating(model, name, value, kind, own[kind]), own[kind]) for name, (value, kind) in given.items()
    }
    arrays = dict(zip(given, check.arguments(**floats), strict=True))
    for name, array in arrays.items():
        if array.dtype != model.dtype:
            raise TypeError(
                f"{name}: expected {model.dtype}, the dtype of the model, got {array.dtype}; convert one of them, e.g."
                f" jax.tree.map(lambda x: x.astype({name}.dtype), model)"
            )
    batch = jnp.broadcast_shapes(*(a.shape[: a.ndim - len(own[given[n][1]])] for n, a in arrays.items()))
    full = [
        None if name not in arrays else jnp.broadcast_to(arrays[name], (*batch, *own[given[name][1]])) for name in named
    ]
    mapped = core
    for _ in batch:
        mapped = jax.vmap(mapped, in_axes=(None, *(None if x is None else 0 for x in full)))
    # matrix products in full precision on every device
    with jax.default_matmul_precision("highest"):
        return mapped(model, *full)


def _floating(model: Model, name: str, value: Any, kind: str, own: tuple[int, ...]) -> Array:
    try:
        return check.floating(name, value, *own, dtype=model.dtype)
    except ValueError:
        if kind in _MEANS and model.nq != model.nv:
            _length(model, name, check.floating(name, value, dtype=model.dtype).shape, kind)
        raise


def _length(model: Model, name: str, shape: tuple[int, ...], kind: str) -> None:
    """Raise a ValueError, with the responsible joint if q has the length of v or the reverse."""
    own, other = (model.nq, model.nv) if kind == "q" else (model.nv, model.nq)
    if shape and shape[-1] == other:
        tree = model.topology
        joint = next(i for i, j in enumerate(tree.joints) if j.nq != j.nv)
        raise ValueError(
            f"{name}: expected shape (..., {own}), that is {_MEANS[kind]}, got {shape}; nq = {model.nq} and nv ="
            f" {model.nv} differ because the joint {tree.joint_names[joint]!r} ({type(tree.joints[joint]).__name__})"
            f" has {tree.joints[joint].nq} coordinates and {tree.joints[joint].nv} velocities"
        )
