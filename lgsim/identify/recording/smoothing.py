"""Smoothing and resampling of recorded motion on its group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.recording.filters import DEGREE, Smoother, Spline
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding
from lgsim.multibody.configuration import kinds
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.topology import Topology

SHORTEST = 4 * (DEGREE + 1)
"""Samples that a piece must have to be smoothed."""

_NEAR = 0.1  # rad (rms): the motion is near enough to the curve in whose algebra it is smoothed
_FARTHEST = 2.5  # rad: where the logarithm still is the one that is meant
_NOISE = 0.5  # what a finer curve leaves over, of a coarser one: more, and only noise is left


def smooth(recording: Recording, method: Smoother | None = None, *, rate: float | None = None) -> Recording:
    """The motion on smooth curves, with velocities and accelerations that are their derivatives.

    A joint with a number for each degree of freedom is smoothed in these. A spherical, planar or free joint is smoothed
    in the algebra: r(t) is a coarse smooth curve near the motion, ``s(t) = log(r^-1 q)`` is smoothed as a vector, and
    ``q = r exp(s)``, so that nothing leaves the group, turns may add up without end, and the signs of quaternions do
    not count. v is the velocity of that curve and a the derivative of v, both exactly. Measured velocities give way to
    these; tau, current and imu are smoothed by the same method, so that all keep in step.

    Pieces between long gaps are smoothed each alone. A sample whose weight is 0 does not pull, and the curve counts
    there again if a sample that counts is closer than the method's ``resolution``.

    Args:
        recording: What was recorded, after ``check``.
        method: ``Spline(spacing)`` or ``Butterworth(cutoff)``; a spline with the spacing of cross-validation if None.
        rate: Of the new samples, Hz; the old times if None.

    Returns:
        A recording with q, v, a, and what there was of tau, current and imu.

    Raises:
        ValueError: numbers are not finite, a joint turns by more than a third of a turn between samples, or no piece is
            long enough.

    Source: filters that act on displacements in the algebra are those of J. Lee and S. Y. Shin, General construction
    of time-domain filters for orientation data, IEEE Trans. Visualization and Computer Graphics 8(2), 2002; there about
    neighbouring samples, here about a curve, so that derivatives are exact.
    """
    for name, array in recording.channels.items():
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name}: expected finite numbers, got NaN or infinity; check(recording) bridges them")
    method = settled(recording, method or Spline())
    parts, findings = [], []
    for piece in recording.pieces:
        if piece.stop - piece.start < SHORTEST:
            seen = f"a piece shorter than {SHORTEST} samples at t = {recording.time[piece.start]:g} s"
            findings.append(Finding("short piece", "time", piece.stop - piece.start, seen, "left out"))
        else:
            parts.append(_piece(recording[piece], method, rate))
    if not parts:
        raise ValueError(f"recording: expected a piece of at least {SHORTEST} samples, got none")
    out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    weights = {name[7:]: out.pop(name) for name in list(out) if name.startswith("weight ")}
    imu = {name[4:]: out.pop(name) for name in list(out) if name.startswith("imu ")}
    done = f"smoothed by {method}" + (f", resampled at {rate:g} Hz" if rate else "")
    report = recording.report + findings
    return replace(recording, **out, imu=imu, weights=weights, report=report).noted(done)


def settled(recording: Recording, method: Smoother) -> Smoother:
    """The method with all that the longest piece of the motion decides."""
    longest = max(recording.pieces, key=lambda piece: piece.stop - piece.start)
    if longest.stop - longest.start < SHORTEST:
        return method
    part = recording[longest]
    q, w = _signed(part), part.weights["q"]
    counts = np.ones(q.shape)
    for joint, at_q, at_v in kinds(part.model.topology):
        plain = len(at_q) if joint.nq == joint.nv else len(at_q) - 4
        counts[:, at_q[:plain]] = w[:, at_v[:plain]]
        counts[:, at_q[plain:]] = w[:, at_v[-1:]]
    moving = np.ptp(q, axis=0) > 0
    return method.settled(part.time - part.time[0], q[:, moving], counts[:, moving]) if moving.any() else method


def _signed(recording: Recording) -> np.ndarray:
    """Coordinates with quaternions whose sign does not jump."""
    q = recording.q.copy()
    for joint, places, _ in kinds(recording.model.topology):
        if joint.nq != joint.nv:
            for at in places.T:
                q[:, at[-4:]] = continuous(q[:, at[-4:]])
    return q


def continuous(quaternions: np.ndarray) -> np.ndarray:
    """Quaternions (n, 4) with the signs of which each is nearest to the one before."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0
    signs = np.concatenate([[1.0], np.cumprod(np.where(flips, -1.0, 1.0))])
    return quaternions * signs[:, None]


