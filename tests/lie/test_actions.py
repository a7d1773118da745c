"""One suite for every action: the four verbs move, dexpinv, bracket, distance belong together.

The sign conventions that everybody slips on are all decided by one identity: with sigma' = dexpinv(sigma, xi), the
point move(sigma(t), y) moves with the infinitesimal generator of xi at that very point.
"""

from __future__ import annotations

import operator

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.lie.action import Coadjoint, LeftTranslation, Product, RightTranslation, TangentSphere
from lgsim.lie.group import SE3, SO3
from lgsim.lie.power import Power
from tests.lie.structures import SHAPES, STRUCTURES, Compiled, difference, lanes


def _element(name):
    structure = STRUCTURES[name]
    return lambda seed, shape, dtype: structure.group.exp(
        jnp.asarray(structure.algebra("random", shape, dtype, seed=seed))
    )


def _vector(dim):
    return lambda seed, shape, dtype: jnp.asarray(
        np.random.default_rng(seed).standard_normal((*shape, dim)).astype(dtype)
    )


def _tangent_sphere(seed, shape, dtype):
    rng = np.random.default_rng(seed)
    q = rng.standard_normal((*shape, 3))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    omega = np.cross(q, rng.standard_normal((*shape, 3)))
    return jnp.asarray(np.concatenate([q, omega], axis=-1).astype(dtype))


def _stacked(count, draw):
    return lambda seed, shape, dtype: draw(seed, (*shape, count), dtype)


def _both(first, second):
    return lambda seed, shape, dtype: (first(seed, shape, dtype), second(seed + 1, shape, dtype))


LEFT = ("SO3", "SE3", "SO3 x R2")
RIGHT = ("SE3", "SE2", "SE23", "UnitQuaternion", "T* SO3")
# name: (action, dimension of its algebra, draws a state)
ACTIONS = {
    **{f"left {n}": (LeftTranslation(STRUCTURES[n].group), STRUCTURES[n].dim, _element(n)) for n in LEFT},
    **{f"right {n}": (RightTranslation(STRUCTURES[n].group), STRUCTURES[n].dim, _element(n)) for n in RIGHT},
    "coadjoint SO3": (Coadjoint(SO3), 3, _vector(3)),
    "coadjoint SE3": (Coadjoint(SE3), 6, _vector(6)),
    "tangent sphere": (TangentSphere(), 6, _tangent_sphere),
    "three tangent spheres": (Power(TangentSphere(), 3), 18, _stacked(3, _tangent_sphere)),
    "two of right SO3 x addition": (
        Power(Product(RightTranslation(SO3), LeftTranslation(STRUCTURES["Euclidean(3)"].group)), 2),
        12,
        _stacked(2, _both(_element("SO3"), _vector(3))),
    ),
    "right SE3 x coadjoint SO3": (
        Product(RightTranslation(SE3), Coadjoint(SO3)),
        9,
        _both(_element("SE3"), _vector(3)),
    ),
    "tangent sphere x left SO3": (
        Product(TangentSphere(), LeftTranslation(SO3)),
        9,
        _both(_tangent_sphere, _element("SO3")),
    ),
}
# those that between them run all the code in float32, and all that is not composed
FLOAT32 = ("right SE3", "right UnitQuaternion", "coadjoint SE3", "tangent sphere")
SIMPLE = pytest.mark.parametrize(
    "name", lanes(("left SO3", "right SE3", "tangent sphere"), ("right UnitQuaternion", "coadjoint SE3"))
)
# one of each kind, and a power of a product; the others are of other groups and factors
ALWAYS = ("left SO3", *FLOAT32, "two of right SO3 x addition")
PER_ACTION = pytest.mark.parametrize("name", lanes(ALWAYS, [name for name in ACTIONS if name not in ALWAYS]))


def generator(action, xi, y):
    """The infinitesimal generator of xi at y: d/ds move(s xi, y) at s = 0."""
    s = jnp.zeros((), xi.dtype)
    return jax.jvp(lambda s: action.move(s * xi, y), (s,), (jnp.ones_like(s),))[1]


