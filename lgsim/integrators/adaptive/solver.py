"""A diffrax solver on manifolds: the term, the solver and its local interpolation."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, ClassVar, cast

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from lgsim._compile.xla import control_flow
from lgsim.integrators.hermite import chain_hermite, quartic_bump
from lgsim.integrators.linearly_implicit import LinearizableField, Linearization, linearize
from lgsim.integrators.method import Field, Method
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau
from lgsim.lie.action import Action, Point

Time = Float[Array, ""]
Vector = Float[Array, " algebra"]


class AlgebraTerm(diffrax.AbstractTerm):
    """A field with values in the algebra, which need not have the structure of y.

    Attributes:
        field: ``field(t, y, args)``, the algebra vector (action.dim,).
    """

    field: Field

    def vf(self, t: Time, y: Point, args: Any) -> Vector:
        """The algebra vector (action.dim,) at (t, y)."""
        return self.field(t, y, args)

    def contr(self, t0: Time, t1: Time, **kwargs: Any) -> Time:
        """The time from t0 to t1."""
        return t1 - t0

    def prod(self, vf: Vector, control: Time) -> Vector:
        """The algebra vector (action.dim,) of a motion with the velocity ``vf`` over the time ``control``."""
        return vf * control


class AlgebraInterpolation(diffrax.AbstractLocalInterpolation):
    """The quartic of ``lgsim.integrators.hermite.chain_hermite`` over one step.

    Attributes:
        exponentials: the exponentials that lead to the end, in the order in which they act, (J, action.dim).
        slope0: the field at the start times the step, (action.dim,).
        slope1: the field at the end times the step, (action.dim,).
        bump: the vector that makes the cubic a quartic, (action.dim,).
    """

    t0: Time
    t1: Time
    action: Action
    y0: Point
    exponentials: Float[Array, "exponentials algebra"]
    slope0: Vector
    slope1: Vector
    bump: Vector

    def evaluate(self, t0: Time, t1: Time | None = None, left: bool = True) -> Point:
        """The point at the time ``t0``; points cannot be subtracted, so that ``t1`` must be None.

        Raises:
            TypeError: ``t1`` is not None.
        """
        if t1 is not None:
            raise TypeError("t1: the points of a manifold have no difference; evaluate at two times")
        length = self.t1 - self.t0
        s = (t0 - self.t0) / jnp.where(length == 0, 1, length)
        return chain_hermite(self.action, self.y0, self.exponentials, self.slope0, self.slope1, s, self.bump)


class NoInterpolation(diffrax.AbstractLocalInterpolation):
    """The interpolation of a solver without dense output."""

    t0: Time
    t1: Time

    def evaluate(self, t0: Time, t1: Time | None = None, left: bool = True) -> Point:
        """Raise ValueError: there is no state between the steps."""
        raise ValueError("dense: expected a solver with dense=True for states between its steps, got dense=False")


class _InterpolationMaker(eqx.Module):
    action: Action

    def __call__(self, *, t0: Time, t1: Time, **info: Any) -> AlgebraInterpolation:
        return AlgebraInterpolation(t0=t0, t1=t1, action=self.action, **info)


class LastStep(eqx.Module):
    """The last accepted step, which is the solver's state.

    Attributes:
        t: the time at the start of the step, in the direction of the integration, ().
        slope: the field at the end of the step, (action.dim,); None without dense output.
    """

    t: Time
    y: Point
    slope: Vector | None


class GroupSolver(diffrax.AbstractAdaptiveSolver):
    """An embedded method on a manifold for ``diffrax.diffeqsolve``, with quartic dense output.

    Use with diffrax::

        diffrax.diffeqsolve(
            AlgebraTerm(field), GroupSolver(lgsim.MK54, action), t0, t1, None, y0, args,
            stepsize_controller=AlgebraController(diffrax.PIDController(rtol=1e-6, atol=1e-9), action),
        )

    Its error estimate is that of the method: an algebra vector (Munthe-Kaas) or a distance (commutator-free).

    Attributes:
        dense: True if states between the steps will be needed; they cost two more evaluations of the field a step.
    """

    method: Method
    action: Action
    dense: bool = eqx.field(static=True, default=True)
    term_structure: ClassVar = AlgebraTerm

    @property
    def interpolation_cls(self) -> Callable[..., diffrax.AbstractLocalInterpolation]:
        """The function that makes the interpolation of one step, as diffrax calls it."""
        return _InterpolationMaker(self.action) if self.dense else NoInterpolation

    def order(self, terms: diffrax.AbstractTerm) -> int:
        """The order of the method."""
        return self.method.order

    def error_order(self, terms: diffrax.AbstractTerm) -> int | None:
        """The order of the local error estimate, one more than that of the embedded scheme; None without one."""
        return None if self.method.embedded_order is None else self.method.embedded_order + 1

    def init(self, terms: diffrax.AbstractTerm, t0: Time, t1: Time, y0: Point, args: Any) -> LastStep:
        """The solver's state before the first step."""
        return LastStep(t0, y0, _field(terms, t0)(t0, y0, args) if self.dense else None)

    def step(
        self,
        terms: diffrax.AbstractTerm,
        t0: Time,
        t1: Time,
        y0: Point,
        args: Any,
        solver_state: LastStep,
        made_jump: bool | Bool[Array, ""],
    ) -> tuple[Point, Float[Array, "*estimate"] | None, dict[str, Any], LastStep, diffrax.RESULTS]:
        """Take one step of the method from t0 to t1.

        Returns:
            The point at t1, the error estimate, the arguments of the interpolation, the solver's state, and success.
        """
        dt, field = t1 - t0, _field(terms, t0)
        if not self.dense:
            y1, error = self.method.step(self.action, field, t0, y0, dt, args)
            y1 = self.action.restore(_own_field(terms), y1, args)
            return y1, error, {}, LastStep(t0, y0, None), diffrax.RESULTS.successful
        recording = _Recording(self.action, chain_length(self.method.tableau))
        recorded = recording.field(field)
        (y1, exponentials), error = self.method.step(recording, recorded, t0, recording.start(y0), dt, args)
        y1 = self.action.restore(_own_field(terms), y1, args)
        before = cast(Array, solver_state.slope)
        if made_jump is not False:
            before = control_flow.cond(made_jump, lambda: field(t0, y0, args), lambda: before)
        after = field(t1, y1, args)
        info = {"y0": y0, "exponentials": exponentials, "slope0": dt * before, "slope1": dt * after}
        bump = quartic_bump(self.action, **info, slope_at=lambda s, y: dt * field(t0 + s * dt, y, args))
        return y1, error, {**info, "bump": bump}, LastStep(t0, y0, after), diffrax.RESULTS.successful

    def func(self, terms: diffrax.AbstractTerm, t0: Time, y0: Point, args: Any) -> Vector:
        """The field's algebra vector (action.dim,) at (t0, y0)."""
        return _field(terms, t0)(t0, y0, args)


