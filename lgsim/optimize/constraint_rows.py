"""Evaluation of a problem's constraints on a trajectory, row by row: values, scales, and the worst row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim._compile.xla import control_flow
from lgsim._compile.xla.exported_nodes import export_node, export_tuple
from lgsim.lie.action import Point
from lgsim.optimize.constraints.constraint import Constraint
from lgsim.optimize.constraints.penalties import Penalties, updated, violations
from lgsim.optimize.cost import move_node, zero_tangent
from lgsim.optimize.linear_quadratic import LinearQuadratic, linearize
from lgsim.optimize.optimality import control_sizes
from lgsim.optimize.problem import Problem

Values = tuple[tuple[Float[Array, "horizon _"], ...], tuple[Float[Array, " _"], ...]]
"""(rows of the path constraints, each (H, rows), rows of the end constraints, each (rows,))."""

_FLAT = 1e-9
"""Lower bound of the cost's curvature with respect to the controls of a node, as a fraction of the largest one."""
_LEAST = 1e-3
"""Smallest scale of a row, as a fraction of its change for a given cost."""
_TRIALS = (0.37, -0.61)
"""Control values, relative to their sizes, at which the dependence of rows on them is tested."""


def constraint_values(problem: Problem, ys: Point, us: Float[Array, "horizon nu"]) -> Values:
    """The values of the path constraints and of the end constraints on a trajectory."""
    ks = jnp.arange(problem.horizon)
    before, last = jax.tree.map(lambda y: y[:-1], ys), jax.tree.map(lambda y: y[-1], ys)

    def on_path(c: Constraint) -> Array:
        return jax.vmap(lambda k, y, u: c.value(problem.time(k), y, u, problem.args))(ks, before, us)

    end = problem.time(problem.horizon)
    return (
        tuple(on_path(c) for c in problem.constraints if c.on_path),
        tuple(c.value(end, last, None, problem.args) for c in problem.constraints if c.at_end),
    )


@export_tuple("lgsim.optimize.RowPlace")
class RowPlace(NamedTuple):
    """The location of a constraint row; all indices are -1 for none.

    Attributes:
        constraint: Index in ``Problem.constraints``.
        row: Index of the row.
        node: Index of the node.
    """

    constraint: Int[Array, ""]
    row: Int[Array, ""]
    node: Int[Array, ""]

    @classmethod
    def none(cls) -> RowPlace:
        """No location."""
        return cls(*(jnp.array(-1) for _ in range(3)))


@dataclass(frozen=True)
class ConstraintReport:
    """Constraint satisfaction of a trajectory, with the worst rows.

    The scale of a row is the magnitude of its terms on the trajectory: ``|c| + sum_j |dc/dz_j| |z_j|`` for the largest
    states and controls z. Violations of soft rows do not count.

    Attributes:
        names: Names of the constraint types.
        violation: Violation of the worst row, in its own unit.
        relative: The same relative to the row's scale, or in its unit if the solver has an absolute tolerance.
        violated: The row with the largest one.
        complementarity: Largest violation, or value of an inactive row with a nonzero multiplier, ``|max(c, -m /
            rho)|``, likewise; for soft rows that of the relaxed problem.
        uncomplementary: The row with the largest one.
        left_out: A row that the initial state violates and that no control affects at the first node, where it is
            ignored.
    """

    names: tuple[str, ...]
    violation: Float[Array, ""]
    relative: Float[Array, ""]
    violated: RowPlace
    complementarity: Float[Array, ""]
    uncomplementary: RowPlace
    left_out: RowPlace

    def moved(self, nodes: int) -> ConstraintReport:
        """The report with ``nodes`` further nodes in front."""

        def at(place: RowPlace) -> RowPlace:
            return place._replace(node=jnp.where(place.node > 0, place.node + nodes, place.node))

        places = (at(self.violated), at(self.uncomplementary), at(self.left_out))
        return replace(self, violated=places[0], uncomplementary=places[1], left_out=places[2])

    def text(self, place: RowPlace, ts: Float[Array, " nodes"]) -> str:
        """Format a location with its time."""
        i, row, k = (int(x) for x in place)
        return f"constraint {i} ({self.names[i]}), row {row}, node {k}, t = {float(ts[k]):.9g} s"


_FIELDS = tuple(field.name for field in fields(ConstraintReport))[1:]


def _rebuilt(names: tuple[str, ...], children: Iterable[Any]) -> ConstraintReport:
    """Rebuild the report from its leaves, which JAX may have replaced by anything."""
    report = object.__new__(ConstraintReport)
    for name, value in zip(("names", *_FIELDS), (names, *children), strict=True):
        object.__setattr__(report, name, value)
    return report


