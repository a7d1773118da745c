"""The Cayley map of groups and actions, ``cay(u) = (1 - u/2)^-1 (1 + u/2)``: rational, without an angle.

Source: Celledoni et al. 2021, sec. 2.3; Diele, Lopez, Peluso 1998.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from lgsim.integrators.verbs import Verbs, repeated, side_by_side
from lgsim.lie.action import Action, Coadjoint, LeftTranslation, Product, RightTranslation, TangentSphere
from lgsim.lie.group import SE3, ArrayGroup, Element, Euclidean, LieGroup, join, split
from lgsim.lie.power import Power
from lgsim.lie.product import Product as GroupProduct


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
        "lgsim.integrators.cayley.cayley_map.register"
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
