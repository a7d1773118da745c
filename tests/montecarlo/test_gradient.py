"""Derivatives of expectations: closed forms, both modes, a parameter of a model, weights, sequences."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.multibody import joints

MODES = ("reverse", "forward")


def close(found, known, errors=4.0):
    """The estimate is within some standard deviations of the true value, which are not zero."""
    assert np.all(found.error > 0)
    assert np.all(np.abs(found.mean - np.asarray(known)) < errors * found.error), (found.mean, known, found.error)


def squares(samples=4000, **more):
    """Squares of a normal, a log-normal and a uniform number."""
    distributions = {
        "x": mc.Normal(jnp.array([1.0, -0.5]), jnp.array([0.3, 2.0])), "m": mc.LogNormal(2.0, 0.2),
        "u": mc.Uniform(-1.0, 3.0),
    }  # fmt: skip
    return mc.Study(distributions, lambda values: {name: x**2 for name, x in values.items()}, samples=samples, **more)


@pytest.mark.parametrize("mode", MODES)
def test_squares(mode):
    """E[x^2] = mean^2 + std^2, median^2 exp(2 s^2), (a^2 + a b + b^2) / 3."""
    found = mc.gradient(squares(), lambda y: jnp.sum(y["x"]) + y["m"] + y["u"], mode=mode)
    assert list(found) == ["x.mean", "x.root", "m.median", "m.log_std", "u.low", "u.high"]
    close(found["x.mean"], [2.0, -1.0])
    np.testing.assert_allclose(found["x.mean"].error, np.array([0.6, 4.0]) / np.sqrt(4000), rtol=0.05)  # of 2 x
    close(found["x.root"], [0.6, 4.0])
    close(found["m.median"], 2 * 2.0 * np.exp(2 * 0.2**2))
    close(found["m.log_std"], 4 * 0.2 * 4.0 * np.exp(2 * 0.2**2))
    close(found["u.low"], (2 * -1.0 + 3.0) / 3)
    close(found["u.high"], (2 * 3.0 - 1.0) / 3)


def test_both_modes_are_equal():
    """To rounding, for each entry of an output and of a parameter."""
    study = squares(200)
    reverse, forward = (mc.gradient(study, "x", ["x.root", "u.low"], mode=mode) for mode in MODES)
    assert reverse["x.root"].mean.shape == (2, 2) and reverse["u.low"].mean.shape == (2,)
    for name, m in reverse.items():
        np.testing.assert_allclose(m.mean, forward[name].mean, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(m.error, forward[name].error, rtol=1e-10, atol=1e-14)
    np.testing.assert_array_equal(reverse["x.root"].mean[[0, 1], [1, 0]], 0)
    np.testing.assert_array_equal(reverse["u.low"].mean, 0)


def test_a_function_of_the_outputs():
    """d E[exp(-x^2 / 2)] / d mean of a normal number: -mean / (1 + s^2)^1.5 exp(-mean^2 / 2 / (1 + s^2))."""
    study = mc.Study({"x": mc.Normal(0.7, 0.5)}, lambda values: {"x": values["x"]}, samples=4000)
    found = mc.gradient(study, lambda y: jnp.exp(-(y["x"] ** 2) / 2), ["x.mean"])["x.mean"]
    close(found, -0.7 / 1.25**1.5 * np.exp(-(0.7**2) / 2 / 1.25))
    low, high = found.interval()
    assert low < found.mean < high


@pytest.fixture(scope="module")
def sledge():
    """2 kg on rails with damping."""
    builder = lgsim.ModelBuilder()
    builder.add_body("sledge", "world", joints.Prismatic(), axis=[1, 0, 0], mass=2.0, inertia=0.1 * np.eye(3),
                     damping=0.8)  # fmt: skip
    return builder.build()


@pytest.mark.repeats
@pytest.mark.parametrize("mode", MODES)
def test_damping_of_a_model(sledge, mode):
    """v(T) = v0 exp(-d T / m): derivatives with respect to the damping, and to mean and deviation of v0."""
    study = mc.Study(
        {"v0": mc.Normal(jnp.array([3.0]), 0.5)}, mc.Rollout(sledge, dt=0.05, steps=40),
        {"v": lambda motion: motion.v[-1, 0]}, samples=512,
    )  # fmt: skip
    found = mc.gradient(study, "v", ["model.damping", "v0.mean"], mode=mode)
    decay = np.exp(-0.8)
    close(found["model.damping"], -decay * 3.0)
    np.testing.assert_allclose(found["model.damping"].error, decay * 0.5 / np.sqrt(512), rtol=0.15)
    np.testing.assert_allclose(found["v0.mean"].mean, decay, rtol=1e-6)  # the same for all samples
    energy = mc.gradient(study, lambda y: y["v"] ** 2, ["v0.root"], mode=mode)["v0.root"]
    close(energy, 2 * 0.5 * decay**2)


def test_sequences_and_weights():
    """The error of a Sobol sequence is that of its parts; tilted samples have weights."""
    plain, sobol = (mc.gradient(squares(1024, **more), "u", ["u.high"])["u.high"]
                    for more in ({}, {"sequence": mc.Sobol()}))  # fmt: skip
    close(sobol, 5 / 3)
    assert sobol.error < plain.error / 10 and sobol.degrees == 7
    tilted = squares(4000, tilts={"u": mc.ImportanceTilt(0.5)})
    close(mc.gradient(tilted, "u", ["u.high"])["u.high"], 5 / 3)


def test_what_has_no_derivative_is_refused(sledge):
    study = squares(64, failures={"high": lambda y: y["u"] > 1.0})
    with pytest.raises(TypeError, match="statistic: expected real numbers, got bool"):
        mc.gradient(study, "failed high")
    with pytest.raises(ValueError, match="parameters: expected parameters of the study"):
        mc.gradient(study, "u", ["u.middle"])
    with pytest.raises(ValueError, match="statistic: expected an output"):
        mc.gradient(study, "w")
    with pytest.raises(ValueError, match="mode: expected 'reverse' or 'forward', got 'both'"):
        mc.gradient(study, "u", mode="both")
    with pytest.raises(ValueError, match=r"expected a finite derivative of each sample, got .* without one"):
        mc.gradient(study, lambda y: jnp.sqrt(y["u"] - 1.0), ["u.high"])
    random = mc.Study({"model.damping": mc.LogNormal(jnp.array([1.0]), 0.1)}, mc.Rollout(sledge, dt=0.1, steps=1),
                      [mc.outputs.final_v], samples=8)  # fmt: skip
    with pytest.raises(ValueError, match=r"got 'model.damping'"):
        mc.gradient(random, "final_v", ["model.damping"])