jax.tree_util.register_pytree_node(
    ConstraintReport,
    lambda report: (tuple(getattr(report, name) for name in _FIELDS), report.names),
    _rebuilt,
)
export_node(
    ConstraintReport, "lgsim.optimize.ConstraintReport", ";".join, lambda text: tuple(text.split(";")), ConstraintReport
)


class Rows(NamedTuple):
    """The rows of a constraint at all nodes with a control, or at the last node; with a leading axis of nodes.

    Attributes:
        number: Index of the constraint.
        first: Index of the first of the nodes.
        c: Values (nodes, rows).
        size: Their scales, see ``ConstraintReport``, likewise.
        counts: True where the constraint applies, likewise.
        start: True where a control affects the row, or after the first node, likewise.
        multipliers: Their multipliers, likewise.
        natural: Their natural scales (1, rows).
        weight: Their penalties (1, rows).
    """

    number: int
    constraint: Constraint
    first: int
    c: Float[Array, "nodes rows"]
    size: Float[Array, "nodes rows"]
    counts: Bool[Array, "nodes rows"]
    start: Bool[Array, "nodes rows"]
    multipliers: Float[Array, "nodes rows"]
    natural: Float[Array, "1 rows"]
    weight: Float[Array, "1 rows"]

    @property
    def kept(self) -> Bool[Array, "nodes rows"]:
        """A mask of the rows that enter the penalty."""
        return self.counts & self.start

    @property
    def updated(self) -> Float[Array, "nodes rows"]:
        """The multipliers after an outer iteration."""
        return jnp.where(self.kept, updated(self.constraint, self.multipliers, self.weight, self.c), 0)

    @property
    def change(self) -> Float[Array, "nodes rows"]:
        """The change of the multipliers, divided by their penalties."""
        return jnp.abs(self.updated - self.multipliers) / self.weight

    @property
    def violation(self) -> Float[Array, "nodes rows"]:
        """The violations where the constraint applies; zero for soft rows."""
        hard = jnp.broadcast_to(~jnp.isfinite(jnp.asarray(self.constraint.price.linear)), self.c.shape)
        return jnp.where(self.counts & hard, violations(self.constraint, self.c), 0)


def rows_of(problem: Problem, ys: Point, us: Float[Array, "horizon nu"], penalties: Penalties) -> list[Rows]:
    """The rows of all constraints on a trajectory: path constraints, then end constraints."""
    action = problem.dynamics.action
    states = jnp.max(jnp.abs(jax.vmap(action.sizes)(ys)), axis=0)
    sizes = jnp.concatenate([states, jnp.max(jnp.abs(us), axis=0)])

    def at(c: Constraint, k: Array | int, y: Point, u: Array | None) -> tuple[Array, Array, Array]:
        def f(z: Array) -> Array:
            return c.value(problem.time(k), *move_node(action, y, u, z), problem.args)

        z = zero_tangent(action, y, u)
        value, J = f(z), jax.jacfwd(f)(z)
        terms = jnp.sum(jnp.where(J == 0, 0, jnp.abs(J) * sizes[None, : z.size]), axis=1)
        return value, jnp.abs(value) + terms, jnp.broadcast_to(c.holds(k, problem.time(k)), value.shape)

    def made(
        i: int, c: Constraint, first: int, found: tuple[Array, Array, Array], start: Array, m: Array, natural: Array
    ) -> Rows:
        value, size, counts = found
        weight = penalties.weight / natural**2
        return Rows(i, c, first, value, size, counts, start, m, natural[None], weight[None])

    ks, last, before = (
        jnp.arange(problem.horizon),
        jax.tree.map(lambda y: y[-1], ys),
        jax.tree.map(lambda y: y[:-1], ys),
    )
    path = [(i, c) for i, c in enumerate(problem.constraints) if c.on_path]
    end = [(i, c) for i, c in enumerate(problem.constraints) if c.at_end]
    starts = penalties.start_rows or tuple(jnp.ones(m.shape[1:], bool) for m in penalties.path)
    path_sizes = penalties.path_sizes or tuple(jnp.ones_like(m[0]) for m in penalties.path)
    end_sizes = penalties.end_sizes or tuple(jnp.ones_like(m) for m in penalties.end)
    rows = []
    for (i, c), m, natural, moved in zip(path, penalties.path, path_sizes, starts, strict=True):
        found = jax.vmap(lambda k, y, u, c=c: at(c, k, y, u))(ks, before, us)
        rows.append(made(i, c, 0, found, moved[None] | (ks > 0)[:, None], m, natural))
    for (i, c), m, natural in zip(end, penalties.end, end_sizes, strict=True):
        value, size, counts = (x[None] for x in at(c, problem.horizon, last, None))
        rows.append(made(i, c, problem.horizon, (value, size, counts), jnp.ones((1, m.size), bool), m[None], natural))
    return rows


