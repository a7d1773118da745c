"""Definition of a Monte Carlo study; sample i depends only on the seed and i."""

from __future__ import annotations

import copy
import functools
import math
import operator
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Integer, PyTree, Shaped, UInt32

from lgsim._compile.xla import compiled, traced_platform
from lgsim.integrators.method import Method
from lgsim.montecarlo.distributions import Distribution
from lgsim.montecarlo.known_values import COMPLETE, PARTIAL, KnownValues, comparable, divergence_code, outputs_used
from lgsim.montecarlo.low_discrepancy import Antithetic, PointSequence, ReplicatedPoints
from lgsim.montecarlo.rollout import Rollout
from lgsim.simulation import Trajectory
from lgsim.support.messages import listed
from lgsim.support.printable import printable

Latents = dict[str, Float[Array, " dim"]]
"""The standard normal numbers of each distribution, by its name."""

Columns = dict[str, Shaped[Array, " ..."]]
"""The outputs of a sample, by name."""

SAMPLE, DIVERGED, WEIGHT, FAILED, INPUT = "sample", "diverged", "log_weight", "failed ", "input."
"""Columns in addition to the outputs: the sample's index; 0, or 1 if it is not finite, 2 if it is blown up, 3 if only
some outputs have values; the logarithm of its weight under importance sampling; True if it failed, followed by the name
of the failure; a random number, followed by its name.
"""

CPU_TILE, DEVICE_TILE = 64, 8192
"""Number of samples that are computed together: vector code that fits a CPU's cache; as many as fill a GPU."""


class Sample(NamedTuple):
    """The random values of one sample.

    Attributes:
        log_weight: Logarithm of the ratio of the target density to the sampled one; 0 without importance sampling.
    """

    values: dict[str, PyTree]
    log_weight: Float[Array, ""]


class RandomNumber(NamedTuple):
    """A random number in the value of a distribution.

    Attributes:
        distribution: Name of the distribution.
        leaf: Index of its array among those of the value.
        place: Flat index in the array.
    """

    distribution: str
    leaf: int
    place: int
    dtype: np.dtype


class ImportanceTilt(eqx.Module):
    """Importance sampling of a distribution's standard normal numbers: ``z = shift + scale y`` with y standard normal.

    A shift towards the failure makes rare failures frequent; all estimates use the weights ``p(z)/p_tilted(z)``. With a
    scale below 1 the weights are unbounded in the tails: use 1 or slightly more.

    Attributes:
        shift: A scalar, or one value for each normal number of the distribution (dim,).
        scale: Positive; a number or (dim,).
    """

    shift: Float[Array, " ..."] = eqx.field(converter=jnp.asarray, default=0.0)
    scale: Float[Array, " ..."] = eqx.field(converter=jnp.asarray, default=1.0)

    def __check_init__(self) -> None:
        if not np.all(np.isfinite(np.asarray(self.shift))):
            raise ValueError(f"shift: expected finite numbers, got {self.shift}")
        if not np.all(np.isfinite(np.asarray(self.scale)) & (np.asarray(self.scale) > 0)):
            raise ValueError(f"scale: expected positive numbers, got {self.scale}")


