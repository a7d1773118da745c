"""Forward dynamics against Pinocchio for every joint type, and its derivatives in both modes."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim._compile.xla import tiled_vmap
from lgsim.dynamics.forward_dynamics import acceleration, forward_dynamics
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.multibody import ModelBuilder, joints
from tests.dynamics.machines import cases, lanes
from tests.dynamics.test_inverse_dynamics import largest, wrenches
from tests.multibody import trees
from tests.multibody.twin import Twin


def solved(twin, q, v, tau, external=None):
    """(acceleration, condition of the mass matrix), by Pinocchio's mass matrix and a dense solve."""
    M = pin.crba(twin.pin, twin.data, twin.q(q))
    M = np.triu(M) + np.triu(M, 1).T
    forces = () if external is None else (twin.forces(external),)
    bias = pin.rnea(twin.pin, twin.data, twin.q(q), twin.v(v), np.zeros(twin.pin.nv), *forces)
    return twin.back(np.linalg.solve(M, twin.v(tau) - bias)), np.linalg.cond(M)


@pytest.mark.parametrize("name", cases(quick=["floating chain"]))
def test_equals_pinocchio(name):
    model = trees.build(*trees.CASES[name], armature=True)
    twin, external = Twin(model), wrenches(model)
    q, v, tau = trees.state(model)
    right, condition = solved(twin, q, v, tau, external)
    assert largest(forward_dynamics(model, q, v, tau, external), right) < max(1e-12, 1e-15 * condition)


@pytest.mark.quick
def test_batches_and_tiles_are_single_states():
    model = trees.build(*trees.CASES["floating chain"])
    q, v, tau = trees.state(model, batch=(7,))
    one = jax.jit(forward_dynamics)
    right = np.stack([one(model, *x) for x in zip(q, v, tau, strict=True)])
    assert largest(forward_dynamics(model, q, v, tau), right) < 1e-13
    tiles = tiled_vmap(forward_dynamics, tile=3, in_axes=(None, 0, 0, 0))
    assert largest(tiles(model, q, v, tau), right) < 1e-13


def test_batches_of_one_number_of_the_model():
    model = trees.build(*trees.CASES["floating chain"], armature=True)
    q, v, tau = trees.state(model)

    def scaled(s):
        return forward_dynamics(model.replace(armature=model.armature * s), q, v, tau)

    found = jax.vmap(scaled)(jnp.array([0.5, 1.0, 2.0]))
    for s, a in zip((0.5, 1.0, 2.0), found, strict=True):
        assert largest(a, np.asarray(jax.jit(scaled)(s))) < 1e-13


@pytest.mark.float32
def test_float32():
    model = trees.build(*trees.CASES["revolute tree"], dtype=jnp.float32)
    q, v, tau = trees.state(model)
    a = forward_dynamics(model, q, v, tau)
    assert a.dtype == jnp.float32
    assert largest(a, solved(Twin(model), q, v, tau)[0]) < 1e-4


def mimicking():
    """Three joints of which the last follows the first one, and another follows that."""
    rng = np.random.default_rng(4)
    builder, parents = ModelBuilder(), ["world", "a", "b", "c"]
    follows = {"c": ("a", -1.5, 0.3), "d": ("c", 2.0, -0.1)}
    for name, parent in zip("abcd", parents, strict=True):
        builder.add_body(
            name, parent, joints.Revolute(), placement=trees.pose(rng), axis=trees.unit(rng), mimic=follows.get(name),
            armature=0.1, **trees.body(rng),
        )  # fmt: skip
    return builder.build()


@pytest.mark.slow
def test_a_joint_that_mimics_is_a_reduction_of_coordinates():
    """Against the free machine under the constraint, ``G^T (M (G y + 0) + h) = tau``, with Pinocchio's M and h."""
    model = mimicking()
    assert (model.nq, model.nv) == (2, 2)
    G, offset = np.array([[1, 0], [0, 1], [-1.5, 0], [-3.0, 0]]), np.array([0, 0, 0.3, 2 * 0.3 - 0.1])
    free = model.replace(
        topology=replace(model.topology, mimics=(None,) * 4),
        drives=jnp.zeros((4, model.drives.shape[1])),
        mimic=jnp.array([[1.0, 0.0]] * 4),
    )
    twin = Twin(free)
    q, v, tau = trees.state(model)
    full = np.asarray(G @ q + offset)
    M = pin.crba(twin.pin, twin.data, full)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.rnea(twin.pin, twin.data, full, np.asarray(G @ v), np.zeros(4))
    reduced = G.T @ M @ G + 0.1 * G.T @ G  # the drives of followers turn with them
    a = np.linalg.solve(reduced, np.asarray(tau) - G.T @ h)
    assert largest(forward_dynamics(model, q, v, tau), a) < 1e-12
    assert largest(inverse_dynamics(model, q, v, jnp.asarray(a)), np.asarray(tau)) < 1e-12
    rule = jax.jacrev(lambda q: acceleration(model, q, v, tau, None))(jnp.asarray(q))
    step = 1e-6
    for i, e in enumerate(np.eye(2)):
        ends = [np.asarray(forward_dynamics(model, q + s * e, v, tau)) for s in (step, -step)]
        assert largest(rule[:, i], (ends[0] - ends[1]) / (2 * step)) < 1e-7