def report_of(problem: Problem, rows: list[Rows], cost: Float[Array, ""], absolute: bool) -> ConstraintReport:
    """Build the report of all constraints.

    Args:
        cost: Cost of the trajectory. If states and controls are zero, and with them the terms of a row, a thousandth of
            the row's change for this cost replaces its scale.
        absolute: True to compare rows in their own units instead of relative to their scales.
    """
    shapes = [(x.number, x.first, *x.c.shape) for x in rows]
    places = [np.stack([np.full(n * m, i), np.tile(np.arange(m), n), first + np.repeat(np.arange(n), m)])
              for i, first, n, m in shapes]  # fmt: skip
    none = np.full((3, 1), -1)
    table = jnp.asarray(np.concatenate([none, *places], axis=1), jnp.array(-1).dtype)

    def flat(numbers: Iterable[Array]) -> Array:
        return jnp.concatenate([jnp.zeros(1, problem.dtype), *(x.ravel() for x in numbers)])

    violation, change = flat(x.violation for x in rows), flat(x.change for x in rows)
    least = _LEAST * jnp.sqrt(jnp.abs(cost))
    size = flat(jnp.ones_like(x.size) if absolute else jnp.maximum(x.size, least * x.natural) for x in rows)
    start = jnp.concatenate([jnp.zeros(1, bool), *(x.start.ravel() for x in rows)])
    parts = jnp.where(violation == 0, 0, violation / size)
    # the first entry represents no row
    met, left_out, pulled = (
        jnp.argmax(x)
        for x in (jnp.where(start, parts, 0), jnp.where(start, 0, parts), jnp.where(change == 0, 0, change / size))
    )
    at = [RowPlace(*table[:, i]) for i in (met, pulled, left_out)]
    pull = jnp.where(change[pulled] == 0, 0, change[pulled] / size[pulled])
    names = tuple(c.name for c in problem.constraints)
    return ConstraintReport(names, violation[met], parts[met], at[0], pull, at[1], at[2])


def start_rows(problem: Problem, us: Float[Array, "horizon nu"]) -> tuple[Bool[Array, " _"], ...]:
    """A mask of the rows of each path constraint that a control affects at the first node (rows,).

    From the derivatives at two generic controls, since at a single one the derivative may vanish by chance.
    """
    size = control_sizes(problem, us)
    middle = problem.clip_at(0, jnp.zeros_like(us[0]))

    def moved(c: Constraint) -> Array:
        def by_control(share: float) -> Array:
            shares = share * jnp.cos(jnp.arange(size.size, dtype=size.dtype))
            u = problem.clip_at(0, middle + shares * size)
            J = jax.jacfwd(lambda u: c.value(problem.time(0), problem.y0, u, problem.args))(u)
            return jnp.any(J != 0, axis=1)

        return by_control(_TRIALS[0]) | by_control(_TRIALS[1])

    return tuple(moved(c) for c in problem.constraints if c.on_path)


