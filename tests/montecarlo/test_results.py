"""Statistics against NumPy and scipy; sensitivities against closed forms; rare events of known probability."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial.transform import Rotation

import lgsim
from lgsim import montecarlo as mc
from lgsim.montecarlo.intervals import wilson
from lgsim.montecarlo.study import Sampler
from tests.montecarlo import studies


def attitudes(spread, samples=500, **more):
    """Unit quaternions about one far from the identity, with their configuration."""
    model = studies.ball()
    q = lgsim.quaternion.exp(jnp.array([1.5, -1.0, 0.7]))
    distribution = mc.TangentNormal(model, q, spread)
    return model, q, mc.run(mc.Study({"q": distribution}, lambda v: v, samples=samples, tile=64, **more))


def test_intrinsic_mean_is_that_of_scipy():
    """The mean of rotations far apart: the minimum of squared distances, found by scipy from several starts."""
    model, q, found = attitudes(jnp.array([0.8, 0.5, 0.3]))
    ours = found.intrinsic("q", model)
    assert ours.converged and ours.count == 500
    turns = Rotation.from_quat(found.column("q"), scalar_first=True)
    mean = Rotation.from_quat(ours.mean, scalar_first=True)
    gaps = (mean.inv() * turns).as_rotvec()
    np.testing.assert_allclose(gaps.mean(axis=0), 0, atol=1e-12)  # the gradient of the sum of squared angles
    np.testing.assert_allclose(ours.covariance, np.cov(gaps.T), atol=1e-12)
    cost = (gaps**2).sum()
    for step in 0.01 * np.vstack([np.eye(3), -np.eye(3)]):
        moved = ((mean * Rotation.from_rotvec(step)).inv() * turns).as_rotvec()
        assert (moved**2).sum() > cost
    matrices = mc.run(mc.Study(
        {"q": mc.TangentNormal(model, q, jnp.array([0.8, 0.5, 0.3]))},
        lambda v: {"R": lgsim.conversions.matrix_from_quaternion(v["q"])}, samples=500, tile=64,
    )).intrinsic("R", lgsim.SO3)  # fmt: skip
    np.testing.assert_allclose(matrices.mean, mean.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(matrices.covariance, ours.covariance, atol=1e-12)


def test_intrinsic_statistics_find_the_distribution():
    """The Gaussian that was sampled: its mean and covariance within the sampling error."""
    root = np.array([[0.3, 0.0, 0.0], [0.1, 0.2, 0.0], [0.0, -0.1, 0.1]])
    model = studies.ball()
    q = lgsim.quaternion.exp(jnp.array([3.0, 0.4, 0.2]))
    each = mc.TangentNormal(model, q, covariance=root @ root.T)
    found = mc.run(mc.Study({"q": each}, lambda v: v, samples=20_000, tile=1000)).intrinsic("q", model)
    assert found.converged
    np.testing.assert_allclose(model.difference(q, jnp.asarray(found.mean)), 0, atol=4 * 0.3 / np.sqrt(20_000))
    np.testing.assert_allclose(found.covariance, root @ root.T, atol=4 * 0.1 * np.sqrt(2 / 20_000))


def test_attitudes_all_around_have_no_mean():
    model = studies.ball()
    joint = model.joint_names[0]
    found = mc.run(mc.Study({"q": mc.Haar(model, [joint])}, lambda v: v, samples=200, tile=64))
    assert not found.intrinsic("q", model, iterations=3).converged


def test_statistics_of_columns():
    """Covariance, quantiles and histograms are NumPy's of the samples that did not diverge and have a value."""
    found = mc.run(studies.plain(1000))
    good = np.abs(np.nan_to_num(found.column("sum"))) < 1e12
    pair, one = found.column("pair")[good], found.column("sum")[good & np.isfinite(found.column("sum"))]
    np.testing.assert_allclose(found.covariance("pair"), np.cov(pair.T), rtol=1e-12)
    np.testing.assert_array_equal(found.quantiles("pair", [0.1, 0.9]), np.quantile(pair, [0.1, 0.9], axis=0))
    counts, edges = np.histogram(one, 20)
    ours = found.histogram("sum", 20)
    np.testing.assert_allclose(ours.edges, edges)
    np.testing.assert_array_equal(ours.counts, counts)
    np.testing.assert_array_equal(found.histogram("pair", [-1.0, 0.0, 2.0]).counts, np.histogram(pair, [-1, 0, 2])[0])


def ishigami(sequence=None, samples=4096):
    study = mc.Study(
        {name: mc.Uniform(-np.pi, np.pi) for name in "abc"},
        lambda v: {"y": jnp.sin(v["a"]) + 7 * jnp.sin(v["b"]) ** 2 + 0.1 * v["c"] ** 4 * jnp.sin(v["a"])},
        samples=samples, tile=512,
    )  # fmt: skip
    return study, mc.run(mc.sobol_study(study, ["y"], sequence=sequence))


