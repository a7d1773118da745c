"""One suite for every group: axioms, exp and log, Ad and ad, dexp and its inverse, sampling, broadcasting.

The identities are evaluated once for each group, on a batch that holds every regime. That a batch is a loop over
single elements, and compiled results equal those of operation after operation, is a test of its own.
"""

from __future__ import annotations

import functools
from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from tests.lie.structures import (
    REGIMES,
    SHAPES,
    STRUCTURES,
    Compiled,
    apply,
    difference,
    identity_matrices,
    lanes,
    spread,
)

# groups whose code others run too
COMPOSED = ("SE3 x SO2", "T SO3", "T SE3", "T* SE3", "T* SE2")
PER_GROUP = pytest.mark.parametrize("name", lanes([n for n in STRUCTURES if n not in COMPOSED], COMPOSED))
# in float32 the groups of the plane and of space
FLOAT32 = ("SE2", "SE3", "UnitQuaternion")
FLOAT32_REPEATED = ("SO2", "SE23", "SO3 x R2", "T SO3", "T* SO3")
# those that between them have a group of each module, a product and a semidirect product
BATCHED = ("SO2", "SE2", "SO3", "SE3", "SE23", "UnitQuaternion", "Euclidean(3)", "SO3 x R2")
PER_BATCHED = pytest.mark.parametrize("name", lanes(BATCHED, [n for n in STRUCTURES if n not in BATCHED]))
# make test takes float64, and those that between them run the code of all
FIRST = ("SO2", "SO3", "SE23", "UnitQuaternion", "SO3 x R2")
REPEATS = pytest.mark.repeats(*(f"float64-{name}" for name in FIRST))
COUNT = 4  # samples of each regime


def properties(group, identity, u, v, w):
    """Pairs (computed, expected) of every identity at the algebra vectors u, v, w (n, dim)."""
    g, h, k = group.exp(u), group.exp(v), group.exp(w)
    inverse = group.inverse(g)
    conjugate = group.compose(group.compose(g, h), inverse)
    Ad, ad, dexp, dexpinv = group.Ad(g), group.ad(u), group.dexp(u), group.dexpinv(u)
    one, identities, zero = identity_matrices(u), spread(identity, len(u)), 0 * u
    turned, bracket = group.Ad_action(g, v), group.bracket(u, v)

    def velocity(curve):
        """The derivative at 0 of a curve of algebra vectors."""
        s = jnp.zeros((), u.dtype)
        return jax.jvp(curve, (s,), (jnp.ones_like(s),))[1]

    return {
        "associative": (group.compose(group.compose(g, h), k), group.compose(g, group.compose(h, k))),
        "left identity": (group.compose(identity, g), g),
        "right identity": (group.compose(g, identity), g),
        "left inverse": (group.compose(inverse, g), identities),
        "right inverse": (group.compose(g, inverse), identities),
        "exp of zero": (group.exp(zero), identities),
        "log of identity": (group.log(group.exp(zero)), zero),
        "exp of minus": (group.exp(-u), inverse),
        "one-parameter subgroup": (group.compose(group.exp(0.25 * u), group.exp(0.5 * u)), group.exp(0.75 * u)),
        "log inverts exp": (group.log(g), u),
        "Ad is a homomorphism": (group.Ad(group.compose(g, h)), Ad @ group.Ad(h)),
        "Ad of the identity": (group.Ad(group.exp(zero)), one),
        "Ad of the inverse": (group.Ad(inverse) @ Ad, one),
        "Ad_action is Ad": (turned, apply(Ad, v)),
        "Ad is conjugation": (group.exp(turned), conjugate),
        "Ad of exp is expm of ad": (Ad, scipy.linalg.expm(np.asarray(ad, float))),
        "ad is the bracket": (apply(ad, v), bracket),
        "bracket is antisymmetric": (bracket, -group.bracket(v, u)),
        "Jacobi identity": (
            group.bracket(u, group.bracket(v, w)) + group.bracket(v, group.bracket(w, u)),
            -group.bracket(w, bracket),
        ),
        "ad of a bracket": (group.ad(bracket), ad @ group.ad(v) - group.ad(v) @ ad),
        "Ad respects brackets": (
            group.Ad_action(g, group.bracket(v, w)),
            group.bracket(turned, group.Ad_action(g, w)),
        ),
        "bracket is the derivative of Ad": (velocity(lambda s: group.Ad_action(group.exp(s * u), v)), bracket),
        "dexp is the derivative of exp": (
            velocity(lambda s: group.log(group.compose(group.exp(u + s * v), inverse))),
            group.dexp_action(u, v),
        ),
        "dexp of minus is the body form": (
            velocity(lambda s: group.log(group.compose(inverse, group.exp(u + s * v)))),
            group.dexp_action(-u, v),
        ),
        "dexpinv is the derivative of log": (
            velocity(lambda s: group.log(group.compose(group.exp(s * v), g))),
            group.dexpinv_action(u, v),
        ),
        "dexp_action is dexp": (group.dexp_action(u, v), apply(dexp, v)),
        "dexpinv_action is dexpinv": (group.dexpinv_action(u, v), apply(dexpinv, v)),
        "dexpinv inverts dexp": (dexpinv @ dexp, one),
        "dexp = Ad dexp of minus": (dexp, Ad @ group.dexp(-u)),
        "dexp keeps its own argument": (group.dexp_action(u, u), u),
        "dexp starts with half the bracket": (velocity(lambda s: group.dexp_action(s * u, v)), 0.5 * bracket),
        "distance to itself": (group.distance(g, g), zero[:, 0]),
        "distance is symmetric": (group.distance(g, h), group.distance(h, g)),
    }