def natural_sizes(
    problem: Problem, ys: Point, us: Float[Array, "horizon nu"]
) -> tuple[tuple[Float[Array, " _"], ...], tuple[Float[Array, " _"], ...]]:
    """The natural scale of each row of the path and end constraints, each (rows,).

    Its square is ``J H^-1 J^T`` with the Hessian H of the cost with respect to the controls and the derivative J of the
    row, the largest of all nodes. With the penalty one over it, the multiplier of an isolated row reaches half of its
    value in one iteration, independent of the units of rows, costs and controls. It is the variance of the row if the
    trajectory has the density exp(-cost), computed by a backward Riccati recursion and the forward covariance of its
    policy. To H belongs ``sum_i |dcost/du_i| w_i / w_j^2`` for a control j with bounds, w half their distance, by which
    a control without a cost varies no further than its bounds. A row whose derivative vanishes on the trajectory, such
    as the square of a speed at rest, has that of a generic one.
    """
    action, n = problem.dynamics.action, problem.dynamics.action.dim
    lq, costates = linearize(problem, ys, us, False)
    slopes = jnp.abs(lq.r + jnp.einsum("kij,ki->kj", lq.B, costates[1:]))
    lower, upper = problem.bounds
    free = lower < upper
    sizes = control_sizes(problem, us)
    # for a cost that is linear in a control with a bounded range
    steps = jnp.sum(free.astype(us.dtype), axis=0)
    changes = sizes * jnp.sum(jnp.where(free, slopes, 0), axis=0) / jnp.maximum(steps, 1)
    # or that does not depend on it
    bounded = jnp.all(jnp.isfinite(upper - lower), axis=0)
    state, control = _covariances(lq, sizes, jnp.where(bounded, jnp.sum(changes), changes), free)

    generic = jnp.cos(jnp.arange(us.size).reshape(us.shape).astype(us.dtype))
    other = problem.clip(us + _TRIALS[0] * generic * sizes[None])
    both = jax.tree.map(lambda *x: jnp.stack(x), (ys, us), (problem.rollout(other), other))

    def variance(c: Constraint, k: Array | int, y: Point, u: Array | None, P: Array) -> Array:
        def f(z: Array) -> Array:
            return c.value(problem.time(k), *move_node(action, y, u, z), problem.args)

        J = jax.jacfwd(f)(zero_tangent(action, y, u))
        return jnp.einsum("ri,ij,rj->r", J, P, J)

    def on_path(c: Constraint) -> Array:
        def on_one(ys: Point, us: Array) -> Array:
            before, ks = jax.tree.map(lambda y: y[:-1], ys), jnp.arange(problem.horizon)
            return jnp.max(jax.vmap(lambda *x: variance(c, *x))(ks, before, us, control), axis=0)

        return jax.vmap(on_one)(*both)

    def at_end(c: Constraint) -> Array:
        last = jax.tree.map(lambda y: y[:, -1], both[0])
        return jax.vmap(lambda y: variance(c, problem.horizon, y, None, state[:n, :n]))(last)

    def size(variances: Array) -> Array:
        own, others = jnp.where(jnp.isfinite(variances), variances, 0)
        known = jnp.where(own > _FLAT * others, own, others)
        # rows that no control affects have none
        return jnp.where(known > 0, jnp.sqrt(jnp.where(known > 0, known, 1)), 1)

    return (
        tuple(size(on_path(c)) for c in problem.constraints if c.on_path),
        tuple(size(at_end(c)) for c in problem.constraints if c.at_end),
    )


def _covariances(
    lq: LinearQuadratic, sizes: Float[Array, " m"], floor: Float[Array, " m"], free: Bool[Array, "horizon m"]
) -> tuple[Float[Array, "n n"], Float[Array, "horizon nz nz"]]:
    """The covariance of the last state, and those of (x, u) at all previous nodes, for the density exp(-cost).

    Args:
        sizes: Magnitude of each control.
        floor: Regularization added to the curvature of each control in the unit of its magnitude.
        free: Mask of the controls that their bounds do not fix.
    """

    def back(V: Array, node: tuple) -> tuple[Array, tuple[Array, Array]]:
        A, B, Q, R, N, free = node
        VA, VB = V @ A, V @ B
        Qxx, Qux, Quu = Q + A.T @ VA, N.T + B.T @ VA, R + B.T @ VB
        Quu = sizes[:, None] * Quu * sizes[None, :] + jnp.diag(floor)
        Quu = jnp.where(free[:, None] & free[None, :], Quu, 0)
        values, vectors = jnp.linalg.eigh((Quu + Quu.T) / 2)
        most = jnp.max(jnp.abs(values))
        least = jnp.where(most > 0, _FLAT * most, 1)
        vectors = jnp.where(free, sizes, 0)[:, None] * vectors
        root = vectors / jnp.sqrt(jnp.maximum(jnp.abs(values), least))[None, :]
        K = -root @ (root.T @ Qux)
        V = Qxx + Qux.T @ K
        return (V + V.T) / 2, (K, root)

    def forth(P: Array, node: tuple) -> tuple[Array, Array]:
        A, B, K, root = node
        PK = P @ K.T
        joint = jnp.block([[P, PK], [PK.T, K @ PK + root @ root.T]])
        AB = jnp.concatenate([A, B], axis=1)
        return AB @ joint @ AB.T, joint

    _, (K, root) = control_flow.scan(back, lq.P, (lq.A, lq.B, lq.Q, lq.R, lq.N, free), reverse=True)
    return control_flow.scan(forth, jnp.zeros_like(lq.P), (lq.A, lq.B, K, root))
