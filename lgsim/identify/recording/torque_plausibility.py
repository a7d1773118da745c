"""Check of measured torques against the model's inverse dynamics: order of the columns, signs, delays."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.passive_forces import passive_forces
from lgsim.identify.recording.filters import Smoother
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding
from lgsim.multibody.model import Model

ALIKE, UNLIKE = 0.9, 0.5  # correlation coefficients
BETTER = 4.0  # ratio of the unexplained variation
MAX_DELAY = 0.1  # s: delays up to this are searched first
FAR_DELAY = 1.0  # s: longer ones up to this, if the columns do not agree without a delay
ANSWER = "not changed: fix the map"

_DYNAMIC = 0.3  # fraction of a torque's variation that the model must explain to determine its sign
_SIGNIFICANT = 25.0  # variances
_WORTH = 0.05  # relative to the unexplained variation, for a delay
_REVERSES = 0.4  # relative to a joint's usual speed: slower is near a reversal
_AGREE = 0.4  # relative to a delay: tolerance of the delays of single joints


class SmoothMotion(NamedTuple):
    """A segment of a recording with its smoothed motion.

    Attributes:
        recording: The segment (n samples).
        q: Smooth configurations (n, nq).
        v: Their velocities (n, nv).
        a: The derivatives of v (n, nv).
        smoother: The smoothing method.
    """

    recording: Recording
    q: Float[np.ndarray, "n nq"]
    v: Float[np.ndarray, "n nv"]
    a: Float[np.ndarray, "n nv"]
    smoother: Smoother
    names: list[str]


def correlations(x: Float[np.ndarray, "n k"], y: Float[np.ndarray, "n l"]) -> Float[np.ndarray, "k l"]:
    """Correlation coefficients of all pairs of columns; 0 for constant ones."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    size = np.linalg.norm(x, axis=0)[:, None] * np.linalg.norm(y, axis=0)
    return np.divide(x.T @ y, size, out=np.zeros_like(size), where=size > 0)


@jax.jit
def _forces(
    model: Model, q: Float[Array, "n nq"], v: Float[Array, "n nv"], a: Float[Array, "n nv"]
) -> Float[Array, "n nv"]:
    """Joint torques of the drives, without damping and friction."""
    return inverse_dynamics(model, q, v, a) - passive_forces(model, q, jnp.zeros_like(v))


def _predict(
    model: Model, q: Float[np.ndarray, "n nq"], v: Float[np.ndarray, "n nv"], a: Float[np.ndarray, "n nv"]
) -> Float[np.ndarray, "n nv"]:
    """The drive torques of the model, with the batch padded to a power of two."""
    length = 2 ** int(np.ceil(np.log2(len(q))))
    padded = [jnp.asarray(np.pad(x, ((0, length - len(x)), (0, 0)), mode="edge"), model.dtype) for x in (q, v, a)]
    return np.asarray(_forces(model, *padded))[: len(q)]


def check_torques(motion: SmoothMotion) -> list[Finding]:
    """Findings about torques that the model does not explain with any friction; all of them are unresolved."""
    raw = motion.recording
    if raw.model.topology.contacts or raw.model.topology.loops:
        return []  # torques due to contacts and closed loops are unknown
    known = np.flatnonzero(raw.valid("tau").any(axis=0))
    predicted = _predict(raw.model, motion.q, motion.v, motion.a)
    now, mistaken = _check_positions(motion, known, predicted)
    if mistaken:
        return mistaken
    P, share = _explained(raw, motion.v, predicted, known)
    found: list[Finding] = []
    for row, i in enumerate(known):
        where, own = f"tau {motion.names[i]}", P[row, i]
        others = np.where(np.arange(P.shape[1]) != i, P[row], 0)
        j = int(np.argmax(others))
        if others[j] > ALIKE and 1 - others[j] ** 2 < (1 - max(own, 0) ** 2) / BETTER:
            seen = f"correlates with the model's torque of {motion.names[j]} ({P[row, j]:.2f}), not with its own"
            seen += f" ({own:.2f})"
            found.append(Finding("shuffled columns", where, len(raw), seen, ANSWER, True))
        elif own < -ALIKE and share[row] > _DYNAMIC:
            seen = f"the model's torque has the opposite sign (correlation {own:.2f})"
            found.append(Finding("wrong sign", where, len(raw), seen, ANSWER, True))
        elif abs(own) < ALIKE and _driven_by_friction(motion, int(i), predicted[:, i]):
            seen = "friction would have to drive the joint"
            found.append(Finding("wrong sign", where, len(raw), seen, ANSWER, True))
    if found:
        return found
    clear = [int(i) for row, i in enumerate(known) if P[row, i] > ALIKE and share[row] > _DYNAMIC]
    delayed = _check_delay(motion, clear or known.tolist(), predicted, MAX_DELAY if clear else FAR_DELAY)
    if not delayed and now > UNLIKE:
        seen = f"{100 * now:.2g} % of the torque variation is unexplained with any friction"
        done = "not changed: check the order of columns, units, and the model"
        return [Finding("motion does not fit the model", "tau", len(raw), seen, done, True)]
    return delayed


