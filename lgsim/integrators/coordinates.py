"""Coordinates on a group for Munthe-Kaas methods: exponential, of the second kind, Cayley.

Coordinates are a map phi of the algebra to the group with ``phi(0) = 1``. A method needs two functions of them: the
point ``phi(sigma) . y``, and the inverse of the differential of phi, which is the rate of sigma for which
``phi(sigma(t)) . y`` moves with a given algebra vector. On a product or a power of actions each factor has its own map,
because elements of different factors commute.

Sources: Celledoni et al. 2021, sec. 2.2; Owren and Marthinsen 2001, Integration methods based on canonical coordinates
of the second kind; Hairer, Lubich, Wanner, Geometric Numerical Integration, IV.8.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow
from lgsim.lie.action import Action, Coadjoint, LeftTranslation, Point, Product, RightTranslation, TangentSphere
from lgsim.lie.group import SE3, ArrayGroup, Element, Euclidean, LieGroup, join, split
from lgsim.lie.power import Power
from lgsim.lie.product import Product as GroupProduct

Vector = Float[Array, " algebra"]
Matrix = Float[Array, "algebra algebra"]
Vectors = Float[Array, "#*batch algebra"]


class Coordinates(ABC):
    """A coordinate map phi for Munthe-Kaas methods; hashable, without arrays.

    Attributes:
        requires: the names of the operations, beyond ``move``, that the action must define.
        odd: True if ``phi(-u)`` is the inverse of ``phi(u)``.
    """

    requires: ClassVar[tuple[str, ...]]
    odd: ClassVar[bool]

    def check(self, action: Action) -> None:  # noqa: B027 - most coordinates ask for nothing
        """Raise TypeError if the action does not support these coordinates, apart from missing operations."""

    @abstractmethod
    def move(self, action: Action, sigma: Vector, y: Point) -> Point:
        """The point ``phi(sigma) . y``."""

    @abstractmethod
    def inverse_differential(self, action: Action, sigma: Vector, xi: Vector) -> Vector:
        """The rate of sigma for which ``phi(sigma(t)) . y`` moves with xi; all three are (action.dim,)."""


class CoordinateMap(NamedTuple):
    """The two functions of coordinates phi on one action.

    Attributes:
        move: ``move(sigma, y)``, the point ``phi(sigma) . y``.
        inverse_differential: ``inverse_differential(sigma, xi)``, the rate of sigma for which ``phi(sigma(t)) . y``
            moves with xi; all three are (action.dim,).
    """

    move: Callable[[Vector, Point], Point]
    inverse_differential: Callable[[Vector, Vector], Vector]


def _product_map(factors: Sequence[CoordinateMap], dims: Sequence[int]) -> CoordinateMap:
    """The coordinates of a product of actions, from those of its factors, whose algebras have dimensions ``dims``."""

    def move(sigma: Vector, y: Point) -> Point:
        return tuple(factor.move(s, z) for factor, s, z in zip(factors, split(sigma, dims), y, strict=True))

    def inverse_differential(sigma: Vector, xi: Vector) -> Vector:
        vectors = zip(factors, split(sigma, dims), split(xi, dims), strict=True)
        return join([factor.inverse_differential(s, x) for factor, s, x in vectors])

    return CoordinateMap(move, inverse_differential)


def _power_map(factor: CoordinateMap, power: Power) -> CoordinateMap:
    """The coordinates of a power of one action, from those of the action."""
    inverse_differential = jax.vmap(factor.inverse_differential)
    return CoordinateMap(
        lambda sigma, y: jax.vmap(factor.move)(power.rows(sigma), y),
        lambda sigma, xi: power.joined(inverse_differential(power.rows(sigma), power.rows(xi))),
    )


@dataclass(frozen=True)
class Exponential(Coordinates):
    """The exponential map: canonical coordinates of the first kind."""

    requires: ClassVar[tuple[str, ...]] = ("dexpinv",)
    odd: ClassVar[bool] = True

    def move(self, action: Action, sigma: Vector, y: Point) -> Point:
        """The point ``exp(sigma) . y``."""
        return action.move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Vector, xi: Vector) -> Vector:
        """``dexpinv_sigma(xi)`` in closed form, (action.dim,)."""
        return action.dexpinv(sigma, xi)


EXPONENTIAL = Exponential()


@dataclass(frozen=True)
class SecondKind(Coordinates):
    """``phi(sigma) = exp(sigma_1 e_1) exp(sigma_2 e_2) ... exp(sigma_d e_d)`` in the basis of the algebra, any action.

    Rotations are singular where the second of three angles is a quarter of a turn.
    """

    requires: ClassVar[tuple[str, ...]] = ("dexpinv",)
    odd: ClassVar[bool] = False

    def move(self, action: Action, sigma: Vector, y: Point) -> Point:
        """The point ``phi(sigma) . y``; the last factor acts first."""
        return _second_kind_map(action).move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Vector, xi: Vector) -> Vector:
        """The rate of sigma (action.dim,), from one linear system for each factor of a product."""
        return _second_kind_map(action).inverse_differential(sigma, xi)


@singledispatch
def _second_kind_map(action: Action) -> CoordinateMap:
    """Coordinates of the second kind on an action.

    The rate s of sigma solves ``sum_i s_i Ad_(exp(sigma_1 e_1) ... exp(sigma_(i-1) e_(i-1))) e_i = xi``.
    """

    def apply_factor(point: Point, u: Vector) -> tuple[Point, None]:
        return action.move(u, point), None

    def move(sigma: Vector, y: Point) -> Point:
        return control_flow.scan(apply_factor, y, jnp.diag(sigma), reverse=True)[0]

    def adjoint(u: Vector) -> Matrix:
        """Ad_exp(u) = dexp_u dexpinv_(-u), since an action provides only the inverse of dexp."""
        basis = jnp.eye(action.dim, dtype=u.dtype)
        space, body = (jax.vmap(lambda e, s=s: action.dexpinv(s, e), out_axes=-1)(basis) for s in (u, -u))
        return jnp.linalg.solve(space, body)

    def next_column(before: Matrix, factor: tuple[Matrix, Vector]) -> tuple[Matrix, Vector]:
        Ad, e = factor
        # column i is Ad_(exp(sigma_1 e_1) ... exp(sigma_(i-1) e_(i-1))) e_i
        return _multiply(before, Ad), jnp.sum(before * e[None, :], axis=-1)

    def inverse_differential(sigma: Vector, xi: Vector) -> Vector:
        basis = jnp.eye(action.dim, dtype=sigma.dtype)
        _, columns = control_flow.scan(next_column, basis, (jax.vmap(adjoint)(jnp.diag(sigma)), basis))
        return jnp.linalg.solve(columns.T, xi)

    return CoordinateMap(move, inverse_differential)


@_second_kind_map.register
def _(action: Product) -> CoordinateMap:
    return _product_map([_second_kind_map(each) for each in action.actions], action.dims)


@_second_kind_map.register
def _(action: Power) -> CoordinateMap:
    return _power_map(_second_kind_map(action.action), action)


def _multiply(a: Matrix, b: Matrix) -> Matrix:
    return jnp.sum(a[:, :, None] * b[None, :, :], axis=1)


@dataclass(frozen=True)
class Cayley(Coordinates):
    """The Cayley map ``cay(u) = (1 - u/2)^-1 (1 + u/2)`` of rotations and rigid displacements: rational in u.

    A user-defined action provides the operations ``cay(sigma, y)``, the point ``cay(sigma) . y``, and
    ``dcayinv(sigma, xi)``, the rate of sigma for which it moves with xi.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    odd: ClassVar[bool] = True

    def check(self, action: Action) -> None:
        """Raise TypeError if the action has no Cayley map."""
        _cayley_map(action)

    def move(self, action: Action, sigma: Vector, y: Point) -> Point:
        """The point ``cay(sigma) . y``."""
        return _cayley_map(action).move(sigma, y)

    def inverse_differential(self, action: Action, sigma: Vector, xi: Vector) -> Vector:
        """``dcayinv_sigma(xi)`` in closed form, (action.dim,)."""
        return _cayley_map(action).inverse_differential(sigma, xi)


