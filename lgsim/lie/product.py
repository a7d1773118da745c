"""Composite groups: direct products, and semidirect products with vectors, such as TG and T*G."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.group import Element, LieGroup, defects_of_parts, join, split
from lgsim.lie.matrix_forms import columns, transpose_apply
from lgsim.support import check


class Product(LieGroup):
    """The direct product: elements are tuples, algebra vectors are concatenated, all operations act by parts."""

    groups: tuple[LieGroup, ...]

    def __init__(self, *groups: LieGroup):
        if not groups or not all(isinstance(g, LieGroup) for g in groups):
            raise TypeError(f"groups: expected one or more Lie groups, got {groups}")
        self.groups = groups

    @property
    def dims(self) -> list[int]:
        """The dimensions of the factors."""
        return [g.dim for g in self.groups]

    @property
    def dim(self) -> int:
        return sum(self.dims)

    @property
    def shapes(self) -> tuple[Any, ...]:
        return tuple(g.shapes for g in self.groups)

    def sizes(self, g: Any) -> Array:
        return join([group.sizes(part) for group, part in zip(self.groups, g, strict=True)])

    def _vectors(self, **named: Array) -> list[list[Array]]:
        arrays = check.arguments(**{name: (a, (self.dim,)) for name, a in named.items()})
        return [split(a, self.dims) for a in arrays]

    def _elements(self, name: str, g: Element) -> tuple[Element, ...]:
        if not isinstance(g, tuple | list) or len(g) != len(self.groups):
            came = f"{len(g)} parts" if isinstance(g, tuple | list) else type(g).__name__
            raise ValueError(f"{name}: expected a tuple of {len(self.groups)} elements, got {came}")
        return tuple(g)

    def identity(self, dtype: jnp.dtype | type = float) -> Element:
        return tuple(group.identity(dtype) for group in self.groups)

    def project(self, g: Element) -> Element:
        return tuple(group.project(a) for group, a in zip(self.groups, self._elements("g", g), strict=True))

    def defects(self, g: Element) -> dict[str, Any]:
        return defects_of_parts([group.defects(a) for group, a in zip(self.groups, g, strict=True)])

    def compose(self, g: Element, h: Element) -> Element:
        pairs = zip(self.groups, self._elements("g", g), self._elements("h", h), strict=True)
        return tuple(group.compose(a, b) for group, a, b in pairs)

    def inverse(self, g: Element) -> Element:
        return tuple(group.inverse(a) for group, a in zip(self.groups, self._elements("g", g), strict=True))

    def exp(self, u: Array) -> Element:
        (parts,) = self._vectors(u=u)
        return tuple(group.exp(a) for group, a in zip(self.groups, parts, strict=True))

    def log(self, g: Element) -> Array:
        return join([group.log(a) for group, a in zip(self.groups, self._elements("g", g), strict=True)])

    def Ad_action(self, g: Element, v: Array) -> Array:
        parts = zip(
            self.groups, self._elements("g", g), split(check.floating("v", v, self.dim), self.dims), strict=True
        )
        return join([group.Ad_action(a, b) for group, a, b in parts])

    def bracket(self, u: Array, v: Array) -> Array:
        pairs = zip(self.groups, *self._vectors(u=u, v=v), strict=True)
        return join([group.bracket(a, b) for group, a, b in pairs])

    def dexp_action(self, u: Array, v: Array) -> Array:
        pairs = zip(self.groups, *self._vectors(u=u, v=v), strict=True)
        return join([group.dexp_action(a, b) for group, a, b in pairs])

    def dexpinv_action(self, u: Array, v: Array) -> Array:
        pairs = zip(self.groups, *self._vectors(u=u, v=v), strict=True)
        return join([group.dexpinv_action(a, b) for group, a, b in pairs])

    def random(self, key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Element:
        keys = jax.random.split(key, len(self.groups))
        return tuple(group.random(k, shape, dtype) for group, k in zip(self.groups, keys, strict=True))


def _aligned_sum(x: Array, y: Array) -> Array:
    n = x.shape[-1]
    x, y = check.arguments(x=(x, (n,)), y=(y, (n,)))
    return x + y


class Semidirect(LieGroup):
    """``G x V`` with ``(g, x)(h, y) = (g h, x + rho_g y)``, rho a representation of G on a vector space V.

    With ``rho'`` its derivative at the identity and ``L(u) = int_0^1 rho_{exp(s u)} ds``:
    ``exp(u, x) = (exp u, L(u) x)``, ``[(u, x), (v, y)] = ([u, v], rho'_u y - rho'_v x)``,
    ``dexp_(u,x) (v, y) = (a, DL(u)[v] x + L(u) y - rho'_a L(u) x)`` with ``a = dexp_u v``.

    A subclass defines the four maps of its representation, and the dimension of V if it differs from that of G. They
    broadcast over leading axes. An element is a pair: an element of G, and a vector (..., vector_dim).

    Attributes:
        base: G.
        vector_first: True if algebra vectors are ``(x, u)`` instead of ``(u, x)``; fixed for a subclass.
    """

    base: LieGroup
    vector_first: ClassVar[bool] = False

    @property
    def vector_dim(self) -> int:
        """The dimension of V, by default that of G."""
        return self.base.dim

    @abstractmethod
    def represent(self, g: Element, x: Array) -> Array:
        """``rho_g x``."""

    @abstractmethod
    def generate(self, u: Array, x: Array) -> Array:
        """``rho'_u x``."""

    @abstractmethod
    def average(self, u: Array, x: Array) -> Array:
        """``L(u) x``, the mean of ``rho_{exp(s u)} x`` over s in [0, 1]."""

    @abstractmethod
    def average_inverse(self, u: Array, x: Array) -> Array:
        """``L(u)^-1 x``."""

    @property
    def dim(self) -> int:
        return self.base.dim + self.vector_dim

    @property
    def shapes(self) -> tuple[Any, ...]:
        return (self.base.shapes, (self.vector_dim,))

    def _vectors(self, **named: Array) -> list[list[Array]]:
        """The parts of each algebra vector in the algebra of G and in V."""
        arrays = check.arguments(**{name: (a, (self.dim,)) for name, a in named.items()})
        dims = [self.base.dim, self.vector_dim]
        return [split(a, dims[::-1])[::-1] if self.vector_first else split(a, dims) for a in arrays]

    def _joined(self, u: Array, x: Array) -> Array:
        """The algebra vector of the two parts."""
        return join([x, u] if self.vector_first else [u, x])

    def _pair(self, name: str, g: Element) -> tuple[Element, Array]:
        """The element as a pair; errors name the argument."""
        if not isinstance(g, tuple | list) or len(g) != 2:
            came = f"{len(g)} parts" if isinstance(g, tuple | list) else type(g).__name__
            raise ValueError(f"{name}: expected a pair of an element and a vector, got {came}")
        return g[0], check.floating(f"{name}[1]", g[1], self.vector_dim)

    def identity(self, dtype: jnp.dtype | type = float) -> Element:
        return self.base.identity(dtype), jnp.zeros(self.vector_dim, dtype)

    def project(self, g: Element) -> Element:
        a, x = self._pair("g", g)
        return self.base.project(a), x

    def defects(self, g: Element) -> dict[str, Any]:
        return defects_of_parts([self.base.defects(g[0])])

    def compose(self, g: Element, h: Element) -> Element:
        (a, x), (b, y) = self._pair("g", g), self._pair("h", h)
        return self.base.compose(a, b), _aligned_sum(x, self.represent(a, y))

    def inverse(self, g: Element) -> Element:
        a, x = self._pair("g", g)
        back = self.base.inverse(a)
        return back, -self.represent(back, x)

    def exp(self, u: Array) -> Element:
        ((a, x),) = self._vectors(u=u)
        return self.base.exp(a), self.average(a, x)

    def log(self, g: Element) -> Array:
        a, x = self._pair("g", g)
        u = self.base.log(a)
        return self._joined(u, self.average_inverse(u, x))

    def Ad_action(self, g: Element, v: Array) -> Array:
        a, x = self._pair("g", g)
        ((b, y),) = self._vectors(v=v)
        turned = self.base.Ad_action(a, b)
        return self._joined(turned, _aligned_sum(self.represent(a, y), -self.generate(turned, x)))

    def bracket(self, u: Array, v: Array) -> Array:
        (a, x), (b, y) = self._vectors(u=u, v=v)
        return self._joined(self.base.bracket(a, b), self.generate(a, y) - self.generate(b, x))

    def _coupling(self, a: Array, x: Array, b: Array, space: Array) -> Array:
        batch = jnp.broadcast_shapes(a.shape, b.shape)
        moving = jax.jvp(lambda w: self.average(w, x), (jnp.broadcast_to(a, batch),), (jnp.broadcast_to(b, batch),))
        return moving[1] - self.generate(space, moving[0])

    def dexp_action(self, u: Array, v: Array) -> Array:
        (a, x), (b, y) = self._vectors(u=u, v=v)
        space = self.base.dexp_action(a, b)
        return self._joined(space, self.average(a, y) + self._coupling(a, x, b, space))

    def dexpinv_action(self, u: Array, v: Array) -> Array:
        (a, x), (space, y) = self._vectors(u=u, v=v)
        b = self.base.dexpinv_action(a, space)
        return self._joined(b, self.average_inverse(a, y - self._coupling(a, x, b, space)))

    def random(self, key: Array, shape: tuple[int, ...] = (), dtype: jnp.dtype | type = float) -> Element:
        base_key, vector_key = jax.random.split(key)
        return self.base.random(base_key, shape, dtype), jax.random.normal(vector_key, (*shape, self.vector_dim), dtype)


class Tangent(Semidirect):
    """TG as ``G x g`` with rho = Ad: elements (g, v), v the space velocity ``g' g^-1``."""

    def represent(self, g: Element, x: Array) -> Array:
        return self.base.Ad_action(g, x)

    def generate(self, u: Array, x: Array) -> Array:
        return self.base.bracket(u, x)

    def average(self, u: Array, x: Array) -> Array:
        return self.base.dexp_action(u, x)

    def average_inverse(self, u: Array, x: Array) -> Array:
        return self.base.dexpinv_action(u, x)


class Cotangent(Semidirect):
    """T*G as ``G x g*`` with rho_g = Ad*_{g^-1}: elements (g, mu), mu the space momentum.

    ``(g1, mu1)(g2, mu2) = (g1 g2, mu1 + Ad*_{g1^-1} mu2)``. Source: Celledoni et al. 2021, sec. 3.1, eq. (11).
    """

    def represent(self, g: Element, x: Array) -> Array:
        return self.base.Ad_dual_action(self.base.inverse(g), x)

    def generate(self, u: Array, x: Array) -> Array:
        return -self.base.ad_dual_action(u, x)

    def average(self, u: Array, x: Array) -> Array:
        return transpose_apply(columns(self.base.dexp_action, -u, self.base.dim), x)

    def average_inverse(self, u: Array, x: Array) -> Array:
        return transpose_apply(columns(self.base.dexpinv_action, -u, self.base.dim), x)
