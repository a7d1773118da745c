"""Steps, costs and constraints of a problem as functions of extended states, at times that count steps."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Int

from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Point, Product, Translation
from lgsim.optimize.constraints.constraint import Constraint, Grid, Price
from lgsim.optimize.cost import Control, Cost, Residual, Scaled, Sum
from lgsim.optimize.dynamics import Dynamics, linearize_in_chart
from lgsim.optimize.problem import Problem
from lgsim.optimize.unknowns.phases import Phase, Phases
from lgsim.optimize.unknowns.unknown import FreeParameters
from lgsim.support import check

Extended = tuple[Point, Float[Array, " unknowns"]]
"""(state of the problem, its unknowns: the time between nodes of each phase, s, then the free parameters)."""


class Parameters(eqx.Module):
    """The free parameters of a problem."""

    unknowns: tuple[FreeParameters, ...]

    def split(self, numbers: Float[Array, " numbers"]) -> tuple[Array, ...]:
        """The parameters, each with the shape of its guess."""
        at, found = 0, []
        for unknown in self.unknowns:
            found.append(numbers[at : at + unknown.guess.size].reshape(unknown.guess.shape))
            at += unknown.guess.size
        return tuple(found)

    def put(self, problem: Problem, x: Float[Array, " unknowns"]) -> tuple[Problem, Phases]:
        """(the problem with these unknowns, its phases)."""
        count = len(phases_of(problem).phases)
        for unknown, value in zip(self.unknowns, self.split(x[count:]), strict=True):
            problem = unknown.put(problem, value)
        return problem, phases_of(problem).with_dts(x[:count])


def phases_of(problem: Problem) -> Phases:
    """The phases of a problem: one, if it has none."""
    dynamics = problem.dynamics
    return dynamics if isinstance(dynamics, Phases) else Phases([Phase(dynamics, problem.horizon)])


def _is_first(t: Number) -> Bool[Array, ""]:
    """True for the time of the first step, which sets the unknowns."""
    return jnp.asarray(t) < 0


class ExtendedDynamics(Dynamics):
    """The steps of an extended problem, whose args are the problem itself.

    Attributes:
        inner: The action of the problem's states.
        starts: Number of tangent coordinates of the free start, which are controls of the first step.
        size: Number of the other unknowns.
    """

    inner: Action
    parameters: Parameters
    starts: int = eqx.field(static=True)
    size: int = eqx.field(static=True)
    controls: int = eqx.field(static=True)
    dt: float = 1.0

    @property
    def action(self) -> Product:
        """The action of the problem's states, and addition of unknowns."""
        return Product(self.inner, Translation(self.size))

    def step(self, t: Number, y: Extended, u: Float[Array, " m"], args: Problem) -> Extended:
        (state, x), own = y, _own_control(t, u, args)
        after = [self._after(t, state, x, own, args, j) for j in range(self._phases(args))]
        after = _chosen(t, phases_of(args), after)
        return jax.tree.map(lambda a, b: jnp.where(_is_first(t), a, b), self._begin(y, u), (after, x))

    def linearized(
        self, t: Number, y: Extended, u: Float[Array, " m"], y_next: Extended, args: Problem
    ) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
        """(A, B, c) from the problem's steps, and their derivatives with respect to the unknowns by forward mode."""
        (state, x), (after, x_after), own = y, y_next, _own_control(t, u, args)
        n, size = self.inner.dim, self.size

        def of_phase(j: int) -> tuple[Array, Array, Array]:
            def moved(x: Array) -> Array:
                return self.inner.difference(after, self._after(t, state, x, own, args, j))

            now, phases = self.parameters.put(args, x)
            phase = phases.phases[j]
            time = now.t0 + phases.time_of(jnp.maximum(jnp.asarray(t, x.dtype), 0))
            if phase.reset is None:
                A, B, c = phase.dynamics.linearized(time, state, own, after, now.args)
            else:
                A, B, c = linearize_in_chart(
                    self.inner, lambda y, u: self._after(t, y, x, u, args, j), state, own, after
                )
            return jnp.concatenate([A, jax.jacfwd(moved)(x)], axis=1), B, c

        A, B, c = _chosen(t, phases_of(args), [of_phase(j) for j in range(self._phases(args))])
        A = jnp.concatenate([A, jnp.eye(size, n + size, n, dtype=x.dtype)])
        B = jnp.pad(B, ((0, size), (0, u.size - B.shape[1])))
        rest = A, B, jnp.concatenate([c, x - x_after])
        begin = linearize_in_chart(self.action, self._begin, y, u, y_next)
        A, B, c = (jnp.where(_is_first(t), a, b) for a, b in zip(begin, rest, strict=True))
        return A, B, c

    def _after(self, t: Number, state: Point, x: Array, u: Array, problem: Problem, j: int) -> Point:
        """The next state in phase j, with its reset after the last step."""
        now, phases = self.parameters.put(problem, x)
        phase, t = phases.phases[j], jnp.maximum(jnp.asarray(t, x.dtype), 0)
        after = phase.dynamics.step(now.t0 + phases.time_of(t), state, u, now.args)
        if phase.reset is None:
            return after
        moved = phase.reset(now.t0 + phases.time_of(t + 1), after, now.args)
        last = t == phases.starts[j] + phase.steps - 1
        return jax.tree.map(lambda a, b: jnp.where(last, a, b), moved, after)

    def _begin(self, y: Extended, u: Float[Array, " m"]) -> Extended:
        """The first step: it applies the changes of the unknowns."""
        state, x = y
        start, changes = jnp.split(u[u.size - self.starts - self.size :], [self.starts])
        return self.inner.move(start, state) if self.starts else state, x + changes

    def _phases(self, problem: Problem) -> int:
        return len(phases_of(problem).phases)


