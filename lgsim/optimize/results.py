"""What a solver returns: a trajectory, how it was found, and a sentence that says how it ended."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.lie.action import Point
from lgsim.optimize.constraints import Penalties


class RESULTS(eqx.Enumeration):
    """How an optimisation ended; the text says what to do."""

    successful = ""
    max_iterations = (
        "The solver used all its iterations before the gradient was small. Look at the history: if the cost still "
        "falls, give more iterations or start from the trajectory found."
    )
    stalled = (
        "No step along the search direction lowers the cost, at the largest regularisation. Costs or dynamics may not "
        "be smooth, or the gradient tolerance is below what rounding allows in this precision."
    )
    nonfinite_start = (
        "A quantity is not finite at the initial guess. Give another guess, a shorter horizon or a smaller dt."
    )
    nonfinite_derivative = (
        "A derivative is not finite on a trajectory of finite cost. Look for a square root, a norm or a division "
        "at zero in that quantity."
    )
    constraints_violated = (
        "The constraints are not met to the tolerance after all outer iterations. They may contradict each other or "
        "the dynamics; else give more outer iterations or a longer horizon."
    )
    interrupted = (
        "The solver was interrupted: this is the best trajectory that it had. With a checkpoint, solve again to go on."
    )


QUANTITIES = (
    "the state after the step",
    "the running cost",
    "the terminal cost",
    "the gradient of the cost",
    "the Hessian of the cost",
    "the derivative of the step by the state",
    "the derivative of the step by the control",
)
"""What may fail to be finite, in the order of ``Result.quantity``."""


class History(eqx.Module):
    """One row for each iteration; rows from ``Result.iterations`` on are zero.

    Attributes:
        cost: At the start of the iteration.
        gradient: Largest entry of the gradient by the controls, of the part that the bounds leave free.
        feasibility: Largest gap of the trajectory, or violation of the constraints in outer iterations.
        step: Length of the step taken, 0 where none was.
        regularisation: Added to the Hessian of the controls; the penalty in outer iterations.
    """

    cost: Array
    gradient: Array
    feasibility: Array
    step: Array
    regularisation: Array

    @classmethod
    def empty(cls, length: int, dtype: Any) -> History:
        """Room for ``length`` iterations."""
        return cls(*(jnp.zeros(length, dtype) for _ in range(5)))

    def record(self, i: Array, **numbers: Array) -> History:
        """With row i filled."""
        return History(**{name: getattr(self, name).at[i].set(value) for name, value in numbers.items()})


class Result(eqx.Module):
    """What ``solve`` returns.

    Attributes:
        ts: Times of the nodes (H + 1,), s.
        ys: States, each leaf with the leading axis H + 1.
        us: Controls (H, controls).
        cost: Of the trajectory.
        gradient: Largest entry of the gradient by the controls that the bounds leave free.
        feasibility: Largest gap between a state and what the step before it gives; 0 for shooting.
        violation: Largest violation of the constraints, 0 without any.
        gains: Feedback (H, controls, action.dim) about the trajectory, ``u = us + gains . difference(ys, y)``; None
            from solvers that find none.
        history: One row for each iteration.
        iterations: How many were done.
        result: ``RESULTS.successful`` or what went wrong.
        place: Number of the node that is not finite, or -1.
        quantity: Which of ``QUANTITIES`` is not finite there, or -1.
        multipliers: Of the constraints, from an augmented Lagrangian; None from other solvers.
    """

    ts: Array
    ys: Point
    us: Array
    cost: Array
    gradient: Array
    feasibility: Array
    violation: Array
    gains: Array | None
    history: History
    iterations: Array
    result: RESULTS
    place: Array
    quantity: Array
    multipliers: Penalties | None = None

    @property
    def message(self) -> str:
        """How it ended, as a sentence, with the node and the quantity that is not finite, if any; outside ``jit``."""
        text = RESULTS[self.result]
        if int(self.place) < 0:
            return text
        k = int(self.place)
        return f"{text} It is {QUANTITIES[int(self.quantity)]} at node {k}, t = {float(self.ts[k]):.9g} s."


def first_nonfinite(arrays: dict[int, Any]) -> tuple[Array, Array]:
    """(node, quantity) of the first entry that is not finite, or (-1, -1).

    Args:
        arrays: For the number of a quantity a pair (its arrays with a leading axis of nodes, number of the first node).
    """
    place, quantity = jnp.array(-1), jnp.array(-1)
    for number, (tree, first) in sorted(arrays.items(), reverse=True):
        for leaf in jax.tree.leaves(tree):
            bad = ~jnp.all(jnp.isfinite(leaf.reshape(leaf.shape[0], -1)), axis=1)
            at = jnp.argmax(bad) + first
            earlier = jnp.any(bad) & ((place < 0) | (at <= place))
            place, quantity = jnp.where(earlier, at, place), jnp.where(earlier, number, quantity)
    return place, quantity
