"""First, second and third derivatives of exp, log, dexp, dexpinv, forward and reverse mode, at every critical angle.

Finite everywhere and right to 1e-13, 1e-11, 1e-9 (450, 4.5e4, 4.5e6 eps; in float32, whose eps is 5.4e8
times larger, the first two only and to 450, 4500 eps) of the max-norm of the derivative tensor. Where the tensor
answers more strongly to a rounding of the input than that (dexpinv near 2 pi, an odd derivative that vanishes with the
angle), 8 eps times that answer is allowed and no more. Derivatives of log are taken along the group,
s -> log(T exp(s)) at s = 0; at an angle of pi they are one-sided: those of the representative that log returns. There T
is a rounded matrix: 8 eps times the largest derivative up to the next order is allowed where the tensor is smaller.

The critical angles are dealt out among the modules, so that each is met by one of them; with ``--exhaustive`` each
module meets all of them. Third derivatives, which take long to compile, are those of so3 alone, and then of every
module.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import lie
from tests.lie import oracle, points
from tests.lie.structures import lanes

BOUNDS = {np.float64: {1: 1e-13, 2: 1e-11, 3: 1e-9}, np.float32: {1: 450 * 1.2e-7, 2: 4500 * 1.2e-7}}
MODES = {
    "forward": (jax.jacfwd,),
    "reverse": (jax.jacrev,),
    "forward-forward": (jax.jacfwd, jax.jacfwd),
    "reverse-forward": (jax.jacfwd, jax.jacrev),
    "forward-forward-forward": (jax.jacfwd, jax.jacfwd, jax.jacfwd),
}
CONTRACTED = "reverse over forward-forward"
MODULES = ("so2", "se2", "so3", "se3", "quaternion")
PER_MODULE = pytest.mark.parametrize("module", MODULES)
PER_SHARE = pytest.mark.parametrize("angles", lanes(["share"], ["all"]))


def highest(module, angles, dtype):
    """The order of the derivatives of a module at its share of the angles or at all."""
    return 2 if angles == "share" and module != "so3" else max(BOUNDS[dtype])


def modes(order):
    """All of them to third order; to second order the first derivatives both ways and the second."""
    return {m: chain for m, chain in MODES.items() if order == 3 or len(chain) < 2 or m == "forward-forward"}


def weights(shape, dim) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fixed weights of the entries of a value and two directions, each of absolute sum 1."""
    rng = np.random.default_rng(17)
    drawn = [rng.standard_normal(size) for size in (shape, dim, dim)]
    return tuple(x / np.sum(np.abs(x)) for x in drawn)


def contracted(function, u):
    """The gradient of one weighted sum of second derivatives: third order, reverse mode, quick to compile."""
    weight, first, second = (jnp.asarray(x) for x in weights(jax.eval_shape(function, u).shape, u.size))

    def along(f, direction):
        return lambda u: jax.jvp(f, (u,), (direction,))[1]

    return jax.grad(lambda u: jnp.sum(weight * along(along(function, first), second)(u)))(u)


def derivatives_at(function, u, order):
    """Every mode at one point, up to an order of two or three."""
    out = {mode: nested(function, chain)(u) for mode, chain in modes(order).items()}
    return out | ({CONTRACTED: contracted(function, u)} if order == 3 else {})


def nested(function, transforms):
    """Applies the transforms, the innermost first."""
    for transform in transforms:
        function = transform(function)
    return function


def samples(module, dtype, seed, high=7.0, share="all") -> tuple[np.ndarray, np.ndarray]:
    """Vectors at the critical angles below `high`, one each, about a random axis and the last in turn.

    A module's share is every fourth angle, in float32, where two modules run, every other, from another one on than its
    neighbors'.
    """
    angles = points.UP_TO_PI + points.BEYOND_PI + points.NEAR_TWO_PI + points.switch_angles(dtype, high=6.2831)
    angles = [a for a in angles if a < high]
    if share == "share":
        parts = 4 if dtype == np.float64 else 2
        angles = angles[MODULES.index(module) % parts :: parts]
    return points.twists(module, [], dtype, seed, switches=angles)


