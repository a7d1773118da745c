"""Discrete-time dynamics on manifolds, and structured matrices of their linearized steps."""

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim._compile.linalg.dense import SymmetricBlocks, matvec, product, transpose
from lgsim._compile.xla import batch_last, control_flow, fusion_barrier
from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.dynamics.forward_dynamics import forward_dynamics_by_jacobians
from lgsim.dynamics.loops.closure_checks import check_start
from lgsim.integrators.method import Method, Number
from lgsim.integrators.methods import MK4
from lgsim.lie.action import Action, Point, Product, Translation
from lgsim.multibody import block_diagonal
from lgsim.multibody.model import Model, check_model
from lgsim.multibody.number_checks import check_quaternions
from lgsim.multibody.topology import Topology
from lgsim.simulation.actuated_control import ActuatedControl, actuated, sampled_method
from lgsim.simulation.equations_of_motion import (
    TorqueSegment,
    equations_of_motion,
    initial_state,
    split_state,
    state_space,
)
from lgsim.simulation.methods import method_name
from lgsim.simulation.motion_field import MOTION_FIELD, MotionField
from lgsim.simulation.state_space import StateSpace
from lgsim.simulation.variational.machine_method import MachineField, MachineMethod
from lgsim.support import check

Hessian = tuple[SymmetricBlocks, Array, Array]
"""(Qxx (n, n), Qux (m, n), Quu (m, m)), the batch last."""


class Transition(eqx.Module):
    """The matrix ``G = (A, B)`` of ``x_next = A x + B u``; all arrays have the batch axes last."""

    @abstractmethod
    def pullback(self, v: Float[Array, "n columns *#batch"]) -> tuple[Array, Array]:
        """(A^T v, B^T v) of columns v: (n, columns, *batch), (m, columns, *batch)."""

    @abstractmethod
    def congruence(self, V: SymmetricBlocks, H: Float[Array, "nz nz *#batch"]) -> Hessian:
        """``G^T V G + H`` with V in blocks of ``Dynamics.block_sizes``; entries of H above its diagonal blocks are not
        read.
        """

    @abstractmethod
    def matrices(self) -> tuple[Array, Array]:
        """(A (n, n, *batch), B (n, m, *batch))."""


class Dense(Transition):
    """Dense matrices of a step.

    Attributes:
        A: Derivative of the next state with respect to the state (n, n, *batch).
        B: Derivative of the next state with respect to the control (n, m, *batch).
    """

    A: Array
    B: Array

    def pullback(self, v: Float[Array, "n columns *#batch"]) -> tuple[Array, Array]:
        return product(transpose(self.A), v), product(transpose(self.B), v)

    def congruence(self, V: SymmetricBlocks, H: Float[Array, "nz nz *#batch"]) -> Hessian:
        n, At, Bt = len(self.A), transpose(self.A), transpose(self.B)
        VA, VB = fusion_barrier((product(V[0][0], self.A), product(V[0][0], self.B)))
        xx = product(At, VA, start=H[:n, :n])
        return ((xx,),), product(Bt, VA, start=H[n:, :n]), product(Bt, VB, start=H[n:, n:])

    def matrices(self) -> tuple[Array, Array]:
        return self.A, self.B


