"""Distributions against NumPy, scipy and closed forms, as functions of standard normal numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

import lgsim
from lgsim import montecarlo as mc
from lgsim.montecarlo.body_distributions import perturb, pseudo_inertia_factor
from lgsim.multibody import inertia
from tests.montecarlo import studies

MANY = 20_000


def numbers(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def test_plain_distributions_are_their_definitions():
    z = numbers(6)
    low, high = np.array([[0.0, 1, 2], [3, 4, 5]]), np.full((2, 3), 6.0)
    u = stats.norm.cdf(z).reshape(2, 3)
    np.testing.assert_allclose(mc.Uniform(low, high)(z), stats.uniform(low, high - low).ppf(u))
    np.testing.assert_allclose(mc.Normal(low, 0.5)(z), low + 0.5 * np.reshape(z, (2, 3)))
    own = stats.lognorm(s=np.sqrt(np.log(1.36)), scale=high / np.sqrt(1.36))
    np.testing.assert_allclose(mc.LogNormal.with_mean(high, 0.6)(z), own.ppf(u), rtol=1e-12)
    np.testing.assert_allclose(own.mean(), high, rtol=1e-12)
    np.testing.assert_allclose(own.std() / own.mean(), 0.6, rtol=1e-12)
    np.testing.assert_allclose(mc.LogNormal(high, 0.2)(z), stats.lognorm(0.2, scale=6.0).ppf(u), rtol=1e-12)
    twice = mc.FunctionDistribution(lambda z: 2 * z[0] + z[1], 2)
    assert twice(z[:2]) == 2 * z[0] + z[1] and twice.dim == 2


def test_covariance_of_a_normal():
    """The Jacobian's square is the covariance, also of rank one."""
    for root in (np.random.default_rng(1).normal(size=(3, 3)), np.array([[1.0], [2.0], [-1.0]])):
        wanted = root @ root.T
        each = mc.Normal(jnp.arange(3.0), covariance=wanted)
        J = jax.jacobian(each)(jnp.zeros(each.dim))
        np.testing.assert_allclose(J @ J.T, wanted, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["model", "SE3", "quaternion"])
def test_gaussian_on_the_tangent_space(name):
    """The chart about the mean gives back ``R z``, so the covariance there is the one asked for."""
    model = studies.tumbling()
    space, mean, gap = {
        "model": (model, model.random(jax.random.key(0)), model.difference),
        "SE3": (lgsim.SE3, lgsim.se3.exp(numbers(6)), lambda g, h: lgsim.se3.log(lgsim.se3.inverse(g) @ h)),
        "quaternion": (lgsim.UnitQuaternion, lgsim.quaternion.exp(numbers(3)), lambda g, h: lgsim.UnitQuaternion.log(
            lgsim.UnitQuaternion.compose(lgsim.UnitQuaternion.inverse(g), h))),
    }[name]  # fmt: skip
    n = len(gap(mean, mean))
    root = 0.1 * np.random.default_rng(2).normal(size=(n, n))
    each = mc.TangentNormal(space, mean, covariance=root @ root.T)
    z = numbers(each.dim)
    gap = jax.jit(gap)
    np.testing.assert_allclose(gap(mean, jax.jit(each.__call__)(z)), each.root @ z, atol=1e-13)
    np.testing.assert_allclose(each.root @ each.root.T, root @ root.T, atol=1e-15)
    np.testing.assert_allclose(gap(mean, mc.TangentNormal(space, mean, 0.1)(z)), 0.1 * z, atol=1e-13)