def all_derivatives(function, u, order):
    """Every mode at every point, in one program."""
    batched = jax.jit(jax.vmap(lambda u: derivatives_at(function, u, order)))
    return {mode: np.asarray(value) for mode, value in batched(jnp.asarray(u)).items()}


def compare(computed, tensors, u, angle, dtype, label) -> list[str]:
    """Messages of what is off at one point; `tensors` are the exact derivatives by order, as double doubles."""
    messages = []
    eps = float(np.finfo(dtype).eps)
    sizes = [float(np.max(np.abs(high))) for high, _ in tensors]
    for mode, value in computed.items():
        order = 3 if mode == CONTRACTED else len(MODES[mode])
        floor = sizes[order] if sizes[order] > 1e-40 else 1.0  # where the exact derivative is zero
        allowed = BOUNDS[dtype][order] * floor
        if label == "log":
            allowed = max(allowed, 8 * eps * max(sizes[1 : order + 2]))
        elif len(tensors) > order + 1:
            next_one = np.abs(tensors[order + 1][0])
            allowed = max(allowed, 8 * eps * float(np.max(next_one @ np.abs(u.astype(float)))))
        high, low = tensors[order]
        if mode == CONTRACTED:
            weight, first, second = weights(high.shape[:-3], len(u))
            high, low = (np.tensordot(weight, part @ first @ second, weight.ndim) for part in (high, low))
        high, low = high.reshape(value.shape), low.reshape(value.shape)
        error = np.max(np.abs(value - high - low)) if np.all(np.isfinite(value)) else np.inf
        if not error <= allowed:
            messages.append(
                f"{label} {mode} at angle {angle!r}: error {error / floor:.2e} relative, allowed "
                f"{allowed / floor:.2e}, u = {u.tolist()}"
            )
    return messages


# the others share their code or take 4 to 6 s
@pytest.mark.repeats(
    "float64-exp-s[oe]2-share", "float64-exp-quaternion-share", "float64-dexp-s[oe]2-share",
    "float64-dexpinv-s[oe]2-share", "float64-dexpinv-so3-share",
)  # fmt: skip
@pytest.mark.oracle
@pytest.mark.float32
@PER_SHARE
@PER_MODULE
@pytest.mark.parametrize("name", ["exp", "dexp", "dexpinv"])
def test_derivatives(module, name, angles, dtype):
    functions = getattr(lie, module)
    if module == "quaternion" and getattr(functions, name) is getattr(lie.so3, name):
        pytest.skip("the function of so3")
    if dtype == np.float32 and module in ("so2", "se2"):
        pytest.skip("float32 is checked in space")
    order = highest(module, angles, dtype)
    u, angles = samples(module, dtype, 11, share=angles)
    u = np.concatenate([u, np.zeros((1, points.DIM[module]), dtype)])
    angles = np.append(angles, 0.0)
    computed = all_derivatives(getattr(functions, name), u, order)
    messages = []
    for i, vector in enumerate(u):
        # near the singularity the conditioning of the highest derivative needs the next
        degree = max(BOUNDS[dtype]) + int(order == max(BOUNDS[dtype]) and name == "dexpinv" and angles[i] >= 5)
        coefficients = getattr(oracle.ALGEBRAS[module], name)(vector, degree)
        if (module, name) == ("quaternion", "exp"):
            coefficients = coefficients[:, :, :1]
        here = {mode: value[i] for mode, value in computed.items()}
        tensors = oracle.derivatives(coefficients, points.DIM[module], degree)
        messages += compare(here, tensors, vector, angles[i], dtype, name)
    assert not messages, f"{len(messages)} of {len(u) * len(computed)}\n" + "\n".join(messages[:40])