def _chosen(t: Number, phases: Phases, results: list[Any]) -> Any:
    """The result of the phase of the step at time t."""
    found = results[0]
    for start, result in zip(phases.starts[1:], results[1:], strict=True):
        found = jax.tree.map(lambda a, b, start=start: jnp.where(jnp.asarray(t) >= start, b, a), found, result)
    return found


def _own_control(t: Number, u: Float[Array, " m"], problem: Problem) -> Float[Array, " nu"]:
    """The problem's own control, zero at the first step."""
    return jnp.where(_is_first(t), 0, u[: problem.controls])


class _Place(eqx.Module):
    """The location of a cost or constraint in a problem, and the nodes at which it applies.

    Attributes:
        phase: Index of its phase; None for the problem itself.
        name: The field that contains it.
        path: Its indices there, in sums or tuples.
    """

    parameters: Parameters
    phase: int | None = eqx.field(static=True)
    name: str = eqx.field(static=True)
    path: tuple[int, ...] = eqx.field(static=True)

    def node(self, t: Number, y: Extended, u: Control, problem: Problem) -> tuple[Any, tuple[Any, ...], Any]:
        """The cost or constraint, the arguments (t, y, u, args) of its ``value``, and the time between nodes."""
        now, phases = self.parameters.put(problem, y[1])
        found = getattr(now if self.phase is None else phases.phases[self.phase], self.name)
        for i in self.path:
            found = found[i] if isinstance(found, tuple) else found.costs[i]
        steps = jnp.maximum(jnp.asarray(t, y[1].dtype), 0)
        step = _chosen(t, phases, [jnp.asarray(dt, y[1].dtype) for dt in phases.dts])
        own = None if u is None else _own_control(t, u, problem)
        return found, (now.t0 + phases.time_of(steps), y[0], own, now.args), step

    def where(self, t: Number, u: Control, problem: Problem, value: Array, other: Number) -> Array:
        """A value at the nodes where it applies, another value elsewhere."""
        if u is None:
            return value
        holds = ~_is_first(t)
        if self.phase is not None:
            phases = phases_of(problem)
            start = phases.starts[self.phase]
            holds = (jnp.asarray(t) >= start) & (jnp.asarray(t) < start + phases.phases[self.phase].steps)
        return jnp.where(holds, value, other)


class _LiftedCost(Cost):
    """A cost of a problem as a cost of the extended problem.

    Attributes:
        timed: True for a cost per second.
    """

    place: _Place
    timed: bool = eqx.field(static=True)

    def value(self, t: Number, y: Extended, u: Control, args: Problem) -> Float[Array, ""]:
        cost, node, step = self.place.node(t, y, u, args)
        value = cost.value(*node)
        return self.place.where(t, u, args, value * step if self.timed else value, 0)