class EulerTransition(Transition):
    """Structured matrices of a symplectic Euler step: ``w = W (q, v, u)``, ``q+ = T q + S w`` with the new velocity w.

    T and S are the identity and dt, except for joints on groups, where they are small matrices. Hence ``G = ((1, S),
    (0, 1)) ((T, 0, 0), W)`` costs little more than W, its lower half: V is multiplied by the left factor first, and the
    products are those of W.

    Attributes:
        W: Derivative of the new velocity (nv, 2 nv + controls, *batch).
        turn: T by joints, see ``block_diagonal.Blocks``.
        shift: S / dt by joints.
        dt: Time of the step (*batch), s.
    """

    W: Array
    turn: block_diagonal.Blocks
    shift: block_diagonal.Blocks
    dt: Array
    topology: Topology = eqx.field(static=True)

    def pullback(self, v: Float[Array, "n columns *#batch"]) -> tuple[Array, Array]:
        nv = self.topology.nv
        back = product(transpose(self.W), fusion_barrier(v[nv:] + self._shifted_back(v[:nv])))
        return jnp.concatenate([back[:nv] + self._turned_back(v[:nv]), back[nv : 2 * nv]]), back[2 * nv :]

    def congruence(self, V: SymmetricBlocks, H: Float[Array, "nz nz *#batch"]) -> Hessian:
        n = self.topology.nv
        (qq,), (vq, vv) = V
        # of ((1, S), (0, 1)), and of T with the rows above
        cross = fusion_barrier(vq + self._shifted_back(qq))
        inner = fusion_barrier(vv + self._shifted_back(transpose(vq)) + transpose(self._shifted_back(transpose(cross))))
        above = fusion_barrier(self._turned_back(transpose(cross)))
        top = self._turned_back(transpose(self._turned_back(qq)))
        W, Wt = self.W, transpose(self.W)
        by_x, by_u = product(inner, W[:, : 2 * n]), product(inner, W[:, 2 * n :])
        by_x, by_u = fusion_barrier((jnp.concatenate([by_x[:, :n] + transpose(above), by_x[:, n:]], axis=1), by_u))
        q, v, u = slice(n), slice(n, 2 * n), slice(2 * n, None)
        qq = product(above, W[:, q], start=product(Wt[q], by_x[:, q], start=H[q, q] + top))
        vq = product(Wt[v], by_x[:, q], start=H[v, q])
        vv = product(Wt[v], by_x[:, v], start=H[v, v])
        ux = product(Wt[u], by_x, start=H[u, : 2 * n])
        return ((qq,), (vq, vv)), ux, product(Wt[u], by_u, start=H[u, u])

    def matrices(self) -> tuple[Array, Array]:
        tree, n = self.topology, self.topology.nv
        above = block_diagonal.applied(tree, self.shift, self.dt[None, None] * self.W)
        above = jnp.concatenate(
            [above[:, :n] + block_diagonal.matrix(tree, self.turn, self.W[:, 0]), above[:, n:]], axis=1
        )
        both = jnp.concatenate([above, self.W])
        return both[:, : 2 * n], both[:, 2 * n :]

    def _turned_back(self, X: Float[Array, "nv columns *#batch"]) -> Float[Array, "nv columns *#batch"]:
        """``T^T X``."""
        return block_diagonal.applied(self.topology, block_diagonal.transposed(self.turn), X)

    def _shifted_back(self, X: Float[Array, "nv columns *#batch"]) -> Float[Array, "nv columns *#batch"]:
        """``S^T X``."""
        return block_diagonal.applied(self.topology, block_diagonal.transposed(self.shift), self.dt[None, None] * X)


@batch_last
def matrices(step: Transition) -> tuple[Array, Array]:
    """(A, B) of one transition, as a native function."""
    return step.matrices()


ControlledField = Callable[[Any, Point, Array, Any], Array]
"""Function ``field(t, y, u, args)``: the algebra vector (action.dim,) that moves y with the control u."""
StepMap = Callable[[Any, Point, Array, Any], Point]
"""Function ``step(t, y, u, args)``: the next state."""


