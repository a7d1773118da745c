"""The mass matrix against Pinocchio, with joints that mimic, without mass, in batches of models and in float32."""

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.mass_matrix import mass_matrix
from lgsim.multibody import joints
from lgsim.multibody.builder import ModelBuilder
from tests.dynamics.machines import cases, close, mass_by_columns, mimicking
from tests.multibody import trees
from tests.multibody.twin import Twin


def crba(twin, q):
    M = pin.crba(twin.pin, twin.data, twin.q(q))
    return twin.matrix(np.triu(M) + np.triu(M, 1).T)


@pytest.mark.parametrize("case", cases(quick=["floating chain"]))
def test_equals_pinocchio(case):
    model = trees.build(*trees.CASES[case], armature=True)
    twin, (q, *_) = Twin(model), trees.state(model)
    M = mass_matrix(model, q)
    close(M, crba(twin, q))
    np.testing.assert_array_equal(M, M.T)


def test_joints_that_mimic_equal_pinocchio():
    model = mimicking(armature=0.0)
    free = Twin(mimicking({}, 0.0)).pin
    for leader, follower, ratio, offset in (("joint0", "joint2", -1.7, 0.3), ("joint1", "joint3", 0.5, -0.2)):
        free = pin.transformJointIntoMimic(free, free.getJointId(leader), free.getJointId(follower), ratio, offset)
    data = free.createData()
    q, v, a = trees.state(model)
    M = pin.crba(free, data, np.asarray(q))
    close(mass_matrix(model, q), np.triu(M) + np.triu(M, 1).T)
    close(inverse_dynamics(model, q, v, a), pin.rnea(free, data, *(np.asarray(x) for x in (q, v, a))))


@pytest.mark.slow
@pytest.mark.quick
def test_columns_are_inverse_dynamics_on_a_base_with_mimicry():
    builder = ModelBuilder()
    rng = np.random.default_rng(4)
    for i, kind in enumerate([joints.Free(), joints.Prismatic(), joints.Revolute(), joints.Revolute()]):
        builder.add_body(
            f"body{i}",
            "world" if i == 0 else f"body{(i - 1) // 2}",
            kind,
            placement=trees.pose(rng),
            mimic=("body2", 0.7, 0.1) if i == 3 else None,
            armature=0.1,
            **trees.body(rng),
        )
    model = builder.build()
    q, *_ = trees.state(model)
    close(mass_matrix(model, q), mass_by_columns(model, q))


@pytest.mark.slow
def test_far_from_the_worlds_origin():
    """Nothing depends on where the base is, to the last digit."""
    model = trees.build(*trees.CASES["floating"])
    q, *_ = trees.state(model)
    np.testing.assert_array_equal(mass_matrix(model, q.at[:3].add(1e9)), mass_matrix(model, q))
    fixed = trees.build(*trees.CASES["revolute chain"])
    q, *_ = trees.state(fixed)
    moved = fixed.replace(placements=fixed.placements.at[0, :3, 3].add(2.0**30))
    close(mass_matrix(moved, q), mass_matrix(fixed, q), 1e-14)


def test_massless_body_inside_a_tree():
    """Regression: mujoco issue 1349, pinocchio issue 62: a link without mass that carries others."""
    model = trees.build(["revolute"] * 4, [-1, 0, 1, 1])
    model = model.replace(inertias=model.inertias.at[1].set(0))
    q, *_ = trees.state(model)
    M = mass_matrix(model, q)
    close(M, mass_by_columns(model, q))
    assert np.linalg.eigvalsh(M)[0] > 0
    leaf = model.replace(inertias=model.inertias.at[3].set(0), armature=model.armature.at[3].set(0.5))
    M = np.asarray(mass_matrix(leaf, q))
    np.testing.assert_array_equal(M[3], [0, 0, 0, 0.5])


@pytest.mark.slow
def test_gradient_with_respect_to_an_inertia_is_symmetric():
    """Regression: warp issue 585, where the gradient of an inertia matrix was not symmetric."""
    model = trees.build(*trees.CASES["revolute tree"])
    q, v, _ = trees.state(model)
    places = np.array([[4, 5, 7], [5, 6, 8], [7, 8, 9]])

    @jax.jit
    def energy(I):  # noqa: E741
        entries = 0.5 * (I + I.T)
        parameters = model.inertias.at[3, places].set(entries)
        return v @ mass_matrix(model.replace(inertias=parameters), q) @ v / 2

    gradient = jax.jit(jax.grad(energy))(model.inertias[3][places])
    np.testing.assert_array_equal(gradient, gradient.T)
    assert np.abs(gradient).max() > 0.01
    step = jnp.zeros((3, 3)).at[0, 1].set(1e-3).at[1, 0].set(1e-3)  # the energy is linear in it
    change = energy(model.inertias[3][places] + step) - energy(model.inertias[3][places] - step)
    close(jnp.sum(gradient * step), change / 2, 1e-9)


@pytest.mark.slow
def test_batches_of_states_and_models():
    """Regression: differentiable-robot-model issue 31, where all samples of a batch had the first one's inertia."""
    model = trees.build(*trees.CASES["revolute tree"], armature=True)
    q, *_ = trees.state(model, batch=(2, 3))
    M = mass_matrix(model, q)
    for i in np.ndindex(2, 3):
        close(M[i], mass_matrix(model, q[i]), 1e-14)
    scales = jnp.array([0.5, 1.0, 2.0])
    models = jax.vmap(lambda s: model.replace(inertias=model.inertias * s, armature=model.armature * s))(scales)
    found = jax.vmap(mass_matrix, in_axes=(0, None))(models, q[0, 0])
    close(found, scales[:, None, None] * M[0, 0][None], 1e-14)
    found = jax.vmap(lambda s: mass_matrix(model.replace(armature=model.armature + s), q[0, 0]))(scales)
    close(found - M[0, 0][None], scales[:, None, None] * jnp.eye(model.nv)[None], 1e-13)
    bare = model.replace(armature=jnp.zeros_like(model.armature))
    found = jax.vmap(lambda s: mass_matrix(bare.replace(inertias=model.inertias * s), q[0, 0]))(scales)
    close(found, scales[:, None, None] * (M[0, 0] - jnp.diag(model.armature))[None], 1e-14)


@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute tree"], dtype=jnp.float32)
    q, *_ = trees.state(model)
    M = mass_matrix(model, q)
    assert M.dtype == jnp.float32
    close(M, crba(Twin(model), q), 2e-6)
