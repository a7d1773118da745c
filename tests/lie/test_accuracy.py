"""exp, log, dexp, dexpinv, Ad within 8 eps of their norm at every critical angle, with translations of size 1.

Near-identity tests that shrink the translation with the rotation cannot see a wrong translation; here it stays 1.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import lie
from tests.lie import oracle, points

EPS = 8
SAMPLES = 256
MATRICES = ("exp", "dexp", "dexpinv", "Ad")
DATA = Path(__file__).parents[1] / "data" / "se3_dexp.json"


@cache
def compiled(module: str):
    """One compiled function of a batch of algebra vectors that returns everything tested here."""
    functions = getattr(lie, module)

    def evaluate(u):
        group = functions.exp(u)
        return {
            "exp": group,
            "dexp": functions.dexp(u),
            "dexpinv": functions.dexpinv(u),
            "Ad": functions.Ad(group),
            "log": functions.log(group),
            "exp log": functions.exp(functions.log(group)),
        }

    return jax.jit(evaluate)


def evaluated(module: str, u) -> dict[str, np.ndarray]:
    """``compiled`` at vectors (n, dim), padded to a number that all tests share, so that they share its program."""
    assert len(u) <= SAMPLES
    values = compiled(module)(jnp.asarray(np.resize(u, (SAMPLES, u.shape[1]))))
    return {name: np.asarray(value)[: len(u)] for name, value in values.items()}


def reference(module: str, name: str, u, degree: int = 1) -> np.ndarray:
    """The exact value and, stacked after it, its derivatives along the components of u (fixed-point)."""
    coefficients = getattr(oracle.ALGEBRAS[module], name)(u, degree)
    return coefficients[:, :, :1] if (module, name) == ("quaternion", "exp") else coefficients


def sensitivity(coefficients: np.ndarray, u) -> float:
    """max-norm of sum_i |u_i| |dM/du_i|: how M answers to a rounding of its input, per unit eps."""
    slopes = np.abs(oracle.double_double(coefficients[1:])[0])
    return float(np.max(np.tensordot(np.abs(np.asarray(u, float)), slopes, axes=(0, 0))))


def shape_like(module, name, value):
    """Quaternions come as vectors; the oracle has them as the first column of a matrix."""
    return value[..., None] if (module, name) == ("quaternion", "exp") else value


def check(module, name, u, angles, dtype, conditioned: bool):
    """Max-norm error over the bound 8 eps max|M| (plus the sensitivity where `conditioned`)."""
    eps = float(np.finfo(dtype).eps)
    computed = evaluated(module, u)[name]
    assert computed.dtype == dtype
    failures = []
    for i, vector in enumerate(u):
        coefficients = reference(module, name, vector, degree=int(conditioned))
        scale = np.max(np.abs(oracle.double_double(coefficients[0])[0]))
        if conditioned:
            scale = max(scale, sensitivity(coefficients, vector))
        error = np.max(np.abs(oracle.error(shape_like(module, name, computed[i]), coefficients[0])))
        if not error <= EPS * eps * scale:
            failures.append((error / eps / scale, angles[i], vector.tolist()))
    assert not failures, (
        f"{len(failures)} of {len(u)} above {EPS} eps of the norm; worst (eps, angle, u): {max(failures, key=str)}; "
        f"angles {sorted({a for _, a, _ in failures})}"
    )


PER_MODULE = pytest.mark.parametrize("module", points.MODULES)
PER_MATRIX = pytest.mark.parametrize("name", MATRICES)


@pytest.mark.repeats("float64-*-se[23]", "float64-*-quaternion")
@pytest.mark.oracle
@pytest.mark.float32
@PER_MODULE
@PER_MATRIX
def test_within_8_eps_of_the_norm(module, name, dtype):
    """0, 1e-300, the decades, both neighbors of every switch, pi - 1e-1 ... pi, up to 5."""
    angles, switches = points.UP_TO_PI + points.BEYOND_PI, points.switch_angles(dtype, high=5.0)
    check(module, name, *points.twists(module, angles, dtype, switches=switches), dtype, conditioned=False)


@pytest.mark.repeats("float64-*-se[23]", "float64-*-quaternion")
@pytest.mark.oracle
@pytest.mark.float32
@PER_MODULE
@PER_MATRIX
def test_near_two_pi_grows_with_the_condition_number_only(module, name, dtype):
    """6 ... 2 pi - 1e-3: 8 eps max(|M|, sum_i |u_i| |dM/du_i|), the second being what a rounding of u alone costs."""
    switches = points.switch_angles(dtype, 5.0, 6.2831)
    u, angles = points.twists(module, points.NEAR_TWO_PI, dtype, switches=switches)
    check(module, name, u, angles, dtype, conditioned=name == "dexpinv")


@pytest.mark.repeats("float64-*-se[23]")
@pytest.mark.oracle
@pytest.mark.float32
@PER_MODULE
@PER_MATRIX
def test_large_angles(module, name, dtype):
    """10, 100, 1e4 rad, relative to the conditioning."""
    check(module, name, *points.twists(module, points.LARGE, dtype), dtype, conditioned=True)


@pytest.mark.repeats("float64-*")
@pytest.mark.oracle
@pytest.mark.float32
@PER_MODULE
def test_no_rotation_part_at_all(module, dtype):
    """A vector of zeros, and pure translations with signed zeros."""
    for u in (np.zeros((1, points.DIM[module]), dtype), -np.zeros((1, points.DIM[module]), dtype)):
        for name in MATRICES:
            check(module, name, u, [0.0], dtype, conditioned=False)


@pytest.mark.repeats
@pytest.mark.oracle
@pytest.mark.float32
@pytest.mark.parametrize("module", ["so3", "se3", "se2", "so2"])
def test_actions_equal_the_matrices(module, dtype):
    """dexp_action(u, v), dexpinv_action(u, v) within 8 eps of |M| |v|, v as large as 1."""
    functions = getattr(lie, module)
    angles, switches = points.UP_TO_PI + points.BEYOND_PI, points.switch_angles(dtype, high=5.0)
    u, _ = points.twists(module, angles, dtype, seed=1, switches=switches)
    v = np.random.default_rng(2).uniform(-1, 1, u.shape).astype(dtype)
    both = jax.jit(lambda u, v: (functions.dexp_action(u, v), functions.dexpinv_action(u, v)))
    eps = float(np.finfo(dtype).eps)
    for name, computed in zip(("dexp", "dexpinv"), both(jnp.asarray(u), jnp.asarray(v)), strict=True):
        for i in range(len(u)):
            matrix = getattr(oracle.ALGEBRAS[module], name)(u[i])[0]
            exact = (matrix @ oracle.fixed(v[i])) >> oracle.BITS
            scale = np.max(np.sum(np.abs(oracle.double_double(matrix)[0]) * np.abs(v[i].astype(float)), axis=1))
            assert np.max(np.abs(oracle.error(computed[i], exact))) <= EPS * eps * scale, (name, u[i])


def log_scale(module, u) -> float:
    """What rounding exp(u) costs its logarithm: |dexpinv_u| (inf-norm) times the size of the element."""
    matrix = oracle.double_double(oracle.ALGEBRAS[module].dexpinv(u)[0])[0]
    return max(1.0, float(np.max(np.abs(u)))) * float(np.max(np.sum(np.abs(matrix), axis=1)))


@pytest.mark.repeats("float64-*")
@pytest.mark.oracle
@pytest.mark.float32
@PER_MODULE
def test_log_inverts_exp(module, dtype):
    """log(exp(u)) = u for |w| < pi within 8 eps max(1, |u|) |dexpinv_u|."""
    eps = float(np.finfo(dtype).eps)
    # nearer to pi than a few eps, rounding decides between the two representatives: test_log_at_pi
    angles = [a for a in points.UP_TO_PI if a < np.pi - 8 * eps]
    u, _ = points.twists(module, angles, dtype, switches=points.switch_angles(dtype, high=3.1))
    computed = np.asarray(evaluated(module, u)["log"], float)
    for vector, got in zip(u, computed, strict=True):
        error = np.max(np.abs(got - vector.astype(float)))
        assert error <= EPS * eps * log_scale(module, vector), (vector, error / eps)


@pytest.mark.repeats("float64-*")
@pytest.mark.float32
@PER_MODULE
def test_log_keeps_the_digits_of_a_small_rotation(module, dtype):
    """The rotation vector is right relative to itself, down to 1e-12 (float32: 1e-12 too), translation 1."""
    eps = float(np.finfo(dtype).eps)
    u, angles = points.twists(module, [a for a in points.SMALL if a != 1e-300], dtype, seed=5)
    computed = np.asarray(evaluated(module, u)["log"], float)[:, points.ROTATION[module]]
    error = np.max(np.abs(computed - u[:, points.ROTATION[module]].astype(float)), axis=1)
    assert np.all(error <= EPS * eps * angles), list(zip(angles, error, strict=True))


@pytest.mark.repeats("float64-*")
@pytest.mark.float32
@PER_MODULE
def test_exp_inverts_log(module, dtype):
    """exp(log(g)) = g at every angle, pi and beyond it included (quaternions: up to their sign)."""
    eps = float(np.finfo(dtype).eps)
    angles = points.UP_TO_PI + points.BEYOND_PI + points.NEAR_TWO_PI
    u, angles = points.twists(module, angles, dtype, seed=6, switches=points.switch_angles(dtype))
    values = evaluated(module, u)
    group, back = np.asarray(values["exp"], float), np.asarray(values["exp log"], float)
    if module == "quaternion":
        back = back * np.sign(np.sum(back * group, axis=-1, keepdims=True))
    axes = tuple(range(1, group.ndim))
    error = np.max(np.abs(back - group), axis=axes)
    assert np.all(error <= 2 * EPS * eps * np.max(np.abs(group), axis=axes)), (error / eps, angles)


@pytest.mark.repeats
@pytest.mark.float32
@pytest.mark.parametrize("module", ["so3", "quaternion", "se3"])
def test_log_at_pi_both_representatives(module, dtype):
    """A half turn: log has angle pi about +n or -n, and exp(log(g)) = g. Public defect jaxlie #9, Sophus #269."""
    eps = float(np.finfo(dtype).eps)
    rng = np.random.default_rng(8)
    axes = np.concatenate([np.eye(3), -np.eye(3), rng.standard_normal((20, 3)), [[1, 1, 0], [0, 1, -1], [1e-9, 1, 0]]])
    axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    half_turns = 2 * axes[:, :, None] * axes[:, None, :] - np.eye(3)
    if module == "quaternion":
        group = np.concatenate([np.zeros((len(axes), 1)), axes], axis=1)
    elif module == "so3":
        group = half_turns
    else:
        group = np.zeros((len(axes), 4, 4))
        group[:, :3, :3], group[:, :3, 3], group[:, 3, 3] = half_turns, rng.standard_normal((len(axes), 3)), 1.0
    functions = getattr(lie, module)
    group = group.astype(dtype)
    log = np.asarray(jax.jit(functions.log)(jnp.asarray(group)), float)
    rotation = log[:, points.ROTATION[module]]
    assert np.all(np.abs(np.linalg.norm(rotation, axis=1) - np.pi) <= EPS * eps)
    cosine = np.sum(rotation * axes, axis=1) / np.pi
    assert np.all(np.abs(np.abs(cosine) - 1) <= 2 * EPS * eps)
    np.testing.assert_array_less(np.abs(rotation - np.sign(cosine)[:, None] * np.pi * axes).max(axis=1), 4 * EPS * eps)
    back = np.asarray(jax.jit(functions.exp)(jnp.asarray(log.astype(dtype))), float)
    if module == "quaternion":
        back = back * np.sign(np.sum(back * group, axis=-1, keepdims=True))
    scale = np.max(np.abs(group), axis=tuple(range(1, group.ndim)), keepdims=True)
    assert np.all(np.abs(back - group) <= 4 * EPS * eps * scale)


