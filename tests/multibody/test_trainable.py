"""The mask of what an optimizer can change: under weight decay infinite limits stay infinite, and the rest moves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lgsim

STEPS = 3


@pytest.fixture(scope="module")
def model():
    body = {"mass": 1.0, "inertia": np.eye(3), "damping": 0.3}
    builder = lgsim.ModelBuilder().add_body("arm", "world", lgsim.joints.Revolute(), **body)
    return builder.add_body("hand", "arm", lgsim.joints.Prismatic(), **body).build()


def loss(model):
    q = jnp.array([0.3, 0.2])
    return jnp.sum(lgsim.inverse_dynamics(model, q, q, q) ** 2)


def trained(optimizer, model, loss=loss):
    state = optimizer.init(model)
    for _ in range(STEPS):
        slope = jax.grad(loss)(model)
        # optax counts steps by integers among floats
        with jax.numpy_dtype_promotion("standard"):
            updates, state = optimizer.update(slope, state, model)
        model = optax.apply_updates(model, updates)
    return model


def nans(tree):
    return sum(int(jnp.isnan(x).sum()) for x in jax.tree.leaves(tree))


def test_the_mask(model):
    mask = lgsim.trainable(model)
    assert jax.tree.structure(mask) == jax.tree.structure(model)
    assert all(type(leaf) is bool for leaf in jax.tree.leaves(mask))
    assert np.isinf(model.drives).any()
    assert not mask.drives
    assert mask.inertias and mask.gravity and mask.placements
    finite = model.replace(lower=-1.0, upper=1.0, velocity_limit=2.0, effort_limit=3.0)
    assert lgsim.trainable(finite).drives


@pytest.mark.slow
def test_without_it_limits_become_nan(model):
    assert nans(trained(optax.adamw(1e-3, weight_decay=0.1), model)) > 0


MASKED = {
    "adamw(mask)": lambda mask: optax.adamw(1e-3, weight_decay=0.1, mask=mask),
    "masked(adamw)": lambda mask: optax.masked(optax.adamw(1e-3, weight_decay=0.1), mask),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", MASKED)
def test_decay_leaves_infinite_limits(model, way):
    after = trained(MASKED[way](lgsim.trainable(model)), model)
    assert nans(after) == 0
    for name in ("lower", "upper", "velocity_limit", "effort_limit"):
        np.testing.assert_array_equal(getattr(after, name), getattr(model, name))
    assert not np.array_equal(after.inertias, model.inertias)


@pytest.mark.slow
def test_what_masked_hands_on_can_be_stopped(model):
    mask = lgsim.trainable(model)
    others = jax.tree.map(lambda x: not x, mask)
    optimizer = optax.chain(
        optax.masked(optax.adamw(1e-3, weight_decay=0.1), mask), optax.masked(optax.set_to_zero(), others)
    )
    np.testing.assert_array_equal(trained(optimizer, model).drives, model.drives)


@pytest.mark.slow
def test_partition(model):
    numbers, rest = eqx.partition(model, lgsim.trainable(model))
    assert numbers.drives is None
    assert rest.inertias is None
    after = eqx.combine(
        trained(optax.adamw(1e-3, weight_decay=0.1), numbers, lambda x: loss(eqx.combine(x, rest))), rest
    )
    assert nans(after) == 0
    np.testing.assert_array_equal(after.drives, model.drives)
    assert not np.array_equal(after.inertias, model.inertias)


def test_other_leaves_and_trees():
    tree = {"a": 1.0, "b": np.inf, "c": 1, "d": True, "e": np.zeros(2, int), "f": None, "g": np.ones(2), "h": "text"}
    expected = {"a": True, "b": False, "c": False, "d": False, "e": False, "f": None, "g": True, "h": False}
    assert lgsim.trainable(tree) == expected


def test_traced_numbers_are_refused(model):
    with pytest.raises(ValueError, match=r"trainable: expected concrete values.* mask=lgsim.trainable"):
        jax.jit(lambda m: lgsim.trainable(m))(model)
