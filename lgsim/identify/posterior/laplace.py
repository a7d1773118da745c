"""The Laplace approximation of a posterior: starting points and mass matrix for samplers."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int, Key

from lgsim._compile.xla import compiled, control_flow
from lgsim.identify.estimators.uncertainty import undetermined
from lgsim.identify.posterior.density import LogDensity
from lgsim.support import check
from lgsim.support.check import is_traced

_TOLERANCES = {"float64": 1e-8, "float32": 1e-2}
"""Gain in log density below which the search stops, by dtype."""


class LaplaceApproximation(NamedTuple):
    """The normal distribution at the mode of a log density with the covariance from its curvature.

    Attributes:
        mean: The mode (size,).
        covariance: Inverse of the Hessian of the negative log density (size, size): the inverse mass matrix of
            Hamiltonian Monte Carlo. Curvatures below rounding are replaced by the rounding level, so that the variance
            is then a bound.
        log_density: The log density at the mode.
        iterations: Number of Newton steps, including rejected ones.
        converged: True if the last step would have gained less than ``tolerance``.
    """

    mean: Float[Array, " size"]
    covariance: Float[Array, "size size"]
    log_density: Float[Array, ""]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]

    def draw(
        self, key: Key[Array, ""], shape: tuple[int, ...] = (), dispersion: float = 1.0
    ) -> Float[Array, "*shape size"]:
        """Draws of the normal distribution with standard deviations times ``dispersion``; use values above 1 for
        starting points of chains.
        """
        values, vectors = jnp.linalg.eigh(self.covariance)
        root = vectors * jnp.sqrt(jnp.maximum(values, 0))[None]
        normal = jax.random.normal(key, (*shape, self.mean.size), self.mean.dtype)
        moved = jnp.einsum("ij,...j->...i", root, normal)
        return self.mean.reshape((1,) * len(shape) + (-1,)) + dispersion * moved


class _State(NamedTuple):
    """A point of the search: coordinates, value, gradient and Hessian of the negative log density, damping."""

    z: Array
    cost: Array
    gradient: Array
    hessian: Array
    damping: Array
    tried: Array
    converged: Array


def laplace_approximation(
    density: LogDensity,
    start: Float[Array, " size"] | None = None,
    *,
    max_iterations: int = 200,
    tolerance: float | None = None,
) -> LaplaceApproximation:
    """Find the mode of a posterior by damped Newton steps, with the covariance from the curvature at the mode.

    Compiles once for each structure; use ``jax.vmap`` for many densities in one call. The search runs in the
    coordinates z, in which the densities of bounded parameters and of standard deviations have an interior mode.

    Args:
        start: Initial coordinates z, by default ``density.start``: those of the fit, or of the prior.
        max_iterations: Maximum number of steps.
        tolerance: The gain in log density of an undamped step at which the search stops, by default 1e-8 in float64 and
            1e-2 in float32: a seventh of a standard deviation.

    Raises:
        ValueError: the density is not finite at the start; or a combination of coordinates has neither information from
            the records nor a prior, so that the posterior is improper.
    """
    check.count("max_iterations", max_iterations)
    first = density.start if start is None else start
    if tolerance is None:
        tolerance = _TOLERANCES[first.dtype.name]
    found, H, finite = _search(density, first, max_iterations, jnp.asarray(tolerance, first.dtype))
    if not is_traced(density, first):
        if not bool(finite):
            raise ValueError("start: expected coordinates with a finite density; choose another start")
        lost = _undetermined(density, H)
        if lost:
            raise ValueError(
                "density: the posterior is improper, neither records nor priors determine combinations of"
                f" {', '.join(lost)}. Give their blocks a prior_deviation, or leave some out"
            )
    return found


def _undetermined(density: LogDensity, H: Float[Array, "size size"]) -> list[str]:
    """Names of the coordinates without a proper prior in combinations along which the density is flat."""
    # a direction without curvature has no component along coordinates that a prior curves
    free = np.flatnonzero(~density.has_own_prior())
    if not free.size:
        return []
    blind = np.asarray(undetermined(H[free][:, free]))
    return [density.names[i] for i, is_blind in zip(free, blind, strict=True) if is_blind]


@compiled
def _search(
    density: LogDensity, start: Float[Array, " size"], max_iterations: int, tolerance: Float[Array, ""]
) -> tuple[LaplaceApproximation, Float[Array, "size size"], Bool[Array, ""]]:
    """(approximation, the Hessian at the mode, True if the start is finite)."""

    def cost(z: Array) -> Array:
        return -density(z)

    def slope(z: Array) -> tuple[Array, tuple[Array, Array]]:
        value, gradient = jax.value_and_grad(cost)(z)
        return gradient, (value, gradient)

    def expand(z: Array, damping: Array, tried: Array) -> _State:
        H, (value, gradient) = jax.jacfwd(slope, has_aux=True)(z)
        gain = gradient @ _newton(H, gradient, jnp.zeros_like(damping)) / 2
        return _State(z, value, gradient, H, damping, tried, gain < tolerance)

    def step(s: _State) -> _State:
        trial = s.z - _newton(s.hessian, s.gradient, s.damping)
        better = cost(trial) < s.cost
        damping = jnp.where(better, s.damping / 8, 4 * s.damping)
        worse = s._replace(damping=damping, tried=s.tried + 1)
        return control_flow.cond(better, lambda: expand(trial, damping, s.tried + 1), lambda: worse)

    def more(s: _State) -> Array:
        # if no step size decreases the cost, the remaining gain is rounding and the search ends
        return ~s.converged & (s.tried < max_iterations) & jnp.isfinite(s.cost) & (s.damping < 1 / tolerance**2)

    first = expand(start, jnp.asarray(0.01, start.dtype), jnp.array(0))
    s = control_flow.while_loop(more, step, first)
    approximation = LaplaceApproximation(s.z, _inverse(s.hessian), -s.cost, s.tried, s.converged)
    return approximation, s.hessian, jnp.isfinite(first.cost)


def _inverse(H: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The inverse of a Hessian at a minimum; eigenvalues in coordinates of unit curvature are at least the rounding
    level.
    """
    values, vectors, scale = _spectrum(H)
    rounding = values[-1] * (values.size * float(jnp.finfo(values.dtype).eps))
    inverse = (vectors / jnp.maximum(values, rounding)[None]) @ vectors.T
    return scale[:, None] * inverse * scale[None]


def _newton(H: Float[Array, "n n"], g: Float[Array, " n"], damping: Float[Array, ""]) -> Float[Array, " n"]:
    """The Newton step for the negative gradient with the absolute Hessian, damped in coordinates of unit curvature.

    Source: Dauphin et al. 2014, Identifying and attacking the saddle point problem, for the absolute values.
    """
    values, vectors, scale = _spectrum(H)
    curvature = jnp.abs(values) + damping
    along = vectors.T @ (scale * g)
    # no step along directions in which the density is constant
    moves = jnp.where(curvature > 0, along / jnp.where(curvature > 0, curvature, 1), 0)
    return scale * (vectors @ moves)


def _spectrum(H: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"], Float[Array, " n"]]:
    """(eigenvalues in ascending order, eigenvectors, scale) of ``diag(scale) H diag(scale)``, whose diagonal is +-1 or
    0.
    """
    diagonal = jnp.abs(jnp.diagonal(H))
    scale = jnp.where(diagonal > 0, 1 / jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1)), 1)
    values, vectors = jnp.linalg.eigh(scale[:, None] * H * scale[None])
    return values, vectors, scale
