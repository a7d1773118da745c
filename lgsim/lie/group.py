"""Lie groups as structure objects over plain arrays: the same operations for every group, and composite groups.

An element is an array, or a tuple of elements for a composite group. An algebra element is a flat array (..., dim) with
the parts concatenated in order, so that methods combine stages as plain vectors. A new group is a module of functions
like ``so3`` passed to ``ArrayGroup``, or a subclass of ``LieGroup``; the generated tests of groups then apply to it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie import quaternion, se2, se3, so2, so3
from lgsim.lie.matrix_forms import columns, transpose, transpose_apply
from lgsim.support import check

Element = Any
"""A group element: an array, or a tuple of elements."""


def norm(x: Array) -> Array:
    """Euclidean norm over the last axis; its derivative at zero, where it is not differentiable, is zero."""
    square = jnp.sum(x * x, axis=-1)
    zero = square == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, square)))


class LieGroup(eqx.Module):
    """A Lie group G with its algebra g. All methods broadcast over leading axes and are pure."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Dimension of the group: the length of an algebra vector."""

    @property
    @abstractmethod
    def shapes(self) -> Any:
        """Shape of one element: a tuple of ints, or a tuple of shapes for a composite group."""

    @abstractmethod
    def identity(self, dtype: jnp.dtype | type = float) -> Element:
        """The identity element."""

    def sizes(self, g: Element) -> Array:
        """The size (dim,) of each algebra component at one element: 1 rad or 1 m; for a vector its entries."""
        return jnp.ones(self.dim, jax.tree.leaves(g)[0].dtype)

    @abstractmethod
    def compose(self, g: Element, h: Element) -> Element:
        """The product ``g h``."""

    @abstractmethod
    def inverse(self, g: Element) -> Element:
        """``g^-1``."""

    @abstractmethod
    def exp(self, u: Array) -> Element:
        """The exponential map."""

    @abstractmethod
    def log(self, g: Element) -> Array:
        """An algebra vector u with ``exp(u) = g``, of rotation angle at most pi."""

    @abstractmethod
    def Ad_action(self, g: Element, v: Array) -> Array:
        """``Ad_g v``."""

    @abstractmethod
    def bracket(self, u: Array, v: Array) -> Array:
        """The Lie bracket ``[u, v]``."""

    @abstractmethod
    def dexp_action(self, u: Array, v: Array) -> Array:
        """Space form: ``d/dt exp(u) = dexp_u(u') exp(u)``; the body form is at ``-u``."""

    @abstractmethod
    def dexpinv_action(self, u: Array, v: Array) -> Array:
        """The inverse of ``dexp_action(u, .)``."""

    @abstractmethod
    def random(self, key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Element:
        """Elements with uniform (Haar) rotations and standard normal vectors."""

    def project(self, g: Element) -> Element:
        """The element nearest to g, for arrays that are off the group by rounding or measurement; differentiable."""
        return g

    def defects(self, g: Element) -> dict[str, Any]:
        """The violation of each condition on an element by NumPy arrays, by name; empty for a vector space."""
        return {}

    def Ad_dual_action(self, g: Element, mu: Array) -> Array:
        """``Ad_g^* mu``: ``<Ad_g^* mu, v> = <mu, Ad_g v>``."""
        return self._transposed(self.Ad(g), mu)

    def ad_dual_action(self, u: Array, mu: Array) -> Array:
        """``ad_u^* mu``: ``<ad_u^* mu, v> = <mu, [u, v]>``."""
        return self._transposed(self.ad(u), mu)

    def Ad(self, g: Element) -> Array:
        """The (dim, dim) matrix of ``Ad_action(g, .)``."""
        return self._over_basis(self.Ad_action, g)

    def Ad_dual(self, g: Element) -> Array:
        """The transpose of ``Ad(g)``."""
        return transpose(self.Ad(g))

    def ad(self, u: Array) -> Array:
        """The matrix of ``bracket(u, .)``."""
        return columns(self.bracket, check.floating("u", u, self.dim), self.dim)

    def ad_dual(self, u: Array) -> Array:
        """The transpose of ``ad(u)``."""
        return transpose(self.ad(u))

    def dexp(self, u: Array) -> Array:
        """The matrix of ``dexp_action(u, .)``."""
        return columns(self.dexp_action, check.floating("u", u, self.dim), self.dim)

    def dexpinv(self, u: Array) -> Array:
        """The matrix of ``dexpinv_action(u, .)``."""
        return columns(self.dexpinv_action, check.floating("u", u, self.dim), self.dim)

    def distance(self, g: Element, h: Element) -> Array:
        """The Euclidean distance of the entries; its derivative at zero, where it is not smooth, is zero."""
        gaps = [
            (a - b).reshape((*self.batch_of(g), -1))
            for a, b in zip(jax.tree.leaves(g), jax.tree.leaves(h), strict=True)
        ]
        return norm(jnp.concatenate(gaps, axis=-1))

    def interpolate(self, g: Element, h: Element, s: float | Array) -> Element:
        """``g exp(s log(g^-1 h))``; s = 0 and 1 are the ends."""
        u = self.log(self.compose(self.inverse(g), h))
        u, s = check.arguments(u=(u, (self.dim,)), s=(jnp.asarray(s, u.dtype), ()))
        return self.compose(g, self.exp(u * s[..., None]))

    def batch_of(self, g: Element) -> tuple[Any, ...]:
        """The leading axes of an element."""
        leaf = jax.tree.leaves(g)[0]
        rank = len(_first_shape(self.shapes))
        return leaf.shape[: leaf.ndim - rank]

    def _transposed(self, matrix: Array, mu: Array) -> Array:
        """``matrix^T mu``, whose leading axes may differ in number."""
        n = self.dim
        return transpose_apply(*check.arguments(matrix=(matrix, (n, n)), mu=(mu, (n,))))

    def _over_basis(self, action: Any, g: Element) -> Array:
        batch = len(self.batch_of(g))
        leaf = jax.tree.leaves(g)[0]
        basis = jnp.eye(self.dim, dtype=leaf.dtype).reshape((1,) * batch + (self.dim, self.dim))
        return transpose(action(jax.tree.map(lambda a: jnp.expand_dims(a, batch), g), basis))


def _first_shape(shapes: Any) -> tuple[int, ...]:
    return shapes if all(isinstance(n, int) for n in shapes) else _first_shape(shapes[0])


class ArrayGroup(LieGroup):
    """A group whose element is one array, given by a module of functions such as ``lgsim.lie.so3``."""

    functions: ModuleType = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)

    def __repr__(self) -> str:
        return self.functions.__name__.rsplit(".", 1)[-1]

    @property
    def dim(self) -> int:
        return self.functions.dim

    @property
    def shapes(self) -> tuple[int, ...]:
        return self.shape

    def identity(self, dtype: jnp.dtype | type = float) -> Array:
        return self.functions.identity(dtype)

    def compose(self, g: Array, h: Array) -> Array:
        return self.functions.compose(g, h)

    def inverse(self, g: Array) -> Array:
        return self.functions.inverse(g)

    def exp(self, u: Array) -> Array:
        return self.functions.exp(u)

    def log(self, g: Array) -> Array:
        return self.functions.log(g)

    def Ad_action(self, g: Array, v: Array) -> Array:
        return self.functions.Ad_action(g, v)

    def Ad_dual_action(self, g: Array, mu: Array) -> Array:
        return self.functions.Ad_dual_action(g, mu)

    def bracket(self, u: Array, v: Array) -> Array:
        return self.functions.bracket(u, v)

    def ad_dual_action(self, u: Array, mu: Array) -> Array:
        return self.functions.ad_dual_action(u, mu)

    def dexp_action(self, u: Array, v: Array) -> Array:
        return self.functions.dexp_action(u, v)

    def dexpinv_action(self, u: Array, v: Array) -> Array:
        return self.functions.dexpinv_action(u, v)

    def project(self, g: Array) -> Array:
        return self.functions.project(g)

    def defects(self, g: Any) -> dict[str, Any]:
        return self.functions.defects(g)

    def random(self, key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Array:
        return self.functions.random(key, shape, dtype)


SO2 = ArrayGroup(so2, (2, 2))
"""Rotations of the plane, matrices (2, 2)."""
SE2 = ArrayGroup(se2, (3, 3))
"""Rigid displacements (poses) of the plane, matrices (3, 3)."""
SO3 = ArrayGroup(so3, (3, 3))
"""Rotations, matrices (3, 3)."""
SE3 = ArrayGroup(se3, (4, 4))
"""Rigid displacements (poses), homogeneous matrices (4, 4)."""
UnitQuaternion = ArrayGroup(quaternion, (4,))
"""Rotations as unit quaternions (4,), scalar first; q and -q are the same rotation."""


class Euclidean(LieGroup):
    """The vectors of R^n under addition; every map is trivial."""

    n: int = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.n < 1:
            raise ValueError(f"n: expected a positive dimension, got {self.n}")

    @property
    def dim(self) -> int:
        return self.n

    @property
    def shapes(self) -> tuple[int, ...]:
        return (self.n,)

    def sizes(self, g: Array) -> Array:
        return g

    def _vector(self, name: str, value: Array) -> Array:
        return check.floating(name, value, self.n)

    def _second(self, **pair: Array) -> Array:
        first, second = check.arguments(**{name: (a, (self.n,)) for name, a in pair.items()})
        return jnp.broadcast_to(second, jnp.broadcast_shapes(first.shape, second.shape))

    def identity(self, dtype: jnp.dtype | type = float) -> Array:
        return jnp.zeros(self.n, check.float_dtype(dtype))

    def compose(self, g: Array, h: Array) -> Array:
        g, h = check.arguments(g=(g, (self.n,)), h=(h, (self.n,)))
        return g + h

    def inverse(self, g: Array) -> Array:
        return -self._vector("g", g)

    def exp(self, u: Array) -> Array:
        return self._vector("u", u)

    def log(self, g: Array) -> Array:
        return self._vector("g", g)

    def Ad_action(self, g: Array, v: Array) -> Array:
        return self._second(g=g, v=v)

    def Ad_dual_action(self, g: Array, mu: Array) -> Array:
        return self._second(g=g, mu=mu)

    def bracket(self, u: Array, v: Array) -> Array:
        return jnp.zeros_like(self._second(u=u, v=v))

    def ad_dual_action(self, u: Array, mu: Array) -> Array:
        return jnp.zeros_like(self._second(u=u, mu=mu))

    def dexp_action(self, u: Array, v: Array) -> Array:
        return self._second(u=u, v=v)

    def dexpinv_action(self, u: Array, v: Array) -> Array:
        return self._second(u=u, v=v)

    def random(self, key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Array:
        return jax.random.normal(key, (*shape, self.n), dtype)


def split(u: Array, dims: Sequence[int]) -> list[Array]:
    """The parts of a concatenated algebra vector."""
    ends = [sum(dims[: i + 1]) for i in range(len(dims))]
    return [u[..., end - d : end] for d, end in zip(dims, ends, strict=True)]


def join(parts: Sequence[Array]) -> Array:
    """The concatenated algebra vector of parts whose leading axes broadcast."""
    batch = jnp.broadcast_shapes(*(p.shape[:-1] for p in parts))
    return jnp.concatenate([jnp.broadcast_to(p, (*batch, p.shape[-1])) for p in parts], axis=-1)


def defects_of_parts(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The defects of a tuple from those of its parts, with names prefixed by ``[index]``."""
    named = (
        (f"[{i}]{'' if name.startswith('[') else ' '}{name}", gap)
        for i, d in enumerate(parts)
        for name, gap in d.items()
    )
    return dict(named)
