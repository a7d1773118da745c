"""What helps a motion whose steps are too long: the machine's fastest rates, and the step that they ask for."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.integrators.method import ImplicitMethod, Method
from lgsim.integrators.step_error import StepError
from lgsim.multibody.model import Model
from lgsim.simulation.rollout import equations_of_motion, state_space

LOOKS = 4
"""Number of states of the motion whose rates are computed."""

WANTED = 0.01
"""The error that a smaller step should leave, as a share of the motion."""


def advice(
    model: Model, method: Method, dt: float, every: int, drives: Any, states: Float[np.ndarray, "nodes state"],
    error: StepError,
) -> str:  # fmt: skip
    """What to do about a motion that is not resolved, in words.

    Args:
        model: The machine.
        method: The method that was taken.
        dt: Its step, s.
        every: Number of steps from one node to the next.
        drives: (control, wrenches, joint forces at each node as a function of its number), see ``rollout``.
        states: The states at the nodes.
        error: The error of the steps at the nodes.
    """
    control, wrenches, segment_at = drives
    worst = (error.error / error.size).max(axis=1)
    bad = ~(worst[:-1] <= WANTED) & np.isfinite(states[:-1]).all(axis=1)
    looked = np.flatnonzero(bad)
    looked = looked[np.linspace(0, len(looked) - 1, LOOKS).astype(int)] if len(looked) else np.zeros(1, int)
    fastest, joint = 0.0, ""
    for node in {0, *looked.tolist()}:
        y, t = jnp.asarray(states[node]), jnp.asarray(node * every * dt, model.dtype)
        rates, vectors = np.linalg.eig(np.asarray(_jacobian(model, control, wrenches, segment_at(node), t, y), float))
        if np.abs(rates).max() > fastest:
            fastest, i = float(np.abs(rates).max()), int(np.argmax(np.abs(rates)))
            part = np.abs(vectors[model.nv : 2 * model.nv, i])
            at = int(np.argmax(part))
            joint = next(name for name, part in model.v_slices.items() if part.start <= at < part.stop)
    if fastest * dt > 1:
        other = "" if isinstance(method, ImplicitMethod) else ", or an implicit method"
        return f"rates up to {fastest:.2g} 1/s, at the joint {joint!r}, ask for a dt of {_rounded(0.5 / fastest):g} s{other}"
    finite = worst[np.isfinite(worst)]
    off = float(finite.max(initial=1.0))
    order = min(error.order, method.order) if error.order > 1 else 1.0
    smaller = min(0.5, (WANTED / max(off, WANTED)) ** (1 / order)) if np.isfinite(worst).all() else 0.1
    return f"take a dt of {_rounded(dt * smaller):g} s"


@eqx.filter_jit
def _jacobian(
    model: Model, control: Any, wrenches: Any, segment: Any, t: Float[Array, ""], y: Float[Array, " state"]
) -> Array:
    """The derivative of the field of a motion along the tangent at a state."""
    space = state_space(model)

    def field(x: Array) -> Array:
        return equations_of_motion(t, space.move(x, y), ((model, control, wrenches), segment))

    return jax.jacfwd(field)(jnp.zeros(space.dim, y.dtype))


def _rounded(step: float) -> float:
    """The next number of one digit below."""
    digit = 10.0 ** np.floor(np.log10(step))
    return float(np.floor(step / digit * (1 + 1e-9)) * digit)
