"""The oracle is right: against mpmath, against published decimals, against its own second route."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.lie import oracle

mp = pytest.importorskip("mpmath")
pytestmark = pytest.mark.oracle
DATA = json.loads((Path(__file__).parents[1] / "data" / "se3_dexp.json").read_text())


def _mpf(numbers):
    return [[mp.mpf(int(v)) / oracle.ONE for v in row] for row in numbers]


def _largest(matrix):
    return max(abs(v) for v in matrix)


@pytest.mark.parametrize("row", range(9))
def test_nine_published_twists(row):
    values = DATA["values"][row]
    se3 = oracle.ALGEBRAS["se3"]
    u = np.array(values["v"] + values["w"])
    minus = np.array([s[1:] if s.startswith("-") else "-" + s for s in u])
    got = {
        "expT": se3.exp(u),
        "Ad": se3.Ad(u),
        "dexp": se3.dexp(u),
        "dexpinv": se3.dexpinv(u),
        "dexp_minus": se3.dexp(minus),
        "dexpinv_minus": se3.dexpinv(minus),
    }
    for name, value in got.items():
        exact = oracle.fixed(np.array(values[name]))
        scale = max(1.0, max(abs(float(s)) for line in values[name] for s in line))
        # the decimals carry 20 digits
        assert np.max(np.abs(value[0] - exact)) / oracle.ONE < 1e-19 * scale, name


@pytest.mark.repeats("0.0-*", "0.7-*", "6.28-*")
@pytest.mark.parametrize("name", oracle.ALGEBRAS)
@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-9, 0.7, 3.1, 6.28, 50.0])
@pytest.mark.quick
def test_matrix_functions_against_mpmath(name, angle):
    algebra = oracle.ALGEBRAS[name]
    rng = np.random.default_rng(3)
    u = rng.standard_normal(algebra.dim)
    u[-min(3, algebra.dim if name != "se2" else 1) :] *= angle
    with mp.workdps(90):

        def matrix(basis):
            out = mp.zeros(basis.shape[1])
            for component, generator in zip(u, basis, strict=True):
                out += mp.mpf(float(component)) * mp.matrix(generator.tolist())
            return out

        assert _largest(mp.matrix(_mpf(algebra.exp(u)[0])) - mp.expm(matrix(algebra.basis))) < mp.mpf(10) ** -60
        assert _largest(mp.matrix(_mpf(algebra.Ad(u)[0])) - mp.expm(matrix(algebra.adjoint))) < mp.mpf(10) ** -60
        # the upper right block of exp [[ad, 1], [0, 0]] is sum ad^j/(j+1)!
        dim = algebra.dim
        augmented = mp.zeros(2 * dim)
        augmented[:dim, :dim] = matrix(algebra.adjoint)
        augmented[:dim, dim:] = mp.eye(dim)
        dexp = mp.expm(augmented)[:dim, dim:]
        assert _largest(mp.matrix(_mpf(algebra.dexp(u)[0])) - dexp) < mp.mpf(10) ** -60
        assert _largest(mp.matrix(_mpf(algebra.dexpinv(u)[0])) * dexp - mp.eye(dim)) < mp.mpf(10) ** -55


@pytest.mark.parametrize("name", ["so3", "se3", "quaternion"])
def test_derivatives_against_differences(name):
    """Third derivatives along a direction, from exact values at u + h s in steps of 1e-12, error of order h^2."""
    algebra = oracle.ALGEBRAS[name]
    rng = np.random.default_rng(4)
    # few-digit dyadic numbers, so that u + j h s is exact as a fraction
    u = np.round(rng.standard_normal(algebra.dim) * 256) / 256
    s = np.round(rng.standard_normal(algebra.dim) * 256) / 256
    h = 2.0**-40

    def along(coefficients):
        """The third derivative along s, exactly: 6 times the cubic part at s."""
        total = 0
        for monomial, coefficient in zip(oracle.Truncation(algebra.dim, 3).monomials, coefficients, strict=True):
            if len(monomial) == 3:
                for i in monomial:
                    coefficient = (coefficient * oracle._fixed_scalar(s[i])) >> oracle.BITS
                total = total + 6 * coefficient
        return total

    def shifted(j):
        return algebra.dim, u + j * h * s

    for function in ("exp", "dexp", "dexpinv"):
        evaluate = getattr(algebra, function)
        values = {j: evaluate(shifted(j)[1])[0] for j in (-2, -1, 1, 2)}
        difference = (values[2] - 2 * values[1] + 2 * values[-1] - values[-2]) * 2**119  # 1/(2 h^3)
        coefficients = evaluate(u, 3)
        exact = along(coefficients)
        scale = max(1, np.max(np.abs(exact)) / oracle.ONE)
        assert np.max(np.abs(difference - exact)) / oracle.ONE < 1e-20 * scale
        tensor = oracle.derivatives(coefficients, algebra.dim, 3)[3][0]
        np.testing.assert_allclose(tensor @ s @ s @ s, oracle.double_double(exact)[0], rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("name", ["so3", "se3"])
def test_log_along_the_group(name):
    """exp(L(s)) = exp(u) exp(s) up to the truncation of L, |s|^4."""
    algebra = oracle.ALGEBRAS[name]
    rng = np.random.default_rng(5)
    u = rng.standard_normal(algebra.dim)
    s = rng.standard_normal(algebra.dim) * 2.0**-50
    taylor = algebra.log_along(u, 3)
    total = np.zeros(algebra.dim, dtype=object)
    for monomial, coefficient in zip(oracle.Truncation(algebra.dim, 3).monomials, taylor, strict=True):
        weight = oracle.ONE
        for i in monomial:
            weight = weight * oracle._fixed_scalar(s[i]) >> oracle.BITS
        total = total + (coefficient[:, 0] * weight >> oracle.BITS)
    left = oracle._exp(
        (np.tensordot(total, oracle.fixed(algebra.basis), axes=(0, 0)) >> oracle.BITS)[None],
        oracle.Truncation(algebra.dim, 0),
    )[0]
    right = algebra.exp(u)[0] @ algebra.exp(s)[0] >> oracle.BITS
    assert np.max(np.abs(left - right)) / oracle.ONE < 1e-56


@pytest.mark.parametrize("x", [0.3, 3.0, 39.4])
def test_coefficients_against_mpmath(x):
    with mp.workdps(60):
        for k in range(8):

            def series(z, k=k):
                return mp.nsum(lambda j: (-z) ** j / mp.factorial(2 * j + k), [0, mp.inf], method="d")

            theta = mp.sqrt(mp.mpf(x))
            closed = {0: mp.cos(theta), 1: mp.sin(theta) / theta}.get(k, series(mp.mpf(x)))
            got = oracle.stumpff(np.array([x]), k, 3)
            assert abs(mp.mpf(int(got[0][0])) / oracle.ONE - closed) < mp.mpf(10) ** -50
            for m, large in enumerate(oracle.stumpff_large(x, k, 3)):
                assert abs(mp.mpf(int(got[m][0])) / oracle.ONE - large) < mp.mpf(10) ** -50
        got = oracle.dexpinv_coefficient(np.array([x]), 6)
        for m, large in enumerate(oracle.dexpinv_coefficient_large(x, 6)):
            assert abs(mp.mpf(int(got[m][0])) / oracle.ONE - large) < mp.mpf(10) ** -40 * max(1, abs(large))
