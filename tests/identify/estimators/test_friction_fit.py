"""Friction of joints by torque fits: its speeds, directions and loads, against torques written out in NumPy."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.identify import (
    Huber,
    Inertias,
    JointParameter,
    Masses,
    Parameters,
    Plant,
    TorqueFit,
    TorqueSamples,
    fit,
    load_plant,
)
from lgsim.identify.estimators.friction_objective import FrictionObjective, friction_objective
from lgsim.identify.estimators.loss import SquaredLoss
from lgsim.identify.estimators.torque_objective import StreamedObjective
from lgsim.identify.unknowns import DirectionalParameter, LoadFriction, SharedBlock
from tests.identify import arms

COUNT, NOISE = 600, 0.05
FRICTION, DAMPING, SPEEDS = np.array([3.0, 2.0]), np.array([0.5, 0.2]), np.array([0.01, 0.3])
TRUE = {"friction": FRICTION, "damping": DAMPING, "friction_speed": SPEEDS}


def blocks():
    return [Masses(), *(JointParameter(name) for name in TRUE)]


def recorded(friction, seed=0, noise=NOISE, count=COUNT):
    """Torques of the arm without friction with white noise, plus ``friction(v)``."""
    found = arms.samples(arms.planar(), count, seed, noise)
    signals = np.asarray(found.signals) + friction(np.asarray(found.v))
    return TorqueSamples(found.q, found.v, found.a, signals)


def smooth(v, friction=FRICTION, speeds=SPEEDS):
    return friction * np.tanh(v / speeds) + DAMPING * v


def values(found, name):
    """(values, standard errors) of a parameter of both joints."""
    keys = [key for key in found.values if key.startswith(f"{name} of ")]
    return np.array([found.values[key] for key in keys]), np.array([found.deviations[key] for key in keys])


def distances(found, true):
    """(estimate - truth) / standard error of all parameters."""
    parts = {name: values(found, name) for name in true}
    return np.concatenate([(parts[name][0] - true[name]) / parts[name][1] for name in true])


@pytest.mark.parametrize("start", [0.1, 1e-6, 10.0])
def test_the_changeover_speed_is_found_from_any_start(start):
    """At a start of 1e-6 rad/s all samples are beyond the changeover, and the cost does not depend on the speed."""
    found = fit(Parameters(arms.planar(friction_speed=start), blocks()), recorded(smooth))
    assert str(found.verdict).startswith("converged; explained variance")
    assert np.max(np.abs(distances(found, TRUE))) < 3
    assert np.all(values(found, "friction_speed")[1] < 0.05 * SPEEDS)


def test_a_speed_below_those_of_the_record_is_not_identifiable():
    """Coulomb's law by the sign of v: any low speed fits; friction and damping are right."""
    found = fit(Parameters(arms.planar(), blocks()), recorded(lambda v: FRICTION * np.sign(v) + DAMPING * v))
    assert np.max(np.abs(distances(found, {"friction": FRICTION, "damping": DAMPING}))) < 3
    speeds, _ = values(found, "friction_speed")
    assert np.all((speeds > 1e-6) & (speeds < 1e-2))
    for joint in ("shoulder", "elbow"):
        assert f"friction_speed of {joint}: prior 100 %" in str(found.verdict)
        assert found.intervals[f"friction_speed of {joint}, rad/s"][0] == 0


def test_a_changeover_above_the_speeds_of_the_record_is_damping():
    """At a tenth of the changeover dry friction is a damper: the sum is right, the speed is not identifiable."""
    model, rng = arms.planar(), np.random.default_rng(0)
    q, _, a = arms.states(model, COUNT)
    v = 0.03 * rng.normal(size=q.shape)
    rigid = np.asarray(arms.signals(Plant(model), q, jnp.asarray(v), a))
    tau = rigid + smooth(v, speeds=0.5) + 0.002 * rng.normal(size=v.shape)
    found = fit(Parameters(model, blocks()), TorqueSamples(q, v, a, tau))
    (friction, _), (damping, wide), (speed, _) = (values(found, name) for name in TRUE)
    np.testing.assert_allclose(friction / speed + damping, FRICTION / 0.5 + DAMPING, rtol=0.02)
    assert np.all(wide > 0.05 * damping) and np.all(speed < 1)
    assert "2 of 8 combinations not identifiable" in str(found.verdict) and "friction_speed" in str(found.verdict)


def test_without_friction_its_speed_is_not_identifiable():
    found = fit(Parameters(arms.planar(), blocks()), recorded(lambda v: DAMPING * v))
    assert np.max(np.abs(distances(found, {"damping": DAMPING}))) < 3
    assert np.all(values(found, "friction")[0] < 0.05)
    assert "friction_speed of shoulder: prior 100 %" in str(found.verdict)
    speeds, _ = values(found, "friction_speed")
    assert np.all((speeds > 1e-4) & (speeds < 10))


