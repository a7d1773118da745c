"""Delays in closed form, and channels that are moved back by them."""

import numpy as np
import pytest

from lgsim.identify import Recording
from lgsim.identify.recording.delays import estimate_delay, shift_signal
from tests.identify.recording.motions import arm

DT = 0.01
TIME = DT * np.arange(800)


def signal(time):
    """A chirp of 0.3 to 2 Hz with a slow part."""
    return np.sin(2 * np.pi * (0.3 + 0.1 * time) * time) + 0.5 * np.cos(1.3 * time)


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.05, 0.1234, -0.0777])
def test_delay_of_a_known_signal(delay):
    """Far below a sample, whatever the scale and the offset."""
    found, alike = estimate_delay(signal(TIME), 3 * signal(TIME - delay) - 7, DT, 0.2)
    np.testing.assert_allclose(found, delay, atol=1e-7)
    assert alike > 1 - 1e-9


def test_delay_under_noise():
    """Within three standard deviations of what least squares can do: noise / |x'| over all samples."""
    noise = 0.1 * np.random.default_rng(0).standard_normal(len(TIME))
    found, alike = estimate_delay(signal(TIME), signal(TIME - 0.0432) + noise, DT, 0.2)
    deviation = 0.1 / np.linalg.norm(np.gradient(signal(TIME), DT))
    assert deviation < DT / 10
    np.testing.assert_allclose(found, 0.0432, atol=3 * deviation)
    assert 0.95 < alike < 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TIME, TIME[:-1], DT, 0.1), "two signals of one length"),
        ((TIME, TIME, DT, 4.0), "max_delay: expected at most a quarter"),
        ((TIME, 0 * TIME, DT, 0.1), "constant"),
    ],
)
def test_signals_without_a_delay(arguments, message, without_import_hook):
    with pytest.raises(ValueError, match=message):
        estimate_delay(*arguments)


def test_a_late_channel_is_moved_back():
    late = np.stack([signal(TIME - 0.123)] * 7, axis=1)
    recording = Recording(arm(), TIME, np.zeros((800, 7)), tau=late)
    mended = shift_signal(recording, "tau", 0.123)
    known = mended.valid("tau")[:, 0]
    assert np.flatnonzero(~known).tolist() == list(range(787, 800))
    np.testing.assert_allclose(mended.tau[known, 3], signal(TIME)[known], atol=1e-4)
    np.testing.assert_array_equal(mended.q, recording.q)
    assert mended.history == ("tau shifted back by 0.123 s",)
    with pytest.raises(ValueError, match="channel: expected one of tau, got 'q'"):
        shift_signal(recording, "q", 0.1)


def test_a_late_channel_of_a_slower_sensor_is_moved_back():
    """Read at every fourth sample; the repeats in between do not count, before and after."""
    read = 4 * (np.arange(800) // 4)
    late = np.stack([signal(TIME - 0.123)[read]] * 7, axis=1)
    weights = np.tile((np.arange(800) % 4 == 0)[:, None], 7).astype(float)
    recording = Recording(arm(), TIME, np.zeros((800, 7)), tau=late, weights={"tau": weights})
    moved = shift_signal(recording, "tau", 0.123)
    known = moved.valid("tau")[:, 0]
    assert 195 <= known.sum() <= 200
    np.testing.assert_allclose(moved.tau[known, 3], signal(TIME)[known], atol=2e-2)
    lost = weights.copy()
    lost[400:480] = 0
    moved = shift_signal(Recording(arm(), TIME, recording.q, tau=late, weights={"tau": lost}), "tau", 0.123)
    assert not moved.valid("tau")[388:464].any() and moved.valid("tau")[330:380].any()
