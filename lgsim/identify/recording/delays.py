"""By how much one signal lags behind another."""

from __future__ import annotations

import numpy as np

from lgsim.identify.recording.recording import Recording
from lgsim.support.extras import package

_REFINEMENTS = 8


def estimate_delay(x: np.ndarray, y: np.ndarray, dt: float, longest: float) -> tuple[float, float]:
    """The delay d for which y(t) is most like ``a x(t - d) + b``, and how much they are alike then.

    The best whole number of samples has the largest correlation coefficient of all; Gauss-Newton on the squares of
    ``y(t) - a x(t - d) - b``, x on a quintic spline, finds the rest.

    Args:
        x: (n,), the signal that leads where d > 0.
        y: (n,), the one that follows.
        dt: s.
        longest: The largest |d| to look at, s.

    Returns:
        (d in s, the correlation coefficient).

    Raises:
        ValueError: lengths differ, a signal is constant, or the signals are not at least four times as long as
            ``longest``.
    """
    interpolate = package("scipy.interpolate", "identify")
    n, most = len(x), int(np.ceil(longest / dt))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x, y: expected two signals of one length, got shapes {x.shape} and {y.shape}")
    if n < 4 * most:
        raise ValueError(f"longest: expected at most a quarter of the signals' {n * dt:g} s, got {longest:g}")
    if not (np.ptp(x) > 0 and np.ptp(y) > 0):
        raise ValueError("x, y: expected signals that change, got a constant one")
    inner = slice(most, n - most)
    lags = np.arange(-most, most + 1)
    lag = int(lags[np.argmax([_alike(x[most - k : n - most - k], y[inner]) for k in lags])])
    time = dt * np.arange(n)
    curve = interpolate.make_interp_spline(time, x, 5)
    slope, delay = curve.derivative(), lag * dt
    kept = slice(most + 1, n - most - 1)
    for _ in range(_REFINEMENTS):
        late = curve(time[kept] - delay)
        design = np.stack([late, np.ones_like(late), -slope(time[kept] - delay)], axis=1)
        a, _, step = np.linalg.lstsq(design, y[kept], rcond=None)[0]
        if a == 0:
            break
        delay = float(np.clip(delay + step / a, (lag - 1) * dt, (lag + 1) * dt))
    return delay, _alike(curve(time[kept] - delay), y[kept])


def shift_signal(recording: Recording, channel: str, delay: float) -> Recording:
    """The recording with a channel moved back in time, so that one that came late is on time.

    Cubic interpolation within each piece; where nothing is known any more the weight is 0.

    Args:
        recording: What was recorded, after ``check``.
        channel: Of ``Recording.channels``, but q.
        delay: By how much the channel lags, s.

    Raises:
        ValueError: there is no such channel, or it is q.
    """
    interpolate = package("scipy.interpolate", "identify")
    if channel == "q" or channel not in recording.channels:
        names = ", ".join(name for name in recording.channels if name != "q")
        raise ValueError(f"channel: expected one of {names}, got {channel!r}")
    array, weights = recording.channels[channel].copy(), recording.weights[channel].copy()
    for piece in recording.pieces:
        time, x, w = recording.time[piece], recording.channels[channel][piece], recording.weights[channel][piece]
        if len(time) > 3:
            late = np.clip(time + delay, time[0], time[-1])
            array[piece] = interpolate.make_interp_spline(time, x, 3)(late)
            before = np.clip(np.searchsorted(time, late, side="right") - 1, 0, len(time) - 2)
            near = np.minimum(w[before], w[before + 1])
            weights[piece] = np.where((late == time + delay)[:, None], near, 0)
    moved = recording._with({channel: array}, weights={**recording.weights, channel: weights})
    return moved.noted(f"{channel} moved back by {delay:g} s")


def _alike(x: np.ndarray, y: np.ndarray) -> float:
    """The correlation coefficient."""
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0