def third_order_exp(functions, s):
    """1 + h + h^2/2 + h^3/6, h = hat(s): exp(s) up to the third derivative at 0, and quick to compile."""
    h = functions.hat(s)
    multiply = jnp.matmul if h.ndim == 2 else functions.compose
    square = multiply(h, h)
    return functions.identity(s.dtype) + h + square / 2 + multiply(square, h) / 6


def representative(u, log, rotation) -> np.ndarray:
    """u, or the other logarithm of the same element if that is the one that log returned (half turns only)."""
    if np.dot(u[rotation].astype(float), log[rotation].astype(float)) >= 0 or np.linalg.norm(u[rotation]) < 3:
        return u
    return log


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.float32
@PER_SHARE
@PER_MODULE
def test_derivatives_of_log_along_the_group(module, angles, dtype):
    functions = getattr(lie, module)
    order = highest(module, angles, dtype)
    u, angles = samples(module, dtype, 12, high=3.15, share=angles)
    u, angles = u[angles <= np.pi], angles[angles <= np.pi]
    logs = np.asarray(jax.jit(lambda u: functions.log(functions.exp(u)))(jnp.asarray(u)))

    def at_zero(u):
        group = functions.exp(u)

        def along(s):
            return functions.log(functions.compose(group, third_order_exp(functions, s)))

        return derivatives_at(along, jnp.zeros_like(u), order)

    computed = {mode: np.asarray(value) for mode, value in jax.jit(jax.vmap(at_zero))(jnp.asarray(u)).items()}
    messages = []
    for i, vector in enumerate(u):
        base = representative(vector, logs[i], points.ROTATION[module])
        # the size of the next derivative takes part in the bound
        degree = min(order + 1, 3) if dtype == np.float64 else 2
        tensors = oracle.derivatives(oracle.ALGEBRAS[module].log_along(base, degree), len(base), degree)
        here = {mode: value[i] for mode, value in computed.items()}
        messages += compare(here, tensors, base, angles[i], dtype, "log")
    assert not messages, f"{len(messages)} of {len(u) * len(computed)}\n" + "\n".join(messages[:40])


@pytest.mark.slow
@pytest.mark.parametrize("module", lanes(["se3"], ["so3"]))
def test_actions_differentiate_like_the_matrices(module):
    """Both modes of dexp_action, dexpinv_action in u and v, against the product with the matrix."""
    dtype = np.float64
    functions = getattr(lie, module)
    u, angles = samples(module, dtype, 13, high=5.5)
    v = np.random.default_rng(14).standard_normal(u.shape).astype(dtype)
    for name in ("dexp", "dexpinv"):
        action = getattr(functions, f"{name}_action")
        evaluate = getattr(functions, name)
        matrix = lambda u, v, f=evaluate: f(u) @ v  # noqa: E731

        def all_of(function):
            return jax.jit(jax.vmap(lambda u, v: [m(function, argnums=(0, 1))(u, v) for m in (jax.jacfwd, jax.jacrev)]))

        for got, want in zip(jax.tree.leaves(all_of(action)(u, v)), jax.tree.leaves(all_of(matrix)(u, v)), strict=True):
            scale = np.max(np.abs(want), axis=(1, 2), keepdims=True)
            assert np.all(np.isfinite(got))
            assert np.all(np.abs(got - want) <= 2 * BOUNDS[dtype][1] * scale), (name, angles)


# --- regressions: defects of other libraries, each by what it got wrong


