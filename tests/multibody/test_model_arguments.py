"""A model as an argument: it has no hash, is equal by its numbers, and its numbers are of one type."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody.model import check_model

ARGUMENT = r"a Model is an argument of a jitted function, not a static one.* leave it out of static_argnums"


@pytest.fixture(scope="module")
def model():
    return lgsim.load_urdf(lgsim.data.arm7())


@pytest.mark.parametrize("use", [hash, lambda model: {model}, lambda model: {model: 0}], ids=["hash", "set", "dict"])
def test_a_hash_is_refused_in_words(model, use):
    with pytest.raises(TypeError, match=ARGUMENT):
        use(model)


def test_a_static_model_is_refused_in_words(model):
    with pytest.raises(ValueError, match=ARGUMENT):
        jax.jit(lgsim.mass_matrix, static_argnums=0)(model, jnp.zeros(7))


def test_a_tree_of_axes_keeps_its_hash(model):
    axes = jax.tree.map(lambda x: 0, model)
    assert hash(axes) == hash(jax.tree.map(lambda x: 0, model))
    assert axes != jax.tree.map(lambda x: None, model)


def test_models_are_equal_by_their_numbers(model):
    same = jax.tree.map(lambda x: np.array(x), model)
    assert model == same
    assert same in [model]
    assert model != model.replace(damping=model.damping.at[3].add(1e-12))
    assert model != jax.tree.map(lambda x: x.astype(jnp.float32), model)
    assert model != model.add_frame("tip", model.frame_names[-1])
    assert model not in (None, "model", 1.0)


def test_of_traced_models_equality_is_traced(model):
    equal = jax.jit(lambda a, b: jnp.asarray(a == b))
    assert equal(model, model.replace(gravity=model.gravity))
    assert not equal(model, model.replace(gravity=jnp.zeros(3)))


def cast(x):
    return x.astype(jnp.float32)


WAYS = {
    "dataclasses.replace": lambda model: dataclasses.replace(model, inertias=cast(model.inertias)),
    "eqx.tree_at": lambda model: eqx.tree_at(lambda m: m.inertias, model, cast(model.inertias)),
    "jax.tree.map": lambda model: jax.tree.map(lambda x: cast(x) if x is model.inertias else x, model),
    "numpy": lambda model: dataclasses.replace(model, inertias=np.asarray(model.inertias, np.float32)),
}
CALLS = {
    "mass_matrix": lambda model, x: lgsim.mass_matrix(model, x),
    "jit": lambda model, x: jax.jit(lgsim.mass_matrix)(model, x),
    "vmap": lambda model, x: jax.vmap(lgsim.mass_matrix, (None, 0))(model, x[None]),
    "grad": lambda model, x: jax.grad(lambda m: lgsim.mass_matrix(m, x).sum())(model),
    "rollout": lambda model, x: lgsim.rollout(model, x, x, dt=0.1, steps=1),
    "tangent_grad": lambda model, x: lgsim.tangent_grad(lambda q: q @ q, model, x),
    "Plant": lambda model, x: lgsim.identify.Plant(model),
    "MultibodyDynamics": lambda model, x: lgsim.optimize.MultibodyDynamics(model, dt=0.1),
}


@pytest.mark.parametrize("way", WAYS)
def test_numbers_of_two_types_are_refused(model, way):
    mixed = WAYS[way](model)
    with pytest.raises(
        TypeError, match="model: expected parameters of one dtype, got float64, but inertias is float32; "
    ):
        lgsim.mass_matrix(mixed, jnp.zeros(7))


@pytest.mark.parametrize("call", CALLS)
def test_every_door_refuses_them(model, call):
    mixed = dataclasses.replace(model, gravity=cast(model.gravity), mimic=cast(model.mimic))
    with pytest.raises(TypeError, match=r"model: expected parameters of one dtype.* mimic is float32 and gravity"):
        CALLS[call](mixed, jnp.zeros(7))


def test_the_remedies_work(model):
    mixed = dataclasses.replace(model, gravity=cast(model.gravity))
    assert jax.tree.map(lambda x: x.astype("float64"), mixed).dtype == jnp.float64
    check_model(jax.tree.map(lambda x: x.astype("float64"), mixed))
    joined = model.replace(inertias=cast(model.inertias), gravity=cast(model.gravity))
    check_model(joined)
    assert joined.inertias.dtype == joined.gravity.dtype == jnp.float64


@pytest.mark.parametrize("leaf", [np.array([0, 0, -9]), np.zeros(3, bool), None, np.zeros(3, jax.dtypes.float0), 9.81])
def test_what_is_no_float_passes(model, leaf):
    check_model(dataclasses.replace(model, gravity=leaf))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_models_of_one_type_pass_and_so_do_traced_ones(model, dtype):
    own = jax.tree.map(lambda x: x.astype(dtype), model)
    check_model(own)
    jax.jit(check_model)(own)
    jax.vmap(check_model)(jax.tree.map(lambda x: x[None], own))


@pytest.mark.parametrize("leaf", [True, 0])
def test_masks_and_axes_are_no_machines(model, leaf):
    with pytest.raises(
        TypeError, match=f"model: expected parameters of float32 or float64, got {type(leaf).__name__} as"
    ):
        lgsim.mass_matrix(jax.tree.map(lambda x: leaf, model), jnp.zeros(7))