def _piece(part: Recording, method: Smoother, rate: float | None) -> dict[str, np.ndarray]:
    """All arrays of a smoothed piece, the weights by "weight <channel>"."""
    start = part.time[0]
    time = part.time - start
    at = time if rate is None else np.arange(int(np.floor(time[-1] * rate * (1 + 2**-40))) + 1) / rate
    out: dict[str, np.ndarray] = {"time": part.time if rate is None else start + at}
    out |= zip(("q", "v", "a"), _motion(part, method, time, at), strict=True)
    for name, array in part.channels.items():
        if name not in out:
            out[name] = method.curve(time, array, part.weights[name])(at)
    reach = max(method.resolution, 0.6 * part.dt)
    for name in [name for name in out if name != "time"]:
        out[f"weight {name}"] = _weights(time, part.weights["q" if name in "qva" else name], at, reach)
    return out


def _weights(time: np.ndarray, weights: np.ndarray, at: np.ndarray, reach: float) -> np.ndarray:
    """Weights of samples at other times: those in between where one that counts is close, else 0."""
    out = np.zeros((len(at), weights.shape[1]))
    for column, w in zip(out.T, weights.T, strict=True):
        valid = time[w > 0]
        if len(valid):
            after = np.clip(np.searchsorted(valid, at), 0, len(valid) - 1)
            distance = np.minimum(np.abs(valid[after] - at), np.abs(valid[np.maximum(after - 1, 0)] - at))
            column[:] = np.where(distance <= reach, np.interp(at, valid, w[w > 0]), 0)
    return out


def _motion(part: Recording, method: Smoother, time: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, ...]:
    """(q, v, a) at the times ``at``."""
    tree, q = part.model.topology, _signed(part)
    out = tuple(np.empty((len(at), width)) for width in (tree.nq, tree.nv, tree.nv))
    for joint, all_q, all_v in kinds(tree):
        for at_q, at_v in zip(all_q.T, all_v.T, strict=True):
            along = _on_group if isinstance(joint, GroupJoint) else _in_vectors
            found = along(joint, method, time, q[:, at_q], part.weights["q"][:, at_v], at)
            for whole, places, x in zip(out, (at_q, at_v, at_v), found, strict=True):
                whole[:, places] = x
    return out


def _jet(curve: Callable[..., Any], at: np.ndarray) -> list[np.ndarray]:
    """The curve and its two derivatives."""
    return [curve(at), curve.derivative(1)(at), curve.derivative(2)(at)]  # pyright: ignore[reportFunctionMemberAccess]


def _in_vectors(
    joint: Joint, method: Smoother, time: np.ndarray, q: np.ndarray, weights: np.ndarray, at: np.ndarray
) -> list[np.ndarray]:
    del joint
    return _jet(method.curve(time, q, weights), at)


def _on_group(
    joint: Joint, method: Smoother, time: np.ndarray, q: np.ndarray, weights: np.ndarray, at: np.ndarray
) -> list[np.ndarray]:
    every = np.repeat(np.min(weights, axis=1)[:, None], q.shape[1], axis=1)
    reference, s = _reference(joint, method, time, q, every)
    curves = [*_jet(reference, at), *_jet(method.curve(time, s, weights), at)]
    return [np.asarray(x).T[: len(at)] for x in _evaluated(joint, *(_padded(x) for x in curves))]