def test_a_joint_that_rests_keeps_its_speed():
    model = arms.planar()
    q, v, a = (np.asarray(x) * [1, 0] for x in arms.states(model, COUNT))
    rigid = np.asarray(arms.signals(Plant(model), *map(jnp.asarray, (q, v, a))))
    noise = NOISE * np.random.default_rng(0).normal(size=q.shape)
    found = fit(Parameters(model, blocks()), TorqueSamples(q, v, a, rigid + noise + smooth(v)))
    np.testing.assert_allclose(values(found, "friction_speed")[0], [SPEEDS[0], 0.1], rtol=0.1)
    assert "friction_speed of elbow: prior 100 %" in str(found.verdict)


@pytest.mark.slow
def test_joints_share_a_speed():
    shared = [*blocks()[:3], SharedBlock(JointParameter("friction_speed"))]
    found = fit(Parameters(arms.planar(), shared), recorded(lambda v: smooth(v, speeds=0.05)))
    speeds, errors = values(found, "friction_speed")
    assert speeds[0] == speeds[1] and abs(speeds[0] - 0.05) < 3 * errors[0] < 0.005


@pytest.mark.slow
def test_outliers_do_not_move_the_speed():
    clean = recorded(smooth)
    signals = np.array(clean.signals)
    signals[::20] += 10 * NOISE
    p = Parameters(arms.planar(), blocks())
    found = fit(p, TorqueSamples(clean.q, clean.v, clean.a, signals), TorqueFit(loss=Huber()))
    np.testing.assert_allclose(values(found, "friction_speed")[0], SPEEDS, rtol=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("loss", [SquaredLoss(), Huber()])
def test_the_objective_of_friction_agrees_with_that_of_any_unknowns(loss):
    """Stored sensitivities with the joints' own derivatives, against derivatives of whole inverse dynamics."""
    own = [DirectionalParameter("friction"), JointParameter("friction_speed"), JointParameter("stribeck")]
    p = Parameters(Plant(arms.planar(damping=0.1), scale=1.5), [Inertias(), JointParameter("stribeck_speed"), *own])
    x, noise = jnp.asarray(0.2 * np.random.default_rng(0).normal(size=p.size)).at[-8:].add(0.5), jnp.array([0.5, 0.2])

    @jax.jit
    def both(x, samples):
        fast = friction_objective(p, samples, loss)
        assert isinstance(fast, FrictionObjective)
        slow = StreamedObjective(p, fast.tiles, loss)
        return [
            (e.cost(x, noise), e.normal_equations(x, noise), e.correlation_times(x, noise),
             e.residual_deviations(x))
            for e in (fast, slow)
        ]  # fmt: skip

    chex.assert_trees_all_close(*both(x, recorded(smooth)), rtol=1e-9, atol=1e-9)


def by_direction(v):
    forward, backward = np.array([3.0, 2.0, 0.5, 0.2]), np.array([2.2, 2.5, 0.3, 0.4])
    both = np.where(v > 0, forward[:2], backward[:2]) * np.tanh(v / 0.05)
    return both + np.where(v > 0, forward[2:], backward[2:]) * v


DIRECTIONS = {"friction": [3.0, 2.2, 2.0, 2.5], "damping": [0.5, 0.3, 0.2, 0.4]}


def test_friction_and_damping_by_direction(tmp_path):
    own = [DirectionalParameter("friction"), DirectionalParameter("damping"), JointParameter("friction_speed")]
    found = fit(Parameters(arms.planar(), [Masses(), *own]), recorded(by_direction))
    assert str(found.verdict).startswith("converged; explained variance")
    assert np.max(np.abs(distances(found, DIRECTIONS | {"friction_speed": [0.05, 0.05]}))) < 3
    np.testing.assert_allclose(found.model.friction, [2.6, 2.25], atol=0.02)
    kept = load_plant(found.save(tmp_path / "fit.npz"))
    np.testing.assert_array_equal(kept.friction_asymmetry, found.plant.friction_asymmetry)
    assert kept.load_friction is None


def test_friction_by_direction_is_no_negative_friction():
    """A symmetric joint without friction stays at the bounds of both values."""
    own = [DirectionalParameter("friction"), DirectionalParameter("damping"), JointParameter("friction_speed")]
    found = fit(Parameters(arms.planar(), [Masses(), *own]), recorded(lambda v: DAMPING * v))
    both, _ = values(found, "friction")
    assert np.all((both >= 0) & (both < 0.05))


@pytest.mark.slow
def test_friction_that_grows_with_the_load():
    """The loss of a gear has the sign of v, whether the motor drives the joint or is driven by it."""
    armature, loss = np.array([0.3, 0.2]), np.array([0.1, 0.2])
    plain = arms.samples(arms.planar(), COUNT, 0, 0.0)
    v, load = np.asarray(plain.v), np.asarray(plain.signals)
    assert np.mean(load * v < 0) > 0.3
    noise = NOISE * np.random.default_rng(0).normal(size=v.shape)
    tau = load + armature * np.asarray(plain.a) + smooth(v, speeds=0.05) + loss * np.abs(load) * np.tanh(v / 0.05)
    p = Parameters(arms.planar(), [*blocks(), JointParameter("armature"), LoadFriction()])
    found = fit(p, TorqueSamples(plain.q, plain.v, plain.a, tau + noise))
    true = {"load_friction": loss, "friction": FRICTION, "damping": DAMPING, "armature": armature}
    assert np.max(np.abs(distances(found, true))) < 3
    assert np.all(values(found, "load_friction")[1] < 0.005)


def test_what_has_no_direction_is_named():
    with pytest.raises(ValueError, match="expected a parameter that may differ by direction, got 'armature'"):
        DirectionalParameter("armature")


@pytest.mark.slow
@pytest.mark.float32
def test_single_precision_finds_the_speed():
    model = arms.planar(np.float32)
    samples = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), recorded(smooth))
    found = fit(Parameters(model, blocks()), samples)
    np.testing.assert_allclose(values(found, "friction_speed")[0], SPEEDS, rtol=0.1)


