"""A program is what its function computes, in floats and in many digits, and says no more than is needed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import UnsupportedProgramError, evaluate, python_operations, read
from lgsim._compile.xla import batch_last, scan_last
from lgsim.dynamics import forward_dynamics, inverse_dynamics
from tests.multibody import trees

CHAIN = (["revolute", "prismatic", "helical"], [-1, 0, 1])


def statements(f, *args):
    return read(f, *args).counts()


@pytest.mark.parametrize(
    "f, counts",
    [
        (lambda x: x + 0.0, {}),
        (lambda x: x * 1.0 - 0.0, {}),
        (lambda x: x + 0.0 * jnp.sin(x), {}),
        (lambda x: -jnp.negative(x), {}),
        (lambda x: x + (-x[::-1]), {"sub": 3}),
        (lambda x: (-x) * (-x), {"mul": 3}),
        (lambda x: x * x[::-1], {"mul": 2}),  # of which two are one product
        (lambda x: jnp.where(jnp.array([True, False, True]), x, 2.0), {}),
        (lambda x: jnp.copysign(1.0, x), {"signbit": 3, "select": 3}),
        (lambda x: x[jnp.array([2, 0])] + jnp.arange(2.0), {"add": 1}),
        (lambda x: jnp.sin(jnp.ones(3)) + 0 * x, {}),
    ],
)
def test_what_is_known_is_not_computed(f, counts):
    x = jnp.array([0.3, -1.2, 2.0])
    program = read(f, x)
    assert program.counts() == counts
    np.testing.assert_allclose(evaluate(program, x)[0], f(x), rtol=1e-15)


def indexed(x, y):
    """Most ways to move, sum and choose entries."""
    y = y.at[1].set(x[0, 0]).at[jnp.array([0, 2])].add(x[:, 1]).at[5].add(7.0)
    table = jnp.pad(x, ((1, 0), (0, 2)), constant_values=0.5)[::-1].T
    big = jnp.einsum("ij,jk->ik", table, jnp.stack([y, y**3, jnp.flip(y)]))
    taken = jnp.take(big, jnp.array([6, 1, -1]), axis=0, mode="fill", fill_value=0.25)
    total = jnp.cumsum(y) + jnp.max(x) - jnp.min(y) + jnp.prod(y)
    moved = jax.lax.dynamic_update_slice(taken, total[None], (1, 0))
    return jnp.concatenate([moved, jnp.outer(y, y)[:2]]), jnp.all(x > 0)


def functions(x):
    """Most functions of one number, where they have a value."""
    y = 0.5 + x * x / 9
    found = [jnp.sin, jnp.cos, jnp.tan, jnp.exp, jnp.exp2, jnp.expm1, jnp.sqrt, jax.lax.rsqrt, jnp.log, jnp.log1p]
    found += [jnp.tanh, jnp.sinh, jnp.cosh, jnp.arcsinh, jnp.cbrt, jnp.floor, jnp.ceil, jnp.round, jnp.sign, jnp.abs]
    found += [jnp.arctan, jax.nn.sigmoid, jnp.reciprocal, lambda z: z**-3, lambda z: jnp.clip(z, 0.6, 0.9)]
    of_one = [f(y) for f in found] + [jnp.arcsin(y / 2), jnp.arccos(y / 2), jnp.arctanh(y / 2), jnp.arccosh(1 + y)]
    return jnp.stack([*of_one, jnp.arctan2(x, y), y**x, jnp.maximum(x, y), jnp.minimum(x, y), jnp.fmod(x, y)])


def looped(x):
    """Loops of each kind, a branch that is known and one that is not, a call of lgsim's own."""

    def step(carry, entry):
        return carry * entry + 1, carry

    last, each = jax.lax.scan(step, x[0], x, reverse=True)
    other, _ = scan_last(step, x[1], x, prepare=jnp.cos)
    count = jax.lax.fori_loop(0, 3, lambda i, y: y + x[i] * i, last)
    known = jax.lax.cond(len(x) > 2, lambda: count, lambda: other)
    chosen = jax.lax.switch((x[0] > 0).astype(int), [lambda: known, lambda: -known])
    return batch_last(lambda y: jnp.stack([y[0] * y[1], y[2]]))(x), each + other, chosen


