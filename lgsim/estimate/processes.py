"""Process models: how a state moves between two readings, and the noise that acts on it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import block_diag, expm
from jaxtyping import Float

from lgsim._compile.xla import compiled, straight_line
from lgsim.estimate.factors import ROWS, check_deviations, triangular
from lgsim.estimate.gaussian import Gaussian, as_action
from lgsim.integrators.integrate import Field, integrate
from lgsim.integrators.method import Method, Number
from lgsim.integrators.methods import MK4
from lgsim.lie.action import Action, LeftTranslation, Point, Product, RightTranslation, Translation

Result = TypeVar("Result")


class Transition(NamedTuple):
    """The linearization of a step: the error at its end is ``slope e + noise w``, w standard normal.

    Attributes:
        state: The state at the end.
        slope: The derivative of the error at the end with respect to that at the start (n, n).
        noise: A factor of the covariance of the noise (n, m), any m.
    """

    state: Point
    slope: Float[Array, "n n"]
    noise: Float[Array, "n m"]


class Process(eqx.Module):
    """A process model. A subclass defines ``space``, ``step`` and ``noise``."""

    @property
    @abstractmethod
    def space(self) -> Action:
        """The action in whose algebra the noise is."""

    @abstractmethod
    def step(self, y: Point, u: Any, dt: Number) -> Point:
        """The state after the time dt, s, with a held input u, without noise."""

    @abstractmethod
    def noise(self, y: Point, u: Any, dt: Number) -> Float[Array, "n m"]:
        """A factor of the covariance of the noise at the end of a step to y, in the algebra of ``space``."""

    @property
    def is_formula(self) -> bool:
        """True if a step is a formula of few operations: a filter of it then becomes straight-line programs."""
        return False

    def program(self, f: Callable[..., Result], *objects: Any) -> Callable[..., Result]:
        """A part of a filter, with the first arguments given, as one straight-line program if a step is a formula."""
        if not self.is_formula:
            return partial(f, *objects)
        # what is not an argument would have to be traced once more
        arrays, static = eqx.partition(objects, eqx.is_array)
        return partial(straight_line(lambda arrays, *rest: f(*eqx.combine(arrays, static), *rest)), arrays)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components of the error, for tables and verdicts."""
        return tuple(f"[{i}]" for i in range(self.space.dim))

    def transition(self, error: Action, y: Point, u: Any, dt: Number) -> Transition:
        """The step from y and its linearization, for the error of an action."""
        end, slope = _linearized(self, error, y, u, dt)
        return Transition(end, slope, between(self.space, error, end) @ self.noise(end, u, dt))

    @compiled
    def propagate(self, gaussian: Gaussian, u: Any, dt: Number) -> Gaussian:
        """The distribution after the time dt, to first order: the mean by ``step``, ``P' = F P F^T + Q`` by factors."""
        state, slope, noise = self.transition(gaussian.error, gaussian.mean, u, dt)
        factor = triangular(jnp.concatenate([noise, slope @ gaussian.factor], axis=1))
        return Gaussian(state, factor, gaussian.error)


class DiscreteProcess(Process):
    """A process of discrete steps, ``y' = f(y, u, dt)`` with noise of a given covariance in each step.

    Attributes:
        error: The action of the noise, or a group for its right translation.
        f: The step, without noise.
        factor: A factor (n, m) of the covariance of the noise of one step.
    """

    error: Action = eqx.field(converter=lambda error: as_action("error", error))
    f: Callable[[Point, Any, Any], Point]
    factor: Float[Array, "n m"] = eqx.field(converter=jnp.asarray)

    @property
    def space(self) -> Action:
        return self.error

    @property
    def is_formula(self) -> bool:
        return self.space.dim <= ROWS

    def step(self, y: Point, u: Any, dt: Number) -> Point:
        return self.f(y, u, dt)

    def noise(self, y: Point, u: Any, dt: Number) -> Float[Array, "n m"]:
        return self.factor


class LinearProcess(Process):
    """``y' = A y + B u + G w`` in R^n with white noise w of density one, discretized exactly.

    The transition is the exponential of ``[[A, B], [0, 0]] dt`` and the covariance of the noise ``int exp(A s) G G^T
    exp(A s)^T ds`` that of Van Loan's: with ``exp([[-A, G G^T], [0, A^T]] dt) = [[., X], [0, Y]]`` it is ``Y^T X``.

    Attributes:
        A: (n, n), 1/s.
        G: (n, m), the density of the noise in units of y per second and sqrt(Hz).
        B: (n, k), or None without input.

    Source: Van Loan 1978, Computing integrals involving the matrix exponential.
    """

    A: Float[Array, "n n"] = eqx.field(converter=jnp.asarray)
    G: Float[Array, "n m"] = eqx.field(converter=jnp.asarray)
    B: Float[Array, "n k"] | None = eqx.field(converter=lambda B: None if B is None else jnp.asarray(B), default=None)

    @property
    def space(self) -> Action:
        return Translation(self.A.shape[0])

    def step(self, y: Float[Array, " n"], u: Any, dt: Number) -> Float[Array, " n"]:
        if self.B is None:
            return expm(self.A * dt) @ y
        n, k = self.B.shape
        whole = expm(jnp.concatenate([jnp.concatenate([self.A, self.B], 1), jnp.zeros((k, n + k), y.dtype)]) * dt)
        return whole[:n, :n] @ y + whole[:n, n:] @ u

    def noise(self, y: Float[Array, " n"], u: Any, dt: Number) -> Float[Array, "n n"]:
        n = self.A.shape[0]
        zero = jnp.zeros((n, n), self.A.dtype)
        both = expm(jnp.block([[-self.A, self.G @ self.G.T], [zero, self.A.T]]) * dt)
        Q = both[n:, n:].T @ both[:n, n:]
        values, axes = jnp.linalg.eigh((Q + Q.T) / 2)
        return axes @ jnp.diag(jnp.sqrt(jnp.maximum(values, 0)))


