"""Multilevel Monte Carlo over the step, against closed forms and plain sampling at equal cost."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.multibody import joints


def falling(samples=8, dt=0.1, **more):
    """A mass on a spring and in gravity by Euler steps, with a random initial speed."""
    builder = lgsim.ModelBuilder()
    builder.add_body("mass", "world", joints.Prismatic(), joint_name="slide", axis=[0, 0, 1], mass=1.0,
                     inertia=np.eye(3), stiffness=4.0)  # fmt: skip
    inputs = {"v0": mc.Normal(jnp.array([1.0]), 0.5)}
    run = mc.Rollout(builder.build(), dt=dt, steps=round(1 / dt), save_every=round(1 / dt), method=lgsim.LieEuler)
    return mc.Study(inputs, run, {"end": lambda m: m.q[-1, 0] ** 2}, samples=samples, tile=64, **more)


def closed_form():
    """E[q^2] with q = v sin(w t) / w + g (cos(w t) - 1) / w^2."""
    w, g = 2.0, 9.81
    slope, rest = np.sin(w) / w, g * (np.cos(w) - 1) / w**2
    return slope**2 * (1 + 0.25) + 2 * slope * rest + rest**2


def test_both_errors_share_the_budget():
    """The closed form is within the interval, the stated errors are at most the requested one, and levels need less and
    less samples."""
    found = mc.multilevel(falling(), "end", 0.1, first=16)
    assert found.converged and len(found.samples) >= 3
    assert np.all(np.diff(found.samples[:3]) < 0)
    assert found.step_error <= 0.1 / np.sqrt(2) and found.sampling_error <= 0.1 / np.sqrt(2)
    low, high = found.interval()
    assert low < closed_form() < high
    assert high - low < 4 * 0.1
    steps = 2.0 ** np.arange(len(found.samples))
    np.testing.assert_allclose(found.cost, np.dot(found.samples, np.append(1, 1.5 * steps[1:])))


def test_levels_that_do_not_suffice():
    """Said, with the error that is left."""
    found = mc.multilevel(falling(), "end", 0.02, levels=3)
    assert not found.converged and found.step_error > 0.02 / np.sqrt(2)


@pytest.mark.slow
def test_an_arm_against_plain_sampling_at_equal_cost():
    """For the end of a two-joint arm the standard deviation over seeds is at least five times smaller."""
    builder = lgsim.ModelBuilder()
    for k, name in enumerate(["upper", "lower"]):
        builder.add_body(name, "upper" if k else "world", joints.Revolute(), joint_name=f"hinge_{k}", axis=[0, 1, 0],
                         placement=np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -0.4 * k], [0, 0, 0, 1]]),
                         mass=1.0, center=[0, 0, -0.2], inertia=0.01 * np.eye(3), damping=0.1)  # fmt: skip
    arm = builder.build()
    inputs = {"q0": mc.Normal(jnp.array([0.6, -0.4]), 0.1)}

    def study(samples, refinement=1, seed=0):
        run = mc.Rollout(arm, dt=0.04 / refinement, steps=6 * refinement, save_every=6 * refinement,
                         method=lgsim.LieEuler)  # fmt: skip
        outputs = {"end": lambda m: 0.4 * (jnp.sin(m.q[-1, 0]) + jnp.sin(m.q[-1].sum()))}
        return mc.Study(inputs, run, outputs, samples=samples, seed=seed, tile=64)

    found = [mc.multilevel(study(1, seed=k), "end", 3.7e-4, first=16) for k in range(12)]
    assert all(each.converged for each in found)
    finest = 2 ** (len(found[0].samples) - 1)
    samples = round(np.mean([each.cost for each in found]) / finest)
    plain = mc.run(study(2000, 16), step_check=False).moments("end").std / np.sqrt(samples)
    spread = np.std([each.mean for each in found], ddof=1)
    assert finest == 128 and plain > 5 * spread, (samples, plain / spread)


@pytest.mark.parametrize(("ask", "error", "message"), [
    (dict(output="z"), ValueError, "output: expected"),
    (dict(error=0.0), ValueError, "error: expected a positive number"),
    (dict(levels=2), ValueError, "levels: expected at least 3"),
    (dict(first=1), ValueError, "first: expected at least 2"),
    (dict(study=falling(sequence=mc.LatinHypercube())), ValueError, "expected random sampling"),
    (dict(study=mc.Study({}, lambda v: {"end": jnp.ones(())}, samples=1)), TypeError, "a Rollout, got a function"),
])  # fmt: skip
def test_bad_arguments(ask, error, message):
    with pytest.raises(error, match=message):
        mc.multilevel(**{"study": falling(), "output": "end", "error": 0.1, **ask})


def test_discrete_outputs_and_diverged_samples():
    base = falling()
    flips = mc.Study(base.sampler.distributions, base.rollout, {"end": lambda m: m.q[-1, 0] > 0}, samples=1)
    with pytest.raises(TypeError, match="end: expected real numbers, got bool"):
        mc.multilevel(flips, "end", 0.1)
    with pytest.raises(ValueError, match=r"expected no diverged samples, got 8 of 8 at dt / 1; use a shorter dt"):
        mc.multilevel(falling(bound=1e-9), "end", 0.1, first=8)