class Dynamics(eqx.Module):
    """A discrete-time system on a manifold: ``y_next = step(t, y, u, args)``.

    Attributes:
        action: The action of tangent vectors on states; it must define ``difference``.
        controls: Number of controls, the length of u.
        dt: Time between nodes, s.
    """

    if TYPE_CHECKING:  # a field here would become the first argument of subclasses

        @property
        def action(self) -> Action: ...

        @property
        def controls(self) -> int: ...

        @property
        def dt(self) -> Any: ...

    else:
        action: eqx.AbstractVar[Action]
        controls: eqx.AbstractVar[int]
        dt: eqx.AbstractVar[Any]

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """Block sizes of tangent vectors, in which ``transition`` takes symmetric matrices."""
        return (self.action.dim,)

    @abstractmethod
    def step(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        """The state at t + dt, from y at t (s) with the control u."""

    def time_of(self, k: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Time from the first node to node k, s."""
        return k * jnp.asarray(self.dt, k.dtype)

    @property
    def reads_dt(self) -> bool:
        """True if a step depends on dt."""
        return True

    def with_dt(self, dt: Any) -> "Dynamics":
        """The same dynamics with another dt, s."""
        return eqx.tree_at(lambda dynamics: dynamics.dt, self, dt)

    def step_for_hessian(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        """``step`` for Hessians by forward over reverse mode; model parameters are constant."""
        return self.step(t, y, u, args)

    def check_start(self, y0: Point) -> None:
        """Validate an initial state; outside of ``jit``.

        Raises:
            ValueError: y0 is not on the manifold, or opens closed kinematic loops of a model.
        """
        self.action.check_point(y0, "y0")

    def linearized(
        self, t: Number, y: Point, u: Float[Array, " m"], y_next: Point, args: Any
    ) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
        """(A, B, c) of ``difference(y_next, step(t, move(dx, y), u + du, args)) = A dx + B du + c``.

        By forward mode through the step; subclasses with closed-form derivatives override it.
        """
        return linearize_in_chart(self.action, lambda y, u: self.step(t, y, u, args), y, u, y_next)

    def transition(
        self, t: Number, y: Point, u: Float[Array, " m"], y_next: Point, args: Any
    ) -> tuple[Transition, Float[Array, " n"]]:
        """((A, B), c) of ``linearized``, with the matrices in the form that solvers use."""
        A, B, c = self.linearized(t, y, u, y_next, args)
        return Dense(A, B), c


def linearize_in_chart(
    action: Action, step: Callable[[Point, Array], Point], y: Point, u: Float[Array, " m"], y_next: Point
) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
    """(A, B, c) of ``difference(y_next, step(move(dx, y), u + du)) = A dx + B du + c``, by forward mode."""
    n = action.dim

    def F(z: Array) -> tuple[Array, Array]:
        gap = action.difference(y_next, step(action.move(z[:n], y), u + z[n:]))
        return gap, gap

    J, c = jax.jacfwd(F, has_aux=True)(jnp.zeros(n + u.size, u.dtype))
    return J[:, :n], J[:, n:], c


class DiscreteDynamics(Dynamics):
    """Dynamics given by a map from a state and a control to the next state.

    Attributes:
        action: The action of tangent vectors on states.
        function: ``function(t, y, u, args)``, the next state; differentiable.
        controls: Number of controls, the length of u.
        dt: Time between nodes, s; it affects only costs that depend on the time.
    """

    action: Action
    function: StepMap
    controls: int = eqx.field(static=True)
    dt: Any = 1.0

    @property
    def reads_dt(self) -> bool:
        return False

    def step(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        return self.function(t, y, u, args)


class FieldDynamics(Dynamics):
    """A vector field in the Lie algebra, integrated with piecewise constant controls.

    Attributes:
        action: The action of the algebra on states.
        field: ``field(t, y, u, args)``, an algebra vector (action.dim,).
        controls: Number of controls, the length of u.
        dt: Time between nodes, s.
        method: A method of ``lgsim.METHODS``.
        substeps: Number of integration steps between nodes.
    """

    action: Action
    field: ControlledField
    controls: int = eqx.field(static=True)
    dt: Any
    method: Method = MK4
    substeps: int = eqx.field(static=True, default=1)

    def step(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        return _advance(self.method, self.action, _controlled, self.substeps, t, y, self.dt, (self.field, u, args))


class Machine(Dynamics):
    """A model driven by joint torques S u that are constant over each step: ``M(q) v' + h(q, v) = S u + passive``.

    The state is the array (q, v), followed by the actuator states if actuators convert commands u to joint torques.

    Raises:
        TypeError: model is not an ``lgsim.Model``.
        ValueError: selection has another shape.
    """

    if TYPE_CHECKING:  # a field here would become the first argument of subclasses

        @property
        def model(self) -> Model: ...

        @property
        def selection(self) -> Array | None: ...

        @property
        def method_name(self) -> str: ...

        @property
        def own_step(self) -> Any: ...

    else:
        model: eqx.AbstractVar[Model]
        selection: eqx.AbstractVar[Array | None]
        method_name: eqx.AbstractVar[str]
        own_step: eqx.AbstractVar[Any]

    def __check_init__(self):
        check_model(self.model)
        S, nv = self.selection, self.model.nv
        if S is not None and (S.ndim != 2 or S.shape[0] != nv):
            raise ValueError(f"selection: expected a matrix ({nv}, controls), got shape {S.shape}")

    @property
    def action(self) -> StateSpace:
        """The action of (velocity, derivative of v) on (q, v)."""
        return state_space(self.model, self.drive)

    @property
    def drive(self) -> ActuatedControl | None:
        """The actuators; None if the controls are joint torques."""
        return None

    @property
    def controls(self) -> int:
        """The number of drives."""
        return self.model.nv if self.selection is None else self.selection.shape[1]

    def state(self, q: Any = None, v: Any = None) -> Float[Array, " n"]:
        """Build the state from a configuration q (nq,), by default neutral, and a velocity v (nv,), by default zero.

        Actuator states are those at rest without signals.
        """
        q = self.model.neutral() if q is None else jnp.asarray(q, self.model.dtype)
        v = jnp.zeros(self.model.nv, self.model.dtype) if v is None else jnp.asarray(v, self.model.dtype)
        return initial_state(self.model, q, v, self.drive)

    def check_start(self, y0: Point) -> None:
        super().check_start(y0)
        q, v = split_state(self.model, y0)
        check_quaternions(self.model.topology, "y0", q)
        if self.model.topology.loops:
            check_start(self.model, q, v)

    def forces(self, u: Float[Array, " m"]) -> Float[Array, " nv"]:
        """The joint torques S u, N m or N."""
        return u if self.selection is None else matvec(self.selection, u)


class MultibodyDynamics(Machine):
    """Dynamics of a model with any integration method.

    With ``lgsim.VariationalTree()`` the steps are the discrete Euler-Lagrange equations with the controls as forces at
    the midpoint, half of the impulse at each end: discrete mechanics and optimal control. The state of a node is (q, v)
    with ``v = M^-1 p``, where p is the momentum.

    Attributes:
        model: The model; differentiable with respect to all its parameters.
        dt: Time between nodes, s.
        method: A method of ``lgsim.METHODS``, or ``lgsim.VariationalTree()``.
        selection: The matrix S (nv, controls) from controls to joint torques; None if all joints are driven.
        substeps: Number of integration steps between nodes.
        actuators: Actuators that convert controls, which then are commands, to joint torques; None: the controls are
            torques S u.

    Raises:
        ValueError: both actuators and a selection are given.

    Source: Ober-Bloebaum, Junge, Marsden 2011, Discrete mechanics and optimal control: an analysis.
    """

    model: Model
    dt: Float[Array, ""]
    method: Method
    selection: Array | None
    substeps: int = eqx.field(static=True)
    actuators: Actuators | ActuatorSum | None

    def __init__(
        self,
        model: Model,
        dt: Any,
        method: Method = MK4,
        selection: Any = None,
        substeps: int = 1,
        actuators: Actuators | ActuatorSum | None = None,
    ):
        if actuators is not None and selection is not None:
            raise ValueError("selection: expected None with actuators, which define the joints that they drive")
        if actuators is not None:
            actuated(model, actuators, None)
        self.actuators = actuators
        dtype = getattr(model, "dtype", None)
        self.model = model
        self.dt = jnp.asarray(dt, dtype)
        self.method = method
        self.selection = None if selection is None else jnp.asarray(selection, dtype)
        self.substeps = check.count("substeps", substeps)

    @property
    def method_name(self) -> str:
        """Name of the method in the record of a motion."""
        return method_name(self.method)

    @property
    def own_step(self) -> Float[Array, ""]:
        """Step of the method, s."""
        return self.dt / self.substeps

    @property
    def drive(self) -> ActuatedControl | None:
        """The actuators, or None."""
        return None if self.actuators is None else ActuatedControl(self.actuators, None)

    @property
    def controls(self) -> int:
        """The number of commands, or of drives."""
        return super().controls if self.actuators is None else self.actuators.commands

    def step(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        return self._by(MOTION_FIELD, t, y, u)

    def linearized(
        self, t: Number, y: Point, u: Float[Array, " m"], y_next: Point, args: Any
    ) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
        """(A, B, c) from the closed-form Jacobians of the forward dynamics, at each evaluation of the method."""
        return linearize_in_chart(self.action, lambda y, u: self._by(_FIELD_BY_JACOBIANS, t, y, u), y, u, y_next)

    def _by(self, field: Any, t: Number, y: Point, u: Float[Array, " m"]) -> Point:
        """The next state by a vector field of the model's accelerations."""
        tau = self.forces(u)
        row = TorqueSegment(jnp.zeros((), tau.dtype), tau, jnp.zeros_like(tau))
        given, method = ((self.model, self.drive, None), row), self.method
        if self.actuators is not None:
            method = sampled_method(method, self.actuators)
        return _advance(method, self.action, field, self.substeps, t, y, self.dt, given)


class RateControlledDynamics(Dynamics):
    """Dynamics with the control rate as the new control; penalize it for smooth controls.

    The state is (y, w), where w is the control before a step; ``w_next = w + dt u`` drives the step.

    Attributes:
        inner: The dynamics with the control w.
    """

    inner: Dynamics

    @property
    def action(self) -> Product:
        """The action of the inner state and addition of controls."""
        return Product(self.inner.action, Translation(self.inner.controls))

    @property
    def controls(self) -> int:
        """Number of controls of the inner dynamics."""
        return self.inner.controls

    @property
    def dt(self) -> Any:
        """Time between nodes of the inner dynamics, s."""
        return self.inner.dt

    @property
    def reads_dt(self) -> bool:
        return self.inner.reads_dt

    def with_dt(self, dt: Any) -> Dynamics:
        return eqx.tree_at(lambda dynamics: dynamics.inner, self, self.inner.with_dt(dt))

    def step(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        state, w = y
        w = w + jnp.asarray(self.dt, u.dtype) * u
        return self.inner.step(t, state, w, args), w

    def step_for_hessian(self, t: Number, y: Point, u: Float[Array, " m"], args: Any) -> Point:
        state, w = y
        w = w + jnp.asarray(self.dt, u.dtype) * u
        return self.inner.step_for_hessian(t, state, w, args), w

    def linearized(
        self, t: Number, y: Point, u: Float[Array, " m"], y_next: Point, args: Any
    ) -> tuple[Float[Array, "n n"], Float[Array, "n m"], Float[Array, " n"]]:
        """(A, B, c) from the inner dynamics: ``w + dt u`` is their control, and the next state."""
        (state, w), (after, w_after), h = y, y_next, jnp.asarray(self.dt, u.dtype)
        now = w + h * u
        A, B, c = self.inner.linearized(t, state, now, after, args)
        one = jnp.eye(u.size, dtype=u.dtype)
        A = jnp.block([[A, B], [jnp.zeros((u.size, A.shape[1]), u.dtype), one]])
        return A, h * jnp.concatenate([B, one]), jnp.concatenate([c, now - w_after])


class _FieldByJacobians(MotionField):
    """A vector field of a model whose derivative is the closed-form Jacobian of the forward dynamics."""

    def __call__(self, t: Number, y: Float[Array, " ny"], args: Any) -> Float[Array, " n"]:
        return equations_of_motion(t, y, args, forward_dynamics_by_jacobians)


_FIELD_BY_JACOBIANS = _FieldByJacobians()


def _controlled(t: Number, y: Point, given: Any) -> Float[Array, " n"]:
    """The vector field with a constant control, given = (field, u, args)."""
    field, u, args = given
    return field(t, y, u, args)


def _advance(
    method: Method, action: Action, field: Any, substeps: int, t: Number, y: Point, dt: Number, args: Any
) -> Point:
    """``substeps`` steps of a method over the time dt."""
    dtype = jax.tree.leaves(y)[0].dtype
    t, h = jnp.asarray(t, dtype), jnp.asarray(dt, dtype) / substeps
    if substeps == 1:
        return action.restore(field, method.step(action, field, t, y, h, args)[0], args)
    if isinstance(method, MachineMethod) and isinstance(field, MachineField):
        # the method's own state passes through all steps between two nodes
        (model, _, _), _ = field.machine(args)
        own = method.start(model, y, h)
        own = _advance(method.inner, method.space(model), field, substeps, t, own, dt, args)
        return method.state(model, own)

    def once(y: Point, k: Array) -> tuple[Point, None]:
        y = method.step(action, field, t + k.astype(dtype) * h, y, h, args)[0]
        return action.restore(field, y, args), None

    return control_flow.scan(once, y, jnp.arange(substeps))[0]
