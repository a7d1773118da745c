"""Closed configurations of models with kinematic loops: the nearest one, and all assemblies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import change_along, is_zero_tangent
from lgsim.dynamics import validation
from lgsim.dynamics.loops import loop_gaps as gaps
from lgsim.dynamics.loops import loop_units
from lgsim.dynamics.loops.nearest_search import CLOSED, metric_at, nearest_closed, slope_at
from lgsim.dynamics.loops.nearest_step import (
    AcrossStep,
    across_step,
    loop_pushes,
    machine_length,
    momentum,
    nearest_step,
    solved,
)
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody import configuration
from lgsim.multibody.model import Model, check_model
from lgsim.support import check
from lgsim.support.check import is_traced
from lgsim.support.verdict import Outcome, Verdict

_STARTS = 16
"""Random starts of ``loop_branches`` per requested assembly."""
ALIKE = 0.25
"""Exponent of the rounding unit: configurations that differ by less, in rad, are the same."""


class CLOSE_RESULTS(eqx.Enumeration):
    """Result codes of a search for a closed configuration; each text names the remedy."""

    successful = ""
    not_closed = (
        "No configuration near the start closes the loops; q is where the gaps are smallest. Change the lengths or "
        "frames of the loop that stays open, hold fewer joints, or start elsewhere."
    )
    max_iterations = (
        "The loops are closed, but at the iteration limit the distance from the start was still decreasing. "
        "Start nearer, or from this configuration."
    )


class Closure(NamedTuple):
    """Result of ``close_loops``; arrays have the leading axes of its arguments.

    Attributes:
        q: Configuration (*batch, nq).
        v: Velocity (*batch, nv) tangent to the closed set; None if none was given.
        residual: Loop residuals (*batch, rows), m and rad, zero for closed loops; without derivatives.
        gap: Gap of each loop (*batch, loops, 2): distance, m, and angle, rad; without derivatives.
        iterations: Number of iterations (*batch).
        result: ``CLOSE_RESULTS.successful``, or the code of a failure (*batch).
    """

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"] | None
    residual: Float[Array, "*batch rows"]
    gap: Float[Array, "*batch loops 2"]
    iterations: Int[Array, " *batch"]
    result: CLOSE_RESULTS

    def verdict(self, model: Model, index: int | tuple[int, ...] = ()) -> Verdict:
        """The result of one search, with the loop that has the largest gap; outside of ``jit``.

        Args:
            index: Index of a configuration in a batch.

        Raises:
            ValueError: there are several configurations and no index is given.
        """
        codes, gap = CLOSE_RESULTS, np.asarray(self.gap)[index]
        if gap.ndim != 2:
            raise ValueError(f"index: expected one of the configurations of shape {self.gap.shape[:-2]}, got {index}")
        if bool(np.asarray(self.result == codes.max_iterations)[index]):
            return Verdict(Outcome.STOPPED, f"stopped: {codes[codes.max_iterations]}")
        length = float(machine_length(model, jnp.asarray(self.q)[index]))
        sizes = gaps.sizes(gap, np.asarray(length))
        loop = int(np.argmax(sizes))
        name, size = model.loop_names[loop], gaps.described(gap[loop], length)
        if bool(np.asarray(self.result == codes.successful)[index]):
            said = "converged: all loops are closed"
            rounding = 2 * length * float(np.finfo(gap.dtype).eps ** CLOSED)
            if sizes[loop] > rounding:
                said += f", {name!r} to {size}: its rows almost depend on each other, the gap cannot get smaller"
            return Verdict(Outcome.CONVERGED, said)
        said = f"loop {name!r} stays open by {size}"
        return Verdict(Outcome.FAILED, f"failed: {said}. {codes[codes.not_closed]}")


def close_loops(
    model: Model,
    q: Float[Array, "*#batch nq"],
    hold: Sequence[str] = (),
    v: Float[Array, "*#batch nv"] | None = None,
) -> Closure:
    """Solve closed kinematic loops: the closed configuration nearest to q, in the metric of the mass matrix M(q).

    It is a local minimum of ``1/2 |difference(q, q*)|^2``. The search restarts from nearby points at singular and
    folded configurations. Joint angles are within half a turn of those of q, where full turns make no difference. Joint
    limits are ignored.

    First derivatives of q* and v* with respect to all model parameters, q (held joints included) and v are those of the
    implicit function theorem, in both modes; the search is not differentiated. They are defined for changes that keep
    the loops closable. Where loop rows depend on each other, as in a planar linkage closed by a hinge, any other change
    is replaced by the nearest one that does.

    Args:
        q: Start of the search.
        hold: Names of joints whose positions and velocities are kept.
        v: Velocity, rad/s or m/s. The result has the nearest velocity tangent to the closed set, in the metric M(q*).

    Returns:
        The configuration and the velocity, with the remaining gaps and a result code.

    Raises:
        ValueError: the model has no loops, a joint does not exist, or an array has a wrong length.
        TypeError: dtypes differ, or are not float32 or float64.
    """
    held = _held(model, "close_loops", hold)
    velocity = {} if v is None else {"v": (v, "v")}
    return validation.call(partial(_closed, held), model, q=(q, "q"), **velocity)


def loop_branches(model: Model, q: Any, count: int, key: Array, hold: Sequence[str] = ()) -> Closure:
    """Distinct closed configurations with the same held joints: the assembly modes of a closed chain.

    Where held joints do not determine the others, these are local minima of the distance from q. They are found from
    random starts, so that a rare one may be missing.

    Args:
        q: Positions of the held joints, and origin of the distances, (nq,).
        count: The largest number of assemblies.
        key: Random key of the starts.
        hold: Names of joints that keep their positions in q.

    Returns:
        At most ``count`` results as from ``close_loops``, with a leading axis, the nearest to q first; none if the
        loops cannot be closed. Full turns do not count as another assembly. Pass each to ``close_loops`` where
        derivatives are needed.

    Raises:
        ValueError: as ``close_loops``; or count is not positive, or an argument is traced by jit.
        TypeError: as ``close_loops``.
    """
    held = _held(model, "loop_branches", hold)
    count = check.count("count", count)
    if is_traced(model, q, key):
        raise ValueError(
            "loop_branches: expected concrete values, got tracers: the number of assemblies depends on them; call it "
            "outside of jit and vmap, and close_loops from its results inside"
        )
    q = check.floating("q", q, model.nq)
    if q.ndim != 1:
        raise ValueError(f"q: expected shape ({model.nq},) of one configuration, got {q.shape}")
    found, distances = validation.call(partial(_assemblies, held, count, key), model, q=(q, "q"))
    chosen = _distinct(model, found, np.asarray(distances), count)
    return jax.tree.map(lambda x: x[chosen], found)


def _held(model: Model, name: str, hold: Sequence[str]) -> tuple[int, ...]:
    """Indices in v of joints by name."""
    check_model(model)
    tree = model.topology
    if not tree.loops:
        raise ValueError(f"{name}: expected a model with loops, got one without; ModelBuilder.add_loop closes one")
    if isinstance(hold, str):
        raise ValueError(f"hold: expected a sequence of joint names, got the string {hold!r}; write [{hold!r}]")
    places: list[int] = []
    for joint in hold:
        if joint not in tree.joint_names:
            raise check.unknown_name("hold: expected names of joints", joint, tree.joint_names)
        other = tree.mimics[tree.joint_names.index(joint)]
        if other is not None:
            raise ValueError(
                f"hold: the joint {joint!r} mimics {tree.joint_names[other]!r}; hold {tree.joint_names[other]!r}"
            )
        part = tree.v_slice(tree.joint_names.index(joint))
        places += range(part.start, part.stop)
    return tuple(sorted(set(places)))


def _free(model: Model, held: tuple[int, ...]) -> Float[Array, " nv"]:
    free = np.ones(model.nv)
    free[list(held)] = 0
    return jnp.asarray(free, model.dtype)


def _search(model: Model, q: Array, start: Array, held: tuple[int, ...]) -> tuple[Any, Array]:
    """(result of the search, the metric), without derivatives."""
    model, q, start = jax.tree.map(jax.lax.stop_gradient, (model, q, start))
    M = mass_matrix(model, q)
    return nearest_closed(model, q, start, M, _free(model, held), machine_length(model, q)), M


def _closed(held: tuple[int, ...], model: Model, q: Array, v: Array | None = None) -> Closure:
    """``close_loops`` of one state."""
    found, _ = _search(model, q, q, held)
    nearest = _implicit(held, model, q, found.q)
    along = None if v is None else _along(held, model, nearest, v)
    return _closure(model, nearest, along, found)


def _closure(model: Model, q: Array, v: Array | None, found: Any) -> Closure:
    codes = CLOSE_RESULTS
    zero_rates = jnp.zeros(model.nv, q.dtype)
    residual, gap, _, _ = gaps.loop_gaps(*jax.tree.map(jax.lax.stop_gradient, (model, q, zero_rates)))
    result = codes.where(found.closed, codes.max_iterations, codes.not_closed)
    result = codes.where(found.nearest, codes.successful, result)
    return Closure(q, v, residual, gap, found.iterations, result)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _implicit(held: tuple[int, ...], model: Model, q0: Array, q: Array) -> Array:
    """The closed configuration q nearest to q0, with derivatives with respect to the model and q0."""
    del held, model, q0
    return q


def _implicit_rule(held: tuple[int, ...], primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    model, q0, q = primals
    d_model, dq0, _ = tangents
    tree, free, zero = model.topology, _free(model, held), jnp.zeros((), q.dtype)
    length = machine_length(model, q0)
    step = nearest_step(model, q, metric_at(tree, q0, q, mass_matrix(model, q0), free), length, zero, zero)

    # g + J' lambda = 0 and c = 0, as functions of the model and q0 at fixed q
    def equations(model: Model, q0: Array) -> tuple[Array, Array]:
        push, _, c = loop_pushes(model, q, length, step.multipliers, jnp.zeros(tree.nv, q.dtype))
        return slope_at(model, q0, q) + push, c

    forced = jnp.zeros(tree.nv, q.dtype)
    if held and not is_zero_tangent(dq0):
        forced = configuration.velocity(tree, q0, dq0) * (1 - free)
    pull, misfit = change_along(equations, (model, q0), (d_model, dq0))
    # the step that restores c = 0, then the one along the closed set that restores stationarity
    misfit = misfit + step.J @ forced
    back = forced - step.XP @ misfit
    return q, configuration.rate(tree, q, back - step.inverse @ (pull + step.bend @ back))


_implicit.defjvp(_implicit_rule, symbolic_zeros=True)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _along(held: tuple[int, ...], model: Model, q: Array, v: Array) -> Array:
    """The nearest velocity tangent to the closed set, ``v - M^-1 J' (J M^-1 J')^+ J v``."""
    across = _across(held, model, q)
    return v - across.X @ (across.P @ (across.J @ v))


def _across(held: tuple[int, ...], model: Model, q: Array) -> AcrossStep:
    length, undamped = machine_length(model, q), jnp.zeros((), q.dtype)
    return across_step(model, q, mass_matrix(model, q), _free(model, held), length, undamped)


def _along_rule(held: tuple[int, ...], primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    # M (v* - v) + J' m = 0 in the moving joints, J v* = 0
    model, q, v = primals
    d_model, dq, dv = tangents
    length, across = machine_length(model, q), _across(held, model, q)
    multipliers = across.P @ (across.J @ v)
    found = v - across.X @ multipliers

    def equations(model: Model, q: Array) -> tuple[Array, Array]:
        push, rate, _ = loop_pushes(model, q, length, multipliers, found)
        return momentum(model, q, found - v) + push, rate

    dv = jnp.zeros_like(v) if is_zero_tangent(dv) else dv
    rate = across.J @ dv
    change = change_along(equations, (model, q), (d_model, dq))
    if change is None:
        return found, dv - across.X @ (across.P @ rate)
    turn = solved(across.M, (change[0] * _free(model, held))[:, None])[:, 0]
    rate = rate + change[1] - across.X.T @ (change[0] * _free(model, held))
    return found, dv - turn - across.X @ (across.P @ rate)


_along.defjvp(_along_rule, symbolic_zeros=True)


def _assemblies(held: tuple[int, ...], count: int, key: Array, model: Model, q: Array) -> tuple[Closure, Array]:
    """(results from q and random starts, their distances from q)."""
    tree, free = model.topology, _free(model, held)
    across, along = jax.random.split(key)
    length = machine_length(model, q)
    starts = _STARTS * count
    drawn = configuration.random(tree, *_wide(model), across, (starts,))
    x = configuration.difference(tree, q[None], drawn)
    slides = jax.random.uniform(along, x.shape, x.dtype, -1, 1) * length
    x = jnp.where(loop_units.turning(tree)[None], x, slides) * free[None]
    begun = jnp.concatenate([q[None], configuration.retract(tree, q[None], x)])

    def one(start: Array) -> tuple[Closure, Array]:
        found, M = _search(model, q, start, held)
        x = configuration.difference(tree, q, found.q)
        return _closure(model, found.q, None, found), jnp.sqrt(x @ M @ x)

    return jax.jit(jax.vmap(one))(begun)


def _wide(model: Model) -> tuple[Array, Array]:
    """Infinite limits."""
    none = jnp.full(model.nv, jnp.inf, model.dtype)
    return -none, none


def _distinct(
    model: Model, found: Closure, distances: Float[np.ndarray, " starts"], count: int
) -> Int[np.ndarray, " found"]:
    """Indices of distinct closed configurations, the nearest first."""
    near = float(np.finfo(distances.dtype).eps ** ALIKE)
    closed = np.asarray(found.result != CLOSE_RESULTS.not_closed)
    sizes = np.where(loop_units.turning(model.topology), 1, 1 / float(machine_length(model, found.q[0])))
    chosen: list[int] = []
    for i in np.argsort(np.where(closed, distances, np.inf), kind="stable"):
        if not closed[i] or len(chosen) == count:
            break
        others = found.q[np.array(chosen, int)]
        apart = np.abs(np.asarray(model.difference(others, found.q[i][None]))) * sizes[None]
        if not np.any(np.max(apart, axis=1) <= near):
            chosen.append(int(i))
    return np.array(chosen, int)