class Sampler(eqx.Module):
    """Independent distributions by name, and the sequence that they use.

    Each uses its own normal numbers. Under random sampling they are those of the key ``fold_in(fold_in(key(seed), i),
    crc32(name))``, independent of the other distributions; under a sequence the next coordinates of point i, names in
    alphabetical order. Processes are always random. The second sample of an antithetic pair has those of the first one
    with the opposite sign, which are those of the key of the pair.

    Attributes:
        seed: The words of the key, (2,), uint32.
        points: The points of the sequence, or None for random sampling.
        tilts: The densities of importance sampling, by the distribution's name.
    """

    distributions: dict[str, Distribution]
    seed: UInt32[Array, " 2"]
    points: ReplicatedPoints | Antithetic | None
    tilts: dict[str, ImportanceTilt]

    def __init__(
        self,
        distributions: Mapping[str, Distribution],
        seed: int,
        samples: int,
        sequence: PointSequence | Antithetic | None = None,
        tilts: Mapping[str, ImportanceTilt] | None = None,
    ) -> None:
        for name, distribution in distributions.items():
            if not isinstance(distribution, Distribution):
                raise TypeError(f"{name}: expected a distribution of lgsim.montecarlo, got {distribution!r}")
        self.distributions, self.tilts = dict(distributions), dict(tilts or {})
        for name in self.tilts:
            if name not in self.distributions:
                raise ValueError(f"tilts: expected names of distributions, {sorted(distributions)}, got {name!r}")
        self.seed = jnp.asarray(np.array([seed >> 32, seed & 0xFFFFFFFF], np.uint32))
        paired = isinstance(sequence, Antithetic)
        if paired and self.tilts:
            raise ValueError(
                "tilts: not available with Antithetic(), whose pairs have equal weights; leave one of them out"
            )
        used = sequence if self.width or paired else None
        self.points = None if used is None else used.points(seed, samples, self.width)

    @property
    def names(self) -> list[str]:
        """The names of the distributions, in alphabetical order."""
        return sorted(self.distributions)

    @property
    def width(self) -> int:
        """The number of coordinates of a sample in a sequence."""
        return sum(each.dim for each in self.distributions.values() if not each.is_process)

    def latents(self, i: Integer[Array, ""]) -> Latents:
        """The standard normal numbers of sample i, before tilts."""
        points = self.points
        first = i // 2 if isinstance(points, Antithetic) else i
        key = jax.random.fold_in(jax.random.wrap_key_data(self.seed, impl="threefry2x32"), first)
        found, start = {}, 0
        for name in self.names:
            each = self.distributions[name]
            if each.is_process or not isinstance(points, ReplicatedPoints):
                own = jax.random.fold_in(key, zlib.crc32(name.encode()))
                z = jax.random.normal(own, (each.dim,), each.dtype)
                found[name] = jnp.where(i % 2 == 1, -z, z) if isinstance(points, Antithetic) else z
            else:
                found[name] = points.normal(i, each.dtype)[start : start + each.dim]
                start += each.dim
        return found

    def sample(self, latents: Latents) -> Sample:
        """The sample for standard normal numbers, including tilts."""
        weight = jnp.zeros(())
        tilted = dict(latents)
        for name, tilt in sorted(self.tilts.items()):
            y = latents[name]
            scale = jnp.broadcast_to(tilt.scale.astype(y.dtype), y.shape)
            z = jnp.broadcast_to(tilt.shift.astype(y.dtype), y.shape) + scale * y
            tilted[name] = z
            weight = weight + jnp.sum(0.5 * (y * y - z * z) + jnp.log(scale)).astype(weight.dtype)
        return Sample({name: self.distributions[name](tilted[name]) for name in self.names}, weight)

    def draw(self, i: Integer[Array, ""]) -> Sample:
        """Sample i."""
        return self.sample(self.latents(i))

    def random_numbers(self) -> dict[str, RandomNumber]:
        """The random numbers of a sample by name, "v0[2]" for an entry of an array; the others are constant.

        Numbers that are proportional to an earlier one of the same array, such as the inertia of a body with a random
        mass, and paths of processes are omitted.
        """
        rng, latents, found = np.random.default_rng(0), {}, {}
        for name in self.names:
            each = self.distributions[name]
            if each.dim and not each.is_process:
                # signs far in the tails, so that rare values occur
                z = np.concatenate([rng.normal(size=(32, each.dim)), 8 * rng.choice([-1, 1], (32, each.dim))])
                latents[name] = jnp.asarray(z, each.dtype)
        for name, value in _values(self, latents).items():
            for k, (path, x) in enumerate(jax.tree_util.tree_leaves_with_path(value)):
                if x.dtype.kind in "biuf":
                    own = ".".join([name, *([jax.tree_util.keystr(path, simple=True, separator=".")] if path else [])])
                    names = flat_names(own, x.shape[1:])
                    places = _random_places(np.asarray(x).reshape(len(x), -1))
                    found |= {names[place]: RandomNumber(name, k, place, x.dtype) for place in places}
        return found


