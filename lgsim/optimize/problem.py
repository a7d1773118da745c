"""Definition of an optimal control problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float, Int

from lgsim._compile.xla import control_flow
from lgsim.integrators.method import state
from lgsim.lie.action import Point
from lgsim.optimize.constraints.constraint import Constraint, Grid
from lgsim.optimize.constraints.penalties import Penalties
from lgsim.optimize.constraints.state_bounds import check_order
from lgsim.optimize.cost import Cost, Quadratic, Scaled, Sum, as_cost
from lgsim.optimize.dynamics import Dynamics
from lgsim.optimize.unknowns.phases import Phases, refuse_phases
from lgsim.optimize.unknowns.unknown import FreeStart, FreeTime, Unknown, check_unknowns
from lgsim.support import check
from lgsim.support.check import is_traced


class Problem(eqx.Module):
    """Minimize ``sum_k running(t_k, y_k, u_k) + terminal(t_H, y_H)`` subject to ``y_{k+1} = step(t_k, y_k, u_k)``.

    ``t_k = t0 + k dt``; y_0 is given. Bounds of the controls hold exactly in every solver; other constraints need
    ``AugmentedLagrangian``. Further unknowns, such as the final time, are listed in ``free``.

    Attributes:
        dynamics: ``MultibodyDynamics``, ``SymplecticEulerDynamics``, ``FieldDynamics`` or ``DiscreteDynamics``.
        y0: The initial state; its dtype is that of the problem.
        running: A cost of ``lgsim.optimize``, a sum of them, or a function ``f(t, y, u, args)``.
        terminal: The same for the last node, or a function ``f(t, y, args)``.
        horizon: Number of steps H.
        running_rate: A cost per second, of which each node adds dt times: an integral over time, independent of the
            number of nodes. It is added to running.
        lower: Lower bounds of the controls, (controls,) or of each step (H, controls); minus infinity for none.
        upper: Upper bounds, likewise; infinity for none.
        free: Unknowns other than the controls: ``FreeTime``, ``FreeStart``, ``FreeParameters``, handled by ``solve``.
        constraints: Constraints on states and controls.
        args: The argument ``args`` of functions; arrays in it are differentiable. Put changing values here or into
            fields of costs: new values do not compile again, a new function object (such as a new ``lambda``) does.
        t0: Time of y_0, s.
        bounded: True if a control has a bound.
        penalties: Penalties and multipliers that an augmented Lagrangian adds to the costs; set by its solver.

    Raises:
        TypeError: an argument has the wrong type, or dtypes differ.
        ValueError: horizon < 1, a nonpositive dt, no cost, infeasible bounds, an initial state outside of its bounds, a
            cost that is not a scalar, or inconsistent shapes.
    """

    dynamics: Dynamics
    y0: Point
    running: Cost
    running_rate: Cost
    terminal: Cost
    horizon: int = eqx.field(static=True)
    lower: Float[Array, " nu"] | Float[Array, "horizon nu"]
    upper: Float[Array, " nu"] | Float[Array, "horizon nu"]
    free: tuple[Unknown, ...]
    constraints: tuple[Constraint, ...]
    args: Any
    t0: Float[Array, ""]
    bounded: bool = eqx.field(static=True)
    penalties: Penalties | None = None

    def __init__(
        self,
        dynamics: Dynamics,
        y0: Point,
        *,
        horizon: int,
        running: Any = None,
        running_rate: Any = None,
        terminal: Any = None,
        lower: Any = None,
        upper: Any = None,
        constraints: Sequence[Constraint] = (),
        free: Any = (),
        args: Any = None,
        t0: Any = 0.0,
    ):
        if not isinstance(dynamics, Dynamics):
            raise TypeError(
                "dynamics: expected MultibodyDynamics, FieldDynamics or DiscreteDynamics, got "
                f"{type(dynamics).__name__}"
            )
        if not dynamics.action.provides("difference"):
            raise TypeError(
                f"dynamics: {type(dynamics.action).__name__} does not define the difference of two states, which"
                " solvers need"
            )
        self.dynamics = dynamics
        self.horizon = check.count("horizon", horizon)
        if isinstance(dynamics, Phases) and horizon != dynamics.steps:
            raise ValueError(f"horizon: expected {dynamics.steps}, the steps of all phases, got {horizon}")
        if not is_traced(dynamics.dt) and not np.all(np.asarray(dynamics.dt) > 0):
            raise ValueError(f"dynamics.dt: expected a positive time between nodes in s, got {dynamics.dt}")
        self.free = check_unknowns(free)
        if running is running_rate is terminal is None and not constraints and not self.free and len(self.pieces) == 1:
            raise ValueError("running, terminal: expected a cost, got none; without a cost all controls are optimal")
        self.y0, dtype = state(y0)
        self.running, self.running_rate = as_cost(running), as_cost(running_rate)
        self.terminal = as_cost(terminal, end=True)
        size = (horizon, dynamics.controls)
        self.lower, self.upper = (
            _bound(name, value, fill, size, dtype)
            for name, value, fill in (("lower", lower, -np.inf), ("upper", upper, np.inf))
        )
        check_order("lower, upper", self.lower, self.upper)
        self.bounded = (lower is not None and _any_finite(self.lower)) or (
            upper is not None and _any_finite(self.upper)
        )
        self.args = args
        self.t0 = jnp.asarray(t0, dtype)
        fixed = not isinstance(dynamics, Phases) and not any(isinstance(unknown, FreeTime) for unknown in self.free)
        self.constraints = _on_grid(constraints, Grid(self.t0, dynamics.dt, self.horizon, fixed))
        self.penalties = None
        _check_shapes(self)
        _check_start(self)

    @property
    def dtype(self) -> jnp.dtype:
        """The dtype of the state, and of all floating-point results of solvers."""
        return jax.tree.leaves(self.y0)[0].dtype

    @property
    def pieces(self) -> tuple[Dynamics, ...]:
        """The dynamics of each phase."""
        phased = self.dynamics
        return tuple(phase.dynamics for phase in phased.phases) if isinstance(phased, Phases) else (phased,)

    @property
    def controls(self) -> int:
        """Number of controls, the length of u."""
        return self.dynamics.controls

    def time(self, k: Int[Array | np.ndarray, "*batch"] | int) -> Float[Array, "*batch"]:
        """The time of node k, s."""
        return self.t0 + self.dynamics.time_of(jnp.asarray(k).astype(self.dtype))

    def step(self, k: Int[Array, ""] | int, y: Point, u: Float[Array, " nu"]) -> Point:
        """The state at node k + 1, from y at node k with the control u."""
        return self.dynamics.step(self.time(k), y, u, self.args)

    def clip(self, us: Float[Array, "*batch nu"]) -> Float[Array, "*batch nu"]:
        """Project ``us`` on the bounds of the controls."""
        if not self.bounded:
            return us
        return jnp.clip(us, jnp.broadcast_to(self.lower, us.shape), jnp.broadcast_to(self.upper, us.shape))

    def clip_at(self, k: Int[Array, ""] | int, u: Float[Array, " nu"]) -> Float[Array, " nu"]:
        """Project u on the bounds of the controls of step k."""
        return jnp.clip(u, *self.bounds_at(k)) if self.bounded else u

    def bounds_at(self, k: Int[Array, ""] | int) -> tuple[Float[Array, " nu"], Float[Array, " nu"]]:
        """(lower, upper) bounds of the control of step k."""
        lower, upper = (bound if bound.ndim == 1 else bound[k] for bound in (self.lower, self.upper))
        return lower, upper

    @property
    def bounds(self) -> tuple[Float[Array, "horizon nu"], Float[Array, "horizon nu"]]:
        """(lower, upper) bounds of the controls of each step."""
        shape = (self.horizon, self.controls)
        return jnp.broadcast_to(self.lower, shape), jnp.broadcast_to(self.upper, shape)

    def node_cost(self, k: Int[Array, ""] | int) -> Cost:
        """The running cost of node k, including penalty terms."""
        refuse_phases(self.dynamics)
        costs = self.running
        if self.running_rate != Sum(()):
            costs = costs + Scaled(self.running_rate, self.dynamics.dt)
        return costs if self.penalties is None else costs + self.penalties.at_node(self.constraints, k)

    def end_cost(self) -> Cost:
        """The terminal cost, including penalty terms."""
        if self.penalties is None:
            return self.terminal
        return self.terminal + self.penalties.at_end(self.constraints, self.horizon)

    def end_model(self, ys: Point, exact: bool) -> Quadratic:
        """The quadratic model of the terminal cost about the last of the states; see ``Cost.quadratic``."""
        y = jax.tree.map(lambda y: y[-1], ys)
        return self.end_cost().quadratic(self.dynamics.action, self.time(self.horizon), y, None, self.args, exact)

    def cost(self, ys: Point, us: Float[Array, "horizon nu"]) -> Float[Array, ""]:
        """The cost of a trajectory: states with the leading axis H + 1, controls (H, controls)."""
        end = self.terminal_value(ys)
        return jnp.sum(self.running_values(ys, us)) + end

    def running_values(self, ys: Point, us: Float[Array, "horizon nu"]) -> Float[Array, " horizon"]:
        """The running costs of the nodes of a trajectory."""

        def value(k: Array, y: Point, u: Array) -> Array:
            return self.node_cost(k).value(self.time(k), y, u, self.args)

        return jax.vmap(value)(jnp.arange(self.horizon), jax.tree.map(lambda y: y[:-1], ys), us)

    def terminal_value(self, ys: Point) -> Float[Array, ""]:
        """The terminal cost of the last of the states."""
        y = jax.tree.map(lambda y: y[-1], ys)
        return self.end_cost().value(self.time(self.horizon), y, None, self.args)

    def rollout(self, us: Float[Array, "horizon nu"]) -> Point:
        """Roll out the states, each leaf with the leading axis H + 1, from y0 with the controls."""

        def step(y: Point, node: tuple[Array, Array]) -> tuple[Point, Point]:
            after = self.step(node[0], y, node[1])
            return after, after

        _, ys = control_flow.scan(step, self.y0, (jnp.arange(self.horizon), us))
        return jax.tree.map(lambda y, rest: jnp.concatenate([y[None], rest]), self.y0, ys)

    def replace(self, **changes: Any) -> Problem:
        """The problem with other arguments, validated again.

        Args:
            changes: New values of arguments of ``Problem``, by name.

        Raises:
            TypeError: an argument does not exist; else as in ``Problem``.
            ValueError: as in ``Problem``.
        """
        names = (
            "running", "running_rate", "terminal", "horizon", "lower", "upper", "constraints", "free", "args", "t0",
        )  # fmt: skip
        given = {name: getattr(self, name) for name in names} | {"y0": self.y0, "dynamics": self.dynamics}
        if not self.bounded:
            given |= {"lower": None, "upper": None}
        unknown = sorted(set(changes) - set(given))
        if unknown:
            raise TypeError(f"replace: expected names among {', '.join(sorted(given))}, got {', '.join(unknown)}")
        return Problem(**(given | changes))


def _bound(name: str, value: Any, fill: float, shape: tuple[int, int], dtype: DTypeLike) -> Array:
    """A bound of the controls, one value for each, or for each of each step."""
    array = jnp.asarray(fill if value is None else value, dtype)
    if array.shape not in ((), shape[1:], shape):
        raise ValueError(
            f"{name}: expected a scalar or shape {shape[1:]}, one value for each control, or {shape}, one for each of"
            f" each step, got {array.shape}"
        )
    return array if array.ndim == 2 else jnp.broadcast_to(array, shape[1:])


def _on_grid(constraints: Sequence[Constraint], grid: Grid) -> tuple[Constraint, ...]:
    """Adapt the constraints to the nodes of the problem."""
    for i, c in enumerate(constraints):
        if not isinstance(c, Constraint):
            raise TypeError(f"constraints[{i}]: expected a constraint of lgsim.optimize, got {type(c).__name__}")
    return tuple(c.on_grid(grid) for c in constraints)


def _any_finite(bound: Array) -> bool:
    """True if a control may have this bound, as far as it is known while tracing."""
    return is_traced(bound) or bool(np.any(np.isfinite(bound)))


def _check_shapes(problem: Problem) -> None:
    """Raise if a step, a cost or a constraint has another shape or dtype; everything is traced once."""
    u = jnp.zeros(problem.controls, problem.dtype)
    t = problem.time(0)
    for dynamics in problem.pieces:
        after = eqx.filter_eval_shape(dynamics.step, t, problem.y0, u, problem.args)
        expected, got = (jax.tree.map(lambda x: (jnp.shape(x), x.dtype), tree) for tree in (problem.y0, after))
        if expected != got:
            raise ValueError(f"dynamics: expected a step to states like y0, {expected}, got {got}")
    costs = (("running", problem.running, u), ("running_rate", problem.running_rate, u))
    for name, cost, control in (*costs, ("terminal", problem.terminal, None)):
        value = eqx.filter_eval_shape(cost.value, t, problem.y0, control, problem.args)
        shape = getattr(value, "shape", None)
        if shape != ():
            got = type(value).__name__ if shape is None else f"shape {shape}"
            raise ValueError(f"{name}: expected a scalar cost, got {got}; sum it, or use LeastSquares")
        if value.dtype != problem.dtype:
            raise TypeError(f"{name}: expected a cost of {problem.dtype}, the dtype of y0, got {value.dtype}")
    for i, c in enumerate(problem.constraints):
        for control in (u,) * c.on_path + (None,) * c.at_end:
            value = eqx.filter_eval_shape(c.value, t, problem.y0, control, problem.args)
            if getattr(value, "ndim", None) != 1:
                raise ValueError(
                    f"constraints[{i}]: expected values of shape (rows,), got {getattr(value, 'shape', value)}"
                )


def _check_start(problem: Problem) -> None:
    """Raise if y0 violates a bound of the state, which no control can change."""
    if is_traced(problem.y0, problem.constraints):
        return
    problem.pieces[0].check_start(problem.y0)
    if any(isinstance(unknown, FreeStart) for unknown in problem.free):
        return
    for i, c in enumerate(problem.constraints):
        rows = c.state_value(problem.y0)
        if rows is not None and not bool(np.all(np.asarray(rows) <= 0)):
            raise ValueError(
                f"constraints[{i}]: infeasible, y0 is outside of the state's bounds by {float(np.max(rows)):.3g}"
            )