def test_sobol_indices_of_ishigami():
    """The closed form, with Sobol points within 1 %, and scipy's estimator on the same evaluations.

    Source: Ishigami, Homma, An importance quantification technique in uncertainty analysis, 1990.
    """
    study, results = ishigami(mc.Sobol())
    found = mc.sobol_indices(results, "y")
    a, b, pi = 7.0, 0.1, np.pi
    V = a**2 / 8 + b * pi**4 / 5 + b**2 * pi**8 / 18 + 0.5
    first = {"a": 0.5 * (1 + b * pi**4 / 5) ** 2 / V, "b": a**2 / 8 / V, "c": 0.0}
    both = b**2 * pi**8 * (1 / 18 - 1 / 50) / V
    np.testing.assert_allclose(found.variance, V, rtol=0.01)
    for name, wanted in first.items():
        np.testing.assert_allclose(found.first[name], wanted, atol=0.01)
        np.testing.assert_allclose(found.total[name], wanted + (name != "b") * both, atol=0.01)
    columns = {end: results.column("y" + end) for end in (" A", " B", " mixed")}
    theirs = stats.sobol_indices(
        func={"f_A": columns[" A"][None], "f_B": columns[" B"][None], "f_AB": columns[" mixed"].T[:, None]}, n=4096
    )
    np.testing.assert_allclose([found.first[name] for name in "abc"], theirs.first_order.ravel(), atol=1e-10)
    np.testing.assert_allclose([found.total[name] for name in "abc"], theirs.total_order.ravel(), atol=1e-10)
    pairs = results.study.sampler.draw(jnp.uint32(5)).values
    alone = study.evaluate(study.sampler.sample({name: x[0] for name, x in pairs.items()}))
    np.testing.assert_allclose(columns[" A"][5], alone["y"], rtol=1e-13)


@pytest.fixture(scope="module")
def ball():
    """A ball that turns for a while, with a little spread of start, inertia and speed."""
    model = studies.ball()
    rollout = mc.Rollout(model, v0=jnp.array([2.0, 1.0, -1.0]), dt=0.02, steps=10)
    return model, mc.Study(
        {
            "q0": mc.TangentNormal(model, model.neutral(), 0.01),
            "v0": mc.Normal(rollout.v0, covariance=1e-4 * np.array([[2, 1, 0], [1, 2, 0], [0, 0, 1.0]])),
            "model.inertias": mc.InertiaDispersion(model.inertias, 0.01),
        },
        rollout, [mc.outputs.final_q], samples=8192, tile=512, sequence=mc.Sobol(),
    )  # fmt: skip


@pytest.mark.slow
def test_linear_covariance_agrees_with_the_sampled_one(ball):
    """In the linear regime within 2 % of the largest entry, on the group, and all parts add up."""
    model, study = ball
    sampled = mc.run(study).intrinsic("final_q", model)
    found = mc.linear_covariance(study, "final_q", model)
    assert np.abs(found.covariance - sampled.covariance).max() < 0.02 * np.abs(sampled.covariance).max()
    np.testing.assert_allclose(sum(found.parts.values()), found.covariance, rtol=1e-12)
    assert all(np.trace(part) > 0.001 * np.trace(found.covariance) for part in found.parts.values())
    np.testing.assert_allclose(model.difference(jnp.asarray(found.value), jnp.asarray(sampled.mean)), 0, atol=1e-3)


def test_linear_covariance_of_the_start_is_exact():
    """Of a value that is the sample itself: its own covariance; forward and reverse mode alike."""
    root = np.random.default_rng(0).normal(size=(4, 2))
    x = mc.Normal(jnp.zeros(4), covariance=root @ root.T)
    study = mc.Study({"x": x, "y": mc.Normal(jnp.zeros(3), 2.0)},
                     lambda v: {"wide": v["x"], "narrow": v["y"][:1] + v["x"][:1]}, samples=8, tile=8)  # fmt: skip
    np.testing.assert_allclose(mc.linear_covariance(study, "wide").covariance, root @ root.T, atol=1e-14)
    np.testing.assert_allclose(
        mc.linear_covariance(study, "narrow").covariance, [[4 + (root @ root.T)[0, 0]]], rtol=1e-13
    )


def tail(tilts, samples=4000):
    """How often a Gaussian number is beyond 4.5 standard deviations: 3.4e-6."""
    study = mc.Study({"x": mc.Normal(jnp.zeros(2), 2.0)}, lambda v: v, samples=samples, tile=500, seed=1, tilts=tilts,
                     failures={"far": lambda y: y["x"][0] > 9.0})  # fmt: skip
    return mc.run(study)


