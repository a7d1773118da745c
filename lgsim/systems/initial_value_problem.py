"""An initial-value problem: the arguments of `lgsim.integrate`, and the invariants of exact solutions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jax import Array
from jaxtyping import Float, PyTree

from lgsim.integrators.method import Field
from lgsim.lie.action import Action, Point
from lgsim.lie.group import Element


@dataclass(frozen=True)
class InitialValueProblem:
    """An initial-value problem y' = field(t, y, args) . y for a Lie group that acts on the state space.

    Units are SI and radians unless the function that builds the problem states otherwise. The parameters of the system
    are array leaves of `args`, so that results are differentiable with respect to them:

        solution = lgsim.integrate(lgsim.MK4, p.action, p.field, p.initial, dt=0.01, steps=100, args=p.args)

    Attributes:
        name: The name of the system.
        action: The group action on the state.
        field: `field(t, y, args)`, the algebra vector, shape (action.dim,).
        initial: The state at the initial time, a pytree of arrays.
        args: The parameters, a pytree of arrays.
        invariants: `invariant(y, args)` by name: functions that are constant along every exact solution.
        hamiltonian: `hamiltonian(g, mu, args)`, the energy of a state (g, mu) of `lgsim.Cotangent(group)` with the
            space momentum mu, for symplectic methods; None if the state is not such a pair.
    """

    name: str
    action: Action
    field: Field
    initial: Point
    args: PyTree
    invariants: Mapping[str, Callable[[Point, Any], Float[Array, "..."]]]
    hamiltonian: Callable[[Element, Float[Array, " dim"], Any], Float[Array, ""]] | None = None
