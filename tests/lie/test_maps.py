"""The maps that a group object does not have: hat, duals, Cayley, second kind, geodesics, and any function of ad."""

from __future__ import annotations

import math
from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from lgsim.lie import ad_functions
from tests.lie.structures import (
    MODULES,
    REGIMES,
    SHAPES,
    Compiled,
    apply,
    difference,
    identity_matrices,
    lanes,
    spread,
)

PER_MODULE = pytest.mark.parametrize("name", MODULES)
COUNT = 4


def interior(structure, regime, dtype, seed):
    """Away from a half turn, where the Cayley map and the geodesic have their singularity."""
    u = structure.algebra(regime, (COUNT,), dtype, seed)
    start, stop = structure.rotations[0]
    if regime == "near pi":
        u[:, start:stop] *= dtype(0.9)
    return u


def properties(functions, identity, name, u, v, mu):
    """Pairs (computed, expected) at algebra vectors u, v and dual vectors mu, all (n, dim)."""
    g, h, cay = functions.exp(u), functions.exp(v), functions.cay(u)
    one, identities, zero = identity_matrices(u), spread(identity, len(u)), 0 * u
    dcay, Ad, ad = functions.dcay(u), functions.Ad(g), functions.ad(u)
    pulled, turned = functions.Ad_dual_action(g, mu), functions.Ad_action(g, v)
    bracket, dual = functions.bracket(u, v), functions.ad_dual_action(u, mu)
    quarter = jnp.full(len(u), 0.25, u.dtype)
    displacement = functions.log(functions.compose(functions.inverse(g), h))

    def velocity(curve):
        """The derivative at 0 of a curve of elements near the identity, as algebra vectors."""
        s = jnp.zeros((), u.dtype)
        return jax.jvp(lambda s: functions.log(curve(s)), (s,), (jnp.ones_like(s),))[1]

    def pairing(a, b):
        return jnp.sum(a * b, axis=-1)

    # second kind: exp(u_1 e_1) exp(u_2 e_2) ..., with angles small enough to be the chart's own
    chart = 0.4 * jnp.tanh(u) if name != "so2" else u
    factors = identities
    for i in range(u.shape[-1]):
        factors = functions.compose(factors, functions.exp(jnp.zeros_like(u).at[:, i].set(chart[:, i])))

    out = {
        "vee inverts hat": (functions.vee(functions.hat(u)), u),
        "Ad_dual is the transpose": (functions.Ad_dual(g), jnp.swapaxes(Ad, -1, -2)),
        "Ad_dual_action is Ad_dual": (pulled, apply(functions.Ad_dual(g), mu)),
        "pairing of Ad": (pairing(pulled, v), pairing(mu, turned)),
        "ad_dual is the transpose": (functions.ad_dual(u), jnp.swapaxes(ad, -1, -2)),
        "ad_dual_action is ad_dual": (dual, apply(functions.ad_dual(u), mu)),
        "pairing of ad": (pairing(dual, v), pairing(mu, bracket)),
        "cayinv inverts cay": (functions.cayinv(cay), u),
        "cay of minus": (functions.cay(-u), functions.inverse(cay)),
        "cay of zero": (functions.cay(zero), identities),
        "cay is on the group": (functions.exp(functions.log(cay)), cay),
        "dcay is the derivative of cay": (
            velocity(lambda s: functions.compose(functions.cay(u + s * v), functions.inverse(cay))),
            functions.dcay_action(u, v),
        ),
        "dcay of minus is the body form": (
            velocity(lambda s: functions.compose(functions.inverse(cay), functions.cay(u + s * v))),
            functions.dcay_action(-u, v),
        ),
        "dcay_action is dcay": (functions.dcay_action(u, v), apply(dcay, v)),
        "dcayinv_action is dcayinv": (functions.dcayinv_action(u, v), apply(functions.dcayinv(u), v)),
        "dcayinv inverts dcay": (functions.dcayinv(u) @ dcay, one),
        "dcay = Ad dcay of minus": (dcay, functions.Ad(cay) @ functions.dcay(-u)),
        "second_kind is the product": (functions.second_kind(chart), factors),
        "second_kind_inverse inverts": (functions.second_kind_inverse(factors), chart),
        "interpolate starts": (functions.interpolate(g, h, 0 * quarter), g),
        "interpolate at constant speed": (
            functions.log(functions.compose(functions.inverse(g), functions.interpolate(g, h, quarter))),
            0.25 * displacement,
        ),
        "interpolate has the velocity of the displacement": (
            velocity(
                lambda s: functions.compose(
                    functions.inverse(functions.interpolate(g, h, quarter)), functions.interpolate(g, h, quarter + s)
                )
            ),
            displacement,
        ),
    }
    end = functions.interpolate(g, h, 4 * quarter)
    if name == "quaternion":
        out["interpolate ends"] = (end * jnp.sign(jnp.sum(end * h, axis=-1, keepdims=True)), h)
        out["hat is the pure quaternion u/2"] = (functions.hat(u), jnp.concatenate([zero[:, :1], u / 2], axis=-1))
    else:
        hat_u, hat_v = functions.hat(u), functions.hat(v)
        eye = np.eye(g.shape[-1])
        half = np.asarray(hat_u, float) / 2
        out["interpolate ends"] = (end, h)
        out["hat turns bracket into commutator"] = (functions.hat(bracket), hat_u @ hat_v - hat_v @ hat_u)
        out["hat turns Ad into conjugation"] = (functions.hat(turned), g @ hat_v @ functions.inverse(g))
        out["compose is the matrix product"] = (functions.compose(g, h), g @ h)
        out["exp is expm of hat"] = (g, scipy.linalg.expm(2 * half))
        out["cay is the quotient"] = (cay, np.linalg.solve(eye - half, eye + half))
    return out