@compiled
def _values(sampler: Sampler, latents: dict[str, Float[Array, "rows _"]]) -> dict[str, PyTree]:
    """The values of some distributions for rows of standard normal numbers, without tilts."""
    return {name: jax.vmap(sampler.distributions[name])(z) for name, z in latents.items()}


def flat_names(name: str, shape: tuple[int, ...]) -> list[str]:
    """A name for each entry of an array: "x", "x[0]", "x[1,2]"."""
    return [f"{name}[{','.join(map(str, place))}]" if shape else name for place in np.ndindex(*shape)]


def _random_places(x: Shaped[np.ndarray, "draws entries"]) -> list[int]:
    """The entries that vary and are not proportional to an earlier one."""
    eps = np.finfo(x.dtype).eps if x.dtype.kind == "f" else 0.0
    x, kept = x.astype(float), []
    with np.errstate(invalid="ignore", over="ignore"):
        rounding = 64 * eps * np.max(np.abs(x), axis=0)
        places = np.flatnonzero(~(np.ptp(x, axis=0) <= rounding))
        while len(places):
            first, places = places[0], places[1:]
            kept.append(int(first))
            a, others = x[:, first], x[:, places]
            remainder = np.abs(others - np.outer(a, a @ others / (a @ a)))
            places = places[~(remainder.max(axis=0, initial=0.0) <= rounding[places])]
    return kept


def input_columns(
    numbers: Mapping[str, RandomNumber], values: Mapping[str, PyTree]
) -> dict[str, Shaped[np.ndarray, " n"]]:
    """The columns of the random numbers of some samples.

    Args:
        values: Values by the distribution's name; arrays with a leading axis.
    """
    leaves = {name: jax.tree.leaves(value) for name, value in values.items()}
    found = {}
    for name, number in numbers.items():
        x = np.asarray(leaves[number.distribution][number.leaf])
        found[INPUT + name] = x.reshape(len(x), -1)[:, number.place].copy()
    return found


@dataclass(frozen=True)
class StopAtConfidence:
    """Stop when the confidence interval of the mean of an output has a given half width.

    It is evaluated after each tile from ``min_samples`` samples on, for any chunk size. Repeated evaluation lowers the
    true confidence level: set ``min_samples`` to some hundreds.

    Attributes:
        output: Name of the output, or of a failure as ``"failed <name>"``.
        half_width: Maximum half width of the intervals of all entries of the output, in the output's unit; positive.
        level: Confidence level, between 0 and 1.
        min_samples: Minimum number of samples before the study may stop.
    """

    output: str
    half_width: float
    level: float = 0.95
    min_samples: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.half_width < math.inf:
            raise ValueError(f"half_width: expected a positive number, got {self.half_width}")
        if not 0 < self.level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {self.level}")
        if self.min_samples < 2:
            raise ValueError(f"min_samples: expected at least 2 samples, got {self.min_samples}")

    def check(self, outputs: Iterable[str]) -> None:
        """Check that the output is one of a study's.

        Raises:
            ValueError: the study has no such output.
        """
        if self.output not in (names := list(outputs)):
            raise ValueError(f"stop: expected one of the outputs {', '.join(names)}, got {self.output!r}")

    def is_met(self, half_width: Float[np.ndarray, "*shape"] | np.floating, samples: int) -> bool:
        """True if the number of samples is sufficient.

        Samples that are all equal show no spread, so that their interval is unknown.

        Args:
            half_width: Half widths of the confidence intervals of the output's mean at ``level``; NaN where unknown.
            samples: Number of samples so far.
        """
        known = np.any(half_width > 0) and np.all(half_width <= self.half_width)
        return samples >= self.min_samples and bool(known)