@pytest.mark.slow
@pytest.mark.float32
def test_exp_derivative_zero_rotation_unit_translation(dtype):
    """The translation of exp(v, w) is v + w x v/2 + ... : its derivative in w at w = 0 is -hat(v)/2, not -hat(v).

    jaxlie 1.5.0 is wrong by a factor 2 below its switch (float32: below 3.2e-3 rad).
    """
    v = np.array([0.6, -0.48, 0.64], dtype)
    half = 0.5 * np.stack([np.cross(e, v.astype(float)) for e in np.eye(3)], axis=1)
    eps = float(np.finfo(dtype).eps)
    jacobians = [jax.jit(mode(lie.se3.exp)) for mode in (jax.jacfwd, jax.jacrev)]
    for angle in (0.0, 1e-9, 1e-6, 9e-6, 1.1e-5, 1e-4, 3.1e-3):
        w = np.array([2 / 3, -1 / 3, 2 / 3]) * angle
        u = jnp.asarray(np.concatenate([v, w]).astype(dtype))
        for jacobian in jacobians:
            # the next term of the series is bounded by angle |v|/2
            got = np.asarray(jacobian(u))[:3, 3, 3:]
            np.testing.assert_allclose(got, half, rtol=0, atol=8 * eps + angle, err_msg=f"angle {angle}")
    # log(exp(u)) is the identity: the block d v/d w is zero
    jacobian = jax.jit(jax.jacfwd(lambda u: lie.se3.log(lie.se3.exp(u))))(jnp.asarray(np.concatenate([v, 0 * v])))
    np.testing.assert_allclose(jacobian, np.eye(6), rtol=0, atol=16 * eps)


@pytest.mark.repeats
@pytest.mark.float32
def test_no_nan_at_zero_velocity(dtype):
    """q exp(dt w): the derivative in w at w = 0 is dt/2 on the vector part (not 0: MJX 3.17; not NaN: brax 0.14).

    And it moves for every w, however small.
    """
    dt = dtype(0.125)
    q = jnp.asarray(np.array([0.5, 0.5, -0.5, 0.5], dtype))
    quaternion = lie.quaternion

    def integrate(w):
        return quaternion.compose(q, quaternion.exp(dt * w))

    # columns q (0, e_i) dt/2, by the product rule of quaternions
    a, b, c, d = np.asarray(q, float)
    exact = 0.5 * float(dt) * np.array([[-b, -c, -d], [a, -d, c], [d, a, -b], [-c, b, a]])
    eps = float(np.finfo(dtype).eps)
    for jacobian in (jax.jit(jax.jacfwd(integrate)), jax.jit(jax.jacrev(integrate))):
        for size in (0.0, 1e-300, 1e-30, 1e-12, 1e-9):
            np.testing.assert_allclose(jacobian(jnp.full((3,), size, dtype)), exact, rtol=0, atol=4 * eps + size)
    w = jnp.asarray(np.array([1e-9, -2e-9, 3e-9], dtype))
    np.testing.assert_allclose(quaternion.exp(w)[1:], np.asarray(w) / 2, rtol=1e-6 if dtype == np.float32 else 1e-14)
    second = jax.jit(jax.hessian(lambda w: jnp.sum(integrate(w) ** 2)))(
        jnp.zeros(3, dtype)
    )  # |q|^2 = 1: all derivatives are 0
    np.testing.assert_allclose(second, np.zeros((3, 3)), atol=8 * float(np.finfo(dtype).eps))


@pytest.mark.slow
@pytest.mark.float32
@PER_MODULE
def test_identity_gradients_finite(module, dtype):
    """Gradients of exp at 0 and of log at the identity, through the entries of the element (kornia #4404)."""
    if dtype == np.float32 and module != "so3":
        pytest.skip("an exhaustive test of its own")
    assert_identity_gradients_finite(module, dtype)


@pytest.mark.float32
@pytest.mark.exhaustive
@pytest.mark.parametrize("module", [module for module in MODULES if module != "so3"])
def test_identity_gradients_finite_of_further_modules_in_float32(module):
    assert_identity_gradients_finite(module, np.float32)