@pytest.mark.parametrize(
    "f, shapes", [(indexed, [(2, 2), (4,)]), (functions, [(3,)]), (looped, [(3,)])], ids=["arrays", "numbers", "loops"]
)
def test_equals_jax(f, shapes):
    rng = np.random.default_rng(1)
    args = [jnp.asarray(rng.uniform(-1.5, 1.5, shape)) for shape in shapes]
    program = read(f, *args)
    for found, right in zip(evaluate(program, *args), jax.tree.leaves(f(*args)), strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=1e-13, atol=1e-14)


def test_forward_dynamics_in_fifty_digits():
    """The floats lie as near to the exact value as rounding lets them, and inverse dynamics leads back exactly."""
    mpmath = pytest.importorskip("mpmath")
    model = trees.build(*CHAIN)
    q, v, tau = trees.state(model)
    numbers, structure = jax.tree.flatten((model, q, v, tau))
    forward = read(lambda *x: forward_dynamics(*jax.tree.unflatten(structure, x)), *numbers)
    inverse = read(lambda *x: inverse_dynamics(*jax.tree.unflatten(structure, x)), *numbers)
    with mpmath.workdps(50):
        exact = [np.vectorize(lambda x: mpmath.mpf(float(x)), otypes=[object])(np.asarray(x)) for x in numbers]
        arithmetic = python_operations(mpmath)
        (a,) = evaluate(forward, *exact, operations=arithmetic)
        (back,) = evaluate(inverse, *exact[:-1], a, operations=arithmetic)
        np.testing.assert_allclose((back - exact[-1]).astype(float), 0, atol=1e-45)
    np.testing.assert_allclose(forward_dynamics(model, q, v, tau), a.astype(float), rtol=1e-13)
    np.testing.assert_allclose(evaluate(forward, *numbers)[0], a.astype(float), rtol=1e-13)


def test_counts_of_an_arm():
    """Seven revolute joints: with the model's numbers as inputs, and constant, when all about placements folds."""
    model = lgsim.load_urdf(lgsim.data.arm7())
    state = model.neutral(), jnp.zeros(7), jnp.zeros(7)
    assert len(read(forward_dynamics, model, *state).statements) <= 5620
    assert len(read(lambda *x: forward_dynamics(model, *x), *state).statements) <= 2986


def test_size_is_linear_in_bodies():
    sizes = []
    for n in (4, 5, 6):
        model = trees.build(["revolute"] * n, range(-1, n - 1))
        sizes.append(len(read(forward_dynamics, model, *trees.state(model)).statements))
    assert sizes[2] - sizes[1] == sizes[1] - sizes[0] < 1000, sizes


@pytest.mark.parametrize(
    "f, words",
    [
        (lambda x: jax.lax.while_loop(lambda y: y[0] < 9, lambda y: 2 * y, x), "a loop whose end"),
        (lambda x: x[jnp.argmax(x)], "argmax"),
        (lambda x: x[x[0].astype(int)], "an index"),
        (lambda x: jnp.linalg.solve(jnp.outer(x, x), x), "no rule for the primitive lu"),
        (lambda x: jax.random.normal(jax.random.key(0), x.shape) * x, "dtype|primitive"),
        (lambda x: jax.lax.fori_loop(0, 10**9, lambda i, y: jnp.sin(y), x), "more than 1000 statements"),
        (lambda x: jnp.sum(jnp.sin(jnp.arange(2000.0) * x[0])), "statements"),
    ],
)
def test_what_is_no_program_says_why(f, words):
    with pytest.raises(UnsupportedProgramError, match=words):
        read(f, jnp.ones(3), limit=1000)


def test_equal_functions_have_equal_digests():
    x = jnp.ones(3)
    digest = read(lambda x: jnp.sin(x) * 2, x).digest()
    assert digest == read(lambda y: 2 * jnp.sin(y) + 0, x).digest()
    assert digest != read(lambda x: jnp.sin(x) * 3, x).digest()
    assert digest != read(lambda x: jnp.cos(x) * 2, x).digest()


def test_inputs_have_the_shapes_of_the_program():
    program = read(lambda x: x + 1, jnp.ones(3))
    with pytest.raises(ValueError, match="expected shapes"):
        evaluate(program, np.ones(2))
