"""Delays between signals, and compensation of a delayed channel."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from lgsim.identify.recording.recording import Recording
from lgsim.support.packages import package

_REFINEMENTS = 8


def estimate_delay(
    x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"], dt: float, max_delay: float
) -> tuple[float, float]:
    """The delay d for which y(t) correlates best with ``a x(t - d) + b``, and the correlation coefficient.

    The best integer lag maximizes the correlation coefficient. Gauss-Newton on the squares of ``y(t) - a x(t - d) -
    b``, with x on a quintic spline, refines it.

    Args:
        x: The signal (n,) that leads where d > 0.
        y: The signal (n,) that follows, in any unit.
        dt: The step between samples of both, s.
        max_delay: The largest |d| of the search, s; a longer delay is returned as about this.

    Returns:
        (d in s, the correlation coefficient of y(t) and x(t - d)).

    Raises:
        ValueError: lengths differ, a signal is constant, or the signals are shorter than four times ``max_delay``.
        ModuleNotFoundError: scipy is not installed.
    """
    interpolate = package("scipy.interpolate", "identify")
    n, most = len(x), int(np.ceil(max_delay / dt))
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"x, y: expected two signals of one length, got shapes {x.shape} and {y.shape}")
    if n < 4 * most:
        raise ValueError(f"max_delay: expected at most a quarter of the signals' {n * dt:g} s, got {max_delay:g}")
    if not (np.ptp(x) > 0 and np.ptp(y) > 0):
        raise ValueError("x, y: expected signals that vary, got a constant one")
    inner = slice(most, n - most)
    lags = np.arange(-most, most + 1)
    lag = int(lags[np.argmax([_correlation(x[most - k : n - most - k], y[inner]) for k in lags])])
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
    return delay, _correlation(curve(time[kept] - delay), y[kept])


def shift_signal(recording: Recording, channel: str, delay: float) -> Recording:
    """Shift a channel back in time to compensate its delay.

    Cubic interpolation of the samples with a weight within each segment. A shifted value has the weight of the sample
    that is closest to it, and 0 where no data are left.

    Args:
        recording: A recording without NaN, for example from ``check_recording``.
        channel: A name of ``Recording.channels`` other than q.
        delay: The delay of the channel, s.

    Raises:
        ValueError: the channel does not exist, or is q.
        ModuleNotFoundError: scipy is not installed.
    """
    interpolate = package("scipy.interpolate", "identify")
    if channel == "q" or channel not in recording.channels:
        names = ", ".join(name for name in recording.channels if name != "q")
        raise ValueError(f"channel: expected one of {names}, got {channel!r}")
    array, weights = recording.channels[channel].copy(), recording.weights[channel].copy()
    for part in recording.segments:
        time = recording.time[part]
        for i in range(array.shape[1]):
            valid = recording.valid(channel)[part, i]
            known, x, w = time[valid], recording.channels[channel][part, i], recording.weights[channel][part, i]
            if len(known) <= 3:
                continue
            late = np.clip(time + delay, known[0], known[-1])
            array[part, i] = interpolate.make_interp_spline(known, x[valid], 3)(late)
            after = np.clip(np.searchsorted(known, late, side="right"), 1, len(known) - 1)
            steps = np.diff(known)
            within = (late == time + delay) & (steps[after - 1] < 1.5 * np.median(steps))
            middle = (time[1:] + time[:-1]) / 2
            weights[part, i] = np.where(within, w[np.searchsorted(middle, late)], 0)
    shifted = recording.with_channels({channel: array}, weights={**recording.weights, channel: weights})
    return shifted.with_history(f"{channel} shifted back by {delay:g} s")


def _correlation(x: Float[np.ndarray, " n"], y: Float[np.ndarray, " n"]) -> float:
    """The correlation coefficient, 0 if a signal is constant."""
    x, y = x - x.mean(), y - y.mean()
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0 else 0.0