class Study(eqx.Module):
    """A Monte Carlo study as data: ``lgsim.montecarlo.run`` runs it.

    Sample i depends only on (seed, i), for a Latin hypercube on (seed, samples, i). Samples are computed ``tile`` at a
    time by one compiled program, with a padded last tile. Hence on one device all results are bitwise identical for
    chunks of any size and after any interruption.

    Attributes:
        sampler: The distributions of the random inputs, and their sequence.
        rollout: ``rollout(values)`` returns the motion of a sample: a ``Rollout``, or any function of the values by
            name.
        outputs: Functions of the motion by name; empty if the rollout itself returns a dictionary of arrays.
        failures: Functions of the outputs by name that return True for a failed sample.
        bound: A sample with a larger absolute output counts as blown up.
        samples: Maximum number of samples.
        seed: Seed of the samples, at least 0 and less than 2^64.
        stop: Rule to stop before all samples are computed, or None.
    """

    sampler: Sampler
    rollout: Callable[[Mapping[str, PyTree]], PyTree]
    outputs: dict[str, Callable[[PyTree], ArrayLike]]
    failures: dict[str, Callable[[Columns], ArrayLike]]
    bound: float
    samples: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    stop: StopAtConfidence | None = eqx.field(static=True)

    def __init__(
        self,
        distributions: Mapping[str, Distribution],
        rollout: Callable[[Mapping[str, PyTree]], PyTree],
        outputs: Mapping[str, Callable[[PyTree], ArrayLike]] | Iterable[Callable[[PyTree], ArrayLike]] = (),
        *,
        samples: int,
        seed: int = 0,
        sequence: PointSequence | Antithetic | None = None,
        tilts: Mapping[str, ImportanceTilt] | None = None,
        failures: Mapping[str, Callable[[Columns], ArrayLike]] | None = None,
        stop: StopAtConfidence | None = None,
        bound: float = 1e12,
        tile: int | None = None,
    ) -> None:
        """Build and validate a study.

        Args:
            distributions: Distributions by the name of a random input: for a ``Rollout`` the path of a parameter, see
                there.
            rollout: The motion of a sample's values, see ``Study``.
            outputs: Functions by name, or functions that use their own names.
            samples: Maximum number of samples.
            sequence: ``LatinHypercube()``, ``Sobol()`` or ``Antithetic()``; by default random sampling.
            tilts: Importance sampling densities, by the distribution's name.
            stop: A rule to stop, for random and antithetic sampling only: the interval of other sequences needs all of
                their samples.
            tile: Number of samples computed together, by default 64 on CPU and 8192 on other devices.

        Raises:
            ValueError: samples, seed or tile is out of range; a name is unknown, or has another meaning; a value or
                output has a wrong shape; a rule to stop is invalid.
            TypeError: an argument has the wrong type.
        """
        for name, value, least, most in (("samples", samples, 1, 2**32 - 1), ("seed", seed, 0, 2**64 - 1),
                                         ("tile", 1 if tile is None else tile, 1, 2**24)):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
                raise ValueError(f"{name}: expected an integer from {least} to {most}, got {value}")
        if not callable(rollout):
            raise TypeError(f"rollout: expected a Rollout or a function of a sample's values, got {rollout!r}")
        self.samples, self.seed, self.bound, self.stop = int(samples), int(seed), float(bound), stop
        self.tile = (CPU_TILE if traced_platform() == "cpu" else DEVICE_TILE) if tile is None else int(tile)
        self.sampler = Sampler(distributions, self.seed, self.samples, sequence, tilts)
        self.outputs, self.failures = _by_name(outputs), dict(failures or {})
        if isinstance(rollout, Rollout) and any(getattr(f, "uses_all_steps", False) for f in self.outputs.values()):
            rollout = copy.copy(rollout)
            object.__setattr__(rollout, "every_step", True)  # static, like a tile
        self.rollout = rollout
        self._check()

    def __repr__(self) -> str:
        rows = {
            "distributions": listed(self.sampler.names),
            "rollout": printable(getattr(self.rollout, "__name__", type(self.rollout).__name__)),
            "outputs": listed(list(self.outputs)),
            "failures": listed(list(self.failures)),
        }
        lines = [f"Study({self.samples:,} samples, seed {self.seed})", *(f"{k}: {v}" for k, v in rows.items() if v)]
        return "\n  ".join(lines)

    def _check(self) -> None:
        values = jax.eval_shape(self.sampler.draw, jnp.uint32(0)).values
        if isinstance(self.rollout, Rollout):
            self.rollout.check(values)
            rng, drawn = np.random.default_rng(0), {}
            for name, each in self.sampler.distributions.items():
                if name.startswith("model.") and not each.is_physical:
                    z = rng.normal(size=(CPU_TILE, each.dim)).astype(each.dtype)
                    drawn[name] = np.asarray(jax.vmap(each)(jnp.asarray(z)))
            self.rollout.check_numbers(drawn)
            if self.rollout.model.topology.loops and values:
                first = jnp.asarray(tile_indices(0, CPU_TILE, self.samples))
                self.rollout.check_starts(_draw_tile(self.sampler, first).values)
        kinds = self.columns()
        for name, kind in kinds.items():
            if name in self.outputs and not jnp.issubdtype(kind.dtype, jnp.number) and kind.dtype != bool:
                raise TypeError(f"outputs: expected arrays of numbers, got {kind.dtype} for {name!r}")
        if self.stop is not None:
            if isinstance(self.sampler.points, ReplicatedPoints):
                raise ValueError(
                    "stop: confidence intervals require random sampling; leave out sequence, or give a number of"
                    " samples instead"
                )
            self.stop.check(name for name in kinds if name not in (DIVERGED, WEIGHT))

    def columns(self) -> dict[str, jax.ShapeDtypeStruct]:
        """The shape and dtype of the outputs of a sample, by name."""
        return jax.eval_shape(lambda i: self.evaluate(self.sampler.draw(i)), jnp.uint32(0))

    @property
    def stepped(self) -> Rollout | None:
        """The rollout whose steps determine the motions; None for a function of the values."""
        return self.rollout if isinstance(self.rollout, Rollout) else getattr(self.rollout, "stepped", None)

    @property
    def known_values(self) -> KnownValues:
        """The samples that count in each statistic."""
        kinds = self.columns()
        own = {DIVERGED, WEIGHT, *(FAILED + name for name in self.failures)}
        found = {name: kind for name, kind in kinds.items() if name not in own}
        uses = {FAILED + name: outputs_used(f, found) for name, f in self.failures.items()}
        return KnownValues(list(found), uses, isinstance(self.rollout, Rollout))

    def with_substeps(self, substeps: int | Integer[Array, ""]) -> Study:
        """The study with the step divided by a factor, see ``Rollout.with_substeps``.

        Raises:
            TypeError: the rollout is a function.
        """
        if self.stepped is None:
            raise TypeError("with_substeps: expected a Rollout, got a function, whose steps are unknown")
        refined: Any = self.rollout
        return eqx.tree_at(lambda study: study.rollout, self, refined.with_substeps(substeps))

    def with_method(self, method: Method) -> Study:
        """The study with another integration method.

        Raises:
            TypeError: the rollout is not a ``Rollout``, which has a method.
        """
        if not isinstance(self.rollout, Rollout):
            raise TypeError("with_method: expected a Rollout, got a function, whose method is unknown")
        rollout, found = copy.copy(self.rollout), copy.copy(self)
        object.__setattr__(rollout, "method", method)  # static, like a tile
        object.__setattr__(found, "rollout", rollout)
        return found

    def with_tile(self, tile: int) -> Study:
        """The study with another tile size: the same samples, and the same columns to rounding."""
        found = copy.copy(self)
        object.__setattr__(found, "tile", int(tile))  # static, and the constructor would trace everything again
        return found

    def evaluate(self, sample: Sample) -> Columns:
        """The columns of one sample: its outputs, divergence and failures, its weight.

        Raises:
            ValueError: an output has the name of a column that a study adds.
            TypeError: there are no outputs.
        """
        motion = self.rollout(sample.values)
        found = {name: jnp.asarray(f(motion)) for name, f in self.outputs.items()} if self.outputs else motion
        if not isinstance(found, dict) or not found:
            raise TypeError(
                "outputs: expected at least one function of the motion, or a rollout that returns a dictionary of"
                f" arrays, got {type(found).__name__}"
            )
        own = {SAMPLE, DIVERGED, WEIGHT} | {FAILED + name for name in self.failures}
        if taken := {name for name in found if name in own or name.startswith(INPUT)}:
            raise ValueError(f"outputs: expected other names than {sorted(own)}, got {sorted(taken)}")
        end = [self.rollout.final_state(motion)] if isinstance(self.rollout, Rollout) else []
        code = divergence_code(found, end, self.bound)
        kept, failed = (code == COMPLETE) | (code == PARTIAL), {}
        for name, f in self.failures.items():
            known = [comparable(found[each], bool(end)) for each in outputs_used(f, found)]
            failed[FAILED + name] = functools.reduce(operator.and_, known, jnp.asarray(f(found), bool) & kept)
        weight = {WEIGHT: sample.log_weight} if self.sampler.tilts else {}
        return {**found, **failed, DIVERGED: code, **weight}

    def sample(self, i: int) -> Sample:
        """Sample i as drawn by a run, bitwise: NumPy arrays.

        Raises:
            ValueError: the sample does not exist.
        """
        if not 0 <= i < self.samples:
            raise ValueError(f"i: expected a sample from 0 to {self.samples - 1}, got {i}")
        first = i - i % self.tile
        tile = _draw_tile(self.sampler, jnp.asarray(tile_indices(first, self.tile, self.samples)))
        return jax.tree.map(lambda x: np.asarray(x[i - first]), tile)

    def inputs(self, samples: int) -> dict[str, Shaped[np.ndarray, " samples"]]:
        """The random numbers of the first samples as drawn by a run, by name: see ``Sampler.random_numbers``."""
        numbers, parts = self.sampler.random_numbers(), []
        for first in range(0, samples if numbers else 0, self.tile):
            drawn = _draw_tile(self.sampler, jnp.asarray(tile_indices(first, self.tile, self.samples)))
            parts.append(input_columns(numbers, drawn.values))
        return {name: np.concatenate([each[INPUT + name] for each in parts])[:samples] for name in numbers}

    def replay(self, i: int) -> Trajectory:
        """Simulate only sample i, equal to the run up to rounding: for plots, files and debugging.

        Raises:
            ValueError: the sample does not exist.
            TypeError: the rollout is not a ``Rollout``.
        """
        if not isinstance(self.rollout, Rollout):
            raise TypeError("replay: expected a Rollout, got a function; call it with study.sample(i).values")
        return self.rollout.trajectory(jax.tree.map(jnp.asarray, self.sample(i).values))


def tile_indices(first: int, count: int, samples: int) -> UInt32[np.ndarray, " count"]:
    """The indices of ``count`` samples from ``first`` on, with the last sample in place of those beyond the end."""
    return np.minimum(np.arange(first, first + count), samples - 1).astype(np.uint32)


@compiled
def _draw_tile(sampler: Sampler, indices: UInt32[Array, " tile"]) -> Sample:
    return jax.vmap(sampler.draw)(indices)


@compiled
def draw_latents(sampler: Sampler, indices: UInt32[Array, " tile"]) -> dict[str, Float[Array, "tile _"]]:
    """The standard normal numbers of some samples, before tilts, (tile, dim) each."""
    return jax.vmap(sampler.latents)(indices)


def _by_name(outputs: Mapping[str, Any] | Iterable[Any]) -> dict[str, Callable[[PyTree], ArrayLike]]:
    """Outputs by name; functions without names use their own.

    Raises:
        TypeError: an output is not a function.
    """
    if not isinstance(outputs, Mapping):
        outputs = {getattr(f, "__name__", type(f).__name__): f for f in outputs}
    for name, f in outputs.items():
        if not callable(f):
            raise TypeError(f"outputs: expected functions of a motion, got {f!r} for {name!r}")
    return dict(outputs)
