"""Checks of a mechanical system and of its initial state, unless they are traced."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.integrators.discrete.mechanics import DiscreteMechanics, State
from lgsim.integrators.method import Field
from lgsim.lie.action import Action, LeftTranslation
from lgsim.lie.group import LieGroup
from lgsim.lie.product import Cotangent
from lgsim.support.check import is_traced


class Rule(NamedTuple):
    """Name and order of a method that has no tableau, in place of one."""

    name: str
    order: int
    embedded_order: None = None


def cotangent_group(action: Action, who: str) -> LieGroup:
    """The group G of an action on T*G.

    Raises:
        TypeError: the action is of another kind.
    """
    if isinstance(action, LeftTranslation) and isinstance(action.group, Cotangent):
        return action.group.base
    raise TypeError(
        f"action: {who} needs a cotangent bundle, actions.LeftTranslation(lgsim.Cotangent(group)), got "
        f"{type(action).__name__}; several bodies are one lgsim.Product of their groups"
    )


def check_mechanics(field: Field, action: Action, name: str) -> DiscreteMechanics:
    """The field, a ``DiscreteMechanics`` on the group of the action.

    Raises:
        TypeError: it is of another kind.
        ValueError: its group is another one.
    """
    if not isinstance(field, DiscreteMechanics):
        raise TypeError(
            f"field: {name} takes lgsim.DiscreteMechanics(group, lagrangian), because it needs the Lagrangian itself, "
            f"got {type(field).__name__}"
        )
    group = cotangent_group(action, name)
    if field.group != group:
        raise ValueError(f"field: its group is {field.group!r}, that of the action {group!r}; expected one group")
    return field


def known(*trees: Any) -> bool:
    """True if all arrays have known values, as opposed to traced ones."""
    return not is_traced(trees)


def check_start(mechanics: DiscreteMechanics, t0: Float[Array, ""], y0: State, args: Any, *, tangent: bool) -> None:
    """Raise if the system cannot start from the state; no check under tracing.

    Args:
        tangent: True if the velocity of the momentum must satisfy the constraints.

    Raises:
        ValueError: a constraint is violated, a row of their Jacobian is zero or depends on the rows before it, the
            velocity violates a constraint, or no velocity belongs to the momentum. The message names the row.
    """
    if not known(t0, y0, args, mechanics):
        return
    g, mu = y0
    limit = 10.0 ** (-0.5 * np.finfo(mu.dtype).precision)
    gaps, G = (np.asarray(part) for part in (mechanics.gaps(g, args), mechanics.rows(g, args)))
    if not (np.all(np.isfinite(gaps)) and np.all(np.isfinite(G))):
        raise ValueError("constraints: a value or derivative at y0 is not finite")
    _check_rows(G, limit)
    size = max(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(g))
    for row, (gap, slope) in enumerate(zip(gaps, G, strict=True)):
        away = abs(float(gap)) / float(np.linalg.norm(slope))
        if not away <= limit * size:
            raise ValueError(
                f"y0: constraint row {row} is {float(gap):.3g} there, {away:.2g} away from where it holds, where up to "
                f"{limit * size:.1g} counts as rounding; start on the constraints"
            )
    mass = np.asarray(_mass(mechanics, t0, y0, args))
    matrix = np.block([[mass, G.T], [G, np.zeros((len(G),) * 2)]])
    scale = np.sqrt(np.max(np.abs(matrix), axis=1))
    if np.any(scale == 0) or not _regular(matrix / np.outer(scale, scale), limit):
        raise ValueError(
            "lagrangian: its second derivatives with respect to v are singular at y0 along admissible velocities, "
            "so that no velocity belongs to a momentum; give every direction a mass"
        )
    if tangent and len(G):
        v = np.asarray(jnp.linalg.solve(mass, mechanics.body_momentum(y0))) if _regular(mass, limit) else None
        if v is not None:
            for row, slope in enumerate(G):
                rate = abs(float(slope @ v)) / float(np.linalg.norm(slope))
                if not rate <= limit * float(np.linalg.norm(v)):
                    raise ValueError(
                        f"y0: its velocity leaves constraint row {row} at the rate {rate:.2g}; take velocities along "
                        "the constraints, or mechanics.project(y0, args), which drops the rest"
                    )


def _regular(matrix: Float[np.ndarray, "n n"], limit: float) -> bool:
    """True if the matrix has an inverse with some correct digits; ``limit`` is half of the digits."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return bool(values[-1] > limit**2 * values[0])


def _mass(mechanics: DiscreteMechanics, t: Float[Array, ""], y: State, args: Any) -> Float[Array, "dim dim"]:
    """The second derivatives of the Lagrangian with respect to v at rest, (dim, dim)."""
    return jax.jacfwd(lambda v: mechanics.slopes(t, y[0], v, args).momentum)(jnp.zeros_like(y[1]))


def _check_rows(G: Float[np.ndarray, "rows dim"], limit: float) -> None:
    """Raise ValueError with the first row that is zero or depends on the rows before it."""
    basis: list[np.ndarray] = []
    for row, slope in enumerate(G):
        length = float(np.linalg.norm(slope))
        if length == 0:
            raise ValueError(
                f"constraints: row {row} has a zero gradient at y0, so its force is undefined; write a length as "
                "(|x|^2 - l^2)/2, not as a power of what vanishes"
            )
        rest = slope / length
        for other in basis:
            rest = rest - (rest @ other) * other
        if float(np.linalg.norm(rest)) < limit:
            raise ValueError(
                f"constraints: row {row} depends on the rows before it at y0 (their Jacobian is singular), so that the "
                "multipliers are not defined; leave one of them out"
            )
        basis.append(rest / np.linalg.norm(rest))