@cache
def results(name, dtype):
    """Each property's (samples,) difference, for COUNT samples of every regime."""
    structure = STRUCTURES[name]
    u, v, w = (np.concatenate([structure.algebra(r, (COUNT,), dtype, seed=31 + i) for r in REGIMES]) for i in range(3))
    v, w = v[::-1].copy(), np.roll(w, COUNT, axis=0)  # mixed regimes
    group = Compiled(structure.group)
    pairs = properties(group, structure.group.identity(dtype), *map(jnp.asarray, (u, v, w)))
    return {label: (difference(a, b, axes=1), a) for label, (a, b) in pairs.items()}


@REPEATS
@pytest.mark.float32
@PER_GROUP
def test_identities(name, dtype):
    """Every identity of `properties`, all regimes, within 256 eps (products of three elements, inverses near pi)."""
    if dtype == np.float32 and name not in FLOAT32:
        pytest.skip("made of groups that float32 runs")
    assert_identities(name, dtype)


@pytest.mark.float32
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FLOAT32_REPEATED)
def test_identities_of_further_groups_in_float32(name):
    assert_identities(name, np.float32)


def assert_identities(name, dtype):
    """No difference of ``results`` is above its bound."""
    eps = float(np.finfo(dtype).eps)
    failures = []
    for label, (error, value) in results(name, dtype).items():
        for leaf in jax.tree.leaves(value):
            assert leaf.dtype == dtype, label
        for i, regime in enumerate(REGIMES):
            worst = np.max(error[COUNT * i : COUNT * (i + 1)])
            if not worst <= 256 * eps:
                failures.append(f"{label}, {regime}: {worst / eps:.3g} eps")
    assert not failures, "\n".join(failures)


@REPEATS
@pytest.mark.float32
@PER_GROUP
def test_distance_separates(name, dtype):
    """distance is positive between different elements, small for near ones, and differentiable at equality."""
    if dtype == np.float32 and name not in FLOAT32:
        pytest.skip("made of groups that float32 runs")
    structure = STRUCTURES[name]
    group = structure.group
    assert group.dim == structure.dim
    u = structure.algebra("random", (), dtype, seed=41)

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(None, 0))
    def of_step(u, step):
        g = group.exp(u)
        return jax.value_and_grad(lambda s: group.distance(g, group.compose(g, group.exp(s))))(step)

    steps = 0.5 * np.eye(structure.dim + 1, structure.dim, dtype=dtype)  # the last one is none
    distances, gradients = of_step(u, steps)
    assert np.all(distances[:-1] > 1e-3)
    assert np.all(np.isfinite(gradients[-1]))


def functions_of(group):
    """Every function of a group at a pair of algebra vectors."""

    def everything(u, v):
        g, h = group.exp(u), group.exp(v)
        return {
            "exp": g,
            "compose": group.compose(g, h),
            "inverse": group.inverse(g),
            "log": group.log(g),
            "Ad": group.Ad(g),
            "Ad_action": group.Ad_action(g, v),
            "bracket": group.bracket(u, v),
            "ad": group.ad(u),
            "dexp": group.dexp(u),
            "dexpinv": group.dexpinv(u),
            "dexp_action": group.dexp_action(u, v),
            "dexpinv_action": group.dexpinv_action(u, v),
            "distance": group.distance(g, h),
        }

    return everything


