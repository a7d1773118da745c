"""The form of a problem: its solver, its errors and their bounds."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lgsim
from lgsim.optimize import Problem, Solution, solve, to_trajectory
from lgsim.optimize.solver import Solver

POSE, CONDITION = 1e-4, 1e-6
"""Bounds of a final pose, m and rad, and of all conditions, in their units."""


@dataclass(frozen=True)
class Task:
    """A problem that must be solved, by ``run()``.

    Attributes:
        name: For tables.
        problem: The optimal control problem; None for another task, such as inverse kinematics.
        solver: Solver of the problem.
        errors: ``errors(result)``: errors of a solution, by name with unit.
        bounds: Largest error of a solved problem, by name.
        guess: Initial controls (H, controls), such as those that hold the robot at rest; None for zero.
        other: ``other()`` instead of ``solve``, for a task without a problem.
        shown: ``shown(result)``, the motion to display, for a task without a problem.
    """

    name: str
    problem: Problem | None
    solver: Solver | None
    errors: Callable[[Any], dict[str, float]]
    bounds: dict[str, float]
    guess: Any = field(default=None, repr=False)
    other: Callable[[], Any] | None = None
    shown: Callable[[Any], lgsim.Trajectory] | None = None

    def run(self) -> Any:
        """The result, of ``solve`` if the task has a problem."""
        if self.problem is None:
            assert self.other is not None
            return self.other()
        return solve(self.problem, self.guess, solver=self.solver)

    def broken(self, result: Any) -> dict[str, float]:
        """The errors above their bounds, or not finite."""
        found = self.errors(result)
        return {name: found[name] for name, limit in self.bounds.items() if not found[name] <= limit}

    def trajectory(self, result: Any) -> lgsim.Trajectory:
        """The motion to display."""
        if self.problem is None:
            assert self.shown is not None
            return self.shown(result)
        return to_trajectory(self.problem, result)


def common(problem: Problem, result: Solution) -> dict[str, float]:
    """Errors of a solution: constraints, control bounds, and gaps of the dynamics."""
    us = np.asarray(result.us)
    over = np.maximum(us - np.asarray(problem.upper), np.asarray(problem.lower) - us)
    again = problem.rollout(result.us)
    gaps = np.abs(np.asarray(again) - np.asarray(result.ys))
    return {
        "conditions": float(result.violation),
        "controls": float(np.max(over, initial=0.0)),
        "gaps": float(np.max(gaps)),
    }


COMMON = {"conditions": CONDITION, "controls": 0.0, "gaps": CONDITION}
"""The bounds of those."""


def steps_of(result: Solution) -> int:
    """Iterations of the solver; of an augmented Lagrangian the sum of the inner ones."""
    count = int(result.iterations)
    inner = np.asarray(result.history.step[:count])
    return int(np.sum(inner)) if np.all(np.asarray(result.history.regularization[:count]) > 0) else count


def quaternion(axis: Any, angle: float) -> np.ndarray:
    """The rotation about an axis (3,), of any length, by an angle, as wxyz."""
    axis = np.asarray(axis, float)
    return np.concatenate([[np.cos(angle / 2)], np.sin(angle / 2) * axis / np.linalg.norm(axis)])


def pose(R: Any = None, p: Any = (0.0, 0.0, 0.0)) -> np.ndarray:
    """A pose (4, 4)."""
    T = np.eye(4)
    T[:3, :3] = np.eye(3) if R is None else np.asarray(R)
    T[:3, 3] = p
    return T