def test_rare_events_by_importance_sampling():
    """The known probability within its interval, which is narrow; without, none of as many samples fails."""
    wanted = stats.norm.sf(4.5)
    assert tail({}).failures("far").count == 0
    found = tail({"x": mc.ImportanceTilt(jnp.array([4.5, 0.0]))})
    rare = found.failures("far", level=0.999)
    assert rare.count > 1500
    assert rare.interval[0] < wanted < rare.interval[1]
    assert rare.interval[1] - rare.interval[0] < 0.25 * wanted
    w = np.exp(found.column("log_weight"))
    x = found.column("x")
    np.testing.assert_allclose(w, stats.norm.pdf(x[:, 0] / 2) / stats.norm.pdf(x[:, 0] / 2 - 4.5), rtol=1e-10)
    own = w[rare.indices]
    np.testing.assert_allclose(rare.effective, own.sum() ** 2 / (own**2).sum())
    np.testing.assert_allclose(rare.probability, own.sum() / 4000)
    with pytest.warns(RuntimeWarning, match="4000 weighted samples have an effective number of 1.5, below 1000"):
        assert found.moments("x").effective < 400 < rare.effective
    with pytest.raises(ValueError, match="quantiles: not available under importance sampling"):
        found.quantiles("x", [0.5])


def test_a_wider_density():
    """A scale: weights by scipy's densities, moments those of the distribution wanted."""
    found = tail({"x": mc.ImportanceTilt(0.0, jnp.array([1.5, 1.0]))}, 20_000)
    x = found.column("x")[:, 0] / 2
    ratio = stats.norm.pdf(x) / stats.norm(0, 1.5).pdf(x)
    np.testing.assert_allclose(np.exp(found.column("log_weight")), ratio, rtol=1e-10)
    m = found.moments("x")
    assert m.effective > 1000
    np.testing.assert_allclose(m.mean, 0, atol=4 * 2 / np.sqrt(m.effective))
    np.testing.assert_allclose(m.std, 2, rtol=4 / np.sqrt(m.effective))


BAD = {
    "output": (lambda r: r.moments("summ"), "got 'summ'; did you mean 'sum'"),
    "failure": (lambda r: r.failures("hig"), "failures: expected one of the study, got 'hig'; did you mean 'high'"),
    "level": (lambda r: r.quantiles("sum", [1.5]), "levels: expected numbers between 0 and 1"),
    "space": (lambda r: r.intrinsic("pair", studies.ball()), r"of the space's shape \(4,\), got \(2,\)"),
    "linear": (lambda r: mc.linear_covariance(r.study, "summ"), "did you mean 'sum'"),
    "of Haar": (
        lambda r: mc.linear_covariance(mc.Study({"q": mc.Haar(studies.tumbling())}, lambda v: v, samples=8), "q"),
        "expected a distribution with a median, got uniform attitudes",
    ),
    "Sobol": (lambda r: mc.sobol_study(r.study, ["z"]), "expected names of outputs of the study, got 'z'"),
    "tilted": (
        lambda r: mc.sobol_study(studies.plain(tilts={"x": mc.ImportanceTilt(1.0)}), ["sum"]),
        "expected a study without tilts",
    ),
}


@pytest.fixture(scope="module")
def small():
    return mc.run(studies.plain(32))


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case, small, without_import_hook):
    ask, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        ask(small)


def test_keys_of_seeds():
    """The words of a seed are those of ``jax.random.key``, also beyond 32 bits."""
    for seed in (0, 7, 2**40 + 3):
        words = Sampler({}, seed, 1).seed
        np.testing.assert_array_equal(words, jax.random.key_data(jax.random.key(seed, impl="threefry2x32")))


def test_failures_with_diverged_samples():
    """A diverged sample may have failed or not: the interval covers the truth that the remaining ones miss."""

    def f(v):
        return {"x": jnp.where(v["x"] > 1.5, jnp.nan, v["x"])}

    study = mc.Study({"x": mc.Normal(0.0, 1.0)}, f, samples=2000, failures={"far": lambda y: y["x"] > 1}, tile=500)
    results = mc.run(study)
    found, lost = results.failures("far"), results.running.diverged
    wanted = stats.norm.sf(1.0)
    assert found.probability < 0.11 < wanted and found.interval[0] < wanted < found.interval[1]
    k = found.count
    low, high = (stats.binomtest(x, 2000).proportion_ci(0.95, method="exact") for x in (k, k + lost))
    np.testing.assert_allclose(found.interval, [low.low, high.high], rtol=1e-10)
    np.testing.assert_allclose(results.moments("failed far").interval(), found.interval, rtol=1e-10)
    score = stats.binomtest(k, 2000).proportion_ci(0.9, method="wilson")
    np.testing.assert_allclose(results.failures("far", 0.9, wilson).interval[0], score.low, rtol=1e-10)


def test_statistics_of_truth_values():
    study = mc.Study({"x": mc.Normal(0.0, 1.0)}, lambda v: {"up": v["x"] > 0}, samples=100, tile=50)
    results = mc.run(study)
    np.testing.assert_array_equal(results.quantiles("up", [0.0, 1.0]), [0, 1])
    np.testing.assert_array_equal(results.histogram("up", 2).counts.sum(), 100)


def test_no_failure_under_a_tilt():
    found = tail({"x": mc.ImportanceTilt(jnp.array([-1.0, 0.0]))}).failures("far")
    assert (found.count, found.interval) == (0, (0.0, 1.0))