OPERATION_BY_OPERATION = ("UnitQuaternion",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", lanes(OPERATION_BY_OPERATION, [n for n in STRUCTURES if n not in (*OPERATION_BY_OPERATION, "T SE3")])
)
def test_batches_of_any_shape_are_a_loop(name):
    """Leading axes (), (1,), (3, 1, 2), operation by operation, equal the compiled loop over single elements."""
    everything = functions_of(STRUCTURES[name].group)
    assert_a_loop(name, jax.jit(everything), everything, SHAPES)


@pytest.mark.repeats
@PER_BATCHED
def test_a_compiled_batch_is_a_loop(name):
    """Leading axes (3, 1, 2) equal the loop over single elements."""
    everything = jax.jit(functions_of(STRUCTURES[name].group))
    assert_a_loop(name, everything, everything, SHAPES[-1:])


def assert_a_loop(name, single, everything, shapes):
    """``everything`` at batches of the shapes equals a loop of ``single``."""
    structure = STRUCTURES[name]
    u, v = (structure.algebra("random", (6,), np.float64, seed=s) for s in (51, 52))
    rows = [single(a, b) for a, b in zip(u, v, strict=True)]
    looped = jax.tree.map(lambda *x: np.stack(x), *rows)
    for shape in shapes:
        count = int(np.prod(shape))
        batch = everything(*(jnp.asarray(x[:count].reshape(*shape, structure.dim)) for x in (u, v)))
        expected = jax.tree.map(lambda x, n=count, shape=shape: x[:n].reshape(shape + x.shape[1:]), looped)
        chex.assert_trees_all_equal_shapes_and_dtypes(batch, expected)
        chex.assert_trees_all_close(batch, expected, rtol=4e-15, atol=4e-15)


@pytest.mark.repeats("SO2", "Euclidean(3)", "SO3 x R2")
@PER_BATCHED
def test_leading_axes_broadcast(name):
    """Arguments whose leading axes differ, in size or in number, broadcast like NumPy's; vmap is the same."""
    structure = STRUCTURES[name]
    group = structure.group
    dtype = np.float64

    @jax.jit
    def pairs(u, v):
        g, h = group.exp(u), group.exp(v)
        column = jax.tree.map(lambda x: x[:, None], g)
        row = jax.tree.map(lambda x: x[None, :], h)
        one = jax.tree.map(lambda x: x[0], h)

        def grid(function, a, b):
            return jax.vmap(jax.vmap(function, (None, 0)), (0, None))(a, b)

        products, actions = grid(group.compose, g, h), grid(group.Ad_action, g, v)
        found = {
            "compose column row": (group.compose(column, row), products),
            "compose column with one axis less": (group.compose(column, h), products),
            "compose one with many": (group.compose(one, g), jax.vmap(group.compose, (None, 0))(one, g)),
            "Ad_action column": (group.Ad_action(column, v), actions),
            "Ad_action many on one": (group.Ad_action(g, v[0]), actions[:, 0]),
        }
        for label in ("bracket", "dexp_action", "dexpinv_action"):
            function = getattr(group, label)
            all_of = grid(function, u, v)
            found[f"{label} column"] = function(u[:, None], v), all_of
            found[f"{label} one"] = function(u[0], v), all_of[0]
            found[f"{label} on one"] = function(u, v[0]), all_of[:, 0]
        return found

    u, v = (structure.algebra("random", (n,), dtype, seed=seed) for n, seed in ((3, 53), (2, 54)))
    for label, (found, expected) in pairs(u, v).items():
        assert difference(found, expected) <= 16 * 2.2e-16, label


@REPEATS
@pytest.mark.float32
@PER_GROUP
def test_random_is_on_the_group(name, dtype, key):
    """Shapes, dtype, determinism; g g^-1 = 1 and exp(log(g)) = g hold, which no array off the group satisfies."""
    if dtype == np.float32 and name not in FLOAT32:
        pytest.skip("made of groups that float32 runs")
    structure = STRUCTURES[name]
    group = structure.group
    eps = float(np.finfo(dtype).eps)

    @jax.jit
    def drawn(key):
        g = group.random(key, (3, 5), dtype)
        return g, group.compose(g, group.inverse(g)), group.exp(group.log(g))

    g, one, back = drawn(key)
    assert all(leaf.shape[:2] == (3, 5) and leaf.dtype == dtype for leaf in jax.tree.leaves(g))
    single = jax.eval_shape(lambda key: group.random(key, (), dtype), key)
    chex.assert_trees_all_equal_structs(single, group.identity(dtype))
    assert difference(g, drawn(key)[0]) == 0
    assert difference(g, drawn(jax.random.fold_in(key, 1))[0]) > 0.01
    identity = jax.tree.map(lambda x: np.broadcast_to(x, (3, 5, *x.shape)), group.identity(dtype))
    assert difference(one, identity) <= 32 * eps
    if name == "UnitQuaternion":
        back = back * np.sign(np.sum(np.asarray(back * g), axis=-1, keepdims=True))
    assert difference(back, g) <= 128 * eps


