"""Smoothing against analytic curves and scipy's rotations: orders, consistency, turns without end, gaps, noise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

import lgsim
from lgsim.identify import Recording, smooth
from lgsim.identify.recording.filters import Butterworth, Spline
from tests.identify.recording.motions import arm, changed, clean, fourier, single

TIME = 0.004 * np.arange(1001)
INNER = slice(100, -100)
AXIS = np.array([1.0, 2.0, 2.0]) / 3


@pytest.fixture(scope="module")
def tumbling():
    """(recording, v, a): a free body that turns by 720 degrees and more; body twist and its derivative in closed form.

    R = exp(hat(k) s(t)) exp(hat(m) u(t)), k and m constant, so that w = m u' + R_m^T k s' in body axes.
    """
    t, m = TIME, np.array([0.0, 0.6, 0.8])
    s, s1, s2 = np.pi * t + 0.3 * np.sin(3 * t), np.pi + 0.9 * np.cos(3 * t), -2.7 * np.sin(3 * t)
    u, u1, u2 = 0.8 * np.sin(2 * t), 1.6 * np.cos(2 * t), -3.2 * np.sin(2 * t)
    turn = Rotation.from_rotvec(u[:, None] * m)
    R = Rotation.from_rotvec(s[:, None] * AXIS) * turn
    kb = turn.inv().apply(np.tile(AXIS, (len(t), 1)))  # k in body axes, which moves with -m u' x kb
    w = m * u1[:, None] + kb * s1[:, None]
    w1 = m * u2[:, None] + kb * s2[:, None] - np.cross(m, kb) * (u1 * s1)[:, None]
    p = np.stack([np.sin(t), np.cos(2 * t), t], axis=1)
    p1 = np.stack([np.cos(t), -2 * np.sin(2 * t), np.ones_like(t)], axis=1)
    p2 = np.stack([-np.sin(t), -4 * np.cos(2 * t), np.zeros_like(t)], axis=1)
    v = R.inv().apply(p1)
    v1 = R.inv().apply(p2) - np.cross(w, v)
    q = np.column_stack([p, np.roll(R.as_quat(), 1, axis=1)])
    return Recording(single(lgsim.joints.Free()), t, q), np.column_stack([v, w]), np.column_stack([v1, w1])


def rotations(recording):
    return Rotation.from_quat(np.roll(recording.q[:, -4:], -1, axis=1))


def apart(a, b):
    """Largest angle between rotations, and distance of positions."""
    angle = np.max((rotations(a).inv() * rotations(b)).magnitude()[INNER])
    return max(angle, np.max(np.abs(a.q[INNER, :-4] - b.q[INNER, :-4]), initial=0))


def test_two_turns_of_a_free_body_by_splines_of_two_spacings(tumbling):
    """Error of q of order 6, v 5, a 4: at half the spacing 64, 32, 16 times less; with a margin of a half."""
    recording, v, a = tumbling
    errors = []
    for spacing in (0.2, 0.1):
        out = smooth(recording, Spline(spacing))
        errors.append((apart(out, recording), np.abs(out.v - v)[INNER].max(), np.abs(out.a - a)[INNER].max()))
    coarse, fine = np.array(errors)
    assert np.all(coarse / fine > [32, 16, 8]), (coarse, fine)
    assert np.all(fine < [5e-6, 1e-4, 2e-3]), fine
    assert rotations(recording)[0].magnitude() < 1e-12
    assert np.linalg.norm(np.diff(TIME)[0] * out.v[:, 3:].sum(axis=0)) > 4 * np.pi


def test_two_turns_of_a_free_body_by_a_filter(tumbling):
    recording, v, a = tumbling
    out = smooth(recording, Butterworth(20.0))
    assert apart(out, recording) < 1e-7
    assert np.abs(out.v - v)[INNER].max() < 1e-6
    assert np.abs(out.a - a)[INNER].max() < 1e-4
    np.testing.assert_allclose(np.linalg.norm(out.q[:, 3:], axis=1), 1, atol=1e-14)


@pytest.mark.parametrize("method", [Spline(0.05), Butterworth(15.0)])
def test_signs_of_quaternions_do_not_count(tumbling, method):
    recording, *_ = tumbling
    q = recording.q.copy()
    q[:, 3:] *= np.where(np.random.default_rng(0).random(len(q)) < 0.5, -1, 1)[:, None]
    flipped = smooth(Recording(recording.model, TIME, q), method)
    plain = smooth(recording, method)
    np.testing.assert_allclose(np.abs(np.sum(flipped.q[:, 3:] * plain.q[:, 3:], axis=1)), 1, atol=1e-14)
    np.testing.assert_allclose(flipped.v, plain.v, atol=1e-9)
    np.testing.assert_allclose(flipped.a, plain.a, atol=1e-6)


def test_smoothing_commutes_with_a_turn_of_the_world(tumbling):
    """A motion seen from another fixed frame is smoothed to the same motion, seen from there, noise included."""
    recording, *_ = tumbling
    ball = single(lgsim.joints.Spherical())
    rng = np.random.default_rng(1)
    noisy = rotations(recording) * Rotation.from_rotvec(0.01 * rng.standard_normal((len(TIME), 3)))
    seen = Rotation.from_rotvec([0.4, -1.1, 2.0])
    plain, turned = (
        smooth(Recording(ball, TIME, np.roll(R.as_quat(), 1, axis=1)), Spline(0.1)) for R in (noisy, seen * noisy)
    )
    assert np.max((rotations(turned).inv() * (seen * rotations(plain))).magnitude()) < 1e-12
    np.testing.assert_allclose(turned.v, plain.v, atol=1e-10)


def test_velocities_and_accelerations_are_derivatives_of_the_curve(tumbling):
    """Between dense samples: w by scipy's rotation spline, a by a cubic spline through v; noise does not matter."""
    recording, *_ = tumbling
    rng = np.random.default_rng(2)
    noisy = rotations(recording) * Rotation.from_rotvec(0.02 * rng.standard_normal((len(TIME), 3)))
    q = np.column_stack([recording.q[:, :3], np.roll(noisy.as_quat(), 1, axis=1)])
    out = smooth(Recording(recording.model, TIME, q), Spline(0.1), rate=2000.0)
    # scipy's angular velocity is in body axes
    w = RotationSpline(out.time, rotations(out))(out.time, 1)
    np.testing.assert_allclose(out.v[50:-50, 3:], w[50:-50], atol=1e-6)
    slopes = CubicSpline(out.time, out.v)(out.time, 1)
    np.testing.assert_allclose(out.a[50:-50], slopes[50:-50], atol=1e-4)


