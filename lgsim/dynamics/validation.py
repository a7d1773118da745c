"""Checks of the arguments that all algorithms share, and their way to the recursions: the batch last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from lgsim.multibody.model import Model
from lgsim.support import check

_MEANS = {"q": "nq", "v": "nv"}


def call(core: Callable[..., Any], model: Model, **named: tuple[Any, str]) -> Any:
    """``core(model, *arrays)`` over the leading axes that the arrays share.

    ``named`` gives for each array its value and its kind: "q" (nq,), "v" (nv,), "wrenches" (bodies, 6). An array may be
    None.

    Raises:
        TypeError: the model is no ``Model``, an array is not of its dtype.
        ValueError: an array has a wrong length, or leading axes do not broadcast.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model: expected an lgsim.Model, got {type(model).__name__}; lgsim.load_urdf makes one")
    own = {"q": (model.nq,), "v": (model.nv,), "wrenches": (model.topology.bodies, 6)}
    given = {name: (value, kind) for name, (value, kind) in named.items() if value is not None}
    for name, (value, kind) in given.items():
        _length(model, name, value, kind, own[kind])
    arrays = dict(
        zip(given, check.arguments(**{n: (value, own[kind]) for n, (value, kind) in given.items()}), strict=True)
    )
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


def _length(model: Model, name: str, value: Any, kind: str, own: tuple[int, ...]) -> None:
    """A hint where q is as long as v or the reverse: which joint makes the difference."""
    shape: tuple[int, ...] = jnp.shape(value)
    other = {"q": model.nv, "v": model.nq}.get(kind)
    if model.nq != model.nv and shape and shape[-1] == other and kind in _MEANS:
        tree = model.topology
        joint = next(i for i, j in enumerate(tree.joints) if j.nq != j.nv)
        raise ValueError(
            f"{name}: expected shape (..., {own[0]}), that is {_MEANS[kind]}, got {shape}; nq = {model.nq} and nv ="
            f" {model.nv} differ because the joint {tree.joint_names[joint]!r} ({type(tree.joints[joint]).__name__})"
            f" has {tree.joints[joint].nq} coordinates and {tree.joints[joint].nv} velocities"
        )
