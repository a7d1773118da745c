"""Transformations in each other, of batches, loops and recursions: against single states and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import checkpoint_policies, export
from jax.sharding import Mesh, PartitionSpec

import lgsim
from tests.multibody import trees

MODEL = trees.build(["revolute", "prismatic"], [-1, 0], seed=3)
Q = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)))
FUNCTIONS = {
    "forward_dynamics": lambda q: lgsim.forward_dynamics(MODEL, q, 2 * q, 0.3 * q),
    "rollout": lambda q: lgsim.rollout(MODEL, q, q, dt=0.01, steps=3).v,
}
of_each = pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
with_and_without_check = pytest.mark.parametrize("check", [True, False], ids=["check_vma", "no_check"])
OWN, SAME = PartitionSpec("b"), PartitionSpec()


def map_of_one_device(f, inputs=OWN, outputs=OWN, check=True):
    """The types of arrays in a map, and with them its rules, are those of any number of devices."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("b",))
    return jax.shard_map(f, mesh=mesh, in_specs=inputs, out_specs=outputs, check_vma=check)


@pytest.mark.repeats
@of_each
def test_what_differs_between_devices_is_not_returned_as_the_same(f):
    with pytest.raises(ValueError, match=r"out_specs.*replicat"):
        jax.eval_shape(map_of_one_device(jax.vmap(f), outputs=SAME), Q)


@pytest.mark.slow
@with_and_without_check
@of_each
def test_an_empty_batch_in_a_shard_map(f, check):
    def total(s, q):
        return jax.lax.psum(jnp.sum(jax.vmap(lambda x: f(s * x))(q)), "b")

    assert jax.jit(map_of_one_device(jax.vmap(f), check=check))(Q[:0]).shape == (0, *f(Q[0]).shape)
    slope = jax.grad(map_of_one_device(total, (SAME, OWN), SAME, check))
    assert float(jax.jit(slope)(1.0, Q[:0])) == 0


@pytest.mark.slow
@with_and_without_check
@of_each
def test_batches_of_batches_around_and_in_a_shard_map(f, check):
    nested = Q.reshape(2, 2, 2)
    right = jnp.stack([f(q) for q in Q]).reshape(2, 2, *f(Q[0]).shape)
    inside = map_of_one_device(jax.vmap(jax.vmap(f)), check=check)
    around = jax.vmap(map_of_one_device(jax.vmap(f), check=check), in_axes=1, out_axes=1)
    for found in (jax.jit(inside)(nested), jax.jit(around)(nested)):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["programs", "portable", "jax"])
def test_a_gradient_exported_for_two_symbolic_batches(way):
    f = FUNCTIONS["forward_dynamics"]
    slopes = jax.grad(lambda s, q: jnp.sum(jax.vmap(jax.vmap(lambda x: f(s * x)))(q) ** 2), (0, 1))
    b, c = export.symbolic_shape("b, c")
    kinds = jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct((b, c, 2), jnp.float64)
    if way == "jax":
        with lgsim.llvm_lowering(False):
            made = export.export(jax.jit(slopes))(*kinds)
    else:
        made = lgsim.export(slopes, portable=way == "portable")(*kinds)
    for q in (Q.reshape(2, 2, 2), Q[None, :3], Q[None, :1]):
        for found, right in zip(made.call(1.1, q), slopes(1.1, q), strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-9)


@of_each
def test_a_donated_argument_is_used_up(f):
    donated = jnp.array(Q)
    found = jax.jit(jax.vmap(lambda q: (f(q), q)), donate_argnums=0)(donated)[0]
    assert donated.is_deleted()
    np.testing.assert_allclose(found, jnp.stack([f(q) for q in Q]), rtol=1e-12)


POLICIES = {
    "everything": checkpoint_policies.everything_saveable,
    "nothing": checkpoint_policies.nothing_saveable,
    "products": checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": checkpoint_policies.save_only_these_names("none of them"),
}


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@of_each
def test_gradients_do_not_depend_on_what_is_kept(f, policy):
    g = jax.grad(lambda q: jnp.sum(f(q) ** 2))
    kept = jax.grad(jax.checkpoint(lambda q: jnp.sum(f(q) ** 2), policy=policy))
    np.testing.assert_allclose(jax.jit(kept)(Q[0]), jax.jit(g)(Q[0]), rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(kept))(Q), jnp.stack([g(q) for q in Q]), rtol=1e-10)


@pytest.mark.slow
def test_debug_nans_in_a_loop():
    def last(model):
        step = lambda v, q: (v + lgsim.forward_dynamics(model, q, q, q), None)  # noqa: E731
        return jax.jit(lambda q: jax.lax.scan(step, jnp.zeros(2), q)[0])(Q)

    right = sum(lgsim.forward_dynamics(MODEL, q, q, q) for q in Q)
    jax.config.update("jax_debug_nans", True)
    try:
        np.testing.assert_allclose(last(MODEL), right, rtol=1e-12)
        with pytest.raises(FloatingPointError, match="nan"):
            last(MODEL.replace(inertias=0 * MODEL.inertias))
    finally:
        jax.config.update("jax_debug_nans", False)


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.int32, jnp.bool_], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(
    "f", [lgsim.forward_dynamics, lambda model, q, v, _: lgsim.rollout(model, q, v, dt=0.1, steps=1)]
)
@pytest.mark.usefixtures("without_import_hook")
def test_other_types_are_refused_by_name(f, dtype):
    x = Q[0].astype(dtype)
    with pytest.raises(TypeError, match=rf"\bq.*: expected.*float32 or float64, got {jnp.dtype(dtype)}"):
        f(MODEL, x, x, x)


@pytest.mark.usefixtures("without_import_hook")
def test_python_integers_are_numbers():
    found, right = (lgsim.forward_dynamics(MODEL, *[[one, zero]] * 3) for one, zero in ((1, 0), (1.0, 0.0)))
    np.testing.assert_array_equal(found, right)
