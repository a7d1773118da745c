"""Subset simulation against closed forms, and what it says where it cannot give an estimate."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import lgsim
from lgsim import montecarlo as mc
from lgsim.multibody import joints

RARE = stats.norm.sf(4.0)


def scalar(f, dim=1, seed=0):
    return mc.Study({"x": mc.Normal(jnp.zeros(dim), 1.0)}, lambda v: {"y": f(v["x"])}, samples=1, seed=seed, tile=256)


def test_a_rare_event_of_a_normal():
    """P(x > 4) = 3.167e-5, within the interval; the interval is that of the runs, written out."""
    found = mc.subset_simulation(scalar(lambda x: x[0]), "y", 4.0)
    low, high = found.interval()
    assert low < RARE < high < 2.5 * low
    assert found.evaluations < 45_000 and found.diverged == 0 and not found.reasons
    # thresholds near the quantiles of 10^-k
    np.testing.assert_allclose(np.mean([run[:4] for run in found.levels], axis=0),
                               stats.norm.isf(10.0 ** -np.arange(1, 5)), atol=0.1)  # fmt: skip
    ratio = stats.t.ppf(0.975, 7) * stats.sem(found.runs) / found.runs.mean()
    np.testing.assert_allclose((low, high), found.runs.mean() * np.exp([-ratio, ratio]))


@pytest.mark.slow
def test_coverage():
    """Of 95 % over 100 seeds, in one and in 50 dimensions."""
    for dim in (1, 50):
        seen = [
            mc.subset_simulation(scalar(lambda x: x.sum() / jnp.sqrt(x.size), dim, k), "y", 4.0) for k in range(100)
        ]
        assert 0.90 <= np.mean([low < RARE < high for low, high in (s.interval() for s in seen)]) <= 0.97
        assert abs(np.mean([s.probability for s in seen]) / RARE - 1) < 0.1


def test_outputs_with_steps_and_two_regions():
    """Whole numbers are levels like others; two regions are both found."""
    floor = mc.subset_simulation(scalar(lambda x: jnp.floor(2 * x[0])), "y", 6.5, runs=4)
    low, high = floor.interval()
    assert low < stats.norm.sf(3.5) < high and not floor.reasons
    both = mc.subset_simulation(scalar(lambda x: jnp.abs(x[0])), "y", 4.0, runs=4)
    low, high = both.interval()
    assert low < 2 * RARE < high and not both.reasons


def test_frequent_events():
    """An event that needs no threshold has the interval of Clopper and Pearson, not one of width zero."""
    sure = mc.subset_simulation(scalar(lambda x: x[0]), "y", -9.0, runs=2, samples=100)
    assert sure.probability == 1.0
    np.testing.assert_allclose(sure.interval(), (0.025 ** (1 / 200), 1.0))


SAID = {
    "unreachable": (
        lambda x: jnp.tanh(x[0]),
        2.0,
        r"2 is not reached at a probability of .*e-0[67].*largest output is 0\.99",
    ),
    "few values": (lambda x: jnp.where(x[0] > 4, 1.0, 0.0), 0.5, "100.0% of the samples of a level have the same outp"),
    "chains": (lambda x: jnp.where(x[0] == 0, 0, jnp.mod(x[0] * 1e9, 1.0)), 1 - 1e-5, "chains do not move at the le"),
    "diverged": (lambda x: x[0] * jnp.nan, 4.0, "100.0% of the samples of a level diverged"),
}


@pytest.mark.parametrize("case", SAID)
def test_no_estimate(case):
    """Each reason is said, the estimate is not a number, and the interval is that of no knowledge."""
    f, above, reason = SAID[case]
    with pytest.warns(RuntimeWarning, match=reason):
        found = mc.subset_simulation(scalar(f), "y", above, samples=200, runs=2, smallest=1e-6)
    assert np.isnan(found.probability) and found.interval() == (0.0, 1.0) and found.reasons


def test_diverged_samples_may_have_failed():
    """Beyond 4.2 nothing is finite: the interval covers these samples as failed and as not failed."""
    found = mc.subset_simulation(scalar(lambda x: jnp.where(x[0] > 4.2, jnp.nan, x[0])), "y", 4.0, runs=4)
    assert found.diverged > 0 and not found.reasons
    low, high = found.interval()
    assert low < RARE - stats.norm.sf(4.2) < RARE < high


@pytest.mark.slow
def test_a_pendulum_that_turns_over():
    """Pushed from below, it turns over from the speed of the separatrix on, ``v^2 = 4 m g l / I``."""
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), joint_name="hinge", axis=[0, 1, 0], mass=2.0,
                     center=[0, 0, -0.5], inertia=1e-3 * np.eye(3))  # fmt: skip
    model, inertia = builder.build(), 2.0 * 0.25 + 1e-3
    fastest = np.sqrt(4 * 2.0 * 9.81 * 0.5 / inertia)
    std = 0.1 * fastest
    study = mc.Study(
        {"v0": mc.Normal(jnp.array([0.6 * fastest]), std)},
        mc.Rollout(model, dt=0.02, steps=200, save_every=2), {"highest": lambda m: jnp.max(m.q[:, 0])}, samples=1,
    )  # fmt: skip
    found = mc.subset_simulation(study, "highest", np.pi, samples=500)
    low, high = found.interval()
    assert low < RARE < high < 3 * low


@pytest.mark.parametrize(("ask", "error", "message"), [
    (dict(output="z"), ValueError, "output: expected"),
    (dict(above=np.inf), ValueError, "above: expected a finite number"),
    (dict(samples=105), ValueError, "samples: expected a multiple of 10"),
    (dict(samples=50), ValueError, "at least 100"),
    (dict(runs=1), ValueError, "runs: expected at least 2"),
    (dict(fraction=0.3), ValueError, "fraction: expected the inverse of an integer"),
    (dict(smallest=0.0), ValueError, "smallest: expected a probability"),
])  # fmt: skip
def test_bad_arguments(ask, error, message):
    with pytest.raises(error, match=message):
        mc.subset_simulation(scalar(lambda x: x[0]), **{"output": "y", "above": 4.0, **ask})


def test_other_outputs_and_tilts():
    for f in (lambda x: x[0] > 4, lambda x: x):
        with pytest.raises(TypeError, match="y: expected a scalar number that grows towards the failure"):
            mc.subset_simulation(scalar(f), "y", 0.5)
    tilted = mc.Study({"x": mc.Normal(0.0, 1.0)}, lambda v: {"y": v["x"]}, samples=1, tilts={"x": mc.ImportanceTilt(1)})
    with pytest.raises(ValueError, match="without tilts"):
        mc.subset_simulation(tilted, "y", 4.0)
