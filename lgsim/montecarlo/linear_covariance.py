"""Covariance to first order, by derivatives of one motion, beside the sampled one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from lgsim.montecarlo.distributions import Haar
from lgsim.montecarlo.spaces import Space, VectorSpace, space_of
from lgsim.montecarlo.study import Study
from lgsim.support.check import unknown_name


class LinearCovariance(NamedTuple):
    """An output to first order in the samples' normal numbers z, about their median z = 0.

    Attributes:
        value: At the median.
        covariance: ``J J^T`` with the Jacobian J of the output in z, (dim, dim); on a group of body tangents.
        parts: What each distribution adds to the covariance, by its name.
        jacobian: The columns of J for each distribution, by its name.
    """

    value: np.ndarray
    covariance: np.ndarray
    parts: dict[str, np.ndarray]
    jacobian: dict[str, np.ndarray]


def linear_covariance(study: Study, output: str, space: Any = None) -> LinearCovariance:
    """The covariance of an output by ``jax.jvp`` or ``jax.vjp`` through the motion, whichever needs fewer passes.

    ``cov = J J^T``, ``J = d gap(y(0), y(z)) / dz`` at z = 0: exact for Gaussian distributions and an output that is
    linear in them, and good where it is nearly so over their spread.

    Args:
        study: Whose distributions have a median, so no ``Haar``; tilts count nothing.
        output: Name of an output.
        space: Of an output that is a point of a group, see ``Results.intrinsic``; by default plain numbers.

    Raises:
        ValueError: there is no such output, or its shape is not the space's; attitudes are uniform.
    """
    for name, distribution in study.sampler.distributions.items():
        if isinstance(distribution, Haar):
            raise ValueError(f"{name}: uniform attitudes have no median, about which there is nothing linear")
    kinds = study.columns()
    if output not in kinds:
        raise unknown_name("output: expected one of the study", output, list(kinds))
    where = VectorSpace(kinds[output].shape) if space is None else space_of(space)
    if kinds[output].shape != where.shape:
        raise ValueError(f"output: expected shape {where.shape}, the space's, got {kinds[output].shape}")
    value, jacobian = jax.jit(_jacobian(study, output, where))()
    columns = {name: np.asarray(x, float) for name, x in jacobian.items()}
    parts = {name: J @ J.T for name, J in columns.items()}
    return LinearCovariance(np.asarray(value), sum(parts.values(), np.zeros((where.dim, where.dim))), parts, columns)


def _jacobian(study: Study, output: str, space: Space) -> Callable[[], tuple[Array, dict[str, Array]]]:
    """(value, columns of the Jacobian by name) at the median."""
    distributions = study.sampler.distributions
    median = {name: jnp.zeros(each.dim, each.dtype) for name, each in distributions.items()}
    flat, back = ravel_pytree(median)

    def value(z: Array) -> Array:
        values = {name: distributions[name](x) for name, x in back(z).items()}
        motion = study.rollout(values)
        return jnp.asarray(study.outputs[output](motion) if study.outputs else motion[output])

    def both() -> tuple[Array, dict[str, Array]]:
        center = value(flat)
        derive = jax.jacfwd if flat.size <= space.dim else jax.jacrev
        J = derive(lambda z: space.gap(center, value(z)))(flat)
        return center, {name: jax.vmap(back)(J)[name] for name in distributions}

    return both
