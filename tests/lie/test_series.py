"""Coefficients and their derivatives within 4 ulp of max(|c|, |x c'|), at every critical point, float32 and float64.

The bound is what the rounding of x alone costs: near a zero or a pole of c nothing relative to c can hold. It holds
for every order that a third derivative of exp, log, dexp or dexpinv needs: up to the fourth of the dexpinv coefficient
(dexpinv itself uses the first). The fifth and sixth, which only a caller's own chain reaches, are held to 16 ulp.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.lie import series
from tests.lie import oracle, points

ULPS = 4
COEFFICIENTS = [("stumpff", k) for k in range(4)] + [("dexpinv_coefficient", order) for order in range(4)]
VARIANTS = [(0, "value")] + [(m, mode) for m in (1, 2, 3) for mode in ("forward", "reverse")]
PER_COEFFICIENT = pytest.mark.parametrize("name, index", COEFFICIENTS, ids=[f"{n}-{k}" for n, k in COEFFICIENTS])


def coefficient(name, index):
    """The library's function of x."""
    return lambda x: getattr(series, name)(x, index)


def derivative(function, order: int, mode: str):
    """The derivative of an elementwise function, by nested forward or nested reverse mode."""
    for _ in range(order):
        if mode == "forward":
            function = _forward(function)
        else:
            function = jax.grad(lambda x, f=function: jnp.sum(f(x)))
    return function


def _forward(function):
    return lambda x: jax.jvp(function, (x,), (jnp.ones_like(x),))[1]


@cache
def arguments(dtype) -> np.ndarray:
    """x = theta^2 up to (2 pi - 1e-3)^2: decades, both neighbors of every switch, near pi, a dense sample."""
    rng = np.random.default_rng(7)
    angles = np.array(points.UP_TO_PI + points.BEYOND_PI + points.NEAR_TWO_PI)
    last = (2 * np.pi - 1e-3) ** 2
    named = np.concatenate([angles**2, np.array(points.SMALL), np.array(points.SMALL) ** 0.5])
    dense = np.concatenate([10.0 ** rng.uniform(-18, np.log10(last), 700), rng.uniform(0, last, 700)])
    return np.concatenate([np.concatenate([named, dense]).astype(dtype), points.neighbors(points.switches(dtype))])


def exact(name, index, x, orders: int) -> list[np.ndarray]:
    """Derivatives 0..orders in x of the coefficient, fixed-point."""
    if name == "stumpff":
        return oracle.stumpff(x, index, orders)
    return oracle.dexpinv_coefficient(x, index + orders)[index:]


def ulp_bound(x, value, slope, dtype, order: int) -> np.ndarray:
    """4 ulp of max(|c|, |x c'|); `order` counts all derivatives."""
    magnitude = np.maximum(np.abs(value), np.abs(np.asarray(x, float) * slope))
    return (ULPS if order <= 4 else 4 * ULPS) * np.spacing(magnitude.astype(dtype)).astype(float)


def total_order(name, index, m) -> int:
    """The m-th derivative of dexpinv_coefficient(., index) is the (index + m)-th of d."""
    return m + (index if name == "dexpinv_coefficient" else 0)


def assert_within(error, bound, x, label):
    """No error above its bound, and none that is not a number; names the worst point."""
    ratio = np.where(np.isfinite(error), np.abs(error) / bound, np.inf)
    worst = int(np.argmax(ratio))
    assert ratio[worst] <= 1, (
        f"{label}: {ratio[worst]:.2f} of the bound at x = {float(x[worst])!r}, theta = {np.sqrt(float(x[worst])):.9g}; "
        f"{np.sum(ratio > 1)} of {len(x)} points above it"
    )


def variants(name, index, orders=VARIANTS):
    """One compiled function that returns every derivative in every mode."""
    return jax.jit(lambda x: [derivative(coefficient(name, index), m, mode)(x) for m, mode in orders])