@pytest.mark.float32
def test_a_quaternion_and_its_negative_have_one_logarithm(dtype):
    """q and -q are one rotation; log is the short way, |log| <= pi."""
    u, _ = points.twists("quaternion", [0.0, 1e-12, 1e-3, 1.0, 3.0, np.pi - 1e-3], dtype)
    functions = lie.quaternion
    q = functions.exp(jnp.asarray(u))
    eps = float(np.finfo(dtype).eps)
    np.testing.assert_allclose(functions.log(-q), functions.log(q), rtol=0, atol=8 * eps)
    np.testing.assert_allclose(functions.log(-q), u, rtol=0, atol=32 * eps)


@pytest.mark.repeats("float64-*")
@pytest.mark.oracle
@pytest.mark.float32
@pytest.mark.parametrize("row", range(9))
def test_nine_published_twists(row, dtype):
    """exp, Ad, dexp, dexpinv, both signs, against 20-digit decimals; rounding the input is allowed for."""
    values = json.loads(DATA.read_text())["values"][row]
    u = np.array([float(s) for s in values["v"] + values["w"]], dtype)
    eps = float(np.finfo(dtype).eps)
    names = {"expT": "exp", "Ad": "Ad", "dexp": "dexp", "dexpinv": "dexpinv"}
    for sign, suffix in ((1, ""), (-1, "_minus")):
        computed = evaluated("se3", sign * u[None])
        for label, name in names.items():
            if suffix and name in ("exp", "Ad"):
                continue
            decimals = oracle.fixed(np.array(values[label + suffix]))
            coefficients = reference("se3", name, sign * u)
            scale = max(np.max(np.abs(oracle.double_double(decimals)[0])), sensitivity(coefficients, u))
            assert np.max(np.abs(oracle.error(computed[name][0], decimals))) <= EPS * eps * scale, label + suffix