class ContinuousProcess(Process):
    """A process that moves continuously, with white noise of a density that enters its velocity.

    A step is two halves by ``step``, and the covariance of its noise is Simpson's rule over the ends and the middle,
    ``Q = int Phi(t1, s) G G^T Phi(t1, s)^T ds`` with the derivatives Phi of those very halves. It is exact where the
    integrand is a cubic, as for the position of a body whose acceleration is noisy, and of full rank there.
    """

    @abstractmethod
    def density(self, y: Point, u: Any) -> Float[Array, "n m"]:
        """The density of the noise at y, in the algebra of ``space`` per second and sqrt(Hz)."""

    def noise(self, y: Point, u: Any, dt: Number) -> Float[Array, "n m"]:
        """The noise of a step as if the state did not move in it; ``transition`` does better."""
        return self.density(y, u) * jnp.sqrt(jnp.abs(dt))

    def transition(self, error: Action, y: Point, u: Any, dt: Number) -> Transition:
        def half(y: Point, _: None) -> tuple[Point, tuple[Point, Array]]:
            middle, slope = _linearized(self, error, y, u, dt / 2)
            return middle, (middle, slope)

        # one half is compiled for both
        end, (later, slopes) = jax.lax.scan(half, y, None, length=2)
        points = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), y, later)
        weights = jnp.sqrt(jnp.asarray([1 / 6, 4 / 6, 1 / 6], slopes.dtype))
        first, middle, last = jax.vmap(lambda y, weight: between(self.space, error, y) @ self.density(y, u) * weight)(
            points, weights
        )
        slope = slopes[1] @ slopes[0]
        columns = jnp.concatenate([slope @ first, slopes[1] @ middle, last], axis=1)
        return Transition(end, slope, columns * jnp.sqrt(jnp.abs(dt)))


class FieldProcess(ContinuousProcess):
    """``y' = (f(t, y, u) + G w) . y`` on any manifold, a field of lgsim with white noise in its algebra.

    Attributes:
        action: How the algebra moves a state.
        field: ``field(t, y, u)``, the algebra vector (n,), as in ``lgsim.integrate``; t is zero at the start of a step.
        noise_density: G: a number for all components, (n,) for independent ones, or (n, m); per second and sqrt(Hz).
        method: The method of integration, one step for each half of a step of the process.
    """

    action: Action
    field: Field
    noise_density: Array = eqx.field(converter=jnp.asarray)
    method: Method = MK4

    def __check_init__(self) -> None:
        as_action("action", self.action)
        shape, n = self.noise_density.shape, self.action.dim
        if shape not in ((), (n,)) and (len(shape) != 2 or shape[0] != n):
            raise ValueError(f"noise_density: expected a number, ({n},) or ({n}, m), got the shape {shape}")
        check_deviations("noise_density", self.noise_density)

    @property
    def space(self) -> Action:
        return self.action

    @property
    def is_formula(self) -> bool:
        return self.space.dim <= ROWS

    def step(self, y: Point, u: Any, dt: Number) -> Point:
        solution = integrate(self.method, self.action, self.field, y, dt=dt, steps=1, args=u, throw=False)
        return jax.tree.map(lambda a: a[-1], solution.ys)

    def density(self, y: Point, u: Any) -> Float[Array, "n m"]:
        return matrix_of(self.noise_density, self.action.dim)


def matrix_of(deviations: Array, n: int) -> Float[Array, "n m"]:
    """The factor of a number for all components, of (n,) for independent ones, or (n, m) itself."""
    return deviations if deviations.ndim == 2 else jnp.diag(jnp.broadcast_to(deviations, (n,)))


def between(space: Action, error: Action, y: Point) -> Float[Array, "n n"]:
    """The derivative of the error of one action at y with respect to that of another: Ad between sides of a group."""
    zero = jnp.zeros(space.dim, jax.tree.leaves(y)[0].dtype)
    if space == error:
        return jnp.eye(space.dim, dtype=zero.dtype)
    if isinstance(space, Product) and isinstance(error, Product) and space.dims == error.dims:
        return block_diag(*map(between, space.actions, error.actions, y))
    if isinstance(space, RightTranslation) and error == LeftTranslation(space.group):
        return space.group.Ad(y)
    if isinstance(space, LeftTranslation) and error == RightTranslation(space.group):
        return space.group.Ad(space.group.inverse(y))
    return jax.jacfwd(lambda e: error.difference(y, space.move(e, y)))(zero)


def _linearized(process: Process, error: Action, y: Point, u: Any, dt: Number) -> tuple[Point, Float[Array, "n n"]]:
    """The state after dt, and the derivative of its error with respect to that of y."""
    end = process.step(y, u, dt)
    zero = jnp.zeros(error.dim, jax.tree.leaves(y)[0].dtype)
    return end, jax.jacfwd(lambda e: error.difference(end, process.step(error.move(e, y), u, dt)))(zero)
