"""Motions with several phases, each with its own dynamics, costs, constraints and duration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.integrators.method import Number
from lgsim.lie.action import Action, Point
from lgsim.optimize.constraints.constraint import Constraint
from lgsim.optimize.cost import Cost, as_cost
from lgsim.optimize.dynamics import Dynamics
from lgsim.optimize.unknowns.unknown import FreeTime
from lgsim.support import check


class Phase(eqx.Module):
    """One phase of a motion: a number of steps of given dynamics.

    Attributes:
        dynamics: As in ``Problem``; its dt is the time between nodes, or the guess of a free one.
        steps: Number of steps.
        running: Cost of each node of the phase, added to the problem's.
        running_rate: Cost per second of the phase, added to the problem's.
        constraints: Constraints at the nodes of the phase; its first node is the last node of the previous phase.
        time: Bounds and weight of the duration of the phase; None to keep that of the dynamics.
        reset: ``reset(t, y, args)``, the initial state of the next phase if it is discontinuous: an impact, a stage
            separation. The node between two phases has this state.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: steps is less than 1, or a constraint applies only at an end.
    """

    dynamics: Dynamics
    steps: int = eqx.field(static=True)
    running: Cost
    running_rate: Cost
    constraints: tuple[Constraint, ...]
    time: FreeTime | None
    reset: Callable[..., Any] | None

    def __init__(
        self,
        dynamics: Any,
        steps: int,
        *,
        running: Any = None,
        running_rate: Any = None,
        constraints: Sequence[Constraint] = (),
        time: Any = None,
        reset: Callable[..., Any] | None = None,
    ):
        if not isinstance(dynamics, Dynamics) or isinstance(dynamics, Phases):
            raise TypeError(f"dynamics: expected the dynamics of one phase, got {type(dynamics).__name__}")
        if time is not None and not isinstance(time, FreeTime):
            raise TypeError(f"time: expected FreeTime or None, got {type(time).__name__}")
        for i, c in enumerate(constraints):
            if not c.on_path:
                raise ValueError(
                    f"constraints[{i}]: {c.name} has no node in a phase, whose last node is the first of the next;"
                    " use NodeConstraint(nodes=[0]) there, or the constraints of the problem"
                )
        self.dynamics, self.steps = dynamics, check.count("steps", steps)
        self.running, self.running_rate = as_cost(running), as_cost(running_rate)
        self.constraints, self.time, self.reset = tuple(constraints), time, reset


class Phases(Dynamics):
    """The dynamics of a motion with several consecutive phases; ``solve`` accepts problems of them.

    All phases have the same kind of states and controls: a leg in swing is the same model with another contact.

    Attributes:
        phases: The phases in order.

    Raises:
        TypeError: an item is not a ``Phase``.
        ValueError: the list is empty, or numbers of controls or dimensions of tangent vectors differ.
    """

    phases: tuple[Phase, ...]

    def __init__(self, phases: Sequence[Any]):
        self.phases = tuple(phases)
        if not self.phases:
            raise ValueError("phases: expected at least one phase, got none")
        for i, phase in enumerate(self.phases):
            if not isinstance(phase, Phase):
                raise TypeError(f"phases[{i}]: expected a Phase, got {type(phase).__name__}")
            got = phase.dynamics.controls, phase.dynamics.action.dim
            if got != (self.controls, self.action.dim):
                raise ValueError(
                    f"phases[{i}]: expected {self.controls} controls and {self.action.dim} tangent coordinates as in"
                    f" the first phase, got {got[0]} and {got[1]}"
                )

    @property
    def action(self) -> Action:
        """The action of the first phase, on the states of all phases."""
        return self.phases[0].dynamics.action

    @property
    def controls(self) -> int:
        """Number of controls, that of each phase."""
        return self.phases[0].dynamics.controls

    @property
    def steps(self) -> int:
        """Number of steps of all phases."""
        return sum(phase.steps for phase in self.phases)

    @property
    def starts(self) -> tuple[int, ...]:
        """The first node of each phase."""
        return tuple(sum(phase.steps for phase in self.phases[:i]) for i in range(len(self.phases)))

    @property
    def dts(self) -> tuple[Any, ...]:
        """Time between the nodes of each phase, s."""
        return tuple(phase.dynamics.dt for phase in self.phases)

    @property
    def dt(self) -> Any:
        """Mean time between nodes, s."""
        return sum(phase.steps * dt for phase, dt in zip(self.phases, self.dts, strict=True)) / self.steps

    def with_dts(self, dts: Float[Array, " phases"]) -> Phases:
        """The same phases with other times between their nodes, s."""
        new = [phase.dynamics.with_dt(dt) for phase, dt in zip(self.phases, dts, strict=True)]
        return eqx.tree_at(lambda p: [phase.dynamics for phase in p.phases], self, new)

    def time_of(self, k: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Time from the first node to node k, s."""
        passed = [jnp.clip(k - start, 0, phase.steps) for start, phase in zip(self.starts, self.phases, strict=True)]
        return jnp.sum(
            jnp.stack([n * jnp.asarray(dt, n.dtype) for n, dt in zip(passed, self.dts, strict=True)]), axis=0
        )

    def step(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> NoReturn:
        refuse_phases(self)
        raise AssertionError


def refuse_phases(dynamics: Dynamics) -> None:
    """Raise TypeError for dynamics with phases, whose steps differ."""
    if isinstance(dynamics, Phases):
        raise TypeError(
            "problem: expected one without phases, whose steps and costs depend on the node; use lgsim.optimize.solve"
        )