@pytest.mark.slow
def test_many_records_at_once():
    p = Parameters(arms.planar(), blocks())
    records = [recorded(smooth, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *records)
    together = jax.jit(jax.vmap(lambda s: TorqueFit().run(p, s).x))(stacked)
    single = jax.jit(lambda s: TorqueFit().run(p, s).x)
    np.testing.assert_allclose(together, [single(s) for s in records], atol=1e-6)


def stribeck_record(seed):
    """A record with random friction, whose Stribeck speed is three to thirty times that of the changeover."""
    rng = np.random.default_rng([seed, 7])
    speed = np.exp(rng.uniform(np.log(0.003), np.log(0.1), 2))
    true = {
        "friction": rng.uniform(1, 4, 2), "damping": rng.uniform(0.1, 1, 2), "friction_speed": speed,
        "stribeck": rng.uniform(0.7, 2, 2), "stribeck_speed": np.minimum(speed * rng.uniform(3, 30, 2), 1.0),
    }  # fmt: skip

    def law(v):
        dry = true["friction"] + true["stribeck"] * np.exp(-((v / true["stribeck_speed"]) ** 2))
        return dry * np.tanh(v / true["friction_speed"]) + true["damping"] * v

    return recorded(law, seed, 0.03, 1200), true


def stribeck_unknowns():
    names = ("friction", "damping", "friction_speed", "stribeck", "stribeck_speed")
    return Parameters(arms.planar(), [Masses(), *(JointParameter(name) for name in names)])


def test_stribeck_friction_with_both_speeds():
    samples, true = stribeck_record(0)
    found = fit(stribeck_unknowns(), samples)
    assert found.verdict.outcome.name == "CONVERGED" and np.max(np.abs(distances(found, true))) < 4


@pytest.mark.slow
def test_stribeck_friction_with_both_speeds_for_twenty_seeds():
    p, good = stribeck_unknowns(), []
    for seed in range(20):
        samples, true = stribeck_record(seed)
        found = fit(p, samples)
        good.append(found.message == "" and np.max(np.abs(distances(found, true))) < 4)
    assert sum(good) >= 18


@pytest.mark.slow
def test_intervals_cover_the_truth():
    p, inside = Parameters(arms.planar(), blocks()), []
    for seed in range(20):
        inside += list(np.abs(distances(fit(p, recorded(smooth, seed)), TRUE)) < 1.96)
    assert 0.9 <= np.mean(inside) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "unknown", [[Masses(), JointParameter("friction"), JointParameter("friction_speed")], [Inertias()]]
)
def test_estimates_have_derivatives(unknown):
    """Of coordinates that a round holds, and of those with a barrier, with respect to the records."""
    p = Parameters(arms.planar(damping=0.1, friction=0.1), [*unknown, JointParameter("damping")])
    s = recorded(smooth)

    def found(k):
        return TorqueFit().run(p, TorqueSamples(s.q, s.v, s.a, s.signals * k)).x

    h = 1e-4
    wanted = (found(1 + h) - found(1 - h)) / (2 * h)
    assert np.max(np.abs(wanted)) > 0.1
    np.testing.assert_allclose(jax.jvp(found, (1.0,), (1.0,))[1], wanted, rtol=1e-3, atol=1e-3)
