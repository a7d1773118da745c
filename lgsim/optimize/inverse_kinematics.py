"""Configurations that put frames of a machine where they should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.dynamics.kinematics import frame_index
from lgsim.multibody.model import Model
from lgsim.optimize.constraints import ordered
from lgsim.optimize.reaching import Reaching, Search, Setting, numbers_of, tried
from lgsim.spatial import check


class REACH(eqx.Enumeration):
    """How a search for a configuration ended; the text says what to do."""

    successful = ""
    out_of_reach = (
        "No configuration near the guesses reaches the targets within the limits: q is where the error is least. Move "
        "the target, give other or more guesses, or limits=False to see whether the limits are the reason."
    )
    max_iterations = (
        "The search used all its iterations while the error still fell. Give more iterations or a better guess."
    )


class Reach(NamedTuple):
    """What ``inverse_kinematics`` returns; arrays have the leading axes of the targets.

    Attributes:
        q: Configuration (nq,).
        error: Length of each target's residual (targets,): m, and of poses with rad.
        gradient: Largest entry of the gradient of half the weighted squares by the joints that the limits leave free.
        iterations: How many were done.
        result: ``REACH.successful`` or what went wrong.
    """

    q: Array
    error: Array
    gradient: Array
    iterations: Array
    result: REACH


def inverse_kinematics(
    model: Model,
    frame: str | int | Sequence[str | int],
    target: Any,
    q0: Float[Array, " nq"] | Float[Array, "guesses nq"] | None = None,
    *,
    weight: Any = 1.0,
    posture: Any = None,
    posture_weight: float = 0.0,
    limits: bool = True,
    damping: float = 1e-3,
    max_iterations: int = 100,
    tolerance: float | None = None,
) -> Reach:
    """A configuration at which frames have given poses or positions, by damped least squares on the group:
    ``min 1/2 sum_i |W^1/2 log(target_i^-1 T_i(q))|^2 + w/2 |difference(posture, q)|^2`` with ``lower <= q <= upper``.

    Each iteration is the minimum, within the limits, of the model ``J^T J + mu 1``; mu falls with the error.

    The first derivatives of q by the model's numbers, the targets and the posture are those of the implicit function
    theorem at the solution, in both modes; the search is not differentiated, and q0 has none. Joints at a limit stay
    there. Where the solution is not isolated (a redundant arm without a posture) it is that of least norm, and where
    the minimum is degenerate (a stretched arm) the directions that it leaves open do not move. Higher derivatives are
    not those of the solution.

    Args:
        model: The machine.
        frame: Name of the frame, or its place in ``model.frame_names``; or several.
        target: A pose (*batch, 4, 4) or a position (*batch, 3) in the world, m; for several frames a list of them.
        q0: Where to start, by default neutral put within the limits; several rows are tried until one meets
            the targets, else the best is taken.
        weight: Of the residuals' squares: one number, (6,) or (3,); for several frames a list, one for each.
        posture: Configuration (nq,) towards which freedom that is left is used; by default q0's first row.
        posture_weight: Of its squares; the target is then met up to the compromise.
        limits: Whether the model's position limits hold.
        damping: The least mu, relative to the error.
        max_iterations: At most.
        tolerance: Of each target's error; by default 1e-9 in float64 and 1e-4 in float32. With a posture the error is
            what the compromise leaves, and the gradient is compared.

    Returns:
        Reach(q, error, gradient, iterations, result).

    Raises:
        ValueError: there is no such frame, a shape is wrong, or the limits are infeasible.
        TypeError: dtypes differ from the model's.

    Source: Fan and Yuan 2005, On the quadratic convergence of the Levenberg-Marquardt method without nonsingularity
    assumption, Computing 74, for the damping by the error.
    """
    several = not isinstance(frame, str | int)
    names = tuple(frame) if several else (frame,)
    given, weights = (list(x) if several else [x] for x in (target, _each(weight, len(names), several)))
    if not names or len(given) != len(names) or len(weights) != len(names):
        raise ValueError(
            f"target: expected one for each of {len(names)} frames, at least one, got {len(given)} targets and "
            f"{len(weights)} weights"
        )
    frames = tuple(frame_index(model.topology, name) for name in names)
    targets = [_target(model, f"target of {name!r}", x) for name, x in zip(names, given, strict=True)]
    guesses = _guesses(model, q0, limits)
    home = guesses[0] if posture is None else check.floating("posture", posture, model.nq)
    weights = [jnp.asarray(w, model.dtype) for w in weights]
    setting = Setting(max_iterations, jnp.asarray(damping, model.dtype), _tolerance(tolerance, model.dtype), limits)
    task = Reaching(model, weights, home, jnp.asarray(posture_weight, model.dtype), frames)
    batch = jnp.broadcast_shapes(*(x.shape[:k] for x, k in targets))
    flat = [jnp.broadcast_to(x, (*batch, *x.shape[k:])).reshape(-1, *x.shape[k:]) for x, k in targets]
    out = _search(task, flat, guesses, setting)
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), out)


@eqx.filter_jit
def _search(task: Reaching, targets: list[Array], guesses: Array, setting: Setting) -> Reach:
    best = tried(*_stopped((task, targets, guesses, setting)))

    def found(targets: list[Array], s: Search) -> Reach:
        q = _implicit(task, targets, s.q, ~s.held)
        code = REACH.where(s.stop, REACH.out_of_reach, REACH.max_iterations)
        return Reach(q, s.errors, s.gradient, s.i, REACH.where(s.met, REACH.successful, code))

    return jax.vmap(found)(targets, best)


def _implicit(task: Reaching, targets: list[Array], q: Array, free: Array) -> Array:
    """q, with the derivatives of the solution: those of one Newton step whose matrix is frozen."""
    model, q = task.model, jax.lax.stop_gradient(q)

    def gradient(task: Reaching, targets: list[Array], dv: Array) -> Array:
        def cost(dv: Array) -> Array:
            moved = model.retract(q, dv)
            r = task.residual(task.errors(targets, moved), moved)
            return r @ r / 2

        return jax.grad(cost)(dv)

    zero = jnp.zeros(model.nv, q.dtype)
    still, aims = _stopped((task, targets))
    H = jax.jacfwd(lambda dv: gradient(still, aims, dv))(zero)
    H = jnp.where(free[:, None] & free[None, :], (H + H.T) / 2, 0)
    inverse = jax.lax.stop_gradient(jnp.linalg.pinv(H, rtol=_digits(0.4, q.dtype), hermitian=True))
    dv = -inverse @ gradient(task, targets, zero)
    return model.retract(q, dv - jax.lax.stop_gradient(dv))


def _stopped(tree: Any) -> Any:
    return jax.tree.map(jax.lax.stop_gradient, tree)


def _target(model: Model, name: str, value: Any) -> tuple[Array, int]:
    """(a target, how many of its leading axes are batches)."""
    x = check.floating(name, value)
    if x.dtype != model.dtype:
        raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {x.dtype}")
    if x.shape[-2:] == (4, 4):
        return x, x.ndim - 2
    if x.shape[-1:] == (3,):
        return x, x.ndim - 1
    raise ValueError(f"{name}: expected a pose (..., 4, 4) or a position (..., 3), got shape {x.shape}")


def _each(weight: Any, count: int, several: bool) -> list[Any]:
    if not several:
        return [weight]
    return list(weight) if isinstance(weight, list | tuple) else [weight] * count


def _guesses(model: Model, q0: Any, limits: bool) -> Array:
    """The starts (guesses, nq), within the limits."""
    guesses = check.floating("q0", model.neutral() if q0 is None else q0, model.nq)
    if guesses.ndim > 2:
        raise ValueError(f"q0: expected shape ({model.nq},) or (guesses, {model.nq}), got {guesses.shape}")
    guesses = guesses.reshape(-1, model.nq)
    if not limits:
        return guesses
    at, speeds = numbers_of(model)
    low, high = model.lower[speeds], model.upper[speeds]
    ordered("limits", low, high)
    low, high = (jnp.broadcast_to(x, (len(guesses), len(at))) for x in (low, high))
    return guesses.at[:, at].set(jnp.clip(guesses[:, at], low, high))


def _tolerance(given: float | None, dtype: Any) -> Array:
    return jnp.asarray(_digits(0.6, dtype) if given is None else given, dtype)


def _digits(share: float, dtype: Any) -> float:
    """10 to the minus that share of the digits of a dtype."""
    return 10.0 ** (-share * np.finfo(dtype).precision)