@pytest.mark.repeats
@pytest.mark.oracle
@pytest.mark.float32
@PER_COEFFICIENT
def test_coefficient_and_derivatives_within_4_ulp(name, index, dtype):
    x = arguments(dtype)
    computed = variants(name, index)(jnp.asarray(x))
    reference = exact(name, index, x, 4)
    failures = []
    for (m, mode), values in zip(VARIANTS, computed, strict=True):
        assert values.dtype == dtype
        value, slope = (oracle.double_double(r)[0] for r in reference[m : m + 2])
        try:
            bound = ulp_bound(x, value, slope, dtype, total_order(name, index, m))
            assert_within(oracle.error(values, reference[m]), bound, x, f"order {m} {mode}")
        except AssertionError as failure:
            failures.append(str(failure).splitlines()[0])
    assert not failures, "\n".join(failures)


@pytest.mark.repeats
@pytest.mark.float32
@PER_COEFFICIENT
def test_no_jump_across_a_switch(name, index, dtype):
    at = np.asarray(series.switches(np.dtype(dtype))[name], dtype)
    low, high = np.nextafter(at, dtype(-1)), np.nextafter(at, dtype(np.inf))
    function = variants(name, index, [(m, "forward") for m in range(4)])
    for left, right in [(low, at), (at, high), (low, high)]:
        before, after = exact(name, index, left, 4), exact(name, index, right, 4)
        a, b = function(jnp.asarray(left)), function(jnp.asarray(right))
        for m in range(4):
            true_step = oracle.double_double(after[m] - before[m])[0]
            step = np.asarray(b[m], float) - np.asarray(a[m], float)
            value, slope = (oracle.double_double(r)[0] for r in before[m : m + 2])
            bound = ulp_bound(left, value, slope, dtype, total_order(name, index, m))
            assert_within(step - true_step, bound, left, f"jump of derivative {m}")


@pytest.mark.repeats
@pytest.mark.oracle
@pytest.mark.float32
@PER_COEFFICIENT
def test_large_angles(name, index, dtype):
    """10, 100, 1e4 rad: the bound is the same, since |x c'| grows with the angle as the conditioning does."""
    pytest.importorskip("mpmath")
    x = (np.array(points.LARGE) ** 2).astype(dtype)
    orders = [(0, "value"), (1, "forward"), (2, "reverse"), (3, "forward")]
    computed = variants(name, index, orders)(jnp.asarray(x))
    for i, point in enumerate(x):
        if name == "stumpff":
            reference = oracle.stumpff_large(point, index, 4)
        else:
            reference = oracle.dexpinv_coefficient_large(point, index + 4)[index:]
        for (m, mode), values in zip(orders, computed, strict=True):
            error = float(reference[m] - float(values[i])) if np.isfinite(values[i]) else np.nan
            value, slope = (np.array([float(r)]) for r in reference[m : m + 2])
            bound = ulp_bound(point, value, slope, dtype, total_order(name, index, m))
            assert_within(np.array([error]), bound, np.array([point]), f"order {m} {mode}")


@pytest.mark.float32
def test_named_coefficients(dtype):
    """stumpff(x, 0..3) are cos, sinc, (1 - cos)/x, (1 - sinc)/x; at 0 all are rational."""
    x = jnp.asarray([0.0, 0.25, 4.0], dtype)
    theta = np.sqrt(np.array([0.25, 4.0]))
    closed = [np.cos(theta), np.sin(theta) / theta, (1 - np.cos(theta)) / theta**2, (theta - np.sin(theta)) / theta**3]
    eps = float(jnp.finfo(dtype).eps)
    for k, (at_zero, values) in enumerate(zip([1.0, 1.0, 0.5, 1 / 6], closed, strict=True)):
        got = np.asarray(series.stumpff(x, k), float)
        np.testing.assert_allclose(got, [at_zero, *values], rtol=4 * eps, atol=4 * eps)
    np.testing.assert_allclose(
        np.asarray([series.dexpinv_coefficient(x[0], order) for order in range(3)], float),
        [1 / 12, 1 / 720, 2 / 30240],  # Bernoulli numbers |B_2n|/(2n)! times order!
        rtol=2 * eps,
    )
