"""A ready initial-value problem: what `lgsim.integrate` needs, and what can be checked afterwards."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array

from lgsim.lie.action import Action


@dataclass(frozen=True)
class InitialValueProblem:
    """An initial-value problem y' = field(t, y, args) . y for a Lie group that acts on the state space.

    Units are SI and radians unless the function that builds the problem says otherwise. The numbers of the system
    are array leaves of `args`, so that a result can be differentiated in them:

        solution = lgsim.integrate(lgsim.MK4, p.action, p.field, p.initial, dt=0.01, steps=100, args=p.args)

    Attributes:
        name: What the system is, in words.
        action: How the group moves the state.
        field: `field(t, y, args)`, the algebra vector, shape (action.dim,).
        initial: The state at the initial time, a pytree of arrays.
        args: The parameters, a pytree of arrays.
        invariants: `invariant(y, args)` by name: functions that are constant along every exact solution.
        hamiltonian: `hamiltonian(g, mu, args)`, the energy of a state (g, mu) of `lgsim.Cotangent(group)` with the
            space momentum mu: what symplectic methods start from. None where the state is no such pair.
    """

    name: str
    action: Action
    field: Callable[[Any, Any, Any], Array]
    initial: Any
    args: Any
    invariants: Mapping[str, Callable[[Any, Any], Array]]
    hamiltonian: Callable[[Any, Any, Any], Array] | None = None
