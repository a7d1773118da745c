"""What LLVM makes of a program is what XLA makes of it, to rounding, wherever it stands."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs.compiler import compiler
from lgsim._compile.xla import batch_last, linear_last
from lgsim.dynamics import (
    center_of_mass,
    forward_dynamics,
    forward_kinematics,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    mass_matrix,
)
from tests.multibody import trees

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")

MACHINES = {
    "chain": (["revolute", "helical"], [-1, 0]),
    "floating": (["free", "revolute", "revolute"], [-1, 0, 0]),
    "groups": (["spherical", "revolute", "planar"], [-1, 0, 0]),
}
# what XLA compiles for a machine more takes ten seconds
NAMES = ["floating", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in MACHINES if name != "floating")]
ROUNDING = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5}


def machine(name, dtype=np.float64):
    return trees.build(*MACHINES[name], seed=3, armature=True, dtype=dtype)


def compiled(f, *args, calls=None):
    """The results of f, and how many programs of LLVM it calls."""
    program = jax.jit(f).lower(*args).compile()
    return program(*args), program.as_text().count('custom_call_target="lgsim_')


def same(f, *args, calls=1, relative=None):
    """Equal by both lowerings, of which the first one calls LLVM's programs at least so often and the other never."""
    (found, count), (right, none) = (None, None), (None, None)
    with lgsim.llvm_lowering(True):
        found, count = compiled(f, *args)
    with lgsim.llvm_lowering(False):
        right, none = compiled(f, *args)
    assert count >= calls and none == 0, (count, none)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, right)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(right), strict=True):
        bound = ROUNDING[np.dtype(b.dtype)] if relative is None else relative
        np.testing.assert_allclose(a, b, rtol=0, atol=bound * (1e-300 + np.max(np.abs(b), initial=0)))
    return found


