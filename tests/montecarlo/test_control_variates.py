"""Means by control variates: against least squares written out, closed forms, and coverage."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import lgsim
from lgsim import montecarlo as mc
from lgsim.multibody import joints


def bent(values):
    """Nearly linear in three normal numbers; E[y] = 1 + 0.05 (1 + 0.25) and 3."""
    x, w = values["x"], values["w"]
    return {"y": jnp.stack([1 + x[0] - 2 * w + 0.05 * (x[0] ** 2 + x[1] ** 2), 3 + x[1] + 0.02 * w**3]), "w": w}


MEANS = np.array([1.0625, 3.0])


def study(samples, seed=0, **more):
    inputs = {"x": mc.Normal(jnp.zeros(2), jnp.array([1.0, 0.5])), "w": mc.Normal(0.0, 1.0)}
    return mc.Study(inputs, bent, samples=samples, seed=seed, tile=16, **more)


def test_it_is_the_regression_at_the_expectation():
    """The intercept of least squares and its standard error, by numpy from the stored outputs."""
    results = mc.run(study(50))
    found = mc.control_variates(results, "y", expectations={"w": 0.0})
    y, w = results.column("y"), results.column("w")
    for k in range(2):
        line = stats.linregress(w, y[:, k])
        np.testing.assert_allclose(found.mean[k], line.intercept)
        np.testing.assert_allclose(found.error[k], line.intercept_stderr)
    np.testing.assert_array_equal(found.degrees, 48)
    low, high = found.interval()
    np.testing.assert_allclose(high - low, 2 * stats.t.ppf(0.975, 48) * found.error)


def latents(plan):
    """The standard normal numbers of x and w, from the values."""
    values = [plan.sample(i).values for i in range(plan.samples)]
    return np.array([[v["x"][0], v["x"][1] / 0.5, v["w"]] for v in values])


def test_linear_covariance_as_control():
    """Its mean is within the interval, which is that of many times more samples."""
    plan = study(800)
    results, linear = mc.run(plan), mc.linear_covariance(plan, "y")
    found = mc.control_variates(results, "y", linear=linear)
    assert np.all(np.abs(found.mean - MEANS) < 4 * found.error)
    np.testing.assert_allclose(found.factor, (results.moments("y").error / found.error) ** 2, rtol=1e-3)
    # variances: the remainders have 0.05^2 2 (1 + 1/16) and 15 0.02^2, the second with a covariance of 0
    np.testing.assert_allclose(found.factor, [5.0053 / 0.0053, 0.256 / 0.006], rtol=0.25)
    line = stats.ttest_1samp(results.column("y") - latents(plan) @ np.array([[1, 0], [0, 0.5], [-2, 0]]), 0.0)
    np.testing.assert_allclose(found.interval(), line.confidence_interval(0.95))


def products(values):
    """Of numbers about 1."""
    u = values["u"]
    return {"y": jnp.stack([u[0] * jnp.sin(u[1]) + u[2] * u[3], u[0] * u[1] * jnp.sin(u[2])])}


@pytest.mark.slow
def test_coverage():
    """Of 4000 studies of 20 samples each, with standard deviations of 5 %: 0.95 within 3 deviations of the fraction."""

    def small(seed):
        return mc.Study({"u": mc.Normal(jnp.ones(4), 0.05)}, products, samples=20, seed=seed, tile=20)

    linear = mc.linear_covariance(small(0), "y")
    means = np.sin(1) * np.exp(-(0.05**2) / 2) + np.array([1, 0])
    seen = []
    for seed in range(4000):
        found = mc.control_variates(mc.run(small(seed)), "y", linear=linear)
        low, high = found.interval()
        assert np.all(found.factor > 10)
        seen.append((low < means) & (means < high))
    assert np.all(np.abs(np.mean(seen, axis=0) - 0.95) <= 0.01)


@pytest.mark.slow
def test_an_arm_with_dispersions_of_5_percent():
    """At least ten times fewer samples for the mean of the end of its motion."""
    builder = lgsim.ModelBuilder()
    for k, name in enumerate(["upper", "lower"]):
        builder.add_body(name, "upper" if k else "world", joints.Revolute(), joint_name=f"hinge_{k}", axis=[0, 1, 0],
                         placement=np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -0.4 * k], [0, 0, 0, 1]]),
                         mass=1.0, center=[0, 0, -0.2], inertia=0.01 * np.eye(3), damping=0.1)  # fmt: skip
    arm = builder.build()
    inputs = {
        "model.damping": mc.LogNormal.with_mean(arm.damping, 0.05),
        "model.inertias": mc.InertiaDispersion(arm.inertias, 0.05),
        "q0": mc.Normal(jnp.array([0.6, -0.4]), 0.05 * 0.5),
    }
    plan = mc.Study(
        inputs, mc.Rollout(arm, dt=0.02, steps=40, save_every=40), {"end": mc.outputs.final_q}, samples=256, tile=64
    )
    results = mc.run(plan, step_check=False)
    found = mc.control_variates(results, "end", linear=mc.linear_covariance(plan, "end"))
    assert np.all(found.factor > 10)
    np.testing.assert_array_less(np.abs(found.mean - results.moments("end").mean), 4 * results.moments("end").error)


def test_controls_that_say_nothing():
    """Constant and repeated controls take no degree of freedom, whatever their units; few samples have no error."""
    both = mc.Study(
        {"w": mc.Normal(0.0, 1.0)},
        lambda v: {"y": v["w"] + jnp.sin(9 * v["w"]), "one": 1.0 + 0 * v["w"], "w": v["w"], "nano": 1e-9 * v["w"]},
        samples=40, tile=8,
    )  # fmt: skip
    results = mc.run(both)
    found = mc.control_variates(results, "y", expectations={"one": 1.0, "w": 0.0, "nano": 0.0})
    single = mc.control_variates(results, "y", expectations={"w": 0.0})
    np.testing.assert_allclose([*found], [*single], rtol=1e-9)
    few = mc.control_variates(mc.run(study(2)), "y", expectations={"w": 0.0})
    assert np.all(np.isnan(few.error)) and np.all(np.isnan(few.interval()))


def lost(values):
    return {"y": jnp.where(values["w"] > 1, jnp.nan, values["w"]), "w": values["w"]}


@pytest.mark.parametrize(("ask", "message"), [
    (lambda: mc.control_variates(mc.run(study(8)), "y"), "linear: expected a control, got neither"),
    (lambda: mc.control_variates(mc.run(study(8, sequence=mc.LatinHypercube())), "y", expectations={"w": 0.0}),
     "expected random sampling without tilts"),
    (lambda: mc.control_variates(mc.run(study(8)), "z", expectations={"w": 0.0}), "expected an output"),
    (lambda: mc.control_variates(mc.run(study(8)), "w", linear=mc.linear_covariance(study(8), "y")), "linear: "),
    (lambda: mc.control_variates(mc.run(mc.Study({"w": mc.Normal(0.0, 1.0)}, lost, samples=50)), "y",
                                 expectations={"w": 0.0}), "expected no diverged samples"),
])  # fmt: skip
def test_bad_arguments(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()
