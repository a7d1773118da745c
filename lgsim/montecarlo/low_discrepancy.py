"""Low-discrepancy points in the unit cube, each computed from its index only, and antithetic pairs."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtri
from jaxtyping import Float, Integer, UInt32

from lgsim._compile.xla import control_flow
from lgsim.support import check
from lgsim.support.packages import package

if TYPE_CHECKING:
    from scipy.stats import qmc

BITS = 32
"""Number of bits of the integer coordinates."""
_EXTENSIBLE = 20
"""Binary logarithm of the number of points up to which a Sobol sequence does not depend on their number."""


class Points(eqx.Module):
    """Points of a unit cube by their index."""

    @abstractmethod
    def integers(self, i: Integer[Array, ""]) -> UInt32[Array, " dim"]:
        """Point i as integers: its coordinates times 2^32, rounded down."""

    def normal(self, i: Integer[Array, ""], dtype: jnp.dtype) -> Float[Array, " dim"]:
        """Point i as standard normal numbers: the inverse normal distribution function of each coordinate."""
        kept = min(BITS, jnp.finfo(dtype).nmant)
        cells = jax.lax.shift_right_logical(self.integers(i), jnp.uint32(BITS - kept))
        # the center of the cell, so that no coordinate is 0 or 1
        return ndtri((cells.astype(dtype) + 0.5) * 2.0**-kept)


REPLICATES = 8
"""Default number of independent parts of a sequence."""


class ReplicatedPoints(Points):
    """Points of independent sequences in turn: point i is point ``i // replicates`` of sequence ``i % replicates``.

    Attributes:
        parts: The points of each sequence; leaves have a leading axis.
    """

    parts: Points
    replicates: int = eqx.field(static=True)

    def integers(self, i: Integer[Array, ""]) -> UInt32[Array, " dim"]:
        i, count = i.astype(jnp.uint32), jnp.uint32(self.replicates)
        return jax.tree.map(lambda x: x[i % count], self.parts).integers(i // count)


class PointSequence(eqx.Module):
    """A type of sequence, which gives points for a seed, a number of samples and a dimension.

    Attributes:
        replicates: Number of parts, which are scrambled independently and take turns. The confidence interval of a mean
            follows from the spread of their means; with one part it is unknown.

    Source: Owen, Practical quasi-Monte Carlo integration, 2023, chapter 17, for replicates.
    """

    replicates: int = eqx.field(static=True, default=REPLICATES)

    def __check_init__(self) -> None:
        check.count("replicates", self.replicates)

    @abstractmethod
    def sequence(self, rng: np.random.Generator, samples: int, dim: int) -> Points:
        """The points of one part of ``samples`` samples of ``dim`` coordinates each."""

    def points(self, seed: int, samples: int, dim: int) -> ReplicatedPoints:
        """The points of ``samples`` samples of ``dim`` coordinates each.

        Raises:
            ImportError: scipy is not installed.
            ValueError: there are more samples or dimensions than the sequence has.
        """
        each = -(-samples // self.replicates)
        parts = [
            self.sequence(np.random.default_rng([seed, k] if k else seed), each, dim) for k in range(self.replicates)
        ]
        return ReplicatedPoints(jax.tree.map(lambda *x: jnp.stack(x), *parts), self.replicates)


class Antithetic(eqx.Module):
    """Antithetic pairs: samples 2k and 2k + 1 have opposite standard normal numbers, of processes too.

    The mean of an output that is monotonic in each number has a smaller error than that of random samples; the error of
    an even output is larger by ``sqrt(2)``. Pairs are independent: confidence intervals follow from their means, and a
    study can be extended or have a rule to stop.

    Source: Hammersley, Morton, A new Monte Carlo technique: antithetic variates, Mathematical Proceedings of the
    Cambridge Philosophical Society 52(3), 1956.
    """

    def points(self, seed: int, samples: int, dim: int) -> Antithetic:
        """The pairs, which depend on none of the arguments."""
        return self


class Sobol(PointSequence):
    """Sobol sequences, scrambled by the seed (Owen's linear matrix scrambling with a digital shift), from scipy.

    The error of a mean decreases nearly like 1/N for smooth outputs. Use a power of two for the samples of each part.
    Source: Joe, Kuo, Constructing Sobol sequences with better two-dimensional projections, SIAM Journal on Scientific
    Computing 30(5), 2008. Needs the extra ``montecarlo``.
    """

    def sequence(self, rng: np.random.Generator, samples: int, dim: int) -> SobolPoints:
        """The points of one part, of at most 21201 coordinates.

        Raises:
            ImportError: scipy is not installed.
            ValueError: there are more samples or dimensions than the sequence has.
        """
        qmc = package("scipy.stats.qmc", "montecarlo", "a Sobol sequence")
        if samples > 2**BITS or dim > qmc.Sobol.MAXDIM:
            raise ValueError(
                f"Sobol: expected at most 2^{BITS} samples and {qmc.Sobol.MAXDIM} numbers in a sample, got {samples}"
                f" and {dim}; processes do not count"
            )
        engine = qmc.Sobol(dim, scramble=True, bits=BITS, rng=rng)
        shift, done, columns = _next_integers(engine), 1, []
        # the sequence is linear in the bits of the Gray code of the index; in point 2^(b+1) - 1 only bit b is set
        for b in range(max(_EXTENSIBLE, (samples - 1).bit_length())):
            engine.fast_forward(2 ** (b + 1) - 1 - done)
            columns.append(_next_integers(engine) ^ shift)
            done = 2 ** (b + 1)
        return SobolPoints(jnp.asarray(np.array(columns)), jnp.asarray(shift))


def _next_integers(engine: qmc.Sobol) -> UInt32[np.ndarray, " dim"]:
    """The next point of scipy's sequence as integers."""
    return (engine.random(1)[0] * 2.0**BITS).astype(np.uint64).astype(np.uint32)


class SobolPoints(Points):
    """Points of a scrambled Sobol sequence.

    Attributes:
        directions: The contribution of each bit of the Gray code of the index, (bits, dim).
        shift: Point 0, (dim,).
    """

    directions: UInt32[Array, "bits dim"]
    shift: UInt32[Array, " dim"]

    def integers(self, i: Integer[Array, ""]) -> UInt32[Array, " dim"]:
        """The shift and the directions of all bits of the Gray code of i, added without carry."""
        i = i.astype(jnp.uint32)
        gray = i ^ (i >> jnp.uint32(1))
        bits = (gray >> jnp.arange(len(self.directions), dtype=jnp.uint32)) & jnp.uint32(1)
        parts = jnp.where(bits[:, None] == 1, self.directions, jnp.uint32(0))
        return self.shift ^ jax.lax.reduce(parts, jnp.uint32(0), jax.lax.bitwise_xor, (0,))


class LatinHypercube(PointSequence):
    """Latin hypercubes: in each dimension exactly one of the N samples of a part lies in each of N cells of equal
    probability.

    Sample i depends on (seed, N, i), so that N is fixed and a run cannot be extended. Instead of a table of N numbers
    for each dimension, a permutation is computed at i only, so that the memory does not grow with N. Source: McKay,
    Beckman, Conover, A comparison of three methods for selecting values of input variables, Technometrics 21(2), 1979;
    the permutation: Black, Rogaway, Ciphers with arbitrary finite domains, CT-RSA 2002, section 4 (generalized Feistel)
    and 3 (cycle walking).
    """

    def sequence(self, rng: np.random.Generator, samples: int, dim: int) -> LatinPoints:
        """The points of one hypercube.

        Raises:
            ValueError: there are 2^32 samples or more.
        """
        if samples > 2**BITS - 1:
            raise ValueError(f"LatinHypercube: expected fewer than 2^{BITS} samples, got {samples}")
        words = rng.integers(2**BITS, size=dim * (_ROUNDS + 1), dtype=np.uint32)
        return LatinPoints(jnp.asarray(words.reshape(dim, _ROUNDS + 1)), samples)


_ROUNDS = 8
"""Rounds of the Feistel network."""


class LatinPoints(Points):
    """Points of a Latin hypercube.

    Attributes:
        words: The keys of each dimension's permutation and of its offsets within cells, (dim, rounds + 1).
    """

    words: UInt32[Array, "dim rounds_1"]
    samples: int = eqx.field(static=True)

    def integers(self, i: Integer[Array, ""]) -> UInt32[Array, " dim"]:
        """A random offset within the cell that the permutation of each dimension assigns to i."""
        return jax.vmap(self._coordinate, (None, 0))(i.astype(jnp.uint32), self.words)

    def _coordinate(self, i: UInt32[Array, ""], words: UInt32[Array, " rounds_1"]) -> UInt32[Array, ""]:
        cell = permute(i, words[:_ROUNDS], self.samples)
        n = jnp.uint32(self.samples)
        # the offset is not smaller than the rounding of the division below
        inside = jnp.maximum(_hash(i ^ words[_ROUNDS]), n - jnp.uint32(1))
        # (cell + inside / 2^32) / N in 32 bits, by long division of cell 2^32 + inside by N
        last, one = jnp.uint32(BITS - 1), jnp.uint32(1)

        def digit(_: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            quotient, rest, below = state
            carried = rest >> last
            rest = (rest << one) | (below >> last)
            fits = (carried == 1) | (rest >= n)
            return (quotient << one) | fits.astype(jnp.uint32), jnp.where(fits, rest - n, rest), below << one

        return control_flow.fori_loop(0, BITS, digit, (jnp.zeros_like(cell), cell, inside))[0]


def permute(i: UInt32[Array, ""], words: UInt32[Array, " rounds"], size: int) -> UInt32[Array, ""]:
    """The image of i under a permutation of 0, ..., size - 1 that the words define.

    Args:
        i: An index below ``size``.
        words: The keys of the rounds of the Feistel network.
        size: The number of elements, at most 2^32 - 1.
    """
    half = max(1, -(-max(size - 1, 1).bit_length() // 2))
    mask, limit = jnp.uint32(2**half - 1), jnp.uint32(size)

    def encrypt(x: Array) -> Array:
        def round_of(r: Array, halves: tuple[Array, Array]) -> tuple[Array, Array]:
            left, right = halves
            return right, (left ^ _hash(right ^ words[r])) & mask

        left, right = control_flow.fori_loop(0, words.shape[0], round_of, (x >> jnp.uint32(half), x & mask))
        return (left << jnp.uint32(half)) | right

    # outside of the range: continue along the cycle, which returns
    start = (jnp.ones((), bool), i)
    return control_flow.while_loop(
        lambda s: s[0] | (s[1] >= limit), lambda s: (jnp.zeros((), bool), encrypt(s[1])), start
    )[1]


def _hash(x: UInt32[Array, ""]) -> UInt32[Array, ""]:
    """A 32-bit hash: the finalizer of MurmurHash3 (Appleby)."""
    x = (x ^ (x >> jnp.uint32(16))) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> jnp.uint32(13))) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> jnp.uint32(16))