def _friction_regressor(model: Model, i: int, v: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    """Regressors of offset and friction in a torque: 1, v, sign v, and tanh(v / friction speed)."""
    speed = float(model.friction_speed[i])
    return np.stack([np.ones_like(v), v, np.sign(v), *([np.tanh(v / speed)] if speed > 0 else [])], axis=1)


def _residual(design: Float[np.ndarray, "n k"], x: Float[np.ndarray, "n ..."]) -> Float[np.ndarray, "n ..."]:
    """The residual of the least-squares fit of x by the columns of a design matrix."""
    return x - design @ np.linalg.lstsq(design, x, rcond=None)[0]


def _driven_by_friction(motion: SmoothMotion, i: int, predicted: Float[np.ndarray, " n"]) -> bool:
    """True if friction explains a torque, but only with the wrong sign."""
    raw = motion.recording
    valid = raw.valid("tau")[:, i]
    v = motion.v[valid, i]
    others = np.column_stack([np.ones_like(v), motion.a[valid, i], predicted[valid]])
    left = _residual(others, raw.channels["tau"][valid, i])
    friction = left - _residual(_residual(others, _friction_regressor(raw.model, i, v)[:, 1:]), left)
    return bool(np.sum(friction**2) > ALIKE**2 * np.sum(left**2) and friction @ v < 0)


def _explained(
    raw: Recording, v: Float[np.ndarray, "n nv"], predicted: Float[np.ndarray, "n nv"], known: Int[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, "k nv"], Float[np.ndarray, " k"]]:
    """(partial correlations of measured torques with all predicted ones, the fraction that is not friction)."""
    P, share = np.zeros((len(known), predicted.shape[1])), np.zeros(len(known))
    for row, i in enumerate(known):
        valid = raw.valid("tau")[:, i]
        tau = raw.channels["tau"][valid, i]
        for j in range(predicted.shape[1]):
            friction = _friction_regressor(raw.model, j, v[valid, j])
            left, model = _residual(friction, tau), _residual(friction, predicted[valid, j])
            P[row, j] = correlations(left[:, None], model[:, None])[0, 0]
            if j == i and np.std(tau) > 0:
                share[row] = np.std(left) / np.std(tau)
    return P, share


def _check_positions(
    motion: SmoothMotion, known: Int[np.ndarray, " k"], predicted: Float[np.ndarray, "n nv"]
) -> tuple[float, list[Finding]]:
    """The unexplained fraction, and the order or sign of positions that would explain the torques."""
    raw, nv = motion.recording, motion.recording.model.nv
    now = _unexplained(raw, motion.v, predicted, known)
    if now < 1 - ALIKE or raw.model.nq != nv:
        return now, []
    own = np.arange(nv)
    choices: list[tuple[str, tuple[int, ...], np.ndarray, np.ndarray]] = [
        ("wrong sign", (i,), own, np.where(own == i, -1.0, 1.0)) for i in range(nv)
    ]
    for i in range(nv):
        for j in range(i):
            swapped = own.copy()
            swapped[[i, j]] = [j, i]
            choices.append(("shuffled columns", (j, i), swapped, np.ones(nv)))
    scores = []
    for _, _, order, signs in choices:
        q, v, a = (signs * x[:, order] for x in (motion.q, motion.v, motion.a))
        scores.append(_unexplained(raw, v, _predict(raw.model, q, v, a), known))
    best = int(np.argmin(scores))
    kind, which, *_ = choices[best]
    if scores[best] >= min(now / BETTER, 1 - ALIKE):
        return now, []
    what = "with the opposite sign" if kind == "wrong sign" else "exchanged"
    seen = f"{what}, the torques fit the model: {100 * scores[best]:.2g} % unexplained, now {100 * now:.2g} %"
    where = f"q {' and '.join(motion.names[i] for i in which)}"
    return now, [Finding(kind, where, len(raw), seen, ANSWER, True)]


def _unexplained(
    raw: Recording, v: Float[np.ndarray, "n nv"], predicted: Float[np.ndarray, "n nv"], known: Int[np.ndarray, " k"]
) -> float:
    """The fraction of the torque variation that neither the model, times any positive factor, nor friction explains."""
    left = total = 0.0
    for i in known:
        valid = raw.valid("tau")[:, i]
        tau = raw.channels["tau"][valid, i]
        design = np.column_stack([_friction_regressor(raw.model, int(i), v[valid, i]), predicted[valid, i]])
        positive = np.linalg.lstsq(design, tau, rcond=None)[0][-1] > 0
        left += float(np.sum(_residual(design if positive else design[:, :-1], tau) ** 2))
        total += float(np.sum((tau - tau.mean()) ** 2))
    return left / total if total > 0 else 0.0


def _check_delay(
    motion: SmoothMotion, joints: list[int], predicted: Float[np.ndarray, "n nv"], longest: float
) -> list[Finding]:
    """The delay with which the model, any friction and any armature explain all torques best, if the joints agree on
    it.

    Args:
        longest: The longest delay of the search, s; longer ones are searched if it is the best.
    """
    dt, n = motion.recording.dt, len(motion.v)
    most, stride = max(min(int(longest / dt), n // 8), 1), max(int(MAX_DELAY / dt) // 10, 1)
    lags = np.arange(-(most // stride) * stride, most + 1, stride)
    coarse = [_squares_by_lag(motion, i, predicted, lags, most) for i in joints]
    if not joints or min(left.min() for left in coarse) <= 0:  # the residual is rounding: no noise to compare with
        return []
    best = int(np.argmin(np.sum([left / left.min() for left in coarse], axis=0)))
    outside = best in (0, len(lags) - 1)
    if outside and longest < FAR_DELAY:
        return _check_delay(motion, joints, predicted, FAR_DELAY)
    middle = int(lags[best])
    fine = np.arange(max(middle - 2 * stride, -most), min(middle + 2 * stride, most) + 1)
    left = np.array([_squares_by_lag(motion, i, predicted, fine, most) for i in joints])
    if left.min() <= 0:
        return []
    left /= left.min(axis=1, keepdims=True)  # in units of the noise
    delay = dt * parabola_minimum(fine, left.sum(axis=0))
    now = sum(float(np.interp(0, lags, x) / x.min()) for x in coarse)
    own = [dt * parabola_minimum(lags, x) for x in coarse]
    agree = np.mean([abs(d - delay) < _AGREE * abs(delay) + dt for d in own])
    gain = now - len(joints)
    if abs(delay) <= dt or gain < max(_WORTH * len(joints), _SIGNIFICANT / n) or agree <= 1 / 2:
        return []
    seen = (
        f"{'at least ' if outside else ''}{1e3 * delay:.4g} ms late relative to the inverse dynamics, joint by joint "
    )
    seen += ", ".join(f"{1e3 * d:.3g}" for d in own) + " ms"
    return [Finding("delay", "tau", 0, seen, "not changed: shift_signal compensates a delay", True)]


def _squares_by_lag(
    motion: SmoothMotion, i: int, predicted: Float[np.ndarray, "n nv"], lags: Int[np.ndarray, " l"], most: int
) -> Float[np.ndarray, " l"]:
    """The residual sum of squares of a torque for integer lags, at most ``most``."""
    raw = motion.recording
    tau, inner = raw.channels["tau"][:, i], slice(most, len(motion.v) - most)
    basis = np.column_stack([_friction_regressor(raw.model, i, motion.v[:, i]), motion.a[:, i], predicted[:, i]])[inner]
    # the sign change of dry friction is gradual on both sides of a reversal: not a delay
    valid = raw.valid("tau")[:, i] & (np.abs(motion.v[:, i]) > _REVERSES * np.std(motion.v[:, i]))
    basis, places = basis[valid[inner]], np.arange(len(tau))[inner][valid[inner]]
    frame = np.linalg.qr(basis / np.linalg.norm(basis, axis=0))[0]
    late = tau[places[:, None] + lags]
    return np.sum(late**2, axis=0) - np.sum((frame.T @ late) ** 2, axis=0)


def parabola_minimum(lags: Int[np.ndarray, " l"], left: Float[np.ndarray, " l"]) -> float:
    """The lag at the minimum of the parabola through the lowest value and its neighbors."""
    at = int(np.clip(np.argmin(left), 1, len(lags) - 2))
    before, least, after = left[at - 1 : at + 2]
    bend = before - 2 * least + after
    step = (before - after) / (2 * bend) if bend > 0 else 0.0
    return float(lags[at] + (lags[1] - lags[0]) * np.clip(step, -1, 1))