def _field(terms: diffrax.AbstractTerm, t: Time) -> Field:
    """The field per unit of diffrax's own time, which runs forwards even when the user's runs backwards."""
    unit = terms.contr(jnp.zeros_like(t), jnp.ones_like(t))
    own = _own_field(terms)
    if isinstance(own, LinearizableField):
        return _Directed(own, unit)
    return lambda t, y, args: terms.vf_prod(t, y, args, unit)


def _own_field(terms: diffrax.AbstractTerm) -> Any:
    """The user's field; diffrax wraps the term if it runs backwards."""
    return getattr(getattr(terms, "term", terms), "field", None)


class _Directed(eqx.Module):
    """A linearizable field in diffrax's own time, which runs in the direction 1 or -1."""

    own: Any
    direction: Time

    def __call__(self, t: Time, y: Point, args: Any) -> Vector:
        return self.direction * self.own(self.direction * t, y, args)

    def linearize(self, action: Action, t: Time, y: Point, args: Any, s: Float[Array, ""]) -> Linearization:
        value, rate, resolvent = self.own.linearize(action, self.direction * t, y, args, self.direction * s)
        return Linearization(self.direction * value, rate, resolvent)


RecordedPoint = tuple[Point, Float[Array, "exponentials algebra"]]


class _Recording(Action):
    """An action on points together with the last ``length`` exponentials by which they were reached."""

    action: Action
    length: int = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return self.action.dim

    def field(self, field: Field) -> Field:
        """A field of points as one of points with exponentials."""
        return _OfRecorded(self.action, field)

    def start(self, y: Point) -> RecordedPoint:
        return y, jnp.zeros((self.length, self.dim), jax.tree.leaves(y)[0].dtype)

    def move(self, xi: Vector, y: RecordedPoint) -> RecordedPoint:
        point, exponentials = y
        return self.action.move(xi, point), jnp.concatenate([exponentials[1:], xi[None]])

    def dexpinv(self, sigma: Vector, xi: Vector) -> Vector:
        return self.action.dexpinv(sigma, xi)

    def bracket(self, a: Vector, b: Vector) -> Vector:
        return self.action.bracket(a, b)

    def distance(self, y0: RecordedPoint, y1: RecordedPoint) -> Float[Array, ""]:
        return self.action.distance(y0[0], y1[0])


class _OfRecorded(eqx.Module):
    action: Action
    own: Any

    def __call__(self, t: Time, y: RecordedPoint, args: Any) -> Vector:
        return self.own(t, y[0], args)

    def linearize(self, action: Action, t: Time, y: RecordedPoint, args: Any, s: Float[Array, ""]) -> Linearization:
        return linearize(self.action, self.own, t, y[0], args, s)


@singledispatch
def chain_length(tableau: Any) -> int:
    """The number of exponentials between the start and the end of a step; a new kind of tableau registers its own."""
    raise TypeError(
        f"method: the number of exponentials of a step is not known for a {type(tableau).__name__}; register a "
        "function of the tableau with lgsim.integrators.adaptive.solver.chain_length.register"
    )


@chain_length.register
def _(tableau: ButcherTableau) -> int:
    return 1


@chain_length.register
def _(tableau: RosenbrockTableau) -> int:
    return 1


@chain_length.register
def _(tableau: CommutatorFreeTableau) -> int:
    word, count = tableau.update, len(tableau.update.rows)
    while word.base:
        word = tableau.stages[word.base]
        count += len(word.rows)
    return count
