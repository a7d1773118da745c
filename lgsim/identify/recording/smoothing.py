"""Smoothing and resampling of recorded motion on its Lie group."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.identify.recording.coordinates import has_quaternion
from lgsim.identify.recording.filters import DEGREE, WHITE, Curve, Smoother, Spline, neighbor_correlation
from lgsim.identify.recording.recording import Recording
from lgsim.identify.recording.report import Finding
from lgsim.identify.recording.sampling import exclude_repeats, resolution_step
from lgsim.multibody.configuration import kinds
from lgsim.multibody.joint import GroupJoint, Joint
from lgsim.multibody.topology import Topology
from lgsim.simulation.trajectory import q_names

MIN_SAMPLES = 4 * (DEGREE + 1)
"""Minimum number of samples of a segment for smoothing."""

_NEAR = 0.1  # rad (rms): the motion is close enough to the reference curve in whose algebra it is smoothed
_FARTHEST = 2.5  # rad: the logarithm is still on the correct branch
_NOISE = 0.5  # ratio of the residuals of a finer and a coarser curve: above it only noise is left


def smooth(recording: Recording, method: Smoother | None = None, *, rate: float | None = None) -> Recording:
    """Smooth a motion; velocities and accelerations are the exact derivatives of the smooth curves.

    A joint with one coordinate for each degree of freedom is smoothed in these. A spherical, planar or free joint is
    smoothed in the algebra: r(t) is a coarse smooth curve near the motion, ``s(t) = log(r^-1 q)`` is smoothed as a
    vector, and ``q = r exp(s)``. Hence the result stays on the group, revolutions may accumulate, and the signs of
    quaternions have no effect. v is the velocity of that curve and a the derivative of v, both exact. They replace
    measured velocities. tau, current and imu are smoothed by the same method, so that all have the same phase.

    Segments between long gaps are smoothed separately. A sample with weight 0 has no influence; the smoothed value
    there gets a weight again if a valid sample is closer than the method's ``resolution``. Repeats of held samples are
    ignored, see ``exclude_repeats``. The report of the result states the noise and the resolution of the positions, and
    the choice.

    Args:
        recording: A recording without NaN, for example from ``check_recording``.
        method: ``Spline(spacing)`` or ``Butterworth(cutoff)``; None for a spline with the spacing of cross-validation.
        rate: The new sampling rate, Hz; None to keep the times.

    Returns:
        A recording with q, v, a, and smoothed tau, current and imu if they exist.

    Raises:
        ValueError: values are not finite, a joint rotates by more than a third of a revolution between samples, or no
            segment is long enough.
        ModuleNotFoundError: scipy is not installed.

    Source: filters that act on displacements in the algebra: J. Lee and S. Y. Shin, General construction of time-domain
    filters for orientation data, IEEE Trans. Visualization and Computer Graphics 8(2), 2002. They use neighboring
    samples as the reference; here it is a curve, so that derivatives are exact.
    """
    for name, array in recording.channels.items():
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name}: expected finite values, got NaN or infinity; check_recording interpolates them")
    recording, findings = exclude_repeats(recording)
    given, method = method, tune(recording, method or Spline())
    parts = []
    for part in recording.segments:
        if part.stop - part.start < MIN_SAMPLES:
            seen = f"a segment shorter than {MIN_SAMPLES} samples at t = {recording.time[part.start]:g} s"
            findings.append(Finding("short piece", "time", part.stop - part.start, seen, "left out"))
        else:
            parts.append(_smooth_segment(recording[part], method, rate))
    if not parts:
        raise ValueError(f"recording: expected a segment of at least {MIN_SAMPLES} samples, got none")
    out = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    weights = {name[7:]: out.pop(name) for name in list(out) if name.startswith("weight ")}
    imu = {name[4:]: out.pop(name) for name in list(out) if name.startswith("imu ")}
    done = f"smoothed by {method}" + (f", resampled at {rate:g} Hz" if rate else "")
    findings += _remarks(recording, given, method)
    return replace(recording, **out, imu=imu, weights=weights, report=recording.report + findings).with_history(done)


def tune(recording: Recording, method: Smoother) -> Smoother:
    """The method with its automatic settings resolved from the longest segment of the recording."""
    time, q, counts, _ = _moving_coordinates(exclude_repeats(recording)[0])
    return method.tune(time, q, counts) if q.size and len(time) >= MIN_SAMPLES else method


def _moving_coordinates(
    recording: Recording,
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n k"], Float[np.ndarray, "n k"], list[str]]:
    """(times, values, weights, names) of the coordinates that vary in the longest segment."""
    part = recording[recording.longest_segment]
    q, w = _with_aligned_signs(part), part.weights["q"]
    counts, names = np.ones(q.shape), q_names(part.model)
    for joint, at_q, at_v in kinds(part.model.topology):
        plain = len(at_q) - 4 if has_quaternion(joint) else len(at_q)
        counts[:, at_q[:plain]] = w[:, at_v[:plain]]
        counts[:, at_q[plain:]] = w[:, at_v[-1:]]
    moving = np.ptp(q, axis=0) > 0
    return part.time - part.time[0], q[:, moving], counts[:, moving], [names[i] for i in np.flatnonzero(moving)]


def _remarks(recording: Recording, given: Smoother | None, method: Smoother) -> list[Finding]:
    """The noise and the resolution of the positions, and the choice of the method."""
    time, q, counts, names = _moving_coordinates(recording)
    if not q.size or len(time) < MIN_SAMPLES:
        return []
    rest, seen = q - method.curve(time, q, counts)(time), []
    for x, r, w, name in zip(q.T, rest.T, counts.T, names, strict=True):
        if not w.any():
            continue
        own, _, unit = name.rpartition(" [")
        unit, step = unit.strip("]-"), resolution_step(x[w > 0])
        text = f"{own} noise {np.std(r[w > 0]):.2g} {unit}".rstrip()
        if (next_one := neighbor_correlation(r[w > 0][:, None])[0]) > WHITE:
            text += f", correlation of neighbors {next_one:.2f}"
        seen.append(text + (f", resolution {step:.3g} {unit}".rstrip() if step else ""))
    chosen = "" if method == given else ", the spacing by cross-validation"
    return [Finding("smoothing", "q", 0, "; ".join(seen), f"{method}{chosen}")] if seen else []


def _with_aligned_signs(recording: Recording) -> Float[np.ndarray, "n nq"]:
    """Coordinates with continuous quaternion signs."""
    q = recording.q.copy()
    for joint, places, _ in kinds(recording.model.topology):
        if has_quaternion(joint):
            for at in places.T:
                q[:, at[-4:]] = align_signs(q[:, at[-4:]])
    return q


def align_signs(quaternions: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 4"]:
    """Quaternions with the sign closest to the previous one."""
    flips = np.sum(quaternions[1:] * quaternions[:-1], axis=1) < 0
    signs = np.concatenate([[1.0], np.cumprod(np.where(flips, -1.0, 1.0))])
    return quaternions * signs[:, None]


def _smooth_segment(part: Recording, method: Smoother, rate: float | None) -> dict[str, np.ndarray]:
    """All arrays of a smoothed segment by name, the weights as "weight <channel>"."""
    start = part.time[0]
    time = part.time - start
    at = time if rate is None else np.arange(int(np.floor(time[-1] * rate * (1 + 2**-40))) + 1) / rate
    out: dict[str, np.ndarray] = {"time": part.time if rate is None else start + at}
    out |= zip(("q", "v", "a"), _smooth_motion(part, method, time, at), strict=True)
    for name, array in part.channels.items():
        if name not in out:
            out[name] = method.curve(time, array, part.weights[name])(at)
    for name in [name for name in out if name != "time"]:
        weights = part.weights["q" if name in "qva" else name]
        out[f"weight {name}"] = _resample_weights(time, weights, at, method.resolution)
    return out


def _resample_weights(
    time: Float[np.ndarray, " n"], weights: Float[np.ndarray, "n k"], at: Float[np.ndarray, " m"], reach: float
) -> Float[np.ndarray, "m k"]:
    """Weights at other times: interpolated if a valid sample is within reach, s, or their usual step, else 0."""
    out = np.zeros((len(at), weights.shape[1]))
    for column, w in zip(out.T, weights.T, strict=True):
        valid = time[w > 0]
        if len(valid):
            near = max(reach, 0.6 * float(np.median(np.diff(valid if len(valid) > 1 else time))))
            after = np.clip(np.searchsorted(valid, at), 0, len(valid) - 1)
            distance = np.minimum(np.abs(valid[after] - at), np.abs(valid[np.maximum(after - 1, 0)] - at))
            column[:] = np.where(distance <= near, np.interp(at, valid, w[w > 0]), 0)
    return out


def _smooth_motion(
    part: Recording, method: Smoother, time: Float[np.ndarray, " n"], at: Float[np.ndarray, " m"]
) -> tuple[Float[np.ndarray, "m nq"], Float[np.ndarray, "m nv"], Float[np.ndarray, "m nv"]]:
    """(q, v, a) at the times ``at`` on curves through the samples at ``time``."""
    tree, q = part.model.topology, _with_aligned_signs(part)
    out = np.empty((len(at), tree.nq)), np.empty((len(at), tree.nv)), np.empty((len(at), tree.nv))
    for joint, q_columns, v_columns in kinds(tree):
        for at_q, at_v in zip(q_columns.T, v_columns.T, strict=True):
            x, weights = q[:, at_q], part.weights["q"][:, at_v]
            if isinstance(joint, GroupJoint):
                found = _smooth_on_group(joint, method, time, x, weights, at)
            else:
                found = _derivatives(method.curve(time, x, weights), at)
            for array, columns, values in zip(out, (at_q, at_v, at_v), found, strict=True):
                array[:, columns] = values
    return out


def _derivatives(curve: Curve, at: Float[np.ndarray, " m"]) -> list[Float[np.ndarray, "m k"]]:
    """The curve and its first two derivatives at times."""
    return [curve(at), curve.derivative(1)(at), curve.derivative(2)(at)]


def _smooth_on_group(
    joint: Joint,
    method: Smoother,
    time: Float[np.ndarray, " n"],
    q: Float[np.ndarray, "n q"],
    weights: Float[np.ndarray, "n v"],
    at: Float[np.ndarray, " m"],
) -> list[Float[np.ndarray, "m _"]]:
    """[q, v, a] of a joint on ``r exp(s)``, where s is the curve in the algebra about the reference curve r."""
    every = np.repeat(np.min(weights, axis=1)[:, None], q.shape[1], axis=1)
    reference, s = _reference_curve(joint, method, time, q, every)
    curves = [*_derivatives(reference, at), *_derivatives(method.curve(time, s, weights), at)]
    return [np.asarray(x).T[: len(at)] for x in _evaluate(joint, *(_pad(x) for x in curves))]


def _reference_curve(
    joint: Joint,
    method: Smoother,
    time: Float[np.ndarray, " n"],
    q: Float[np.ndarray, "n q"],
    weights: Float[np.ndarray, "n q"],
) -> tuple[Curve, Float[np.ndarray, "n v"]]:
    """A smooth reference curve near the motion, in coordinates, and the motion in the algebra about it.

    Its resolution is that of the method, so that it does not follow noise; if it is too far from a spinning motion, its
    knot spacing is halved.
    """
    turns = [row.turns for row in joint.rows]
    counts, shortest = weights[:, 0] > 0, 3 * float(np.median(np.diff(time)))

    def about(spacing: float) -> tuple[Curve, Float[np.ndarray, "n v"], Float[np.ndarray, " k"]]:
        curve = Spline(spacing).curve(time, q, weights)
        s = np.asarray(_difference(joint, _pad(curve(time)), _pad(q))).T[: len(time)]
        return curve, s, np.linalg.norm(s[:, turns], axis=1)[counts]

    spacing = method.reference_spacing
    curve, s, angle = about(spacing)
    while _rms(angle) > _NEAR and spacing >= 2 * shortest:
        spacing /= 2
        finer = about(spacing)
        if _rms(finer[2]) > _NOISE * _rms(angle):
            break
        curve, s, angle = finer
    if np.max(angle, initial=0) > _FARTHEST:
        raise ValueError(
            f"recording: expected less than a third of a revolution between samples of a {type(joint).__name__}"
            f" joint, got {np.max(angle):.2g} rad relative to the smooth motion; increase the sampling rate, or give"
            " invalid samples weight 0"
        )
    return curve, s


def _rms(x: Float[np.ndarray, " n"]) -> float:
    return float(np.sqrt(np.mean(x**2))) if len(x) else 0.0


def _pad(x: Float[np.ndarray, "n k"]) -> Float[Array, "k m"]:
    """Components first, the last sample repeated up to a power of two, to limit the number of compiled lengths."""
    length = max(256, 2 ** int(np.ceil(np.log2(len(x)))))
    return jnp.asarray(np.pad(x, ((0, length - len(x)), (0, 0)), mode="edge").T)


def differences(
    topology: Topology, q0: Float[np.ndarray, "n nq"], q1: Float[np.ndarray, "n nq"]
) -> Float[np.ndarray, "n nv"]:
    """``log(q0^-1 q1)`` of configurations, after normalization of the first quaternions."""
    out = np.empty((len(q0), topology.nv))
    for joint, all_q, all_v in kinds(topology):
        for at_q, at_v in zip(all_q.T, all_v.T, strict=True):
            out[:, at_v] = np.asarray(_difference(joint, _pad(q0[:, at_q]), _pad(q1[:, at_q]))).T[: len(q0)]
    return out


def _normalize(joint: Joint, q: Float[Array, "q m"]) -> Float[Array, "q m"]:
    """Coordinates of a joint with a normalized quaternion, if it has one."""
    if not has_quaternion(joint):
        return q
    return jnp.concatenate([q[:-4], q[-4:] / jnp.sqrt(jnp.sum(q[-4:] ** 2, axis=0, keepdims=True))])


@partial(jax.jit, static_argnums=0)
def _difference(joint: Joint, r: Float[Array, "q m"], q: Float[Array, "q m"]) -> Float[Array, "v m"]:
    return jnp.stack(joint.difference(list(_normalize(joint, r)), list(q)))


@partial(jax.jit, static_argnums=0)
def _evaluate(
    joint: Joint,
    r: Float[Array, "q m"],
    r1: Float[Array, "q m"],
    r2: Float[Array, "q m"],
    s: Float[Array, "v m"],
    s1: Float[Array, "v m"],
    s2: Float[Array, "v m"],
) -> tuple[Float[Array, "q m"], Float[Array, "v m"], Float[Array, "v m"]]:
    """(q, v, a) of the curve ``r exp(s)``; r1, r2, s1, s2 are the time derivatives of r and s."""

    def configuration(h: Float[Array, ""]) -> Float[Array, "q m"]:
        near = _normalize(joint, r + h * (r1 + h / 2 * r2))
        return jnp.stack(joint.retract(list(near), list(s + h * (s1 + h / 2 * s2))))

    def velocity(h: Float[Array, ""]) -> tuple[Float[Array, "q m"], Float[Array, "v m"]]:
        q, dq = jax.jvp(configuration, (h,), (jnp.ones_like(h),))
        return q, jnp.stack(joint.velocity(list(q), list(dq)))

    zero = jnp.zeros((), r.dtype)
    (q, v), (_, a) = jax.jvp(velocity, (zero,), (jnp.ones_like(zero),))
    return q, v, a
