"""The parts that diffrax asks of a solver, on a manifold: a term, a solver and a local interpolation."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, ClassVar

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from lgsim.integrators.hermite import along, quartic
from lgsim.integrators.method import Field, Method
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau
from lgsim.lie.action import Action, Point


class AlgebraTerm(diffrax.AbstractTerm):
    """The field ``field(t, y, args)`` with values in the algebra, (action.dim,), which need not have y's structure."""

    field: Field

    def vf(self, t: Any, y: Point, args: Any) -> Array:
        """The algebra vector at (t, y)."""
        return self.field(t, y, args)

    def contr(self, t0: Any, t1: Any, **kwargs: Any) -> Array:
        """The time between t0 and t1."""
        return t1 - t0

    def prod(self, vf: Array, control: Array) -> Array:
        """The algebra vector of a motion for the time ``control``."""
        return vf * control


class AlgebraInterpolation(diffrax.AbstractLocalInterpolation):
    """The quartic of ``lgsim.integrators.hermite.along`` over one step, whose arguments are the attributes."""

    t0: Any
    t1: Any
    action: Action
    y0: Point
    exponentials: Array
    slope0: Array
    slope1: Array
    bump: Array

    def evaluate(self, t0: Any, t1: Any = None, left: bool = True) -> Point:
        """The point at the time ``t0``; points have no increments, so ``t1`` must be None."""
        if t1 is not None:
            raise TypeError("t1: the points of a manifold have no difference; evaluate at two times")
        length = self.t1 - self.t0
        s = (t0 - self.t0) / jnp.where(length == 0, 1, length)
        return along(self.action, self.y0, self.exponentials, self.slope0, self.slope1, s, self.bump)


class NoInterpolation(diffrax.AbstractLocalInterpolation):
    """Where nothing between the steps is asked for, and so nothing is computed."""

    t0: Any
    t1: Any

    def evaluate(self, t0: Any, t1: Any = None, left: bool = True) -> Point:
        """Refused."""
        raise ValueError("dense: the solver was made with dense=False, so it knows no states between its steps")


class _Interpolations(eqx.Module):
    action: Action

    def __call__(self, *, t0: Any, t1: Any, **info: Any) -> AlgebraInterpolation:
        return AlgebraInterpolation(t0=t0, t1=t1, action=self.action, **info)


class LastStep(eqx.Module):
    """What the solver keeps of the last accepted step.

    Attributes:
        t: the time at its start, in the direction of the integration.
        y: the point at its start.
        slope: the field at its end; None without dense output.
    """

    t: Array
    y: Point
    slope: Array | None


class GroupSolver(diffrax.AbstractAdaptiveSolver):
    """An embedded method on a manifold for ``diffrax.diffeqsolve``, with quartic dense output.

        diffrax.diffeqsolve(
            AlgebraTerm(field), GroupSolver(lgsim.MK54, action), t0, t1, None, y0, args,
            stepsize_controller=AlgebraController(diffrax.PIDController(rtol=1e-6, atol=1e-9), action),
        )

    Its error estimate is that of the method: an algebra vector (Munthe-Kaas) or a distance (commutator-free).

    Attributes:
        method: an embedded method.
        action: how the algebra moves the state.
        dense: whether states between the steps will be asked for; they cost two more evaluations of the field a step.
    """

    method: Method
    action: Action
    dense: bool = eqx.field(static=True, default=True)
    term_structure: ClassVar = AlgebraTerm

    @property
    def interpolation_cls(self) -> Any:
        """Makes the interpolation of one step."""
        return _Interpolations(self.action) if self.dense else NoInterpolation

    def order(self, terms: Any) -> int:
        """Order of the method."""
        return self.method.order

    def error_order(self, terms: Any) -> int | None:
        """Order of the local error estimate, one more than that of the embedded scheme; None without one."""
        return None if self.method.embedded_order is None else self.method.embedded_order + 1

    def init(self, terms: Any, t0: Any, t1: Any, y0: Point, args: Any) -> LastStep:
        """The state before the first step."""
        return LastStep(t0, y0, _field(terms, t0)(t0, y0, args) if self.dense else None)

    def step(
        self, terms: Any, t0: Any, t1: Any, y0: Point, args: Any, solver_state: LastStep, made_jump: Any
    ) -> tuple[Point, Array | None, dict[str, Any], LastStep, diffrax.RESULTS]:
        """One step of the method, and what the dense output needs."""
        dt, field = t1 - t0, _field(terms, t0)
        if not self.dense:
            y1, error = self.method.step(self.action, field, t0, y0, dt, args)
            return y1, error, {}, LastStep(t0, y0, None), diffrax.RESULTS.successful
        recording = _Recording(self.action, chain_length(self.method.tableau))
        (y1, exponentials), error = self.method.step(
            recording, lambda t, point, args: field(t, point[0], args), t0, recording.start(y0), dt, args
        )
        before = solver_state.slope
        if made_jump is not False:
            before = jax.lax.cond(made_jump, lambda: field(t0, y0, args), lambda: before)
        after = field(t1, y1, args)
        info = {"y0": y0, "exponentials": exponentials, "slope0": dt * before, "slope1": dt * after}
        bump = quartic(self.action, **info, slope_at=lambda s, y: dt * field(t0 + s * dt, y, args))
        return y1, error, {**info, "bump": bump}, LastStep(t0, y0, after), diffrax.RESULTS.successful

    def func(self, terms: Any, t0: Any, y0: Point, args: Any) -> Array:
        """The field."""
        return _field(terms, t0)(t0, y0, args)


def _field(terms: Any, t: Array) -> Field:
    """The field per unit of diffrax's own time, which runs forwards also where the user's runs backwards."""
    unit = terms.contr(jnp.zeros_like(t), jnp.ones_like(t))
    return lambda t, y, args: terms.vf_prod(t, y, args, unit)


class _Recording(Action):
    """An action on points that carry the exponentials by which they were reached, the last ``length`` of them."""

    action: Action
    length: int = eqx.field(static=True)

    @property
    def dim(self) -> int:
        return self.action.dim

    def start(self, y: Point) -> tuple[Point, Array]:
        return y, jnp.zeros((self.length, self.dim), jax.tree.leaves(y)[0].dtype)

    def move(self, xi: Array, y: tuple[Point, Array]) -> tuple[Point, Array]:
        point, done = y
        return self.action.move(xi, point), jnp.concatenate([done[1:], xi[None]])

    def dexpinv(self, sigma: Array, xi: Array) -> Array:
        return self.action.dexpinv(sigma, xi)

    def bracket(self, a: Array, b: Array) -> Array:
        return self.action.bracket(a, b)

    def distance(self, y0: tuple[Point, Array], y1: tuple[Point, Array]) -> Array:
        return self.action.distance(y0[0], y1[0])


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
def _(tableau: CommutatorFreeTableau) -> int:
    path, count = tableau.update, len(tableau.update.rows)
    while path.base:
        path = tableau.stages[path.base]
        count += len(path.rows)
    return count