class GroupCayley(NamedTuple):
    """The Cayley map of a group.

    Attributes:
        cay: ``cay(u)``, the element of an algebra vector (dim,).
        dcayinv: ``dcayinv(u, v)``, the inverse of its differential in space form at u, applied to v, (dim,).
        cayinv: ``cayinv(g)``, the algebra vector (dim,) of an element; None if only Munthe-Kaas methods need the map.
        dcay: ``dcay(u, v)``, the differential itself; None likewise.

    Both differentials broadcast over leading axes.
    """

    cay: Callable[[Vector], Element]
    dcayinv: Callable[[Vector, Vector], Vector]
    cayinv: Callable[[Element], Vector] | None = None
    dcay: Callable[[Vector, Vector], Vector] | None = None


@singledispatch
def group_cayley(group: LieGroup) -> GroupCayley:
    """The Cayley map of a group; new kinds of groups register their own.

    Raises:
        TypeError: the group has none.
    """
    raise TypeError(
        f"action: the Cayley map needs cay and dcayinv, which the group {type(group).__name__} does not define; take "
        "a method in exponential coordinates, such as MK4, or register them with "
        "lgsim.integrators.coordinates.group_cayley.register"
    )


@group_cayley.register
def _(group: ArrayGroup) -> GroupCayley:
    functions = group.functions
    if not (hasattr(functions, "cay") and hasattr(functions, "dcayinv_action")):
        return group_cayley.dispatch(LieGroup)(group)
    return GroupCayley(functions.cay, functions.dcayinv_action, functions.cayinv, functions.dcay_action)


