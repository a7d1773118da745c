"""What users write in a field, at numbers that are hard, by LLVM as by XLA: signed zeros, halves, infinities, NaN,
indices out of range, integers."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np
import pytest
from jax import lax

from lgsim._compile.programs.call import compile_program
from lgsim._compile.programs.compiler import compiler
from lgsim._compile.programs.program import UnsupportedProgramError
from lgsim._compile.programs.read import read

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")

# fmt: off
HARD = np.array([
    0., -0., 1, -1, .5, -.5, 1.5, 2.5, -2.5, 3, -3.7, 100.3, -100.3, 1e-9, -1e-9, 1e10, -1e10, 1e30, np.inf, -np.inf,
    np.nan, 0.25, 7, np.pi,
])
PLAIN = 3 * np.random.default_rng(1).normal(size=24)

OF_ENTRIES = (
    "abs sign floor ceil rint trunc sqrt square reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan arcsin"
    " arccos arctan sinh cosh tanh arcsinh arccosh arctanh cbrt isfinite isnan isinf signbit negative sinc nan_to_num"
    " max min any all flip diff"
).split()
IN_ORDER = "cumsum cumprod sum prod mean std".split()
OF_TWO = (
    "maximum minimum fmax fmin add subtract multiply divide remainder fmod arctan2 hypot copysign"
    " heaviside logaddexp equal not_equal less less_equal greater greater_equal float_power"
).split()
OF_NETWORKS = "sigmoid softplus relu gelu silu elu log_softmax softmax".split()


def finite(x):
    return jnp.nan_to_num(x, posinf=3.0, neginf=-3.0)


def whole(x, low=-50, high=50, kind=jnp.int32):
    return jnp.clip(jnp.nan_to_num(x * 10, posinf=high, neginf=low), low, high).astype(kind)


def integers(x):
    i = whole(x)
    return (i // 3, i % 3, i << 2, i >> 1, i & 5, i | 3, i ^ 7, -i, abs(i), jnp.sign(i), i * i * i * i,
            lax.div(i, jnp.int32(3)), lax.rem(i, jnp.int32(3)), whole(x, -90, 90, jnp.int8) * jnp.int8(3))


def unsigned(x):
    i = whole(x, 0, 99, jnp.uint32)
    return i // 3, i % 3, i >> 1, i - 7, i * i, i.astype(jnp.float32), i > 5, jnp.maximum(i, 4)


def out_of_range(x):
    y = x.at[3].set(9).at[100].set(1).at[jnp.array([1, 1, 2])].add(x[:3]).at[0].set(3 * x[5])
    return x[jnp.array([0, 100, -100])], y, x.at[jnp.array([0, 200])].add(5.0), [
        jnp.take(x, jnp.array([0, 100, -3]), mode=mode, fill_value=7) for mode in ("clip", "fill", "wrap")
    ]


def slices(x):
    end = x.shape[0] - 2
    pad = lax.pad(x, jnp.asarray(3, x.dtype), ((2, -1, 1),))
    return lax.dynamic_slice(x, (end,), (4,)), lax.dynamic_update_slice(x, x[:4] * 2, (end,)), pad, jnp.roll(x, 3)


def matrices(x):
    a, b = finite(x[:16]).reshape(4, 4), finite(x[:9]).reshape(3, 3) + 5 * jnp.eye(3, dtype=x.dtype)
    products = a @ a.T, jnp.einsum("ij,kj->ik", a, a), jnp.cross(a[:, :3], a[:, 1:4]), jnp.tril(jnp.outer(x, x))
    return products, jnp.linalg.det(b), jnp.linalg.norm(x[:4])


def branches(x):
    return [
        lax.cond(x[1] > 0, lambda x: x + 1, lambda x: x * 2, x),
        lax.switch(whole(x)[0], [lambda x: x, lambda x: x + 1, lambda x: 2 * x], x),
        jnp.where((x > -1) & ~(x > 1) | (x == 3), x, -2 * x),
    ]


def kinds(x):
    return x > 0, jnp.sum(x > 0), x.astype(jnp.float32), x.astype(jnp.float32).astype(jnp.float64), x.astype(bool), [
        x.astype(kind) for kind in (jnp.int8, jnp.uint8, jnp.int32, jnp.uint32, jnp.int64)
    ]


OTHERS = {
    **{f.__name__: f for f in (integers, unsigned, out_of_range, slices, branches, kinds, matrices)},
    "powers": lambda x: [x**n for n in (0, 1, 2, 3, -1, -3, 7, 0.5, -1.5)],
    "divided": lambda x: [f(x, jnp.asarray(0.7, x.dtype)) for f in (jnp.remainder, jnp.fmod)],
    "rounded": lambda x: [jnp.round(x, 2), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)],
    "clipped": lambda x: [jnp.clip(x, -1, 2), lax.clamp(jnp.asarray(-1, x.dtype), x, jnp.asarray(2, x.dtype))],
    "special": lambda x: [lax.rsqrt(x), lax.logistic(x), jsp.special.xlogy(x, x)],
    "bits": lambda x: lax.bitcast_convert_type(x, jnp.int32 if x.dtype == jnp.float32 else jnp.int64),
    "loops": lambda x: lax.fori_loop(0, 5, lambda i, c: c * 0.5 + i, x),
}
# the order of a sum decides about what overflows, and x * 0 is 0 in a program
ON_PLAIN = {
    "polynomial": lambda x: jnp.polyval(jnp.array([1.0, 2, 3]).astype(x.dtype), x),
    "backwards": lambda x: [
        lax.scan(lambda c, y: (c + y, c * y), jnp.zeros((), x.dtype), x, reverse=True), lax.cumsum(x, reverse=True)
    ],
    "truths": lambda x: (x > 0).astype(x.dtype) * x,
    "exponents": lambda x: [jsp.special.logsumexp(x), jnp.power(jnp.abs(x), x / 4)],
    **{name: getattr(jnp, name) for name in IN_ORDER},
}
# fmt: on


# of what has a slope, those whose derivatives have other primitives than they
SMOOTH = (
    "sqrt square reciprocal exp exp2 expm1 log log1p log2 log10 sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh"
    " arccosh arctanh cbrt sinc"
).split()


@pytest.mark.parametrize("name", [*SMOOTH, *OF_NETWORKS, "rsqrt", "logistic"])
def test_derivatives_are_programs(name):
    """One for which JAX has a primitive without a rule would go to XLA without a word."""
    f = getattr(jnp, name, None) or getattr(lax, name, None) or getattr(jax.nn, name)
    x = jnp.asarray(PLAIN[:4])
    slope = jax.grad(lambda x: jnp.sum(f(x)))
    read(lambda x: (slope(x), jax.jvp(f, (x,), (x,)), jax.jvp(slope, (x,), (x,))), x)


OF_NUMBERS = {
    **{name: getattr(jnp, name) for name in OF_ENTRIES},
    **{name: lambda x, name=name: getattr(jnp, name)(x, jnp.roll(x, 1)) for name in OF_TWO},
    **{name: getattr(jax.nn, name) for name in OF_NETWORKS},
}
CASES = {
    "of numbers": (OF_NUMBERS, np.stack([np.roll(x, k)[:3] for x in (PLAIN, HARD) for k in range(24)])),
    "of vectors": (OTHERS, np.stack([np.roll(x, k) for x in (PLAIN, HARD) for k in range(9)])),
    "of plain ones": (ON_PLAIN, np.stack([np.roll(PLAIN, k) for k in range(9)])),
}
LEFT_TO_XLA = {
    "an order": jnp.sort,
    "a place": jnp.argmax,
    "a bit more": lambda x: jnp.nextafter(x, 2 * x),
    "halves away from zero": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "half precision": lambda x: x.astype(jnp.float16),
    "less precision": lambda x: lax.reduce_precision(x, 8, 7),
    "bits of half": lambda x: lax.bitcast_convert_type(x.astype(jnp.int16), jnp.float16),
    "integers by zero": lambda x: whole(x) // jnp.int32(0),
    "integers by what is below": lambda x: whole(x) // jnp.int32(-3),
    "a shift": lambda x: jnp.int32(1) << jnp.clip(finite(x), 0, 40).astype(jnp.int32),
    "a table": lambda x: jnp.searchsorted(jnp.arange(5.0).astype(x.dtype), x),
    "a choice of three": lambda x: lax.select_n(whole(x, 0, 2), x, 2 * x, 3 * x),
    "a matrix": lambda x: jnp.linalg.inv(x[:9].reshape(3, 3)),
    "chance": lambda x: jax.random.normal(jax.random.key(3), x.shape, x.dtype),
    "an error function": lax.erf,
}


@pytest.mark.repeats("float64-*")
@pytest.mark.parametrize("name", CASES)
def test_is_what_xla_makes_of_it(name, dtype):
    """All functions of a kind in one program."""
    functions, x = CASES[name][0], jnp.asarray(CASES[name][1], dtype)

    def f(x):
        return [jnp.asarray(y) for f in functions.values() for y in jax.tree.leaves(f(x))]

    owners = [name for name, f in functions.items() for _ in jax.tree.leaves(jax.eval_shape(f, x[0]))]
    program = read(f, jax.ShapeDtypeStruct(x.shape[1:], dtype))
    right = jax.jit(jax.vmap(f))(x)
    many, alone = compile_program(program, (False,)), compile_program(program, (True,))
    in_batch = [jnp.moveaxis(y, -1, 0) for y in jax.jit(lambda x: many([x.T], len(x)))(x)]
    single = jax.jit(lambda x: alone([x], 1))
    one_by_one = [jnp.stack(y)[..., 0] for y in zip(*(single(each) for each in x), strict=True)]
    for found in (in_batch, one_by_one):
        for owner, a, b in zip(owners, found, right, strict=True):
            assert a.dtype == b.dtype, owner
            eps = jnp.finfo(b.dtype).eps if b.dtype.kind == "f" else 0
            np.testing.assert_allclose(a, b, rtol=64 * eps, atol=64 * eps, err_msg=owner)


@pytest.mark.parametrize("name", LEFT_TO_XLA)
def test_has_no_rule(name, dtype):
    with pytest.raises(UnsupportedProgramError):
        read(LEFT_TO_XLA[name], jax.ShapeDtypeStruct((24,), dtype))


def test_a_long_table_is_no_program():
    table = np.arange(2_000_000.0)
    with pytest.raises(UnsupportedProgramError, match="a constant of 2000000 entries"):
        read(lambda x: jnp.asarray(table)[3] * x, 1.0, limit=1000)