def properties(action, y, z, xi, eta, sigma):
    """Pairs (computed, expected) at batches of states y, z and of algebra vectors xi, eta, sigma."""
    one, zero = jnp.ones((), xi.dtype), jnp.zeros((), xi.dtype)
    there = action.move(sigma, y)
    slope = action.dexpinv(sigma, xi)
    moving = jax.jvp(lambda t: action.move(sigma + t * slope, y), (zero,), (one,))[1]

    def field(a):
        return lambda point: generator(action, a, point)

    # the commutator DX_b X_a - DX_a X_b of two generators
    commutator = jax.tree.map(
        jnp.subtract,
        jax.jvp(field(eta), (y,), (generator(action, xi, y),))[1],
        jax.jvp(field(xi), (y,), (generator(action, eta, y),))[1],
    )

    distance = jax.vmap(action.distance)  # it is a number for one pair of states
    return {
        "zero does not move": (action.move(jnp.zeros_like(xi), y), y),
        "one-parameter subgroups": (action.move(0.3 * xi, action.move(0.4 * xi, y)), action.move(0.7 * xi, y)),
        "minus undoes": (action.move(-xi, action.move(xi, y)), y),
        "dexpinv's defining identity": (moving, generator(action, xi, there)),
        "dexpinv at zero": (action.dexpinv(jnp.zeros_like(xi), xi), xi),
        "dexpinv keeps its own argument": (action.dexpinv(sigma, sigma), sigma),
        "dexpinv starts with minus half the bracket": (
            jax.jvp(lambda s: action.dexpinv(s * sigma, xi), (zero,), (one,))[1],
            -0.5 * action.bracket(sigma, xi),
        ),
        "dexpinv is linear": (
            action.dexpinv(sigma, xi + 2 * eta),
            action.dexpinv(sigma, xi) + 2 * action.dexpinv(sigma, eta),
        ),
        "bracket is antisymmetric": (action.bracket(xi, eta), -action.bracket(eta, xi)),
        "generators anticommute with the bracket": (commutator, generator(action, -action.bracket(xi, eta), y)),
        "distance to itself": (distance(y, y), 0 * xi[:, 0]),
        "distance is symmetric": (distance(y, z), distance(z, y)),
    }


def drawn(name, shape, dtype):
    _, dim, draw = ACTIONS[name]
    rng = np.random.default_rng(101)
    vectors = [jnp.asarray(0.6 * rng.standard_normal((*shape, dim)).astype(dtype)) for _ in range(3)]
    return draw(102, shape, dtype), draw(202, shape, dtype), *vectors


@pytest.mark.repeats
@pytest.mark.float32
@PER_ACTION
def test_identities(name, dtype):
    if dtype == np.float32 and name not in FLOAT32:
        pytest.skip("made of actions that float32 runs")
    action, dim, _ = ACTIONS[name]
    assert action.dim == dim
    eps = float(np.finfo(dtype).eps)
    pairs = properties(Compiled(action), *drawn(name, (6,), dtype))
    failures = []
    for label, (computed, expected) in pairs.items():
        assert all(leaf.dtype == dtype for leaf in jax.tree.leaves(computed)), label
        worst = np.max(difference(computed, expected, axes=1))
        if not worst <= 128 * eps:
            failures.append(f"{label}: {worst / eps:.3g} eps")
    assert not failures, "\n".join(failures)


@pytest.mark.slow
@SIMPLE
def test_at_rest(name):
    """sigma = 0 and tiny steps: first and second derivatives of move and dexpinv are finite, both modes."""
    action, dim, draw = ACTIONS[name]
    y = draw(111, (), np.float64)
    xi = jnp.ones(dim)

    @jax.jit
    def derivatives(sigma):
        move = jax.jacfwd(lambda s: action.move(s, y))
        inverse = jax.jacrev(lambda s: action.dexpinv(s, xi))
        return move(sigma), jax.jacfwd(move)(sigma), inverse(sigma), jax.jacfwd(inverse)(sigma)

    for size in (0.0, 1e-300, 1e-12, 1e-6):
        chex.assert_tree_all_finite(derivatives(jnp.full(dim, size)), custom_message=str(size))


@pytest.mark.slow
@PER_ACTION
def test_distance(name):
    """Zero at equality and only there; its gradient there is finite in both modes."""
    action, _, draw = ACTIONS[name]
    distance = jax.jit(action.distance)
    y, other = draw(121, (), np.float64), draw(131, (), np.float64)
    assert float(distance(y, other)) > 1e-2
    flat = jax.tree.leaves(y)
    for i, leaf in enumerate(flat):
        moved = list(flat)
        moved[i] = leaf + 0.01
        assert float(distance(y, jax.tree.unflatten(jax.tree.structure(y), moved))) > 1e-6
    assert float(distance(y, y)) == 0
    for gradient in (jax.jit(jax.grad(distance))(y, y), jax.jvp(distance, (y, y), (other, y))[1]):
        chex.assert_tree_all_finite(gradient)