@cache
def results(name, dtype):
    structure = MODULES[name]
    u, v = (np.concatenate([interior(structure, r, dtype, seed=81 + i) for r in REGIMES]) for i in range(2))
    mu = np.random.default_rng(83).standard_normal(u.shape).astype(dtype)
    # half as far and of the neighboring regime, so that a geodesic from exp(u) to exp(v) never meets a half turn
    v = (0.5 * np.roll(v, 1, axis=0)).astype(dtype)
    u = (0.5 * u).astype(dtype) if name in ("so2", "se2") else u
    functions = Compiled(structure.group)
    pairs = properties(functions, structure.group.identity(dtype), name, *map(jnp.asarray, (u, v, mu)))
    return {label: (difference(a, b, axes=1), a) for label, (a, b) in pairs.items()}


@pytest.mark.repeats("float64-so2", "float64-quaternion", "float64-se3")
@pytest.mark.float32
@PER_MODULE
def test_identities(name, dtype):
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


def shaped(x, shape):
    """The first rows in leading axes of a shape."""
    return jnp.asarray(x[: int(np.prod(shape))].reshape(shape + x.shape[1:]))


@pytest.mark.slow
@pytest.mark.parametrize("operations", lanes(["compiled"], ["one by one"]))
@PER_MODULE
def test_batches_of_any_shape_are_a_loop(name, operations):
    """Leading axes (), (1,), (3, 1, 2), or compiled (3, 1, 2), equal the compiled loop over single elements."""
    structure = MODULES[name]
    functions = structure.group
    u, v = (0.5 * structure.algebra("random", (6,), np.float64, seed=s) for s in (91, 92))
    fraction = np.random.default_rng(93).uniform(size=6)

    def everything(u, v, s):
        g, h = functions.exp(u), functions.exp(v)
        return {
            "hat": functions.hat(u),
            "vee": functions.vee(functions.hat(u)),
            "Ad_dual": functions.Ad_dual(g),
            "Ad_dual_action": functions.Ad_dual_action(g, v),
            "ad_dual": functions.ad_dual(u),
            "ad_dual_action": functions.ad_dual_action(u, v),
            "cay": functions.cay(u),
            "cayinv": functions.cayinv(functions.cay(u)),
            "dcay": functions.dcay(u),
            "dcayinv": functions.dcayinv(u),
            "dcay_action": functions.dcay_action(u, v),
            "dcayinv_action": functions.dcayinv_action(u, v),
            "second_kind": functions.second_kind(u),
            "second_kind_inverse": functions.second_kind_inverse(functions.second_kind(0.4 * jnp.tanh(u))),
            "interpolate": functions.interpolate(g, h, s),
        }

    single = jax.jit(everything)
    looped = jax.tree.map(lambda *x: np.stack(x), *map(single, u, v, fraction))
    for shape in SHAPES if operations == "one by one" else SHAPES[-1:]:
        batch = (everything if operations == "one by one" else single)(*(shaped(x, shape) for x in (u, v, fraction)))
        expected = {label: shaped(x, shape) for label, x in looped.items()}
        chex.assert_trees_all_equal_shapes_and_dtypes(batch, expected)
        chex.assert_trees_all_close(batch, expected, rtol=8e-15, atol=8e-15)

    # one displacement for all fractions
    @jax.jit
    def interpolated(u, v, s):
        g, h = functions.exp(u), functions.exp(v)
        mapped = jax.vmap(functions.interpolate, (None, None, 0))(g, h, s)
        return functions.interpolate(g, h, s), functions.interpolate(g, h, float(fraction[0])), mapped

    whole, first, mapped = interpolated(u[0], v[0], fraction)
    np.testing.assert_allclose(whole, mapped, rtol=8e-15, atol=8e-15)
    np.testing.assert_allclose(first, mapped[0], rtol=8e-15, atol=8e-15)


