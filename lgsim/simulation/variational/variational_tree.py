"""The variational integrator for articulated systems: discrete Euler-Lagrange equations in momenta, in O(n) a step.

A step of length h takes (q, p) to the (q', p') with

    p + h/2 tau = p_start(q, d),    q' = retract(q, d),    p' = p_end(q, d) + h/2 tau,

p_start and p_end being the momenta of the discrete Lagrangian at both ends (``lgsim.dynamics.discrete``), with the
model's own dampers, springs, friction and stops at the midpoint. Without forces the step is symplectic, preserves the
momenta of a floating system to rounding, and is symmetric in time.

Source: Marsden and West 2001, Discrete mechanics and variational integrators, (3.2.1); Lee, Liu, Park, Srinivasa 2016.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim._compile.xla import control_flow, save_in_checkpoint
from lgsim.dynamics.discrete.discrete_momenta import generalized_momentum, velocity_of_momentum
from lgsim.dynamics.discrete.discrete_newton import attempt, trial, with_derivatives
from lgsim.dynamics.discrete.displacement import without_whole_turns
from lgsim.dynamics.discrete.rotation_maps import QUATERNION, RotationMap, rotation_map
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.integrators.compositions import ThetaScheme, suzuki, theta_scheme
from lgsim.integrators.method import Field, ImplicitMethod, Number
from lgsim.integrators.newton import Newton
from lgsim.lie.action import Action
from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import acceleration, drive_forces
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.variational.machine_method import MachineField, MachineMethod

_TRIALS = 60
"""The largest number of further, damped iterations, where full Newton steps do not converge."""
NEAR = 1e-3
"""The relative change below which the damped iterations continue from the last full one; else they restart."""
_LEAP = 1.0
"""The change of a displacement between two steps, rad or m, above which it does not predict the next one."""


def _variational_scheme(order: int) -> ThetaScheme:
    """One variational step, of order 2, or a composition of five with Suzuki's fractions, of order 4.

    Raises:
        ValueError: the order is neither 2 nor 4.
    """
    middle = theta_scheme(0.5)
    if order == 2:
        return ThetaScheme("variational", middle.substeps, 2)
    if order == 4:
        return ThetaScheme("variational, order 4", suzuki(middle).substeps, 4)
    raise ValueError(f"order: expected 2, or 4 for a composition of five steps, got {order!r}")


class VariationalTree(MachineMethod, ImplicitMethod):
    """The variational integrator for articulated systems, a method for ``simulate``, ``rollout`` and optimization.

    Supports torques that are held for a step or interpolated linearly between nodes. Their value and that of
    ``control`` and ``wrenches`` at the midpoint acts, one half at each end. The equations of a step are solved by
    Newton's method with exact derivatives, in O(n) for trees. Derivatives of the motion are those of the implicit
    function: both modes, any order. There are no adaptive steps: a step that depends on the state is not symplectic,
    and the preserved quantities would drift.

    Attributes:
        tableau: The steps of a composition. Their theta, 1/2, is that of ``lgsim.integrators.stability``: a step
            amplifies springs and dampers as the midpoint rule does.
        map: The retraction for the rotation of a body in a step: "quaternion", the cheapest; "exp", more accurate where
            bodies rotate by more than 0.2 rad a step; "cayley", which has a step for any momentum. See
            ``lgsim.dynamics.discrete.rotation_maps`` for a comparison.
        newton: Solver of the equations of a step: a fixed number of iterations, and more where these are too few.

    Raises:
        ValueError: the map is unknown, the order is neither 2 nor 4.
    """

    tableau: ThetaScheme = eqx.field(static=True)
    map: RotationMap = eqx.field(static=True)
    newton: Newton

    def __init__(self, map: str | RotationMap = QUATERNION, order: int = 2, newton: Newton | None = None) -> None:
        self.tableau = _variational_scheme(order)
        self.map = rotation_map(map)
        self.newton = Newton(3) if newton is None else newton

    @property
    def by_exponentials(self) -> bool:
        """False: a step is not an exponential of a field."""
        return False

    @property
    def fixed_step_reason(self) -> str:
        """The reason for its fixed steps."""
        return (
            "it preserves momenta, and the energy without drift, only with steps of one length; adaptive steps "
            "destroy that"
        )

    def check(self, action: Action) -> None:
        """Raise TypeError if the action is not the state space of a model."""
        if not isinstance(action, StateSpace):
            raise TypeError(
                f"action: {self.name} requires the states of a model, see lgsim.simulate, got {type(action).__name__}; "
                "lgsim.Variational takes a Lagrangian on a group"
            )

    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Any, dt: Float[Array, ""], args: Any
    ) -> tuple[Any, None, Float[Array, ""]]:
        """(state (q, v) after a step from (q, v), None, largest relative change in the last iterations)."""
        (model, _, _), _ = _machine(field, args)
        own = self.start(model, y, dt)
        own, _, gap = self.inner.monitored_step(self.space(model), field, t, own, dt, args)
        return self.state(model, own), None, gap

    @property
    def inner(self) -> MomentumSteps:
        """The step from (q, p, guesses) to the next state."""
        return MomentumSteps(tree=self)  # pyright: ignore[reportCallIssue]  (its tableau is a property)

    def space(self, model: Model) -> StateSpace:
        """States (q, p, guesses): for each step of the composition the next displacement and the previous one."""
        return StateSpace(model.topology, 2 * len(self.tableau.substeps) * model.nv)

    def check_machine(self, model: Model, size: int) -> None:
        """Raise ValueError if the model has loops, contacts or actuator states."""
        if model.topology.contacts:
            raise ValueError(
                f"method: {self.name} requires a model without contacts, got {model.contact_names[0]!r}; take"
                " Rodas4, or MK4 with a step that resolves the contacts"
            )
        refuse_loops(model.topology, f"{self.name}", "its steps would open them", "take MK4, which restores them")
        if size != model.nq + model.nv:
            raise ValueError(
                f"method: {self.name} requires actuators without states of their own, got "
                f"{size - model.nq - model.nv} states; take MK4 or Rodas4"
            )

    def start(self, model: Model, y: Float[Array, " state"], dt: Float[Array, ""]) -> Float[Array, " own"]:
        """(q, M v, guesses ``h v``) from (q, v).

        Raises:
            ValueError: the model has contacts, or actuator states.
        """
        self.check_machine(model, y.size)
        q, v = y[: model.nq], y[model.nq :]
        ways = [fraction * dt * v for _, fraction in self.tableau.substeps]
        return jnp.concatenate([q, generalized_momentum(model, q, v), *map(jax.lax.stop_gradient, 2 * ways)])

    def state(self, model: Model, y: Float[Array, " own"]) -> Float[Array, " state"]:
        """(q, M^-1 p)."""
        q, p = y[: model.nq], y[model.nq : model.nq + model.nv]
        return jnp.concatenate([q, velocity_of_momentum(model, q, p)])

    def why_unsolved(self, model: Model, y: Float[np.ndarray, " state"], dt: float) -> tuple[str, str]:
        """(the joint that moves most in a step, or with the largest residual; the remedy)."""
        q, v = jnp.asarray(y[: model.nq]), jnp.asarray(y[model.nq : model.nq + model.nv])
        h = jnp.asarray(max((abs(f) for _, f in self.tableau.substeps)) * dt, q.dtype)
        found = trial(self.map)(model, q, generalized_momentum(model, q, v), h * v, h, jnp.ones_like(h))
        fastest = float(np.max(np.abs(v)))
        turns = not np.isfinite(found.correction) and fastest > 0
        at = int(np.argmax(np.abs(np.asarray(v if turns else found.change))))
        joint = next(name for name, part in model.v_slices.items() if part.start <= at < part.stop)
        others = ", or try the map 'cayley'" if self.map == QUATERNION else ""
        if not turns:
            return joint, f"take half of dt = {dt:g} s{others}"
        much, angle = "a body or a joint turns by half a turn or more", 2
        if self.map.least > 0:
            much, angle = "a body turns by a quarter of a turn or more, or a joint by half a turn,", 1
        return joint, (
            f"{much} in a step of {float(h):g} s, where a step is not unique; "
            f"take dt below {angle / fastest:.1g} s{others}"
        )


class MomentumSteps(ImplicitMethod):
    """The steps of a ``VariationalTree`` in its own states."""

    tree: VariationalTree

    @property
    def tableau(self) -> ThetaScheme:
        """The steps of the composition."""
        return self.tree.tableau

    @property
    def newton(self) -> Newton:
        """The solver of the equations."""
        return self.tree.newton

    def check_problem(self, action: Action, field: Field, t0: Float[Array, ""], y0: Any, args: Any) -> None:
        """Raise TypeError if the field is not that of a model; its value is not checked."""
        _machine(field, args)
        action.check_point(y0, "y0")

    def monitored_step(
        self, action: Action, field: Field, t: Float[Array, ""], y: Any, dt: Float[Array, ""], args: Any
    ) -> tuple[Any, None, Float[Array, ""]]:
        """(state (q, p, guesses) after a step, None, largest relative change in the last iterations)."""
        machine, segment = _machine(field, args)
        model = machine[0]
        nq, nv, count = model.nq, model.nv, len(self.tableau.substeps)
        q, p, memory = y[:nq], y[nq : nq + nv], y[nq + nv :].reshape(2, count, nv)
        fractions = jnp.asarray([fraction for _, fraction in self.tableau.substeps], dt.dtype)
        offsets = jnp.cumsum(fractions) - fractions

        def substep(state: tuple[Array, Array], entry: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple]:
            (q, p), (fraction, offset, guess, before) = state, entry
            h = fraction * dt
            tau = _half_way(machine, segment, t + offset * dt, h, q, p)
            q, p, d, gap = self._advance(model, q, p, tau, guess, h)
            d = jax.lax.stop_gradient(d)
            # the first displacement follows from the velocity, not from the previous one; where displacements jump, as
            # at a gimbal singularity, extrapolation would make the next one jump too, and rest is the better guess
            smooth = jnp.max(jnp.abs(d - before)) < _LEAP
            return (q, p), (jnp.where(smooth, 2 * d - before, 0), d, gap)

        entries = (fractions, offsets, memory[0], memory[1])
        if count == 1:
            (q, p), found = substep((q, p), jax.tree.map(lambda x: x[0], entries))
            guess, d, gap = (x[None] for x in found)
        else:
            (q, p), (guess, d, gap) = control_flow.scan(substep, (q, p), entries)
        return jnp.concatenate([q, p, guess.ravel(), d.ravel()]), None, jnp.max(gap)

    def _advance(
        self, model: Model, q: Array, p: Array, tau: Array, guess: Array, h: Array
    ) -> tuple[Array, Array, Array, Array]:
        """(q, p, displacement, relative change) after one step."""
        kind, tolerance = self.tree.map, self.largest_residual(h.dtype)
        momentum = p + 0.5 * h * tau
        # anything below the rounding of an angle or a length of 1 counts as zero
        smallest = jnp.asarray(jnp.finfo(h.dtype).eps / tolerance, h.dtype)
        by = (model, q, momentum, h)
        fixed = jax.lax.stop_gradient(by)
        first = attempt(kind, self.newton.iterations)(*fixed[:3], jax.lax.stop_gradient(guess), fixed[3], smallest)
        found = _Solution(first.d, first.p, first.correction)
        found = _damped(kind, fixed, jax.lax.stop_gradient(guess), smallest, tolerance, found)
        found = jax.tree.map(save_in_checkpoint, found)
        d, end = with_derivatives(kind)(by, found.d, found.p)
        # equations without a solution give NaN, so that a failed step shows even if residuals are not checked
        solved = found.change <= tolerance
        q, p = (jnp.where(solved, x, jnp.nan) for x in (model.retract(q, d), end + 0.5 * h * tau))
        return q, p, found.d, found.change


class _Solution(NamedTuple):
    """The best displacement so far, the momentum at its end, and the relative Newton change there."""

    d: Array
    p: Array
    change: Array


class _Iteration(NamedTuple):
    """State of the damped iterations.

    Attributes:
        best: The best displacement so far.
        base: The displacement from which the next one is tried: ``base + scale * change``.
        change: Newton's change there.
        gap: The largest momentum residual there, infinite before the first trial.
        scale: The fraction of the change that is tried next.
        stalled: True if no further progress is possible.
        count: Number of trials.
    """

    best: _Solution
    base: Array
    change: Array
    gap: Array
    scale: Array
    stalled: Array
    count: Array


def _damped(
    kind: RotationMap, by: tuple[Model, Array, Array, Array], guess: Array, smallest: Array, tolerance: Number,
    found: _Solution,
) -> _Solution:  # fmt: skip
    """Damped iterations from the guess where ``found`` has not converged: each change is halved until the next one or
    the momentum residual is smaller. Neither criterion suffices by itself. Dry friction that begins within the step
    bends the equations, so that changes grow on the way. The residual along a chain is a poor measure of progress.

    Source: Deuflhard, Newton Methods for Nonlinear Problems, 2004, 3.1 (residuals) and 3.3 (natural monotonicity).
    """
    model, q, momentum, h = by
    rounding = 8 * float(jnp.finfo(h.dtype).eps)
    nowhere = jnp.full_like(found.change, jnp.inf)

    def goes_on(s: _Iteration) -> Array:
        return (s.count < _TRIALS) & ~s.stalled & ((s.count == 0) | ~(s.best.change <= rounding))

    def iterate(s: _Iteration) -> _Iteration:
        # the first trial is the guess, or the last full iterate if it came close
        fresh = s.count == 0
        size, gap = (jnp.where(fresh, nowhere, x) for x in (s.best.change, s.gap))
        d = jnp.where(fresh, jnp.where(s.best.change < NEAR, s.best.d, guess), s.base + s.scale * s.change)
        d = without_whole_turns(model.topology, d)
        new = trial(kind)(model, q, momentum, d, h, smallest)

        # natural monotonicity, or a smaller residual
        relative = jnp.where(jnp.isfinite(new.correction), new.correction, jnp.inf)
        least = 1 - 0.25 * s.scale
        better = (relative < least * size) | ((new.gap < least * gap) & jnp.isfinite(relative))
        # a guess from which no change makes progress, such as one beyond half a turn, falls back to rest
        lost = jnp.isinf(size) & ~better
        return _Iteration(
            best=_Solution(
                jnp.where(better, d, s.best.d), jnp.where(better, new.p, s.best.p), jnp.where(better, relative, size)
            ),
            base=jnp.where(better, d, jnp.where(lost, 0, s.base)),
            change=jnp.where(better, new.change, jnp.where(lost, 0, s.change)),
            gap=jnp.where(better, new.gap, gap),
            scale=jnp.where(better, jnp.minimum(1, 2 * s.scale), jnp.where(lost, s.scale, 0.5 * s.scale)),
            # changes of a solved step that do not shrink are rounding
            stalled=~better & (size <= tolerance),
            count=s.count + 1,
        )

    def search(state: tuple) -> tuple:
        found, _ = state
        one, moving = jnp.ones_like(found.change), jnp.zeros_like(found.change, bool)
        nothing, none = jnp.zeros_like(found.d), jnp.zeros((), jnp.int32)
        start = _Iteration(found, found.d, nothing, nowhere, one, moving, none)
        return control_flow.while_loop(goes_on, iterate, start).best, jnp.ones_like(moving)

    def unsolved(state: tuple) -> Array:
        found, searched = state
        return ~searched & ~(found.change <= tolerance)

    # a loop of zero or one iteration: where all steps are solved, nearly always, the search state is not even created
    return control_flow.while_loop(unsolved, search, (found, jnp.zeros_like(found.change, bool)))[0]


def _machine(field: Field, args: Any) -> tuple[tuple[Model, Any, Any], Any]:
    """((model, control, wrenches), segment) from a field's arguments.

    Raises:
        TypeError: the field is not that of a model.
    """
    if not isinstance(field, MachineField):
        raise TypeError(
            "field: a VariationalTree requires the equations of motion of a model, as in lgsim.simulate and "
            f"lgsim.optimize.MultibodyDynamics, got {type(field).__name__}"
        )
    return field.machine(args)


def _half_way(
    machine: tuple[Model, Any, Any], segment: Any, t: Array, h: Array, q: Array, p: Array
) -> Float[Array, " nv"]:
    """The joint forces of drives and wrenches, without the model's own, at the midpoint of a step from (q, p).

    Where they depend on the state, half a step of the explicit midpoint rule predicts it.
    """
    model, control, wrenches = machine
    middle = t + 0.5 * h
    given = None if segment is None else segment.at(middle)
    if control is None and wrenches is None:
        return jnp.zeros_like(p) if given is None else given
    v = velocity_of_momentum(model, q, p)
    now = None if segment is None else segment.at(t)
    tau, _ = drive_forces(model, control, now, t, q, v)
    a = acceleration(model, tau, wrenches, t, q, v)
    q, v = model.retract(q, 0.5 * h * v), v + 0.5 * h * a
    tau, _ = drive_forces(model, control, given, middle, q, v)
    if wrenches is None:
        return tau
    rest, still = jnp.zeros_like(v), model.replace(gravity=jnp.zeros_like(model.gravity))
    return tau - inverse_dynamics(still, q, rest, rest, wrenches(middle, q, v, model))
