"""First-order covariance by derivatives of one motion, for comparison with the sample covariance."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from lgsim.lie.group import LieGroup
from lgsim.montecarlo.distributions import Haar
from lgsim.montecarlo.spaces import Space, VectorSpace, as_space
from lgsim.montecarlo.study import Study
from lgsim.multibody.model import Model
from lgsim.support.check import unknown_name


class LinearCovariance(NamedTuple):
    """An output to first order in the standard normal numbers z of a sample, about the median z = 0.

    Attributes:
        value: The output at the median, of the output's shape.
        covariance: ``J J^T`` with the Jacobian J of the output with respect to z, (dim, dim); on a group in body
            tangents.
        parts: The contribution of each distribution to the covariance, (dim, dim), by the distribution's name.
        jacobian: The columns of J for each distribution, (dim, k), by the distribution's name.
    """

    value: Float[np.ndarray, "*shape"]
    covariance: Float[np.ndarray, "dim dim"]
    parts: dict[str, Float[np.ndarray, "dim dim"]]
    jacobian: dict[str, Float[np.ndarray, "dim k"]]


def linear_covariance(study: Study, output: str, space: Model | LieGroup | Space | None = None) -> LinearCovariance:
    """Compute the first-order covariance of an output.

    It uses ``jax.jvp`` or ``jax.vjp`` through the motion, whichever needs fewer passes.

    ``cov = J J^T``, ``J = d difference(y(0), y(z)) / dz`` at z = 0: exact for normal distributions and an output that
    is linear in them, and accurate if it is nearly linear over their standard deviations.

    Args:
        study: A study whose distributions have a median, hence without ``Haar``; tilts are ignored.
        space: The space of an output that is a point of a group, see ``Results.intrinsic``; by default a vector space.

    Raises:
        ValueError: the output does not exist, its shape is not the space's, or attitudes are uniform.
    """
    for name, distribution in study.sampler.distributions.items():
        if isinstance(distribution, Haar):
            raise ValueError(
                f"{name}: expected a distribution with a median, got uniform attitudes, about which nothing can be"
                " linearized"
            )
    kinds = study.columns()
    if output not in kinds:
        raise unknown_name("output: expected one of the study", output, list(kinds))
    manifold = VectorSpace(kinds[output].shape) if space is None else as_space(space)
    if kinds[output].shape != manifold.shape:
        raise ValueError(f"output: expected shape {manifold.shape}, the space's, got {kinds[output].shape}")
    value, jacobian = jax.jit(_value_and_jacobian(study, output, manifold))()
    columns = {name: np.asarray(x, float) for name, x in jacobian.items()}
    parts = {name: J @ J.T for name, J in columns.items()}
    total = sum(parts.values(), np.zeros((manifold.dim, manifold.dim)))
    return LinearCovariance(np.asarray(value), total, parts, columns)


def _value_and_jacobian(study: Study, output: str, space: Space) -> Callable[[], tuple[Array, dict[str, Array]]]:
    """A function that returns the output at the median and the columns of its Jacobian by distribution."""
    distributions = study.sampler.distributions
    median = {name: jnp.zeros(each.dim, each.dtype) for name, each in distributions.items()}
    flat, unflatten = ravel_pytree(median)

    def value(z: Float[Array, " dim"]) -> Float[Array, "*shape"]:
        values = {name: distributions[name](x) for name, x in unflatten(z).items()}
        motion = study.rollout(values)
        return jnp.asarray(study.outputs[output](motion) if study.outputs else motion[output])

    def value_and_jacobian() -> tuple[Array, dict[str, Array]]:
        center = value(flat)
        derive = jax.jacfwd if flat.size <= space.dim else jax.jacrev
        J = derive(lambda z: space.difference(center, value(z)))(flat)
        return center, {name: jax.vmap(unflatten)(J)[name] for name in distributions}

    return value_and_jacobian
