"""Points that fill the unit cube more evenly than random ones, each computed from its index alone."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtri

from lgsim.support.extras import package

BITS = 32
"""Of the integers that points are made of."""


class Points(eqx.Module):
    """Points of a cube by their index."""

    @abstractmethod
    def integers(self, i: Array) -> Array:
        """Point i (dim,) as integers of type uint32: the coordinates times 2^32, rounded down."""

    def normal(self, i: Array, dtype: jnp.dtype) -> Array:
        """Point i (dim,) as standard normal numbers: the inverse distribution function of each coordinate."""
        kept = min(BITS, jnp.finfo(dtype).nmant)
        cells = jax.lax.shift_right_logical(self.integers(i), jnp.uint32(BITS - kept))
        # the middle of the cell, so that no coordinate is 0 or 1
        return ndtri((cells.astype(dtype) + 0.5) * 2.0**-kept)


class Sequence(eqx.Module):
    """A kind of sequence; its points are those of a seed, a number of samples and a dimension."""

    @abstractmethod
    def points(self, seed: int, samples: int, dim: int) -> Points:
        """The points."""


class Sobol(Sequence):
    """Sobol's sequence, scrambled by the seed (Owen's linear matrix scrambling with a digital shift), from scipy.

    The error of a mean falls nearly like 1/N for smooth outputs. Take a power of two for the number of samples.
    Source: Joe, Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM Journal on Scientific
    Computing 30(5), 2008. Needs the extra ``montecarlo``.
    """

    def points(self, seed: int, samples: int, dim: int) -> SobolPoints:
        """See ``Sequence``; dim at most 21201.

        Raises:
            ImportError: scipy is missing.
            ValueError: there are more samples or dimensions than the sequence has.
        """
        qmc = _qmc()
        if samples > 2**BITS or dim > qmc.Sobol.MAXDIM:
            raise ValueError(
                f"Sobol: expected at most 2^{BITS} samples and {qmc.Sobol.MAXDIM} numbers in a sample, got {samples}"
                f" and {dim}; processes count nothing"
            )

        def found(engine: Any) -> np.ndarray:
            return (engine.random(1)[0] * 2.0**BITS).astype(np.uint64).astype(np.uint32)

        engine = qmc.Sobol(dim, scramble=True, bits=BITS, rng=np.random.default_rng(seed))
        shift, done, columns = found(engine), 1, []
        # the sequence is linear in the bits of the Gray code of the index: point 2^(b+1) - 1 has bit b alone
        for b in range(max(1, (samples - 1).bit_length())):
            engine.fast_forward(2 ** (b + 1) - 1 - done)
            columns.append(found(engine) ^ shift)
            done = 2 ** (b + 1)
        return SobolPoints(jnp.asarray(np.array(columns)), jnp.asarray(shift))


class SobolPoints(Points):
    """Points of a scrambled Sobol sequence.

    Attributes:
        directions: What each bit of the Gray code of the index adds, (bits, dim).
        shift: Point 0, (dim,).
    """

    directions: Array
    shift: Array

    def integers(self, i: Array) -> Array:
        """See ``Points``."""
        i = i.astype(jnp.uint32)
        gray = i ^ (i >> jnp.uint32(1))
        bits = (gray >> jnp.arange(len(self.directions), dtype=jnp.uint32)) & jnp.uint32(1)
        parts = jnp.where(bits[:, None] == 1, self.directions, jnp.uint32(0))
        return self.shift ^ jax.lax.reduce(parts, jnp.uint32(0), jax.lax.bitwise_xor, (0,))


class LatinHypercube(Sequence):
    """A Latin hypercube: in each dimension exactly one of N samples in each of N cells of equal probability.

    Sample i depends on (seed, N, i), so that N is fixed and a run cannot be extended. In place of a table of N numbers
    for each dimension, a permutation is computed at i alone, so that the memory does not grow with N.
    Source: McKay, Beckman, Conover, A comparison of three methods for selecting values of input variables,
    Technometrics 21(2), 1979; the permutation: Black, Rogaway, Ciphers with arbitrary finite domains, CT-RSA 2002,
    section 4 (generalized Feistel) and 3 (cycle walking).
    """

    def points(self, seed: int, samples: int, dim: int) -> LatinPoints:
        """See ``Sequence``."""
        if samples > 2**BITS - 1:
            raise ValueError(f"LatinHypercube: expected less than 2^{BITS} samples, got {samples}")
        words = np.random.SeedSequence(seed).generate_state(dim * (_ROUNDS + 1)).astype(np.uint32)
        return LatinPoints(jnp.asarray(words.reshape(dim, _ROUNDS + 1)), samples)


_ROUNDS = 8


class LatinPoints(Points):
    """Points of a Latin hypercube.

    Attributes:
        words: Of each dimension the keys of its permutation and of its places within cells, (dim, rounds + 1).
        samples: N.
    """

    words: Array
    samples: int = eqx.field(static=True)

    def integers(self, i: Array) -> Array:
        """See ``Points``."""
        return jax.vmap(self._one, (None, 0))(i.astype(jnp.uint32), self.words)

    def _one(self, i: Array, words: Array) -> Array:
        cell = permuted(i, words[:_ROUNDS], self.samples)
        n = jnp.uint32(self.samples)
        # not nearer to the cell's lower end than the division below rounds down
        inside = jnp.maximum(_mixed(i ^ words[_ROUNDS]), n - jnp.uint32(1))
        # (cell + inside / 2^32) / N in 32 bits, by long division of cell 2^32 + inside by N
        last, one = jnp.uint32(BITS - 1), jnp.uint32(1)

        def digit(_: Any, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            quotient, rest, below = state
            carried = rest >> last
            rest = (rest << one) | (below >> last)
            fits = (carried == 1) | (rest >= n)
            return (quotient << one) | fits.astype(jnp.uint32), jnp.where(fits, rest - n, rest), below << one

        return jax.lax.fori_loop(0, BITS, digit, (jnp.zeros_like(cell), cell, inside))[0]


def permuted(i: Array, words: Array, size: int) -> Array:
    """The place of i under a permutation of 0, ..., size - 1 that the words (rounds,) choose."""
    half = max(1, -(-max(size - 1, 1).bit_length() // 2))
    mask, limit = jnp.uint32(2**half - 1), jnp.uint32(size)

    def once(x: Array) -> Array:
        def turn(r: Any, parts: tuple[Array, Array]) -> tuple[Array, Array]:
            left, right = parts
            return right, (left ^ _mixed(right ^ words[r])) & mask

        left, right = jax.lax.fori_loop(0, words.shape[0], turn, (x >> jnp.uint32(half), x & mask))
        return (left << jnp.uint32(half)) | right

    # beyond the size: on along the cycle, which comes back
    start = (jnp.ones((), bool), i)
    return jax.lax.while_loop(lambda s: s[0] | (s[1] >= limit), lambda s: (jnp.zeros((), bool), once(s[1])), start)[1]


def _mixed(x: Array) -> Array:
    """A hash of 32 bits: the finalizer of MurmurHash3 (Appleby)."""
    x = (x ^ (x >> jnp.uint32(16))) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> jnp.uint32(13))) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> jnp.uint32(16))


def _qmc() -> Any:
    return package("scipy.stats.qmc", "montecarlo", "a Sobol sequence")