def through_the_recursion(model, external):
    """The same acceleration with the derivative that JAX makes of the recursion."""
    from lgsim.dynamics.articulated_body import forward

    return lambda dq, q, v, tau: forward(model, model.retract(q, dq), v, tau, external)


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["floating chain"], ["floating", "screws"]))
def test_the_rule_equals_the_derivative_of_the_recursion(name):
    model = trees.build(*trees.CASES[name], armature=True)
    q, v, tau = trees.state(model)
    external, step = wrenches(model), jnp.zeros(model.nv)
    right = jax.jit(jax.jacfwd(through_the_recursion(model, external), (0, 2, 3)))(step, q, v, tau)

    def ruled(dq, q, v, tau):
        return acceleration(model, model.retract(q, dq), v, tau, external)

    for mode in (jax.jacfwd, jax.jacrev):
        for found, wanted in zip(jax.jit(mode(ruled, (0, 2, 3)))(step, q, v, tau), right, strict=True):
            assert largest(found, np.asarray(wanted)) < 1e-12


LEAVES = ("inertias", "placements", "axes", "pitches", "armature", "gravity")


@pytest.mark.slow
@pytest.mark.parametrize("name", lanes(["two"], ["floating"]))
def test_every_number_of_the_model_is_differentiated(name):
    model = trees.build(*({"two": (["spherical", "helical"], [-1, 0])} | trees.CASES)[name], armature=True)
    q, v, tau = trees.state(model)
    external = wrenches(model)
    weights = np.random.default_rng(8).normal(size=model.nv)

    def value(model, external):
        return acceleration(model, q, v, tau, external) @ weights

    slope, by_wrench = jax.jit(jax.grad(value, (0, 1)))(model, external)
    value = jax.jit(value)
    for name in LEAVES:
        number = np.asarray(getattr(model, name))
        change = np.random.default_rng(3).normal(size=number.shape)
        if name == "placements":
            change[:, 3] = 0
        ends = [float(value(model.replace(**{name: number + s * change}), external)) for s in (1e-6, -1e-6)]
        assert largest(np.sum(np.asarray(getattr(slope, name)) * change), (ends[0] - ends[1]) / 2e-6) < 1e-6, name
    ends = [float(value(model, external + s)) for s in (0.5, -0.5)]  # linear
    assert largest(jnp.sum(by_wrench), ends[0] - ends[1]) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [pytest.param(jax.jacfwd, id="forward", marks=pytest.mark.exhaustive), pytest.param(jax.jacrev, id="reverse")],
)
def test_gradients_at_rest_and_at_neutral(mode):
    """A falling free body gave NaN (brax #387), a massless leaf too (mujoco #1349)."""
    builder = ModelBuilder().add_body("ball", "world", joints.Free(), mass=1.0, inertia=0.1 * np.eye(3))
    builder.add_body("leaf", "ball", joints.Fixed())
    builder.add_body("arm", "ball", joints.Spherical(), mass=0.3, center=[0, 0, 0.2], inertia=0.01 * np.eye(3))
    model = builder.build()
    q, zero = model.neutral(), jnp.zeros(model.nv)

    def fall(q, v, tau, model):
        return acceleration(model, q, v, tau, None)

    slopes = jax.jit(mode(fall, (0, 1, 2, 3)))(q, zero, zero, model)
    chex.assert_tree_all_finite((slopes[:3], {name: getattr(slopes[3], name) for name in LEAVES}))
    np.testing.assert_allclose(slopes[3].gravity[2, 2], 1.0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds",
    [["spherical", "helical"], pytest.param(["free", "revolute", "spherical"], marks=pytest.mark.exhaustive)],
    ids=" ".join,
)
@pytest.mark.parametrize("mode", lanes(["forward over reverse"], ["forward over forward"]))
def test_second_derivatives(kinds, mode):
    """Against differences of first derivatives."""
    model = trees.build(kinds, [-1, 0, 1][: len(kinds)], armature=True)
    q, v, tau = trees.state(model)
    weights = np.random.default_rng(8).normal(size=model.nv)

    def value(x):
        return acceleration(model, model.retract(q, x[0]), x[1], tau, None) @ weights

    x = (jnp.zeros(model.nv), v)
    slope = jax.jit(jax.grad(value))
    right = []
    for e in np.eye(2 * model.nv):
        e = jnp.asarray(1e-5 * e.reshape(2, -1))
        plus, minus = (slope((x[0] + s * e[0], x[1] + s * e[1])) for s in (1, -1))
        right.append(np.concatenate([(p - m) / 2e-5 for p, m in zip(plus, minus, strict=True)]))
    second = {"forward over reverse": jax.hessian(value), "forward over forward": jax.jacfwd(jax.jacfwd(value))}
    H = jax.jit(second[mode])(x)
    found = np.block([[np.asarray(block) for block in row] for row in H])
    assert largest(found, np.array(right)) < 1e-8
