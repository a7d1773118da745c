"""What a control gives, checked while it is traced: one force for each degree of freedom."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from lgsim.multibody.model import Model


def joint_forces(value: Any, model: Model) -> Array:
    """The joint forces (nv,) that a control gave.

    Raises:
        TypeError: it is no array of the model's dtype.
        ValueError: its shape is not (nv,): a single number would else become the force of every joint.
    """
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype != model.dtype:
        came = type(value).__name__ if dtype is None else f"one of {dtype}"
        raise TypeError(f"control: expected joint forces, an array ({model.nv},) of {model.dtype}, got {came}")
    if value.shape != (model.nv,):
        raise ValueError(f"control: expected joint forces of shape ({model.nv},), that is nv, got {value.shape}")
    return jnp.asarray(value)