def derivatives(f, model):
    """Value, product with the Jacobian and with its transpose, of a function of (model, q, v, x)."""

    def found(q, v, x):
        value, back = jax.vjp(partial(f, model), q, v, x)
        return value, jax.jvp(partial(f, model), (q, v, x), (q + 1, x, v))[1], back(value)

    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_forward_dynamics_and_both_products(name):
    model = machine(name)
    q, v, tau = trees.state(model, batch=(9,))
    same(jax.vmap(derivatives(forward_dynamics, model)), q, v, tau, calls=3, relative=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_other_quantities(name):
    model = machine(name)
    q, v, a = trees.state(model, batch=(9,))

    def quantities(q, v, a):
        return (
            inverse_dynamics(model, q, v, a), inverse_dynamics_derivatives(model, q, v, a), mass_matrix(model, q),
            forward_kinematics(model, q), center_of_mass(model, q), lgsim.kinetic_energy(model, q, v),
        )  # fmt: skip

    same(jax.vmap(quantities), q, v, a, calls=5)


@pytest.mark.repeats
@pytest.mark.parametrize("batch", [(), (1,), (7,), (8,), (15,), (1000,), (0,)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_batches_of_each_size(batch, dtype):
    """From single states and padded vectors to those that begin anew where less than a vector is left."""
    model = machine("chain", dtype)
    q, v, tau = trees.state(model, batch=batch)
    same(partial(forward_dynamics, model), q, v, tau, calls=int(0 not in batch))


@pytest.mark.slow
def test_a_batch_of_models():
    model = machine("chain")
    q, v, tau = trees.state(model, batch=(5,))
    models = jax.tree.map(lambda x: x[None] * jnp.linspace(1, 1.1, 5, dtype=x.dtype).reshape(-1, *[1] * x.ndim), model)
    same(jax.vmap(forward_dynamics), models, q, v, tau)
    same(jax.vmap(forward_dynamics, (0, None, None, None)), models, q[0], v[0], tau[0])


@pytest.mark.repeats
@pytest.mark.parametrize(
    "inner, outer", [((0, None, 0), (0, 0, None)), ((None, 0, 0), (1, 2, 0)), ((1, 0, 0), (0, 0, 0))]
)
def test_nested_batches(inner, outer):
    model = machine("chain")
    full = dict(zip("qvt", trees.state(model, batch=(2, 3)), strict=True))

    def argument(x, one, other):
        x = x if one is not None else x[:, 0]
        x = x if other is not None else x[0]
        if one is not None and one == 1:
            x = jnp.swapaxes(x, -1, -2)
        return x if other is None else jnp.moveaxis(x, 0, other)

    args = [argument(x, i, o) for x, i, o in zip(full.values(), inner, outer, strict=True)]
    same(jax.vmap(jax.vmap(partial(forward_dynamics, model), inner), outer), *args)


@pytest.mark.slow
def test_second_order():
    model = machine("chain")
    q, v, tau = trees.state(model, batch=(2,))

    def total(q, v, tau):
        return jnp.sum(forward_dynamics(model, q, v, tau) ** 2)

    same(jax.vmap(jax.hessian(total, (0, 1, 2))), q, v, tau, relative=1e-11)
    same(jax.vmap(jax.jacrev(jax.grad(total))), q, v, tau, relative=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [(), (3,)])
def test_inside_loops_and_branches(batch):
    """With reverse mode through the loop, and a branch taken for some."""
    model = machine("chain")
    q, v, tau = trees.state(model, batch=batch)

    def step(state, tau):
        q, v = state
        a = jax.lax.cond(q[0] > 0, lambda: forward_dynamics(model, q, v, tau), lambda: tau)
        return (q + 1e-2 * v, v + 1e-2 * a), a

    def end(q, v, tau):
        (q, v), a = jax.lax.scan(step, (q, v), jnp.stack([tau, -tau, tau]))
        return jnp.sum(q * q) + jnp.sum(v) + jnp.sum(a)

    f = jax.value_and_grad(end, (0, 1, 2))
    same(jax.vmap(f) if batch else f, q, v, tau, relative=1e-12)


@batch_last
def every_kind(x, flags, count):
    """Values of all kinds, in and out, besides what is long enough to be compiled."""
    total = x[0] * 0 + 1
    for k in range(60):
        total = total * jnp.cos(x[k % 3] + k) + jnp.exp(-x[(k + 1) % 3])
    whole = jnp.floor(4 * x[0]).astype(count.dtype) // 2 + count * 3 % 7
    numbers = jnp.where(flags[0] & (x[1] > 0), total, -total), whole, jnp.sign(x), whole.astype(x.dtype)
    chosen = flags[0] | ~flags[1] ^ (x[2] < 1), jnp.maximum(x[0], x[1]), jnp.isfinite(x[0] / (x[1] - x[1]))
    return *numbers, *chosen, jnp.zeros((0, *x.shape[1:])), jnp.signbit(x[2]), jnp.arctan2(x[1], x[2])


def test_every_kind_of_numbers():
    rng = np.random.default_rng(0)
    x, flags = jnp.asarray(rng.normal(size=(11, 3))), jnp.asarray(rng.normal(size=(11, 2)) > 0)
    count = jnp.arange(11, dtype=jnp.int32)
    with lgsim.llvm_lowering(True):
        found, calls = compiled(jax.vmap(every_kind), x, flags, count)
    with lgsim.llvm_lowering(False):
        right, _ = compiled(jax.vmap(every_kind), x, flags, count)
    assert calls == 1
    chex.assert_trees_all_equal_shapes_and_dtypes(found, right)
    chex.assert_trees_all_close(found, right, rtol=1e-13, atol=1e-300)
    single = every_kind(x[0], flags[0], count[0])
    chex.assert_trees_all_close(single, jax.tree.map(lambda b: b[0], right), rtol=1e-13)


def test_linear_functions_are_transposed():
    """A linear function and what reverse mode pulls back by are programs."""
    A = np.random.default_rng(0).normal(size=(12, 12))

    def product(args, x):
        return jnp.stack([sum(float(A[i, j]) * args[0][j] * x[j] for j in range(12)) for i in range(12)])

    def back(args, y):
        return jnp.stack([sum(float(A[i, j]) * args[0][j] * y[i] for i in range(12)) for j in range(12)])

    f = linear_last(product, back)
    s, x = jnp.arange(1.0, 13.0), jnp.ones((5, 12))
    same(jax.vmap(lambda x: (f((s,), x), jax.linear_transpose(lambda x: f((s,), x), x)(x))), x, calls=2)


def test_what_is_no_number_stays_none():
    """A state that is not finite says so, and no other state of its vector."""
    model = machine("chain")
    q, v, tau = trees.state(model, batch=(8,))
    with lgsim.llvm_lowering(True):
        right = jax.jit(partial(forward_dynamics, model))(q, v, tau)
        found = jax.jit(partial(forward_dynamics, model))(q.at[3, 1].set(jnp.nan), v, tau)
    assert not np.isfinite(found[3]).any()
    np.testing.assert_array_equal(np.delete(found, 3, 0), np.delete(right, 3, 0))


def test_the_switch_is_part_of_what_is_compiled():
    """One function of ``jit``, called with and without."""
    model = machine("chain")
    args = trees.state(model, batch=(4,))
    f = jax.jit(partial(forward_dynamics, model))
    texts = []
    for enabled in (True, False, True):
        with lgsim.llvm_lowering(enabled):
            f(*args)
            texts.append("lgsim_" in f.lower(*args).compile().as_text())
    assert texts == [True, False, True]


def test_a_changed_mass_compiles_nothing():
    model = machine("chain")
    args = trees.state(model, batch=(4,))
    f = jax.vmap(forward_dynamics, (None, 0, 0, 0))
    once = jax.jit(chex.assert_max_traces(lambda *x: f(*x), 1))
    with lgsim.llvm_lowering(True):
        before = once(model, *args)
        heavier = model.replace(inertias=model.inertias * 1.5)
        found = once(heavier, *args)
    assert np.max(np.abs(found - before)) > 1e-3
    with lgsim.llvm_lowering(False):
        np.testing.assert_allclose(found, jax.jit(f)(heavier, *args), rtol=1e-12)
