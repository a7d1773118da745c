"""Forces of time that act between the stages of the steps, such as short pulses, and their effect on the motion.

No comparison of motions shows a force that none of them samples. Here the field is evaluated at irregular times along
the motion, at the state of the last node, so that only its dependence on time shows.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim._compile.xla import compiled, tiled_vmap
from lgsim.simulation.actuated_control import ActuatedControl
from lgsim.simulation.equations_of_motion import equations_of_motion, split_state, state_space
from lgsim.simulation.fixed_steps import GOLDEN, FixedSteps

BATCH = 8192
"""The number of times in each evaluation, the smallest number of them along a motion, and the largest of steps."""

_EACH = 8
"""The smallest number of times in a step."""

_END = 0.999
"""The fraction of a step at which the forces of its end are evaluated, before the next step begins."""

_ROUNDING = 1e-6
"""Differences below this fraction of the largest value of the field are no jumps."""


class UnseenForces(NamedTuple):
    """The effect of forces that no stage of the steps sees.

    Attributes:
        effect: The missed change of the state's components at all nodes, without feedback, (nodes, dim).
        time: The time of the largest part of it, s; or NaN.
        source: The cause: the control, the wrenches, or both.
    """

    effect: Float[np.ndarray, "nodes dim"]
    time: float
    source: str


def unseen_forces(fixed: FixedSteps, states: Float[np.ndarray, "nodes state"]) -> UnseenForces | None:
    """The effect of forces of time between the stages of a motion; None if no force depends on time.

    A value counts as unseen if it is outside the range of the stages of its step and of both neighboring steps by more
    than the width of that range.

    Args:
        states: The states at the nodes, starting with the initial state.
    """
    model, h = fixed.model, fixed.dt
    control = fixed.control.control if isinstance(fixed.control, ActuatedControl) else fixed.control
    forces = {"the control": control, "the wrenches": fixed.wrenches}
    forces = {name: f for name, f in forces.items() if f is not None and _depends_on_time(f, model, states[0])}
    if not forces:
        return None
    count = (len(states) - 1) * fixed.every
    each = max(_EACH, math.ceil(BATCH / count))
    # the middle for methods without nodes, such as variational ones; a step ends just before the next one begins
    nodes = np.unique([0.0, *getattr(fixed.method.tableau, "c", (0.5,)), 1.0])
    nodes = np.clip(nodes, 0.0, _END)

    def unseen(f: Any, args: Any, steps: Int[np.ndarray, " m"]) -> Float[np.ndarray, "m each dim"]:
        """The values that no stage sees at irregular times of some steps, less those of the stages."""

        def values(steps: np.ndarray, fractions: np.ndarray) -> Float[np.ndarray, "m count dim"]:
            t = (steps[:, None] + fractions) * h
            y = states[np.repeat(steps // fixed.every, fractions.shape[-1])]
            return _in_batches(f, args, t.ravel(), y).reshape(*t.shape, -1)

        near = np.clip(steps[:, None] + [-1, 0, 1], 0, count - 1)
        own, place = np.unique(near, return_inverse=True)
        stages = values(own, nodes)
        low, high = stages.min(axis=1)[place.reshape(near.shape)], stages.max(axis=1)[place.reshape(near.shape)]
        low, high = low.min(axis=1)[:, None], high.max(axis=1)[:, None]
        seen = values(steps, _fractions(steps, each))
        away = seen - np.clip(seen, low, high)
        return np.where(np.abs(away) > high - low + _ROUNDING * np.abs(stages).max(axis=(0, 1)), away, 0.0)

    args = model, tuple(forces.values())
    chunks = np.array_split(np.arange(count), math.ceil(count / BATCH))
    steps = np.concatenate([chunk[unseen(_forces, args, chunk).any(axis=(1, 2))] for chunk in chunks])
    missed = np.zeros((count, state_space(model, fixed.control).dim))
    time = math.nan
    if steps.size:
        rows = fixed.rows if fixed.rows is None or fixed.rows.steady else None
        found = unseen(_fields, ((model, fixed.control, fixed.wrenches), rows), steps)
        missed[steps] = found.sum(axis=1) * (h / each)
        most = np.abs(found).max(axis=(0, 1))
        share = (np.abs(found) / np.where(most > 0, most, 1.0)).max(axis=2)
        step, at = np.unravel_index(np.argmax(share), share.shape)
        time = float(h * (steps[step] + _fractions(steps, each)[step, at])) if found.any() else math.nan
    missed = np.cumsum(missed, axis=0)
    missed[:, : model.nv] += np.cumsum(missed[:, model.nv : 2 * model.nv] * h, axis=0)
    effect = np.concatenate([np.zeros_like(missed[:1]), missed[fixed.every - 1 :: fixed.every]])
    return UnseenForces(np.maximum.accumulate(np.abs(effect)), time, " and ".join(forces))


def _fractions(steps: Int[np.ndarray, " m"], each: int) -> Float[np.ndarray, "m each"]:
    """Fractions of some steps, one in each part of a step, without a period."""
    return (np.arange(each) + GOLDEN * (steps[:, None] * each + np.arange(each)) % 1) / each


def _in_batches(f: Any, args: Any, t: np.ndarray, states: np.ndarray) -> Float[np.ndarray, "n dim"]:
    """A function of times and states in batches of one size."""
    found = []
    for start in range(0, len(t), BATCH):
        at = np.minimum(np.arange(start, start + BATCH), len(t) - 1)
        found.append(np.asarray(f(args, jnp.asarray(t[at], states.dtype), jnp.asarray(states[at]))))
    return np.concatenate(found)[: len(t)].astype(float)


@compiled
def _forces(args: Any, t: Float[Array, " n"], y: Float[Array, "n state"]) -> Float[Array, "n dim"]:
    model, forces = args

    def at(t: Float[Array, ""], y: Float[Array, " state"]) -> Float[Array, " dim"]:
        return jnp.concatenate([jnp.ravel(f(t, *split_state(model, y), model)) for f in forces])

    return tiled_vmap(at)(t, y)


@compiled
def _fields(args: Any, t: Float[Array, " n"], y: Float[Array, "n state"]) -> Float[Array, "n dim"]:
    return tiled_vmap(lambda t, y: equations_of_motion(t, y, args))(t, y)


def _depends_on_time(f: Any, model: Any, y: Float[np.ndarray, " state"]) -> bool:
    """True if a force can depend on the time, from its traced program."""
    q, v = split_state(model, jnp.asarray(y))
    program = jax.make_jaxpr(lambda t, q, v: f(t, q, v, model))(jnp.zeros((), y.dtype), q, v).jaxpr
    reached = {id(program.invars[0])}
    for equation in program.eqns:
        if any(id(x) in reached for x in equation.invars):
            reached |= {id(x) for x in equation.outvars}
    return any(id(x) in reached for x in program.outvars)
