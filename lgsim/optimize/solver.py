"""What every solver of optimal control problems offers, and the front door ``solve``."""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from lgsim.lie.action import Point
from lgsim.optimize.problem import Problem
from lgsim.optimize.results import Result
from lgsim.support import check
from lgsim.xla import while_last
from lgsim.xla.closures import opened


class Solver(eqx.Module):
    """A way to solve a ``Problem``: numbers that change nothing but speed and tolerance."""

    @abstractmethod
    def run(self, problem: Problem, us: Array, ys: Point | None) -> Result:
        """From controls (H, controls) and states (H + 1) or None; a pure function for ``jit`` and ``vmap``."""

    @property
    def handles_constraints(self) -> bool:
        """Whether conditions beyond the bounds of the controls are met."""
        return False


class IterativeSolver(Solver):
    """A solver that runs in pieces: ``begin``, then ``advance`` any number of times, then ``finish``.

    Pure functions for ``jit`` and ``vmap``; how the iterations are cut into pieces changes no number. A state is a
    pytree with ``i``, the iterations done, ``done``, whether there is nothing left to do, and ``history``.
    """

    @property
    @abstractmethod
    def iteration_limit(self) -> int:
        """Iterations at most, in all pieces together."""

    @abstractmethod
    def begin(self, problem: Problem, us: Array, ys: Point | None) -> Any:
        """The state before the first iteration, from controls (H, controls) and states (H + 1) or None."""

    @abstractmethod
    def iterate(self, problem: Problem, s: Any) -> Any:
        """The state after one more iteration."""

    @abstractmethod
    def finish(self, problem: Problem, s: Any) -> Result:
        """What has been found so far."""

    def advance(self, problem: Problem, s: Any, iterations: Any) -> Any:
        """The state after at most so many more iterations."""
        stop = jnp.minimum(s.i + iterations, self.iteration_limit)
        return while_last(lambda s: ~s.done & (s.i < stop), lambda s: self.iterate(problem, s), s)

    def run(self, problem: Problem, us: Array, ys: Point | None) -> Result:
        s = self.begin(problem, us, ys)
        return self.finish(problem, self.advance(problem, s, self.iteration_limit))


def start(problem: Problem, solver: Solver, us: Any, ys: Any) -> tuple[Array, Point | None]:
    """Checked guesses: controls (H, controls) within their bounds, and states (H + 1) that start at y0, or None.

    Raises:
        TypeError: an argument is of the wrong kind or dtype.
        ValueError: shapes do not fit, constraints that the solver does not handle, or a cost that is not finite at the
            guess's start.
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem: expected a Problem of lgsim.optimize, got {type(problem).__name__}")
    if not isinstance(solver, Solver):
        raise TypeError(f"solver: expected a solver such as ILQR(), got {type(solver).__name__}")
    if problem.constraints and problem.penalties is None and not solver.handles_constraints:
        raise ValueError(
            f"solver: {type(solver).__name__} handles bounds of the controls alone, and the problem has "
            f"{len(problem.constraints)} constraints; take AugmentedLagrangian({type(solver).__name__}())"
        )
    shape = (problem.horizon, problem.controls)
    us = jnp.zeros(shape, problem.dtype) if us is None else check.floating("us", us)
    if us.shape != shape or us.dtype != problem.dtype:
        raise ValueError(f"us: expected {problem.dtype} of shape {shape}, got {us.dtype} of {us.shape}")
    us = problem.clip(us)
    if ys is not None:
        ys = _states(problem, ys)
    _check_costs(problem, us, ys)
    return us, ys


def _states(problem: Problem, ys: Any) -> Point:
    wanted = jax.tree.map(lambda y: (problem.horizon + 1, *y.shape), problem.y0)
    came = jax.tree.map(jnp.shape, ys)
    if wanted != came:
        raise ValueError(
            f"ys: expected states with a leading axis of {problem.horizon + 1} nodes, {wanted}, got {came}"
        )
    problem.dynamics.action.check_point(ys, "ys")
    return jax.tree.map(lambda y, first: jnp.asarray(y, first.dtype).at[0].set(first), ys, problem.y0)


def _check_costs(problem: Problem, us: Array, ys: Point | None) -> None:
    """Raise where a cost is not finite at the first node of the guess, or at its last one if that is given."""
    given = opened((problem, us, ys))
    if any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(eqx.filter(given, eqx.is_array))):
        return
    first = problem.y0
    last = first if ys is None else jax.tree.map(lambda y: y[-1], ys)
    for name, value in zip(("running", "terminal"), _node_costs(problem, first, last, us[0]), strict=True):
        if not isinstance(value, Tracer) and not np.isfinite(value):
            where = "y0" if name == "running" or ys is None else "the last state of the guess"
            raise ValueError(
                f"{name}: the cost is {float(value)} at {where}"
                + (" with the first control of the guess" if name == "running" else "")
                + "; expected a finite number"
            )


@eqx.filter_jit
def _node_costs(problem: Problem, first: Point, last: Point, u: Array) -> tuple[Array, Array]:
    running = problem.running.value(problem.time(0), first, u, problem.args)
    return running, problem.terminal.value(problem.time(problem.horizon), last, None, problem.args)
