"""A study: what varies, what happens, what is kept of it, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.montecarlo.distributions import Distribution
from lgsim.montecarlo.low_discrepancy import Sequence as Points
from lgsim.montecarlo.outputs import named
from lgsim.montecarlo.rollout import Rollout
from lgsim.montecarlo.sampler import ImportanceTilt, Sample, Sampler
from lgsim.montecarlo.statistics import StopAtConfidence
from lgsim.simulation import Trajectory

Columns = dict[str, Array]
"""What is kept of a sample, by name."""

SAMPLE, DIVERGED, WEIGHT, FAILED = "sample", "diverged", "log_weight", "failed "
"""Columns beside the outputs: its number; 1 not finite, 2 blown up; of importance sampling; of each failure."""

CPU_TILE, DEVICE_TILE = 64, 8192
"""Samples that are computed together: vector code that stays in the cache; what fills a GPU."""


class Study(eqx.Module):
    """A Monte Carlo study as data: ``lgsim.montecarlo.run`` runs it.

    Sample i depends on (seed, i) alone, of a Latin hypercube on (seed, samples, i). Samples are computed ``tile`` at a
    time by one compiled program, the last tile being padded, so that on one device all results are the same bit for bit
    in chunks of any size and after any interruption.

    Attributes:
        sampler: What varies.
        rollout: ``rollout(values)`` gives the motion of a sample: a ``Rollout``, or any function of the values by name.
        outputs: Functions of the motion by name; empty where the rollout itself gives a dictionary of arrays.
        failures: Functions of the outputs by name that say whether a sample failed.
        bound: An output of larger size counts as blown up.
        samples: How many.
        seed: At least 0, less than 2^64.
        tile: Samples computed together.
        stop: When fewer are enough, or None.
    """

    sampler: Sampler
    rollout: Callable[[Mapping[str, Any]], Any]
    outputs: dict[str, Callable[[Any], Array]]
    failures: dict[str, Callable[[Columns], Any]]
    bound: float
    samples: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)
    tile: int = eqx.field(static=True)
    stop: StopAtConfidence | None = eqx.field(static=True)

    def __init__(
        self,
        distributions: Mapping[str, Distribution],
        rollout: Callable[[Mapping[str, Any]], Any],
        outputs: Mapping[str, Callable[[Any], Any]] | Sequence[Callable[[Any], Any]] = (),
        *,
        samples: int,
        seed: int = 0,
        sequence: Points | None = None,
        tilts: Mapping[str, ImportanceTilt] | None = None,
        failures: Mapping[str, Callable[[Columns], Any]] | None = None,
        stop: StopAtConfidence | None = None,
        bound: float = 1e12,
        tile: int | None = None,
    ) -> None:
        """A checked study.

        Args:
            distributions: By the name of what varies: of a ``Rollout`` the path of a number, see there.
            rollout: See ``Study``.
            outputs: Functions by name, or functions that go by their own names.
            samples: How many at most.
            seed: See ``Study``.
            sequence: ``LatinHypercube()`` or ``Sobol()``; by default plain random sampling.
            tilts: For importance sampling, by the distribution's name.
            failures: See ``Study``.
            stop: With plain random sampling alone, since only there an interval of confidence is known.
            bound: See ``Study``.
            tile: By default 64 on CPU and 8192 on other devices.

        Raises:
            ValueError: samples, seed or tile is out of range; a name is unknown, or stands for something else; a value
                or output has a wrong shape; a rule to stop does not fit.
            TypeError: an argument is of the wrong kind.
        """
        for name, value, least, most in (("samples", samples, 1, 2**32 - 1), ("seed", seed, 0, 2**64 - 1),
                                         ("tile", 1 if tile is None else tile, 1, 2**24)):  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
                raise ValueError(f"{name}: expected a whole number from {least} to {most}, got {value}")
        if not callable(rollout):
            raise TypeError(f"rollout: expected a Rollout or a function of a sample's values, got {rollout!r}")
        self.samples, self.seed, self.bound, self.stop = int(samples), int(seed), float(bound), stop
        self.tile = (CPU_TILE if jax.default_backend() == "cpu" else DEVICE_TILE) if tile is None else int(tile)
        self.sampler = Sampler(distributions, self.seed, self.samples, sequence, tilts)
        self.rollout = rollout
        self.outputs, self.failures = named(outputs), dict(failures or {})
        self._check()

    def _check(self) -> None:
        values = jax.eval_shape(self.sampler.draw, jnp.uint32(0)).values
        if isinstance(self.rollout, Rollout):
            self.rollout.check(values)
        kinds = self.columns()
        for name, kind in kinds.items():
            if name in self.outputs and not jnp.issubdtype(kind.dtype, jnp.number) and kind.dtype != bool:
                raise TypeError(f"outputs: expected arrays of numbers, got {kind.dtype} for {name!r}")
        if self.stop is not None:
            if self.sampler.points is not None:
                raise ValueError(
                    "stop: an interval of confidence is known for plain random sampling alone; leave sequence out or"
                    " give a number of samples"
                )
            self.stop.check({name: kind.shape for name, kind in kinds.items() if name not in (DIVERGED, WEIGHT)})

    def columns(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shape and dtype of what is kept of a sample, by name."""
        return jax.eval_shape(lambda i: self.play(self.sampler.draw(i)), jnp.uint32(0))

    def play(self, sample: Sample) -> Columns:
        """What is kept of one sample: outputs, whether it diverged and failed, its weight."""
        motion = self.rollout(sample.values)
        found = {name: jnp.asarray(f(motion)) for name, f in self.outputs.items()} if self.outputs else motion
        if not isinstance(found, dict) or not found:
            raise TypeError(
                "outputs: expected at least one function of the motion, or a rollout that returns a dictionary of"
                f" arrays, got {type(found).__name__}"
            )
        own = {SAMPLE, DIVERGED, WEIGHT} | {FAILED + name for name in self.failures}
        if taken := own & set(found):
            raise ValueError(f"outputs: expected other names than {sorted(own)}, got {sorted(taken)}")
        end = getattr(self.rollout, "end", None)
        seen = list(found.values()) + ([] if end is None else [end(motion)])
        finite, tame = jnp.ones((), bool), jnp.ones((), bool)
        for x in seen:
            if jnp.issubdtype(x.dtype, jnp.inexact):
                finite = finite & jnp.all(jnp.isfinite(x))
                tame = tame & jnp.all(jnp.abs(x) <= self.bound)
        code = jnp.where(finite, jnp.where(tame, 0, 2), 1).astype(jnp.int8)
        failed = {FAILED + name: jnp.asarray(f(found), bool) & (code == 0) for name, f in self.failures.items()}
        weight = {WEIGHT: sample.log_weight} if self.sampler.tilts else {}
        return {**found, **failed, DIVERGED: code, **weight}

    def sample(self, i: int) -> Sample:
        """Sample i as a run draws it, bit for bit: arrays of NumPy.

        Raises:
            ValueError: there is no such sample.
        """
        if not 0 <= i < self.samples:
            raise ValueError(f"i: expected a sample from 0 to {self.samples - 1}, got {i}")
        first = i - i % self.tile
        tile = _draw(self.sampler, jnp.asarray(tile_indices(first, self.tile, self.samples)))
        return jax.tree.map(lambda x: np.asarray(x[i - first]), tile)

    def replay(self, i: int) -> Trajectory:
        """The motion of sample i alone, of its run to rounding: to look at, to save, to debug.

        Raises:
            ValueError: there is no such sample.
            TypeError: the rollout is no ``Rollout``.
        """
        if not isinstance(self.rollout, Rollout):
            raise TypeError("replay: the rollout is a function; call it with study.sample(i).values")
        return self.rollout.trajectory(jax.tree.map(jnp.asarray, self.sample(i).values))


def tile_indices(first: int, count: int, samples: int) -> np.ndarray:
    """The samples from one on, the last one in place of those beyond the end."""
    return np.minimum(np.arange(first, first + count), samples - 1).astype(np.uint32)


@eqx.filter_jit
def _draw(sampler: Sampler, indices: Array) -> Sample:
    return jax.vmap(sampler.draw)(indices)