@pytest.mark.parametrize("name", ["SO3", "UnitQuaternion", "SO2", "SE3"])
def test_random_rotations_are_haar(name, key):
    """First, second and fourth moments of uniform rotations within 5 standard deviations, and the law of the angle."""
    count = 20000
    group = STRUCTURES[name].group
    g = np.asarray(group.random(key, (count,), np.float64))
    noise = 5 / np.sqrt(count)
    if name == "UnitQuaternion":
        np.testing.assert_allclose(np.mean(g[:, :, None] * g[:, None, :], axis=0), np.eye(4) / 4, atol=noise * 0.36)
        np.testing.assert_allclose(np.mean(g**4, axis=0), 1 / 8, atol=noise * 0.2)
        angle = 2 * np.arccos(np.minimum(1, np.abs(g[:, 0])))
    elif name == "SO2":
        angle = np.arctan2(g[:, 1, 0], g[:, 0, 0])
        for harmonic in (1, 2, 3):
            assert abs(np.mean(np.exp(1j * harmonic * angle))) < noise
        return
    else:
        rotation = g[:, :3, :3]
        np.testing.assert_allclose(np.mean(rotation, axis=0), 0, atol=noise * 0.58)
        np.testing.assert_allclose(np.mean(rotation**2, axis=0), 1 / 3, atol=noise * 0.3)
        trace = np.trace(rotation, axis1=1, axis2=2)
        assert abs(np.mean(trace**2) - 1) < noise * 1.5
        angle = np.arccos(np.clip((trace - 1) / 2, -1, 1))
        if name == "SE3":
            np.testing.assert_allclose(np.mean(g[:, :3, 3], axis=0), 0, atol=noise)
            np.testing.assert_allclose(np.cov(g[:, :3, 3].T), np.eye(3), atol=1.5 * noise)
    # Haar measure on SO(3): the angle has distribution (t - sin t)/pi on [0, pi]
    ordered = np.sort(angle)
    distance = np.max(np.abs((ordered - np.sin(ordered)) / np.pi - np.arange(1, count + 1) / count))
    assert distance < 1.95 / np.sqrt(count)  # Kolmogorov-Smirnov, 0.1 %


@pytest.mark.float32
@pytest.mark.parametrize("base", ["SO3", "SE3", "SE2"])
def test_semidirect_products(base, dtype):
    """Tangent: (g, v)(h, w) = (gh, v + Ad_g w). Cotangent: (gh, mu + Ad*_{g^-1} nu), Celledoni et al., (11)."""
    structure = STRUCTURES[base]
    group = structure.group
    u, v = (jnp.asarray(structure.algebra("random", (), dtype, seed=s)) for s in (61, 62))
    a, b = (jnp.asarray(np.random.default_rng(s).standard_normal(structure.dim).astype(dtype)) for s in (63, 64))
    g, h = group.exp(u), group.exp(v)
    eps = float(np.finfo(dtype).eps)
    if f"T {base}" in STRUCTURES:
        got = STRUCTURES[f"T {base}"].group.compose((g, a), (h, b))
        assert difference(got, (group.compose(g, h), a + group.Ad(g) @ b)) <= 16 * eps
    got = STRUCTURES[f"T* {base}"].group.compose((g, a), (h, b))
    assert difference(got, (group.compose(g, h), a + group.Ad(group.inverse(g)).T @ b)) <= 16 * eps


@pytest.mark.float32
def test_product_is_componentwise(dtype):
    """A product acts on its factors apart; its algebra vectors are theirs in order."""
    structure = STRUCTURES["SE3 x SO2"]
    se3, so2 = STRUCTURES["SE3"].group, STRUCTURES["SO2"].group
    u = jnp.asarray(structure.algebra("random", (), dtype, seed=71))
    g = structure.group.exp(u)
    eps = float(np.finfo(dtype).eps)
    assert difference(g, (se3.exp(u[:6]), so2.exp(u[6:]))) <= 4 * eps
    adjoint = np.zeros((7, 7))
    adjoint[:6, :6], adjoint[6, 6] = se3.Ad(g[0]), 1.0
    np.testing.assert_allclose(structure.group.Ad(g), adjoint, atol=4 * eps)