def test_haar_attitudes_are_uniform():
    """The angle has the density (1 - cos)/pi, axes and turned vectors have no direction; nothing else of q moves."""
    model = studies.tumbling()
    q0 = model.random(jax.random.key(1))
    each = mc.Haar(model, ["root_joint", "shoulder"], q0)
    q = np.asarray(jax.vmap(each)(numbers(MANY, each.dim)))
    np.testing.assert_array_equal(q[:, :3], np.broadcast_to(q0[:3], (MANY, 3)))
    for place in (slice(3, 7), slice(7, 11)):
        turns = Rotation.from_quat(q[:, place], scalar_first=True)
        angle = turns.magnitude()
        assert stats.kstest(angle, lambda a: (a - np.sin(a)) / np.pi).pvalue > 0.01
        # each coordinate of a uniform point on the sphere is uniform
        turned = turns.apply([0.6, 0.0, 0.8])
        assert all(stats.kstest(turned[:, i], stats.uniform(-1, 2).cdf).pvalue > 0.01 for i in range(3))
    assert abs(np.corrcoef(q[:, 3] ** 2, q[:, 7] ** 2)[0, 1]) < 0.03


def test_bodies_about_a_body():
    """``U0 E E^T U0^T`` by NumPy; zero changes nothing; coordinates do not matter."""
    rng = np.random.default_rng(3)
    A = rng.normal(size=(4, 4))
    parameters = np.asarray(inertia.from_pseudo_inertia(jnp.asarray(A @ A.T)))
    U = pseudo_inertia_factor(parameters)
    np.testing.assert_allclose(U @ U.T, A @ A.T, atol=1e-13)
    np.testing.assert_array_equal(U, np.triu(U))
    a, d1, d2, d3, s12, s23, s13, t1, t2, t3 = c = rng.normal(size=10)
    e1, e2, e3 = np.exp([d1, d2, d3])
    E = np.exp(a) * np.array([[e1, s12, s13, t1], [0, e2, s23, t2], [0, 0, e3, t3], [0, 0, 0, 1]])
    found = inertia.pseudo_inertia(perturb(jnp.asarray(U), jnp.asarray(c)))
    np.testing.assert_allclose(found, U @ E @ E.T @ U.T, rtol=1e-12)
    np.testing.assert_allclose(perturb(jnp.asarray(U), jnp.zeros(10)), parameters, rtol=1e-12)


@pytest.mark.slow
def test_inertias_are_those_of_bodies():
    """All samples can exist, however wide; masses are log-normal; a point mass stays one, and nothing stays nothing."""
    model = lgsim.load_urdf(lgsim.data.arm7())
    point = inertia.parameters(jnp.array(2.0), jnp.array([0.1, -0.2, 0.3]), jnp.zeros((3, 3)))
    given = jnp.concatenate([model.inertias[:2], point[None], jnp.zeros((1, 10))])
    each = mc.InertiaDispersion(given, 0.5)
    np.testing.assert_allclose(each(jnp.zeros(40)), given, rtol=1e-12, atol=1e-15)
    z = numbers(2000, 4, 10)
    found = np.asarray(jax.vmap(each)(z.reshape(2000, 40)))
    assert not any(inertia.defect(row) for row in found[:, :2].reshape(-1, 10))
    np.testing.assert_allclose(np.log(found[:, :3, 0] / np.asarray(given[:3, 0])), 0.5 * z[:, :3, 0], atol=1e-12)
    assert not found[:, 3].any()
    m, c = found[:, 2, 0], found[:, 2, 1:4] / found[:, 2, :1]
    about = m[:, None, None] * ((c * c).sum(1)[:, None, None] * np.eye(3) - c[:, :, None] * c[:, None])
    np.testing.assert_allclose(found[:, 2][:, inertia.PLACES], about, atol=1e-12)
    single = mc.InertiaDispersion(given[:2], [0.1, 0.0])
    moved = single(numbers(20))
    np.testing.assert_allclose(moved[1], given[1], rtol=1e-12)
    assert abs(moved[0, 0] / given[0, 0] - 1) > 1e-3


