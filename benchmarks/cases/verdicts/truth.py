"""Reference motion: MK8 at converged step sizes in double precision, for motions of all precisions."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim.simulation.accuracy.fixed_step_error import differences, joined_state
from lgsim.simulation.equations_of_motion import state_space
from lgsim.simulation.rollout import integrate_motion

PIECE = 256
MOST = 200_000
"""Steps of the reference, at most."""


@eqx.filter_jit
def _piece(model, y, t0, h, control):
    return integrate_motion((model, control, None), y, h, PIECE, None, lgsim.MK8, t0, 1, None)


def exact(model, control, motion, rate) -> tuple[np.ndarray, int]:
    """Errors of a motion, (states, 2 nv), and the number of states where they are known.

    Steps are halved until two references differ by less than 3 % of the motion's distance from them.

    Args:
        control: Controller of the motion.
        motion: The trajectory.
        rate: Its fastest rate times the interval of saved states.
    """
    model, control = jax.tree.map(_double, (model, control))
    size = motion.step_error.size[: 2 * model.nv]
    y = np.concatenate([np.asarray(motion.q, float), np.asarray(motion.v, float)], axis=1)
    space = state_space(model, control)
    difference: Callable = differences(type(space)(space.topology))
    y0 = jnp.asarray(np.concatenate([y[0], np.zeros(space.further)]))
    error, known, before = np.full((len(y), 2 * model.nv), np.nan), 0, None
    parts = int(2 ** np.ceil(np.log2(max(rate / 0.5, 1))))
    least = 1e-13 if motion.q.dtype == np.float64 else 1e-9
    while known < len(y) and (len(y) - 1) * parts <= MOST:
        now = _motion(model, control, y0, motion.time.astype(float), parts)
        if now is not None and before is not None:
            error = np.abs(np.asarray(difference(now[:, : y.shape[1]], y)))
            change = np.abs(np.asarray(difference(now[:, : y.shape[1]], before[:, : y.shape[1]])))
            off, moved = (np.maximum.accumulate((x / size).max(axis=1)) for x in (error, change))
            good = moved <= 0.03 * off + least
            known = len(y) if good.all() else int(np.argmin(good))
        before, parts = now, 2 * parts
    return error, known


def _motion(model, control, y0, time, parts):
    h, total = (time[1] - time[0]) / parts, (len(time) - 1) * parts
    y, kept = y0, [np.asarray(y0)[None]]
    for done in range(0, total, PIECE):
        states = joined_state(_piece(model, y, jnp.asarray(done * h), jnp.asarray(h), control))[1:]
        at = np.arange(done + 1, done + PIECE + 1)
        if not np.isfinite(states[at <= total]).all():
            return None
        kept.append(states[(at % parts == 0) & (at <= total)])
        y = jnp.asarray(states[-1])
    return np.concatenate(kept)


def _double(x):
    return x.astype(jnp.float64) if getattr(x, "dtype", None) == jnp.float32 else x