@group_cayley.register
def _(group: Euclidean) -> GroupCayley:
    return GroupCayley(group.exp, group.dexpinv_action, group.log, group.dexp_action)


@group_cayley.register
def _(group: GroupProduct) -> GroupCayley:
    maps, dims = [group_cayley(each) for each in group.groups], group.dims

    def dcayinv(u: Vectors, v: Vectors) -> Float[Array, "*sizes algebra"]:
        return join([m.dcayinv(x, w) for m, x, w in zip(maps, split(u, dims), split(v, dims), strict=True)])

    def cay(u: Vector) -> Element:
        return tuple(m.cay(x) for m, x in zip(maps, split(u, dims), strict=True))

    inverses = [m.cayinv for m in maps if m.cayinv is not None]
    slopes = [m.dcay for m in maps if m.dcay is not None]
    if len(inverses) < len(maps) or len(slopes) < len(maps):
        return GroupCayley(cay, dcayinv)

    def cayinv(g: Element) -> Vector:
        return join([inverse(x) for inverse, x in zip(inverses, g, strict=True)])

    def dcay(u: Vectors, v: Vectors) -> Float[Array, "*sizes algebra"]:
        return join([slope(x, w) for slope, x, w in zip(slopes, split(u, dims), split(v, dims), strict=True)])

    return GroupCayley(cay, dcayinv, cayinv, dcay)


@singledispatch
def _cayley_map(action: Action) -> CoordinateMap:
    """The Cayley map of an action, from the operations ``cay`` and ``dcayinv`` if the action defines them.

    Raises:
        TypeError: the action has none.
    """
    cay, dcayinv = (getattr(action, verb, None) for verb in ("cay", "dcayinv"))
    if cay is None or dcayinv is None:
        raise TypeError(
            f"action: the Cayley map needs cay and dcayinv, which {type(action).__name__} does not define; define "
            "them, or take a method in exponential coordinates, such as MK4"
        )
    return CoordinateMap(cay, dcayinv)


@_cayley_map.register
def _(action: LeftTranslation) -> CoordinateMap:
    group, cayley = action.group, group_cayley(action.group)
    return CoordinateMap(lambda sigma, y: group.compose(cayley.cay(sigma), y), cayley.dcayinv)


@_cayley_map.register
def _(action: RightTranslation) -> CoordinateMap:
    group, cayley = action.group, group_cayley(action.group)
    # cay(-sigma) is the inverse of cay(sigma), so the body form is the space form at -sigma, as for exp
    return CoordinateMap(
        lambda sigma, y: group.compose(y, cayley.cay(sigma)), lambda sigma, xi: cayley.dcayinv(-sigma, xi)
    )


@_cayley_map.register
def _(action: Coadjoint) -> CoordinateMap:
    group, cayley = action.group, group_cayley(action.group)
    return CoordinateMap(lambda sigma, y: group.Ad_dual_action(cayley.cay(-sigma), y), cayley.dcayinv)


@_cayley_map.register
def _(action: TangentSphere) -> CoordinateMap:
    cayley = group_cayley(SE3)

    def move(sigma: Vector, y: Float[Array, " 6"]) -> Float[Array, " 6"]:
        # (omega, q) transforms like a twist (v, w)
        twist = SE3.Ad_action(cayley.cay(sigma), jnp.concatenate([y[..., 3:], y[..., :3]], axis=-1))
        return jnp.concatenate([twist[..., 3:], twist[..., :3]], axis=-1)

    return CoordinateMap(move, cayley.dcayinv)


@_cayley_map.register
def _(action: Product) -> CoordinateMap:
    return _product_map([_cayley_map(each) for each in action.actions], action.dims)


@_cayley_map.register
def _(action: Power) -> CoordinateMap:
    return _power_map(_cayley_map(action.action), action)