# phi(z) and the same for the two parts that Celledoni et al., section 2.3, need, from the Taylor coefficients of phi
SERIES = {
    "a polynomial": [2.0, -3.0, 0.5, -1 / 7, 0.2],
    "exp": [1 / math.factorial(j) for j in range(30)],
    "(exp(z) - 1)/z": [1 / math.factorial(j + 1) for j in range(30)],
    "cosh": [(1 - j % 2) / math.factorial(j) for j in range(30)],
    "sinh": [(j % 2) / math.factorial(j) for j in range(30)],
    "alternating": [(-1) ** (j * (j - 1) // 2) / math.factorial(j) for j in range(30)],
}


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.quick
def test_any_function_of_ad(name):
    """phi(ad_u) v by the formula of section 2.3 equals the matrix series, at zero, small, large and pure rotations."""
    taylor = SERIES[name]
    function = ad_functions.AdFunction(
        at_zero=taylor[0],
        odd=lambda x: sum((c * (-x) ** j for j, c in enumerate(taylor[1::2])), jnp.zeros_like(x)),
        even=lambda x: sum((c * (-x) ** j for j, c in enumerate(taylor[2::2])), jnp.zeros_like(x)),
    )
    structure = MODULES["se3"]
    u = np.concatenate([structure.algebra(r, (COUNT,), np.float64, seed=97) for r in REGIMES])
    u = np.concatenate([u, u * [0, 0, 0, 1, 1, 1], u * [1, 1, 1, 0, 0, 0]])
    v = np.random.default_rng(98).standard_normal(u.shape)
    got = jax.jit(lambda u, v: ad_functions.phi_action(function, u, v))(jnp.asarray(u), jnp.asarray(v))
    ad = np.asarray(structure.group.ad(jnp.asarray(u)))
    term, expected = v, taylor[0] * v
    size = np.abs(expected)
    for c in taylor[1:]:
        term = np.einsum("nij,nj->ni", ad, term)
        expected = expected + c * term
        size = size + np.abs(c * term)
    assert np.all(np.abs(got - expected) <= 32 * 2.2e-16 * np.max(size, axis=1, keepdims=True))
    parts = ad_functions.AdFunction.from_taylor(taylor)
    np.testing.assert_allclose(
        ad_functions.phi_action(parts, jnp.asarray(u), jnp.asarray(v)), got, rtol=0, atol=1e-14 * size.max()
    )


@pytest.mark.slow
def test_ready_functions_of_ad():
    """The library's own three: Ad of exp, dexp, dexpinv."""
    structure = MODULES["se3"]
    u = jnp.asarray(np.concatenate([structure.algebra(r, (COUNT,), np.float64, seed=99) for r in REGIMES]))
    v = np.random.default_rng(100).standard_normal(u.shape)
    se3 = structure.group
    dexp = np.asarray(jax.jit(se3.dexp)(u))
    for function, exact in (
        (ad_functions.AD_EXP, jax.jit(lambda u, v: se3.Ad_action(se3.exp(u), v))(u, v)),
        (ad_functions.DEXP, apply(dexp, v)),
        (ad_functions.DEXPINV, apply(np.linalg.inv(dexp), v)),
    ):
        found = jax.jit(lambda u, v, function=function: ad_functions.phi_action(function, u, v))(u, v)
        assert np.max(difference(found, exact, axes=1)) <= 64 * 2.2e-16
