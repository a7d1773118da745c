"""Derivatives of expectations with respect to means, standard deviations and parameters of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, UInt32

from lgsim.montecarlo.known_values import BLOWN_UP, NOT_FINITE
from lgsim.montecarlo.moments import Moments, running_spread
from lgsim.montecarlo.rollout import Rollout, attribute_of, number_paths
from lgsim.montecarlo.study import DIVERGED, WEIGHT, Columns, Latents, Study, tile_indices
from lgsim.support.check import unknown_name

Values = dict[str, Float[Array, " ..."]]
"""Values, or derivatives with respect to them, by the parameter's name."""


class Parameter(NamedTuple):
    """A parameter of a study: a field of a distribution, or of the rollout if the distribution is None."""

    distribution: str | None
    path: str
    value: Float[Array, " ..."]


def gradient(
    study: Study,
    statistic: str | Callable[[Columns], ArrayLike],
    parameters: Sequence[str] | None = None,
    *,
    mode: str = "reverse",
) -> dict[str, Moments]:
    """Estimate the derivative of the expectation of an output with respect to parameters.

    ``d E[f] / d p = E[d f(y(z; p)) / d p]`` with the standard normal numbers z of a sample fixed: the mean of the
    derivatives of all samples, which has no bias for a continuous output. A jump has no derivative, so that neither
    failures nor integers are possible: differentiate a smooth function of the outputs instead.

    Args:
        statistic: Name of an output of real numbers, or a function of the outputs by name that returns real numbers.
        parameters: Names of parameters: a field of a distribution, such as "v0.mean", "v0.root" (standard
            deviations of ``Normal``) or "q0.root", or a parameter of the ``Rollout`` that is not random, such as
            "model.damping" or "control.stiffness". By default all fields of the distributions.
        mode: "reverse" differentiates once for each number of the statistic, "forward" once for each number of the
            parameters; the results are equal to rounding.

    Returns:
        The moments of the derivatives of the samples by parameter, of shape (*statistic, *parameter): ``mean`` is the
        estimate, ``error`` its standard deviation, ``interval()`` its confidence interval.

    Raises:
        ValueError: a name does not exist, mode is invalid, or samples have no finite derivative.
        TypeError: the statistic is not of real numbers.

    Source: Glasserman, Monte Carlo methods in financial engineering, 2004, section 7.2 (pathwise derivatives).
    """
    if mode not in ("reverse", "forward"):
        raise ValueError(f"mode: expected 'reverse' or 'forward', got {mode!r}")
    if isinstance(statistic, str) and statistic not in study.columns():
        raise unknown_name("statistic: expected an output", statistic, list(study.columns()))
    all_of = _parameters(study)
    for name in parameters or ():
        if name not in all_of:
            raise unknown_name("parameters: expected parameters of the study", name, list(all_of))
    chosen = [name for name, each in all_of.items() if each.distribution] if parameters is None else parameters
    known = {name: all_of[name] for name in chosen}

    def value(given: Values, z: Latents) -> tuple[Array, Columns]:
        own = _with_values(study, known, given)
        columns = own.evaluate(own.sampler.sample(z))
        found = columns[statistic] if isinstance(statistic, str) else jnp.asarray(statistic(columns))
        if not jnp.issubdtype(found.dtype, jnp.floating):
            raise TypeError(
                f"statistic: expected real numbers, got {found.dtype}, whose derivative is zero; return the number"
                " behind it"
            )
        return found, {name: columns[name] for name in (DIVERGED, WEIGHT) if name in columns}

    derive = jax.jacrev if mode == "reverse" else jax.jacfwd

    @jax.jit
    def derivatives(given: Values, indices: UInt32[Array, " tile"]) -> tuple[Values, Columns]:
        z = jax.vmap(study.sampler.latents)(indices)
        return jax.vmap(derive(value, has_aux=True), in_axes=(None, 0))(given, z)

    found = _averaged(study, partial(derivatives, {name: each.value for name, each in known.items()}))
    return {name: found[name] for name in chosen}


def _parameters(study: Study) -> dict[str, Parameter]:
    """The parameters of a study by name."""
    found, random = {}, study.sampler.distributions
    for name, each in random.items():
        for path in number_paths(each):
            found[f"{name}.{path}"] = Parameter(name, path, attribute_of(each, path.split(".")))
    if isinstance(study.rollout, Rollout):
        for path in study.rollout.names():
            if path not in random:
                found[path] = Parameter(None, path, attribute_of(study.rollout, path.split(".")))
    return {
        name: each._replace(value=jnp.asarray(each.value))
        for name, each in found.items()
        if isinstance(each.value, float) or jnp.issubdtype(getattr(each.value, "dtype", bool), jnp.floating)
    }


def _with_values(study: Study, parameters: Mapping[str, Parameter], values: Values) -> Study:
    """The study with other values of some parameters."""
    own = {each.path: values[name] for name, each in parameters.items() if each.distribution is None}
    if own and isinstance(study.rollout, Rollout):
        study = eqx.tree_at(lambda s: s.rollout, study, study.rollout.with_values(own))
    for name, each in parameters.items():
        if each.distribution is not None:
            path = each.path.split(".")

            def place(s: Study, owner: str = each.distribution, path: list[str] = path) -> Any:
                return attribute_of(s.sampler.distributions[owner], path)

            study = eqx.tree_at(place, study, values[name])
    return study


def _averaged(
    study: Study, derivatives: Callable[[UInt32[Array, " tile"]], tuple[Values, Columns]]
) -> dict[str, Moments]:
    """The moments of the derivatives of all samples."""
    found, spreads = {}, {}
    for first in range(0, study.samples, study.tile):
        values, columns = jax.device_get(derivatives(jnp.asarray(tile_indices(first, study.tile, study.samples))))
        count = min(study.tile, study.samples - first)
        weights = np.exp(columns[WEIGHT][:count].astype(float)) if WEIGHT in columns else None
        lost = np.isin(columns[DIVERGED][:count], [NOT_FINITE, BLOWN_UP])
        for name, x in values.items():
            x = x[:count].astype(float)
            lost = lost | ~np.isfinite(x.reshape(count, -1)).all(axis=1)
            own = Moments.of(x, weights)
            found[name] = found[name].merge(own) if first else own
            if study.sampler.points is not None:
                spread = spreads.setdefault(name, running_spread(study.sampler.points, own.mean.size))
                w = np.ones(count) if weights is None else weights
                spread.add(first, x.reshape(count, -1), np.repeat(w[:, None], own.mean.size, axis=1))
        if lost.any():
            raise ValueError(
                f"study: expected a finite derivative of each sample, got {int(lost.sum())} of the samples {first} to"
                f" {first + count - 1} without one, the first is {first + int(np.argmax(lost))}; reduce the step, or"
                " use a smoother statistic"
            )
    for name, spread in spreads.items():
        found[name] = spread.complete(found[name], slice(0, found[name].mean.size))
    return found
