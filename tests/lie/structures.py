"""The groups and function modules that the generated suites run over, and how to draw algebra vectors for each."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import numpy as np
import pytest

from lgsim import lie
from lgsim.lie.extended_pose import SE23
from lgsim.lie.group import SE2, SE3, SO2, SO3, Euclidean, UnitQuaternion
from lgsim.lie.product import Cotangent, Product, Tangent

REGIMES = ("identity", "tiny", "random", "near pi")
SHAPES = ((), (1,), (3, 1, 2))


@dataclass(frozen=True, eq=False)
class Structure:
    """A group with the blocks of its algebra that are angles (one number) or rotation vectors (three)."""

    name: str
    group: object
    dim: int
    rotations: tuple[tuple[int, int], ...]

    def algebra(self, regime: str, shape: tuple[int, ...], dtype, seed: int) -> np.ndarray:
        """Algebra vectors of a regime; every component that does not rotate stays of size 1."""
        rng = np.random.default_rng(seed)
        out = rng.standard_normal((*shape, self.dim))
        angle = {"identity": 0.0, "tiny": 1e-8, "random": None, "near pi": np.pi - 1e-6}[regime]
        for start, stop in self.rotations:
            block = out[..., start:stop]
            norm = np.linalg.norm(block, axis=-1, keepdims=True)
            # a random rotation stays below 2.8 rad, inside the domain where log inverts exp
            size = np.minimum(norm, 2.8) if angle is None else angle * (1.0 if dtype == np.float64 else 1 - 1e-4)
            out[..., start:stop] = block / norm * size
        if regime == "identity":
            out[...] = 0.0
        return out.astype(dtype)


STRUCTURES = {
    s.name: s
    for s in (
        Structure("SO2", SO2, 1, ((0, 1),)),
        Structure("SE2", SE2, 3, ((2, 3),)),
        Structure("SO3", SO3, 3, ((0, 3),)),
        Structure("SE3", SE3, 6, ((3, 6),)),
        Structure("SE23", SE23, 9, ((6, 9),)),
        Structure("UnitQuaternion", UnitQuaternion, 3, ((0, 3),)),
        Structure("Euclidean(3)", Euclidean(3), 3, ()),
        Structure("SO3 x R2", Product(SO3, Euclidean(2)), 5, ((0, 3),)),
        Structure("SE3 x SO2", Product(SE3, SO2), 7, ((3, 6), (6, 7))),
        Structure("T SO3", Tangent(SO3), 6, ((0, 3),)),
        Structure("T SE3", Tangent(SE3), 12, ((3, 6),)),
        Structure("T* SO3", Cotangent(SO3), 6, ((0, 3),)),
        Structure("T* SE3", Cotangent(SE3), 12, ((3, 6),)),
        Structure("T* SE2", Cotangent(SE2), 6, ((2, 3),)),
    )
}

MODULE_ROTATIONS = {"so2": (0, 1), "se2": (2, 3), "so3": (0, 3), "se3": (3, 6), "quaternion": (0, 3)}
MODULES = {
    name: Structure(name, getattr(lie, name), dim, (MODULE_ROTATIONS[name],))
    for name, dim in {"so2": 1, "se2": 3, "so3": 3, "se3": 6, "quaternion": 3}.items()
}


def lanes(always, exhaustive):
    """Names as parameters: the first ones run always, the others, which repeat their claim, with ``--exhaustive``."""
    return [*always, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in exhaustive)]


class Compiled:
    """The functions of a group or module, each compiled by itself: a suite of identities then shares them.

    One program of all identities, where nothing is shared, would take minutes to compile.
    """

    def __init__(self, functions):
        self._functions = functions
        self._cache = {}

    def __getattr__(self, name):
        if name not in self._cache:
            self._cache[name] = jax.jit(getattr(self._functions, name))
        return self._cache[name]


def apply(matrix, vector):
    """matrix vector, over leading axes."""
    return (matrix @ vector[..., None])[..., 0]


def identity_matrices(u):
    """One identity matrix for each algebra vector."""
    return np.broadcast_to(np.eye(u.shape[-1]), (*u.shape, u.shape[-1]))


def spread(element, count):
    """The same element `count` times."""
    return jax.tree.map(lambda x: np.broadcast_to(x, (count, *x.shape)), element)


def difference(a, b, axes: int = 0) -> np.ndarray:
    """Largest entry of a - b over all leaves, relative to 1 + the largest entry of b; `axes` leading axes are kept."""

    def flat(tree):
        leaves = [np.asarray(leaf, float) for leaf in jax.tree.leaves(tree)]
        return np.concatenate([leaf.reshape(*leaf.shape[:axes], -1) for leaf in leaves], axis=-1)

    left, right = flat(a), flat(b)
    assert left.shape == right.shape
    with np.errstate(invalid="ignore"):
        return np.max(np.abs(left - right), axis=-1) / (1 + np.max(np.abs(right), axis=-1))
