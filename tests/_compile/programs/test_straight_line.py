"""A function of one state as one program: what it gives, wherever it stands, and what it leaves to XLA."""

from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim._compile.programs.compiler import compiler
from lgsim._compile.xla import batch_last, scan_last, straight_line
from lgsim.montecarlo.engine import Engine, program_key
from lgsim.simulation import rollout
from tests._compile.programs.test_lowerings import compiled, machine, same
from tests.montecarlo import studies
from tests.multibody import trees

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")

WEIGHTS = np.linspace(-1, 1, 64).reshape(8, 8)


def recurrence(x, scale):
    """Something of more than a hundred operations, with numbers that it closes over."""
    y = jnp.tanh(WEIGHTS @ x) * scale
    return {"y": y - x, "size": jnp.sum(y * y)}


@pytest.mark.parametrize("batch", [(), (1,), (9,), (2, 3)], ids=str)
def test_batches(batch):
    x, scale = jnp.broadcast_to(jnp.linspace(0, 1, 8), (*batch, 8)), jnp.asarray(0.7)
    f = straight_line(recurrence)
    for _ in batch:
        f = jax.vmap(f, (0, None))
    same(f, x, scale, calls=1)


def test_an_axis_in_the_middle_and_one_that_the_result_does_not_depend_on():
    x, scales = jnp.linspace(0, 1, 32).reshape(8, 4), jnp.linspace(0, 1, 3)
    inner = jax.vmap(straight_line(recurrence), (1, None))
    found = same(jax.vmap(inner, (None, 0)), x, scales, calls=1)
    np.testing.assert_allclose(found["y"][2, 3], recurrence(x[:, 3], scales[2])["y"], rtol=0, atol=1e-14)


def test_derivatives_are_those_of_the_function():
    """Both modes and the second order, in a batch, by what it is called with and by what it closes over."""

    def loss(wrap, x, scale):
        return wrap(lambda x: recurrence(x, scale))(x)["size"]

    x, scale = jnp.linspace(0, 1, 72).reshape(9, 8), jnp.asarray(0.7)
    by = [partial(loss, straight_line), partial(loss, lambda f: f)]
    for derive in (jax.grad, jax.jacfwd, jax.hessian):
        found, right = (jax.jit(jax.vmap(derive(f, argnums=(0, 1)), (0, None)))(x, scale) for f in by)
        chex.assert_trees_all_close(found, right, rtol=1e-13, atol=1e-14)


def test_a_rule_whose_value_is_a_program_beside_a_function_that_is_none():
    """In a loop and a batch JAX takes the batch's axis of the function for that of the rule."""

    f = jax.custom_jvp(batch_last(jnp.tanh))

    def long(x):
        y = recurrence(x, jnp.asarray(1.0))["y"]
        return jnp.tanh(x) + (y - y)

    @f.defjvp
    def _(primals, tangents):
        y = straight_line(long)(*primals)
        return y, (1 - y * y) * tangents[0]

    def twice(x):
        return jax.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]

    def plain(x):
        return jnp.tanh(jnp.tanh(x))

    x = jnp.linspace(0, 1, 40).reshape(5, 8)
    found, right = (jax.jit(lambda x, g=g: jax.jvp(jax.vmap(g), (x,), (x + 1,)))(x) for g in (twice, plain))
    chex.assert_trees_all_close(found, right, rtol=1e-12, atol=1e-13)


def untaken():
    def loop(x, scale):
        y = jax.lax.while_loop(lambda y: jnp.sum(y * y) > 1, lambda y: y / 2, x * scale)
        return recurrence(y, scale)

    def index(x, scale):
        return recurrence(x[jnp.argmax(x) - jnp.arange(8)], scale)

    def look(x, scale):
        jax.debug.callback(lambda y: None, x)
        return recurrence(x, scale)

    return {"loop": loop, "index": index, "callback": look, "short": lambda x, scale: {"y": x * scale}}


@pytest.mark.parametrize("name", untaken())
def test_what_is_no_program_stays_as_it_is(name):
    f = untaken()[name]
    x, scale = jnp.linspace(1, 2, 32).reshape(4, 8), jnp.asarray(0.7)
    found, count = compiled(jax.vmap(straight_line(f), (0, None)), x, scale)
    right = jax.jit(jax.vmap(f, (0, None)))(x, scale)
    assert count == 0
    chex.assert_trees_all_equal(found, right)


@pytest.mark.slow
def test_a_rollout_is_a_program_called_in_each_step():
    model = machine("groups")
    q, v, tau = trees.state(model, batch=(9,))
    torques = jnp.broadcast_to(tau[:, None], (9, 4, model.nv))

    def end(model, q, v, torques):
        out = rollout(model, q, v, dt=1e-3, steps=4, torques=torques)
        return out.q, out.v

    f = jax.vmap(end, (None, 0, 0, 0))
    _, count = compiled(f, model, q, v, torques)
    assert count == 1
    same(f, model, q, v, torques, calls=1)


def test_a_loop_with_a_batch_prepares_and_steps_by_programs():
    def run(x, scale):
        xs = jnp.linspace(1, 2, 5)[:, None] * x[None]
        return scan_last(
            lambda c, z: (recurrence(c, scale)["y"] + z["y"], z["size"]), x, xs, prepare=lambda x: recurrence(x, scale)
        )

    x = jnp.linspace(0, 1, 160).reshape(20, 8)
    same(jax.vmap(run, (0, None)), x, jnp.asarray(0.7), calls=2)
    same(run, x[0], jnp.asarray(0.7), calls=2)


def test_programs_that_differ_in_a_number_inside_have_other_keys():
    """A study's compiled program is known by its text, in which the numbers of a program inside do not stand."""

    def key(factor):
        f = straight_line(lambda x: recurrence(factor * x, jnp.asarray(0.7)))
        return program_key(jax.make_jaxpr(f)(jnp.ones(8)))

    assert key(np.full(8, 2.0)) == key(np.full(8, 2.0)) != key(np.full(8, 3.0))


def test_a_study_is_the_same_whoever_compiles_it():
    """So that a store that was begun with llvmlite goes on without it."""
    engines = []
    for enabled in (True, False):
        with lgsim.llvm_lowering(enabled):
            falls = mc.Rollout(studies.pendulum(), dt=0.01, steps=2)
            start = {"v0": mc.Normal(jnp.zeros(1), 1.0)}
            engines.append(Engine(mc.Study(start, falls, [mc.outputs.final_q], samples=4)))
    texts = ["".join(str(jaxpr) for _, _, jaxpr in engine._traced) for engine in engines]
    assert "straight_line" in texts[0] and "straight_line" not in texts[1]
    assert engines[0].fingerprint == engines[1].fingerprint


def test_a_study_s_program_is_that_of_the_compiler_in_use():
    """Also where the text of the traced program does not say which one that is."""
    model, found = studies.pendulum(), []

    def forces(values):
        return {"tau": lgsim.inverse_dynamics(model, jnp.zeros(1), values["v0"], jnp.zeros(1))}

    for enabled in (True, False, True):
        with lgsim.llvm_lowering(enabled):
            engine = Engine(mc.Study({"v0": mc.Normal(jnp.zeros(1), 1.0)}, forces, samples=4))
            found.append((str(engine._traced[1][2]), engine._programs[1]))
    (first, compiled), (second, other), (_, again) = found
    assert first == second and compiled is not other and compiled is again
