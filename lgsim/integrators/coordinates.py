"""A coordinate map as an action sees it, and how the maps of parts make that of a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Action, Coadjoint, LeftTranslation, Point, Product, RightTranslation, TangentSphere
from lgsim.lie.group import SE3, ArrayGroup, Element, Euclidean, LieGroup, join, split
from lgsim.lie.power import Power
from lgsim.lie.product import Product as GroupProduct


class Verbs(NamedTuple):
    """A coordinate map phi on one action.

    Attributes:
        move: ``move(sigma, y)``, the point ``phi(sigma) . y``.
        rate: ``rate(sigma, xi)``, the rate of sigma for which ``phi(sigma(t)) . y`` moves with xi.
    """

    move: Callable[[Array, Point], Point]
    rate: Callable[[Array, Array], Array]


def side_by_side(parts: Sequence[Verbs], dims: Sequence[int]) -> Verbs:
    """The map of a product: each part on its own, because elements of different parts commute."""

    def move(sigma: Array, y: Point) -> Point:
        return tuple(part.move(s, z) for part, s, z in zip(parts, split(sigma, dims), y, strict=True))

    def rate(sigma: Array, xi: Array) -> Array:
        return join([part.rate(s, x) for part, s, x in zip(parts, split(sigma, dims), split(xi, dims), strict=True)])

    return Verbs(move, rate)


def repeated(one: Verbs, power: Power) -> Verbs:
    """The map of equal parts."""
    return Verbs(
        lambda sigma, y: jax.vmap(one.move)(power.rows(sigma), y),
        lambda sigma, xi: power.joined(jax.vmap(one.rate)(power.rows(sigma), power.rows(xi))),
    )


@singledispatch
def second_kind_verbs(action: Action) -> Verbs:
    """Coordinates of the second kind on an action; those of a product or power are those of its parts."""

    def factor(point: Point, u: Array) -> tuple[Point, None]:
        return action.move(u, point), None

    def move(sigma: Array, y: Point) -> Point:
        return jax.lax.scan(factor, y, jnp.diag(sigma), reverse=True)[0]

    def adjoint(u: Array) -> Array:
        basis = jnp.eye(action.dim, dtype=u.dtype)
        forth, back = (jax.vmap(lambda e, s=s: action.dexpinv(s, e), out_axes=-1)(basis) for s in (u, -u))
        return jnp.linalg.solve(forth, back)

    def row(before: Array, now: tuple[Array, Array]) -> tuple[Array, Array]:
        factor, e = now
        return _times_matrix(before, factor), jnp.sum(before * e[None, :], axis=-1)

    def rate(sigma: Array, xi: Array) -> Array:
        basis = jnp.eye(action.dim, dtype=sigma.dtype)
        _, rows = jax.lax.scan(row, basis, (jax.vmap(adjoint)(jnp.diag(sigma)), basis))
        return jnp.linalg.solve(rows.T, xi)

    return Verbs(move, rate)


@second_kind_verbs.register
def _(action: Product) -> Verbs:
    return side_by_side([second_kind_verbs(each) for each in action.actions], action.dims)


@second_kind_verbs.register
def _(action: Power) -> Verbs:
    return repeated(second_kind_verbs(action.action), action)


def _times_matrix(a: Array, b: Array) -> Array:
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)


class CayleyMap(NamedTuple):
    """The Cayley map of a group: ``cay(u)``, and the inverse of its differential in space form, ``dcayinv(u, v)``."""

    cay: Callable[[Array], Element]
    dcayinv: Callable[[Array, Array], Array]


@singledispatch
def cayley_map(group: LieGroup) -> CayleyMap:
    """The Cayley map of a group; a new kind of group registers its own. TypeError if it has none."""
    raise TypeError(
        f"action: the Cayley map needs cay and dcayinv, which the group {type(group).__name__} does not define; take "
        "a method in exponential coordinates, such as MK4, or register them with "
        "lgsim.integrators.coordinates.cayley_map.register"
    )


@cayley_map.register
def _(group: ArrayGroup) -> CayleyMap:
    functions = group.functions
    if not (hasattr(functions, "cay") and hasattr(functions, "dcayinv_action")):
        return cayley_map.dispatch(LieGroup)(group)
    return CayleyMap(functions.cay, functions.dcayinv_action)


@cayley_map.register
def _(group: Euclidean) -> CayleyMap:
    return CayleyMap(group.exp, group.dexpinv_action)


@cayley_map.register
def _(group: GroupProduct) -> CayleyMap:
    maps, dims = [cayley_map(each) for each in group.groups], group.dims

    def dcayinv(u: Array, v: Array) -> Array:
        return join([m.dcayinv(x, w) for m, x, w in zip(maps, split(u, dims), split(v, dims), strict=True)])

    return CayleyMap(lambda u: tuple(m.cay(x) for m, x in zip(maps, split(u, dims), strict=True)), dcayinv)


@singledispatch
def cayley_verbs(action: Action) -> Verbs:
    """The Cayley map of an action, its own verbs where it defines them. TypeError if it has none."""
    cay, dcayinv = (getattr(action, verb, None) for verb in ("cay", "dcayinv"))
    if cay is None or dcayinv is None:
        raise TypeError(
            f"action: the Cayley map needs cay and dcayinv, which {type(action).__name__} does not define; define "
            "them, or take a method in exponential coordinates, such as MK4"
        )
    return Verbs(cay, dcayinv)


@cayley_verbs.register
def _(action: LeftTranslation) -> Verbs:
    group, cayley = action.group, cayley_map(action.group)
    return Verbs(lambda sigma, y: group.compose(cayley.cay(sigma), y), cayley.dcayinv)


@cayley_verbs.register
def _(action: RightTranslation) -> Verbs:
    group, cayley = action.group, cayley_map(action.group)
    # cay(-sigma) is the inverse of cay(sigma), so the body form is the space form at -sigma, as for exp
    return Verbs(lambda sigma, y: group.compose(y, cayley.cay(sigma)), lambda sigma, xi: cayley.dcayinv(-sigma, xi))


@cayley_verbs.register
def _(action: Coadjoint) -> Verbs:
    group, cayley = action.group, cayley_map(action.group)
    return Verbs(lambda sigma, y: group.Ad_dual_action(cayley.cay(-sigma), y), cayley.dcayinv)


@cayley_verbs.register
def _(action: TangentSphere) -> Verbs:
    cayley = cayley_map(SE3)

    def move(sigma: Array, y: Array) -> Array:
        # (omega, q) transforms like a twist (v, w)
        moved = SE3.Ad_action(cayley.cay(sigma), jnp.concatenate([y[..., 3:], y[..., :3]], axis=-1))
        return jnp.concatenate([moved[..., 3:], moved[..., :3]], axis=-1)

    return Verbs(move, cayley.dcayinv)


@cayley_verbs.register
def _(action: Product) -> Verbs:
    return side_by_side([cayley_verbs(each) for each in action.actions], action.dims)


@cayley_verbs.register
def _(action: Power) -> Verbs:
    return repeated(cayley_verbs(action.action), action)


class Coordinates(ABC):
    """What a Munthe-Kaas method asks of coordinates; they are hashable and hold no arrays.

    Attributes:
        requires: the verbs, beyond ``move``, that the action must provide.
        odd: whether ``phi(-u)`` is the inverse of ``phi(u)``.
    """

    requires: ClassVar[tuple[str, ...]]
    odd: ClassVar[bool]

    def check(self, action: Action) -> None:  # noqa: B027 - most coordinates ask for nothing
        """Raise TypeError if the action has no such coordinates, beyond a verb that it lacks."""

    @abstractmethod
    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """The point ``phi(sigma) . y``."""

    @abstractmethod
    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """The rate of sigma for which ``phi(sigma(t)) . y`` moves with xi."""


@dataclass(frozen=True)
class Exponential(Coordinates):
    """The exponential map: canonical coordinates of the first kind."""

    requires: ClassVar[tuple[str, ...]] = ("dexpinv",)
    odd: ClassVar[bool] = True

    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """``exp(sigma) . y``."""
        return action.move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """Dexpinv in closed form."""
        return action.dexpinv(sigma, xi)


@dataclass(frozen=True)
class SecondKind(Coordinates):
    """``phi(sigma) = exp(sigma_1 e_1) exp(sigma_2 e_2) ... exp(sigma_d e_d)`` in the basis of the algebra, any action.

    Rotations are singular where the second of three angles is a quarter of a turn.
    """

    requires: ClassVar[tuple[str, ...]] = ("dexpinv",)
    odd: ClassVar[bool] = False

    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """``phi(sigma) . y``; the last factor acts first."""
        return second_kind_verbs(action).move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """By one linear system for each part of a product."""
        return second_kind_verbs(action).rate(sigma, xi)


@dataclass(frozen=True)
class Cayley(Coordinates):
    """The Cayley map ``cay(u) = (1 - u/2)^-1 (1 + u/2)`` of rotations and displacements: rational, without an angle.

    An action of one's own defines the verbs ``cay(sigma, y)``, the point ``cay(sigma) . y``, and
    ``dcayinv(sigma, xi)``, the rate of sigma for which it moves with xi.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    odd: ClassVar[bool] = True

    def check(self, action: Action) -> None:
        """Raise TypeError if the action has no Cayley map."""
        cayley_verbs(action)

    def move(self, action: Action, sigma: Array, y: Point) -> Point:
        """``cay(sigma) . y``."""
        return cayley_verbs(action).move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Array, xi: Array) -> Array:
        """Dcayinv in closed form."""
        return cayley_verbs(action).rate(sigma, xi)


EXPONENTIAL = Exponential()