def test_noise_on_rotations_becomes_less():
    """By about sqrt(dt/spacing), as in vectors; the curve stays within that of the truth."""
    ball, rng = single(lgsim.joints.Spherical()), np.random.default_rng(3)
    truth = Rotation.from_rotvec((2 * np.pi * TIME)[:, None] * AXIS)
    noise = 0.02
    noisy = truth * Rotation.from_rotvec(noise * rng.standard_normal((len(TIME), 3)))
    out = smooth(Recording(ball, TIME, np.roll(noisy.as_quat(), 1, axis=1)), Spline(0.4))
    left = np.sqrt(np.mean((truth.inv() * rotations(out)).as_rotvec() ** 2))
    coefficients = 3 * 10 + 5  # of three components, ten intervals each
    assert left < 1.5 * noise * np.sqrt(coefficients / 3 / len(TIME))
    np.testing.assert_allclose(out.v[INNER], np.tile(2 * np.pi * AXIS, (len(TIME), 1))[INNER], atol=0.2)


def test_planar_body_that_spins_and_drifts():
    model = single(lgsim.joints.Planar())
    angle = 4 * TIME + np.sin(TIME)
    q = np.column_stack([np.sin(TIME), TIME, angle])
    out = smooth(Recording(model, TIME, q), Spline(0.08))
    c, s = np.cos(angle), np.sin(angle)
    v = np.column_stack([c * np.cos(TIME) + s, -s * np.cos(TIME) + c, 4 + np.cos(TIME)])
    np.testing.assert_allclose(out.q, q, atol=1e-6)
    np.testing.assert_allclose(out.v[INNER], v[INNER], atol=1e-5)


@pytest.mark.parametrize("spacing", [0.2, 0.1])
def test_arm_by_splines(spacing):
    """Against the derivatives of the sines; order 4 in the acceleration."""
    out = smooth(clean(), Spline(spacing))
    q, v, a = fourier(clean().time)
    np.testing.assert_allclose(out.q, q, atol=0.06 * spacing**6 * 100)
    np.testing.assert_allclose(out.v[INNER], v[INNER], atol=200 * spacing**5)
    np.testing.assert_allclose(out.a[INNER], a[INNER], atol=600 * spacing**4)


def test_cross_validation_finds_a_spacing_that_is_nearly_best():
    noisy = clean(0.05)
    _, _, a = fourier(noisy.time)

    def error(method):
        return np.sqrt(np.mean((smooth(noisy, method).a - a)[INNER] ** 2))

    errors = [error(Spline(h)) for h in (0.02, 0.05, 0.1, 0.2, 0.4)]
    assert error(Spline()) < 2 * min(errors), errors