@pytest.mark.slow
@pytest.mark.parametrize("operations", lanes(["compiled"], ["one by one"]))
@PER_ACTION
def test_batches_of_any_shape_are_a_loop(name, operations):
    """Leading axes (), (1,), (3, 1, 2), or compiled (3, 1, 2)."""
    action, _, _ = ACTIONS[name]
    y, _, xi, eta, sigma = jax.tree.map(np.asarray, drawn(name, (6,), np.float64))

    def everything(y, xi, eta, sigma):
        return action.move(sigma, y), action.dexpinv(sigma, xi), action.bracket(xi, eta)

    single = jax.jit(everything)
    rows = [single(*jax.tree.map(operator.itemgetter(i), (y, xi, eta, sigma))) for i in range(6)]
    looped = jax.tree.map(lambda *x: np.stack(x), *rows)
    for shape in SHAPES if operations == "one by one" else SHAPES[-1:]:
        count = int(np.prod(shape))

        def reshaped(x, shape=shape, count=count):
            return jnp.asarray(x[:count].reshape(shape + x.shape[1:]))

        batch = (everything if operations == "one by one" else single)(*jax.tree.map(reshaped, (y, xi, eta, sigma)))
        expected = jax.tree.map(reshaped, looped)
        chex.assert_trees_all_equal_shapes_and_dtypes(batch, expected)
        chex.assert_trees_all_close(batch, expected, rtol=4e-15, atol=4e-15)


@pytest.mark.float32
def test_a_body_twist_is_a_right_translation(dtype):
    """T' = T hat(V): move(xi, T) = T exp(xi), dexpinv(sigma, xi) = dexpinv_{-sigma}(xi), bracket minus the group's."""
    eps = float(np.finfo(dtype).eps)
    left, right = LeftTranslation(SE3), RightTranslation(SE3)
    y, _, xi, eta, sigma = drawn("right SE3", (), dtype)
    assert difference(right.move(xi, y), y @ SE3.exp(xi)) <= 8 * eps
    assert difference(left.move(xi, y), SE3.exp(xi) @ y) <= 8 * eps
    assert difference(right.dexpinv(sigma, xi), SE3.dexpinv_action(-sigma, xi)) <= 8 * eps
    assert difference(left.dexpinv(sigma, xi), SE3.dexpinv_action(sigma, xi)) <= 8 * eps
    assert difference(right.bracket(xi, eta), -SE3.bracket(xi, eta)) <= 8 * eps
    assert difference(left.bracket(xi, eta), SE3.bracket(xi, eta)) <= 8 * eps


@pytest.mark.slow
@pytest.mark.float32
def test_coadjoint_orbits(dtype):
    """g . mu = Ad*_{g^-1} mu keeps |mu| on so(3)*, and |f|^2, f . n on se(3)* (mu = (f, n), linear first)."""
    eps = float(np.finfo(dtype).eps)
    for group, casimirs in (
        (SO3, lambda m: [m @ m]),
        (SE3, lambda m: [m[:3] @ m[:3], m[:3] @ m[3:]]),
    ):
        action = Coadjoint(group)
        mu, _, xi, eta, _ = drawn(f"coadjoint {'SO3' if group is SO3 else 'SE3'}", (), dtype)
        moved = action.move(eta, action.move(xi, mu))
        np.testing.assert_allclose(casimirs(moved), casimirs(mu), rtol=0, atol=64 * eps * float(mu @ mu))
        exact = group.Ad(group.inverse(group.exp(xi))).T @ mu
        np.testing.assert_allclose(action.move(xi, mu), exact, rtol=0, atol=16 * eps * float(1 + jnp.max(jnp.abs(mu))))
    # so the generator of xi at mu on so(3)* is xi x mu
    mu, _, xi, _, _ = drawn("coadjoint SO3", (), dtype)
    np.testing.assert_allclose(generator(Coadjoint(SO3), xi, mu), np.cross(xi, mu), rtol=0, atol=8 * eps)


@pytest.mark.float32
def test_tangent_sphere_stays_on_it(dtype):
    """(q, omega) -> (R q, R omega + p x R q) keeps |q| and q . omega = 0 (Celledoni et al., section 5.1)."""
    eps = float(np.finfo(dtype).eps)
    action = TangentSphere()
    y, _, xi, eta, _ = drawn("tangent sphere", (), dtype)
    moved = y
    for step in (xi, eta, -xi, 3 * eta):
        moved = action.move(step, moved)
        q, omega = np.asarray(moved[:3], float), np.asarray(moved[3:], float)
        assert abs(q @ q - 1) <= 32 * eps
        assert abs(q @ omega) <= 32 * eps * (1 + np.linalg.norm(omega))
    g = np.asarray(SE3.exp(xi), float)
    q, omega = np.asarray(y[:3], float), np.asarray(y[3:], float)
    exact = np.concatenate([g[:3, :3] @ q, g[:3, :3] @ omega + np.cross(g[:3, 3], g[:3, :3] @ q)])
    np.testing.assert_allclose(action.move(xi, y), exact, rtol=0, atol=16 * eps)
    v, w = np.asarray(xi[:3], float), np.asarray(xi[3:], float)
    exact = np.concatenate([np.cross(w, q), np.cross(w, omega) + np.cross(v, q)])
    np.testing.assert_allclose(generator(action, xi, y), exact, rtol=0, atol=16 * eps)
