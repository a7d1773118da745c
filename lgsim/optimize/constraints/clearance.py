"""Collision avoidance with obstacles and between bodies, as costs and as a constraint."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import number_field
from lgsim.dynamics.distances.distance import checked_pairs, distance, distance_jacobian
from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Point
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD, ModelError
from lgsim.optimize.constraints.constraint import Constraint, Grid
from lgsim.optimize.cost import Control, StateResidual
from lgsim.simulation.state_space import StateSpace
from lgsim.support import check
from lgsim.support.check import is_traced

Pairs = tuple[tuple[str, ...], tuple[str, ...]]
"""Names of geometries, and names of the others, as returned by ``Model.solid_pairs``."""


def _named(pairs: Any) -> Pairs | None:
    """Static pairs of names."""
    return None if pairs is None else (tuple(pairs[0]), tuple(pairs[1]))


class ClearanceCost(StateResidual):
    """Half the squared violations of a margin by the distances of geometry pairs, ``r = max(margin - d(q), 0)``.

    It is zero if all distances exceed the margin, and its gradient is continuous wherever the gradient of the distance
    is.
    """

    model: Model
    margin: Any
    weight: Any = number_field(1.0)
    pairs: Pairs | None = eqx.field(static=True, default=None, converter=_named)

    def __check_init__(self) -> None:
        _check_clearance(type(self).__name__, self.model, self.margin, self.solid_pairs)

    @property
    @abstractmethod
    def solid_pairs(self) -> Pairs:
        """The geometry pairs."""

    def residual(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        return shortfall(self.model, self.margin, self.solid_pairs, y[: self.model.nq])

    def linear(
        self, action: Action, t: Number, y: Point, u: Control, args: Any
    ) -> tuple[Float[Array, " rows"], Float[Array, "rows n"]]:
        """The residuals and their derivative, from the closed-form derivative of the distances if states are (q, v)."""
        if not isinstance(action, StateSpace) or u is not None:
            return super().linear(action, t, y, u, args)
        d, J = distance_jacobian(self.model, y[: self.model.nq], *self.solid_pairs)
        short = jnp.asarray(self.margin, d.dtype) - d
        J = jnp.where(short[:, None] > 0, -J, 0)
        return jnp.maximum(short, 0), jnp.pad(J, ((0, 0), (0, action.dim - self.model.nv)))


class ObstacleCost(ClearanceCost):
    """Collision avoidance with fixed obstacles: half the squares of ``r = max(margin - d(q), 0)``, m.

    Attributes:
        model: The model with geometries, see ``Model.add_solid`` and ``Model.replace_solid``.
        margin: The distance above which a pair has no cost, m: one value or one for each pair.
        weight: One value or one for each pair.
        pairs: Names of geometries and names of the others; by default all of ``model.solid_pairs()`` with one geometry
            fixed to the world.

    Raises:
        ModelError: a geometry does not exist, or there is no pair.
        ValueError: the margin is not finite or has a wrong shape, a weight is negative.
    """

    @property
    def solid_pairs(self) -> Pairs:
        return _pairs_of(self.model, lambda moving: not all(moving)) if self.pairs is None else self.pairs


class SelfCollision(ClearanceCost):
    """Self-collision avoidance: half the squares of ``r = max(margin - d(q), 0)``, m.

    Attributes:
        model: The model with geometries, see ``Model.add_solid``.
        margin: The distance above which a pair has no cost, m: one value or one for each pair.
        weight: One value or one for each pair.
        pairs: Names of geometries and names of the others; by default all of ``model.solid_pairs()`` in which both
            move, without neighbors and the pairs of ``Model.exclude``.

    Raises:
        ModelError, ValueError: see ``ObstacleCost``.
    """

    @property
    def solid_pairs(self) -> Pairs:
        return _pairs_of(self.model, all) if self.pairs is None else self.pairs


class Clearance(Constraint):
    """Collision avoidance as a constraint: the distance of geometry pairs is at least a margin.

    ``margin - d(q) <= 0`` applies at every node.

    By default the constraint applies at the nodes only. A point with speed s comes at most ``s dt / 2`` closer between
    two nodes than at the closer one, so that such a margin guarantees clearance at all times. With ``between`` the
    constraint also applies at points between nodes, for states (q, v): each node moves q along its own v, by at most
    half a step forwards and backwards, ``retract(q, tau v)``. This requires no dynamics, and the error is of second
    order: an acceleration a shifts a point by ``a tau^2 / 2``, at most ``a dt^2 / 8``. No control affects the initial
    state of the plan, nor the points of its own half step.

    Attributes:
        model: The model with geometries, see ``Model.add_solid``.
        margin: The minimum distance, m: one value or one for each pair.
        pairs: Names of geometries and names of the others; by default all of ``model.solid_pairs()``.
        between: Number of equally spaced points between two nodes.
        dt: Time between nodes, s; set by the problem.

    Raises:
        ModelError, ValueError: see ``ObstacleCost``.
        ValueError: between is negative.
    """

    model: Model
    margin: Any = number_field(0.0)
    pairs: Pairs | None = eqx.field(static=True, default=None, converter=_named)
    between: int = eqx.field(static=True, default=0, kw_only=True)
    dt: Any = eqx.field(default=np.nan, kw_only=True)
    equality: bool = eqx.field(static=True, default=False, init=False)
    on_path: bool = eqx.field(static=True, default=True, init=False)
    at_end: bool = eqx.field(static=True, default=True, init=False)

    def __check_init__(self) -> None:
        _check_clearance("Clearance", self.model, self.margin, self.solid_pairs)
        if self.between:
            check.count("between", self.between)

    @property
    def solid_pairs(self) -> Pairs:
        """The geometry pairs."""
        return self.model.solid_pairs() if self.pairs is None else self.pairs

    def on_grid(self, grid: Grid) -> Constraint:
        return self.at_step(grid.dt)

    def at_step(self, dt: Number) -> Constraint:
        return eqx.tree_at(lambda c: c.dt, self, dt) if self.between else self

    def value(self, t: Number, y: Point, u: Control, args: Any) -> Float[Array, " rows"]:
        """``margin - d`` of each pair, m: at the node, then at the points after it, then at the points before it."""
        if not self.between:
            return self.state_value(y)
        shares = self._shares(last=u is None)
        model = self.model
        q, v = y[: model.nq], y[model.nq : model.nq + model.nv]
        taus = jnp.asarray(shares, y.dtype) * jnp.asarray(self.dt, y.dtype)
        return self._short(model.retract(q[None], taus[:, None] * v[None])).ravel()

    def state_value(self, y: Point) -> Float[Array, " rows"]:
        """``margin - d`` of each pair in a state, m."""
        return self._short(y[: self.model.nq])

    def _short(self, q: Float[Array, "*batch nq"]) -> Float[Array, "*batch pairs"]:
        """``margin - d`` of each pair in configurations, m."""
        d = distance(self.model, q, *self.solid_pairs)
        margin = jnp.asarray(self.margin, d.dtype)
        return jnp.broadcast_to(margin, d.shape) - d

    def _shares(self, last: bool) -> Float[np.ndarray, " points"]:
        """The points of a node as fractions of a step: zero, those after it, except at the last node, and those before
        it.
        """
        shares = np.arange(self.between + 1) / (self.between + 1)
        after, before = shares[shares <= 0.5], shares[shares > 0.5] - 1
        return np.concatenate([after[:1] if last else after, before])


def shortfall(model: Model, margin: Any, pairs: Pairs, q: Float[Array, " nq"]) -> Float[Array, " pairs"]:
    """Violations of a margin by distances, ``max(margin - d(q), 0)``, m."""
    d = distance(model, q, *pairs)
    return jnp.maximum(jnp.asarray(margin, d.dtype) - d, 0)


def _pairs_of(model: Model, chosen: Callable[[list[bool]], bool]) -> Pairs:
    """The pairs of ``model.solid_pairs()`` selected by which of the two geometries can move."""
    tree = model.topology
    moves = {solid.name: tree.carrier(solid.frame) != WORLD for solid in tree.solids}
    kept = [pair for pair in zip(*model.solid_pairs(), strict=True) if chosen([moves[name] for name in pair])]
    return tuple(a for a, _ in kept), tuple(b for _, b in kept)


def _check_clearance(owner: str, model: Model, margin: Any, pairs: Pairs) -> None:
    """Check a margin and pairs.

    Raises:
        ModelError: there is no pair, or a geometry does not exist.
        ValueError: the margin is not finite, or neither a scalar nor one value for each pair.
    """
    if not pairs[0]:
        raise ModelError(
            f"{owner}: the model has no geometry pair that could collide; see Model.add_solid and Model.solid_pairs"
        )
    checked_pairs(model.topology, *pairs)
    if np.shape(margin) not in ((), (len(pairs[0]),)):
        raise ValueError(
            f"{owner}: margin: expected a scalar or one value for each of {len(pairs[0])} pairs, got shape"
            f" {np.shape(margin)}"
        )
    if not is_traced(margin) and not np.all(np.isfinite(np.asarray(margin))):
        raise ValueError(f"{owner}: margin: expected finite numbers, m, got {margin}")