class _LiftedSquares(_LiftedCost, Residual):
    """A least-squares cost as a cost of the extended problem."""

    weight: float = 1.0

    def residual(self, t: Number, y: Extended, u: Control, args: Problem) -> Float[Array, " rows"]:
        cost, node, step = self.place.node(t, y, u, args)
        rows = cost.rows(*node)
        return self.place.where(t, u, args, rows * jnp.sqrt(step) if self.timed else rows, 0)


class TimeCost(Cost):
    """Weighted sum of the times between nodes, at the end."""

    weights: Float[Array, " phases"]

    def value(self, t: Number, y: Extended, u: Control, args: Problem) -> Float[Array, ""]:
        return self.weights @ y[1][: self.weights.size]


class LiftedConstraint(Constraint):
    """A constraint of a problem as a constraint of the extended problem.

    Attributes:
        inner: The constraint, for properties that do not depend on the unknowns.
        t0: Time of the first node of the problem, s.
        dt: Time between its nodes, s, if that is fixed.
        first: The first node of its phase.
    """

    place: _Place
    inner: Constraint
    t0: Float[Array, ""]
    dt: Any
    first: int = eqx.field(static=True)
    on_path: bool = eqx.field(static=True)
    at_end: bool = eqx.field(static=True)

    @classmethod
    def of(
        cls, problem: Problem, constraint: Constraint, parameters: Parameters, phase: int | None, number: int
    ) -> LiftedConstraint:
        """The constraint with an index, of a phase or of the problem.

        Raises:
            ValueError: it refers to a node that its phase does not have.
        """
        place, first, at_end = _Place(parameters, phase, "constraints", (number,)), 0, constraint.at_end
        if phase is not None:
            phases = phases_of(problem)
            # the last node of a phase is the first of the next one
            steps, dt = phases.phases[phase].steps, phases.dts[phase]
            constraint = constraint.on_grid(Grid(problem.t0, dt, steps - 1, fixed=False))
            first, at_end = phases.starts[phase], False
        return cls(place, constraint, problem.t0, problem.dynamics.dt, first, constraint.on_path, at_end)

    @property
    def equality(self) -> bool:
        """The name of the constraint."""
        return self.inner.equality

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def price(self) -> Price:
        return self.inner.price

    def priced(self, factor: Float[Array, ""]) -> Constraint:
        return eqx.tree_at(lambda lifted: lifted.inner, self, self.inner.priced(factor))

    def holds(self, k: Int[Array, ""] | int, t: Number) -> Bool[Array, ""] | bool:
        steps = jnp.asarray(t, self.t0.dtype)
        return self.inner.holds(k - 1 - self.first, self.t0 + jnp.asarray(self.dt, steps.dtype) * steps)

    def value(self, t: Number, y: Extended, u: Control, args: Problem) -> Float[Array, " rows"]:
        constraint, node, step = self.place.node(t, y, u, args)
        rows = constraint.at_step(step).value(*node)
        return self.place.where(t, u, args, rows, 0 if self.equality else -1)


def lifted(cost: Cost, name: str, parameters: Parameters, phase: int | None = None, timed: bool = False) -> list[Cost]:
    """Convert a cost of a problem or phase to costs of the extended problem; least-squares terms keep their model."""

    def parts(cost: Cost, path: tuple[int, ...]) -> list[Cost]:
        if isinstance(cost, Sum):
            return [part for i, each in enumerate(cost.costs) for part in parts(each, (*path, i))]
        kind = _LiftedSquares if _is_squares(cost) else _LiftedCost
        return [kind(place=_Place(parameters, phase, name, path), timed=timed)]

    return parts(cost, ())


def _is_squares(cost: Cost) -> bool:
    """True if a cost is known to be a sum of squares."""
    if isinstance(cost, Scaled):
        known = not check.is_traced(cost.factor) and bool(np.all(np.asarray(cost.factor) >= 0))
        return known and _is_squares(cost.cost)
    return all(map(_is_squares, cost.costs)) if isinstance(cost, Sum) else isinstance(cost, Residual)