def assert_identity_gradients_finite(module, dtype):
    """First and second derivatives of exp at 0 and of log at the identity are numbers, the first of log the weights."""
    functions = getattr(lie, module)
    zero = jnp.zeros(points.DIM[module], dtype)
    identity = functions.identity(dtype)
    weights = jnp.arange(1, 1 + zero.size, dtype=dtype)

    def loss(g):
        return jnp.sum(weights * functions.log(g)) + jnp.sum(functions.log(g) ** 2)

    modes = (jax.jacfwd, jax.jacrev, jax.hessian)
    at_zero = jax.jit(lambda u: [derivative(functions.exp)(u) for derivative in modes])
    at_identity = jax.jit(lambda g: [derivative(loss)(g) for derivative in modes])
    chex.assert_tree_all_finite((at_zero(zero), at_identity(identity)))
    along = jax.jit(jax.grad(lambda s: loss(functions.compose(identity, functions.exp(s)))))(zero)
    np.testing.assert_allclose(along, weights, rtol=16 * float(np.finfo(dtype).eps))


@pytest.mark.slow
@pytest.mark.float32
@pytest.mark.parametrize("module", ["so3", "se3", "quaternion"])
def test_log_at_pi_both_representatives(module, dtype):
    """At a half turn the gradient is finite and that of the representative returned (jaxlie #9, Sophus #269)."""
    functions = getattr(lie, module)
    eps = float(np.finfo(dtype).eps)
    axes = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [2 / 3, -1 / 3, 2 / 3], [-0.6, 0, 0.8]])
    u = np.tile([0.6, -0.48, 0.64, 0, 0, 0], (len(axes), 1))[:, -points.DIM[module] :]
    u[:, points.ROTATION[module]] = np.pi * axes
    group = functions.exp(jnp.asarray(u.astype(dtype)))
    if module == "quaternion":
        group = jnp.asarray(np.concatenate([np.zeros((len(axes), 1)), axes], axis=1).astype(dtype))

    @jax.jit
    @jax.vmap
    def evaluate(g):
        zero = jnp.zeros(points.DIM[module], dtype)
        along = lambda s: functions.log(functions.compose(g, third_order_exp(functions, s)))  # noqa: E731
        modes = (jax.jacfwd, jax.jacrev)
        raw = [mode(functions.log)(g) for mode in modes]
        return [mode(along)(zero) for mode in modes], functions.dexpinv(-functions.log(g)), raw

    jacobians, exact, raw = evaluate(group)
    scale = np.max(np.abs(exact), axis=(1, 2), keepdims=True)
    for jacobian in jacobians:
        assert np.all(np.abs(np.asarray(jacobian) - exact) <= 64 * eps * scale)
    chex.assert_tree_all_finite(raw)


@pytest.mark.repeats
@pytest.mark.float32
@pytest.mark.parametrize("function", ["matrix_from_quaternion", "rotation_vector_from_quaternion"])
def test_renormalizing_keeps_derivatives(function, dtype):
    """A quaternion of any norm converts, and differentiates, like the normalized one (drake #20405, #10654)."""
    convert = getattr(lie.conversions, function)
    rng = np.random.default_rng(15)
    eps = float(np.finfo(dtype).eps)
    samples = rng.standard_normal((6, 4))
    samples[0] = [1.5, 0, 0, 0]  # the identity, unnormalized
    samples[1] = [1e-3, 1e-9, 0, -1e-9]
    samples[2] = [0.0, 0, 3.0, 0]

    def normalized(q):
        return convert(q / jnp.sqrt(jnp.sum(q * q)))

    def evaluated(function):
        return jax.jit(lambda q: (function(q), [mode(function)(q) for mode in (jax.jacfwd, jax.jacrev)]))

    own, other = evaluated(convert), evaluated(normalized)
    for q in samples.astype(dtype):
        (value, slopes), (right, wanted) = own(q), other(q)
        np.testing.assert_allclose(value, right, rtol=0, atol=16 * eps)
        for got, want in zip(np.asarray(slopes), np.asarray(wanted), strict=True):
            assert np.max(np.abs(want)) > 0.1
            np.testing.assert_allclose(got, want, rtol=0, atol=64 * eps * np.max(np.abs(want)))
            # along q itself nothing changes
            np.testing.assert_allclose(got @ q, 0 * (got @ q), atol=64 * eps)