BAD = {
    "negative mass": (
        lambda m: mc.InertiaDispersion(m.inertias.at[0, 0].set(-1.0), 0.1),
        "body 0 has the negative mass -1 kg",
    ),
    "inconsistent": (lambda m: mc.InertiaDispersion(m.inertias.at[1, 4].set(9.0), 0.1), "body 1 .*triangle inequality"),
    "spread": (
        lambda m: mc.InertiaDispersion(m.inertias, -0.1),
        "std: expected finite nonnegative numbers, got -0.1",
    ),
    "median": (lambda m: mc.LogNormal(-2.0, 0.1), "median: expected positive numbers, got -2.0"),
    "bounds": (lambda m: mc.Uniform(1.0, 0.0), "high: expected at least low, got 0.0"),
    "not finite": (lambda m: mc.Normal(jnp.array([1.0, jnp.nan]), 1.0), "mean: expected finite numbers"),
    "both": (lambda m: mc.Normal(0.0), "expected exactly one of them"),
    "covariance": (lambda m: mc.Normal(jnp.zeros(2), covariance=[[1, 2], [2, 1]]), "no negative eigenvalue, got"),
    "symmetry": (lambda m: mc.Normal(jnp.zeros(2), covariance=[[1, 2], [0, 1]]), "symmetric"),
    "std": (lambda m: mc.Normal(jnp.zeros(2), jnp.ones(3)), r"a number or shape \(2,\), got \(3,\)"),
    "mean": (lambda m: mc.TangentNormal(m, jnp.zeros(3), 0.1), r"mean: expected shape \(11,\), got \(3,\)"),
    "joint": (lambda m: mc.Haar(m, ["elbow"]), "spherical joints, one of .'root_joint', 'shoulder'"),
    "ou": (
        lambda m: mc.OrnsteinUhlenbeck(1.0, 0.0, 0.1, 5),
        "correlation_time: expected finite numbers above zero, got 0.0",
    ),
    "scale": (lambda m: mc.ImportanceTilt(0.0, -1.0), "scale: expected positive numbers"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, without_import_hook):
    make, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        make(studies.tumbling())


def test_space_of_the_wrong_kind(without_import_hook):
    with pytest.raises(TypeError, match=r"space: expected an lgsim.Model, an lgsim.LieGroup or a Space, got str"):
        mc.TangentNormal("SO3", jnp.eye(3), 0.1)


BAD_NUMBERS = {
    "bodies": (lambda m: {"model.inertias": mc.Normal(m.inertias, 0.5)}, "in a sample the body 'base' has "),
    "dampers": (lambda m: {"model.damping": mc.Normal(m.damping + 0.1, 0.2)}, "damping of joint .*: expected a finite"),
    "uniform": (lambda m: {"model.friction": mc.Uniform(m.friction - 1, m.friction + 1)}, "friction of joint"),
    "a function": (
        lambda m: {"model.placements": mc.FunctionDistribution(lambda z: m.placements * (1 + z[0]), 1)},
        "placements of joint .*: expected a pose",
    ),
}


@pytest.mark.parametrize("case", BAD_NUMBERS)
def test_numbers_that_no_model_has(case):
    """As in the command: a distribution that leaves what is valid is refused with its name and a remedy."""
    make, message = BAD_NUMBERS[case]
    model = studies.tumbling()
    with pytest.raises(
        ValueError, match=rf"distributions: model\.\w+: {message}.*use a distribution that stays in range"
    ):
        mc.Study(make(model), mc.Rollout(model, dt=0.01, steps=1), [mc.outputs.final_q], samples=4)


def test_numbers_that_a_model_has():
    model = studies.pendulum()
    spread = {"model.damping": mc.Normal(model.damping + 1, 0.1), "model.inertias": mc.Normal(model.inertias, 1e-6),
              "model.gravity": mc.Normal(model.gravity, 1.0)}  # fmt: skip
    mc.Study(spread, mc.Rollout(model, dt=0.01, steps=1), [mc.outputs.final_q], samples=4)