def test_filter_has_half_power_at_its_cutoff_and_no_phase():
    """Sines below, at and above the cutoff of 5 Hz: the gain of two passes of a bilinear Butterworth filter."""
    time = 0.002 * np.arange(4000)
    model = single(lgsim.joints.Revolute())
    for frequency in (1.0, 5.0, 10.0):
        phase = 2 * np.pi * frequency * time
        out = smooth(Recording(model, time, np.sin(phase)[:, None]), Butterworth(5.0))
        inner = slice(1000, 3000)
        design = np.column_stack([np.sin(phase), np.cos(phase)])[inner]
        gain, late = np.linalg.lstsq(design, out.q[inner, 0], rcond=None)[0]
        ratio = np.tan(np.pi * frequency * 0.002) / np.tan(np.pi * 5 * 0.002)
        np.testing.assert_allclose(gain, 1 / (1 + (np.sqrt(2) - 1) * ratio**8), atol=1e-5)
        np.testing.assert_allclose(late, 0, atol=1e-5)
        if frequency == 5:
            np.testing.assert_allclose(gain, np.sqrt(0.5), atol=1e-5)


@pytest.mark.parametrize("method", [Spline(0.1), Butterworth(15.0)])
def test_uneven_clock_and_missing_samples(method):
    """30 % of the samples missing at random times: the curve is that of the whole."""
    rng = np.random.default_rng(4)
    kept = np.sort(rng.permutation(len(clean()))[: round(0.7 * len(clean()))])
    time = clean().time[kept] + 5e-4 * rng.uniform(-1, 1, len(kept))
    q, v, a = fourier(time)
    out = smooth(Recording(arm(), time, q), method)
    np.testing.assert_array_equal(out.time, time)
    np.testing.assert_allclose(out.v[INNER], v[INNER], atol=2e-3)
    np.testing.assert_allclose(out.a[INNER], a[INNER], atol=0.1)


def test_samples_that_do_not_count_do_not_pull():
    """A stretch of nonsense with weight 0: close to samples that count the curve counts again, further in not."""
    q, weights = clean().q.copy(), np.ones((2000, 7))
    q[500:800, 2], weights[500:800, 2] = 77.0, 0
    out = smooth(Recording(arm(), clean().time, q, weights={"q": weights}), Spline(0.101))
    expected, *_ = fourier(clean().time)
    np.testing.assert_allclose(out.q[out.valid("q")], expected[out.valid("q")], atol=1e-2)
    lost = np.flatnonzero(~out.valid("q")[:, 2])
    assert (lost[0], lost[-1]) == (550, 749)  # 0.1 s of 2 ms inside
    assert out.valid("v").sum() == out.valid("q").sum()


def test_pieces_are_smoothed_apart_and_short_ones_left_out():
    kept = np.r_[0:600, 700:710, 900:2000]
    out = smooth(clean()[kept], Spline(0.1))
    assert [len(out), len(out.segments)] == [1700, 2]
    (finding,) = out.report.of_kind("short piece")
    assert finding.count == 10
    np.testing.assert_allclose(out.q, fourier(out.time)[0], atol=1e-4)


def test_resampling_keeps_every_channel_in_step():
    out = smooth(clean(), Spline(0.05), rate=100.0)
    np.testing.assert_allclose(np.diff(out.time), 0.01, rtol=1e-9)
    assert len(out) == 400
    np.testing.assert_allclose(out.q, fourier(out.time)[0], atol=1e-6)
    np.testing.assert_allclose(out.tau[20:-20], clean().tau[::5][20:-20], atol=2e-2)
    assert all(np.all(w == 1) for w in out.weights.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: smooth(changed(r, tau=r.tau * np.nan)), "tau: expected finite values"),
        (lambda r: smooth(r, Butterworth(400.0)), "less than half the sampling rate"),
        (lambda r: smooth(r[:20]), "at least 24 samples"),
        (lambda r: Spline(-1.0), "spacing: expected a positive time"),
        (lambda r: Butterworth(0.0), "cutoff: expected a positive frequency"),
    ],
)
def test_what_cannot_be_smoothed(change, message):
    with pytest.raises(ValueError, match=message):
        change(clean())


def test_rotations_too_far_apart():
    """Rotations at random cannot be told apart by which way they turned."""
    q = np.random.default_rng(0).standard_normal((200, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    with pytest.raises(ValueError, match="less than a third of a revolution between samples of a Spherical joint"):
        smooth(Recording(single(lgsim.joints.Spherical()), TIME[:200], q), Spline(0.1))


@pytest.mark.slow
def test_float32_models_are_welcome():
    model = jax.tree.map(lambda x: x.astype(jnp.float32), single(lgsim.joints.Free()))
    q = np.tile([0.0, 0, 0, 1, 0, 0, 0], (100, 1))
    assert smooth(Recording(model, TIME[:100], q), Spline(0.1)).v.dtype == np.float64