def _reference(
    joint: Joint, method: Smoother, time: np.ndarray, q: np.ndarray, weights: np.ndarray
) -> tuple[Any, np.ndarray]:
    """A smooth curve in the coordinates near the motion, and the motion in the algebra about it.

    It turns no faster than the method lets the motion turn, or its noise would stay; but where that leaves a motion
    behind that spins, its knots are halved.
    """
    turns = [row.turns for row in joint.rows]
    counts, shortest = weights[:, 0] > 0, 3 * float(np.median(np.diff(time)))

    def about(spacing: float) -> tuple[Any, np.ndarray, np.ndarray]:
        curve = Spline(spacing).curve(time, q, weights)
        s = np.asarray(_difference(joint, _padded(curve(time)), _padded(q))).T[: len(time)]
        return curve, s, np.linalg.norm(s[:, turns], axis=1)[counts]

    spacing = method.reference
    curve, s, angle = about(spacing)
    while _rms(angle) > _NEAR and spacing >= 2 * shortest:
        spacing /= 2
        finer = about(spacing)
        if _rms(finer[2]) > _NOISE * _rms(angle):
            break
        curve, s, angle = finer
    if np.max(angle, initial=0) > _FARTHEST:
        raise ValueError(
            f"recording: expected less than a third of a turn between samples of a {type(joint).__name__} joint,"
            f" got {np.max(angle):.2g} rad beside the smooth motion; record faster, or give bad samples the weight 0"
        )
    return curve, s


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x**2))) if len(x) else 0.0


def _padded(x: np.ndarray) -> Array:
    """Components first, the samples repeated up to a power of two: few lengths to compile for."""
    length = max(256, 2 ** int(np.ceil(np.log2(len(x)))))
    return jnp.asarray(np.pad(x, ((0, length - len(x)), (0, 0)), mode="edge").T)


def differences(topology: Topology, q0: np.ndarray, q1: np.ndarray) -> np.ndarray:
    """``log(q0^-1 q1)`` (n, nv) of configurations (n, nq)."""
    out = np.empty((len(q0), topology.nv))
    for joint, all_q, all_v in kinds(topology):
        for at_q, at_v in zip(all_q.T, all_v.T, strict=True):
            out[:, at_v] = np.asarray(_difference(joint, _padded(q0[:, at_q]), _padded(q1[:, at_q]))).T[: len(q0)]
    return out


def _unit(joint: Joint, q: Array) -> Array:
    """Coordinates with the quaternion, if there is one, of norm one."""
    if joint.nq == joint.nv:
        return q
    return jnp.concatenate([q[:-4], q[-4:] / jnp.sqrt(jnp.sum(q[-4:] ** 2, axis=0, keepdims=True))])


@partial(jax.jit, static_argnums=0)
def _difference(joint: Joint, r: Array, q: Array) -> Array:
    return jnp.stack(joint.difference(list(_unit(joint, r)), list(q)))


@partial(jax.jit, static_argnums=0)
def _evaluated(
    joint: Joint, r: Array, r1: Array, r2: Array, s: Array, s1: Array, s2: Array
) -> tuple[Array, Array, Array]:
    """(q, v, a) of ``r exp(s)`` with the derivatives of r and s by time."""

    def configuration(h: Array) -> Array:
        near = _unit(joint, r + h * (r1 + h / 2 * r2))
        return jnp.stack(joint.retract(list(near), list(s + h * (s1 + h / 2 * s2))))

    def velocity(h: Array) -> tuple[Array, Array]:
        q, dq = jax.jvp(configuration, (h,), (jnp.ones_like(h),))
        return q, jnp.stack(joint.velocity(list(q), list(dq)))

    zero = jnp.zeros((), r.dtype)
    (q, v), (_, a) = jax.jvp(velocity, (zero,), (jnp.ones_like(zero),))
    return q, v, a
