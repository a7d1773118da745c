"""Designed motions: their form, the criteria, the limits between all points, and what is gained."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.experiment.criteria import AOptimal, DOptimal, EOptimal, SignalNoise
from lgsim.identify.experiment.design import ExcitationLimits, ExcitationProblem, design_excitation
from lgsim.identify.experiment.fourier import Fourier
from lgsim.identify.unknowns.body_blocks import StandardParameters
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.support.verdict import Outcome
from tests.identify import arms

SERIES = Fourier(period=4.0, harmonics=4)


def translation(*p):
    T = np.eye(4)
    T[:3, 3] = p
    return T


PAIR = (("ball",), ("bone",))
SOLIDS = [
    ("ball", "world", lgsim.geometry.Sphere(0.15), translation(0.5, 0.0, 0.4)),
    ("bone", "fore", lgsim.geometry.Capsule(0.05, 0.3), translation(0.0, 0.0, 0.15)),
]


@pytest.fixture(scope="module")
def problem():
    p = Parameters(arms.planar(damping=0.2).add_solids(SOLIDS), [StandardParameters(), JointParameter("damping")])
    limits = ExcitationLimits(acceleration=[20.0, 30.0], pairs=PAIR, clearance=0.02)
    return ExcitationProblem(p, SERIES, limits, noise=SignalNoise([0.5, 0.2]))


@pytest.fixture(scope="module")
def found(problem):
    return design_excitation(problem, key=jax.random.key(0), iterations=60)


def test_series_starts_and_ends_at_rest_and_its_derivatives_are_those():
    c = jnp.asarray(np.random.default_rng(0).normal(size=(2, SERIES.size)))
    at = jax.jit(lambda t: SERIES.motion(c, t))
    _, v, a = at(np.array([[0.0, 4.0, 8.0]] * 3)[:, [0, 1, 2, 0, 1, 2, 0]])
    np.testing.assert_allclose(v, 0, atol=1e-12)
    np.testing.assert_allclose(a, 0, atol=1e-11)
    t, h = np.linspace(0.1, 3.9, 7), 1e-5
    q, v, a = (np.asarray(x) for x in at(np.stack([t, t + h, t - h])))
    np.testing.assert_allclose(v[0], (q[1] - q[2]) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(a[0], (v[1] - v[2]) / (2 * h), atol=1e-6)
    assert q.shape == (3, 7, 2)


@pytest.mark.parametrize(
    ("criterion", "value"),
    [(DOptimal(), lambda w: np.mean(np.log(w))), (AOptimal(), lambda w: -np.log(np.mean(1 / w))),
     (EOptimal(), lambda w: -np.log(np.sum(w**-8.0)) / 8)],
    ids=["D", "A", "E"],
)  # fmt: skip
def test_criteria_are_functions_of_eigenvalues_with_exact_gradients(criterion, value):
    """Also where two eigenvalues are equal."""
    A = np.random.default_rng(0).normal(size=(4, 4))
    Q = np.linalg.qr(A)[0]
    H = Q @ np.diag([0.5, 2.0, 2.0, 3.0]) @ Q.T
    found, gradient = jax.jit(jax.value_and_grad(criterion))(H)
    np.testing.assert_allclose(found, value(np.linalg.eigvalsh(H)), rtol=1e-10)
    D = A + A.T
    h = 1e-6
    slope = (value(np.linalg.eigvalsh(H + h * D)) - value(np.linalg.eigvalsh(H - h * D))) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * D), slope, rtol=1e-6)


def test_noise_that_grows_with_signals():
    signals = jnp.array([[3.0, 0.0], [-3.0, 0.0]])
    np.testing.assert_allclose(SignalNoise(0.4, fraction=0.1).deviations(signals), [0.5, 0.4])


def test_information_is_that_of_the_base_parameters(problem):
    assert problem.identifiable_basis.shape == (22, 8)


@pytest.fixture(scope="module")
def random_motions(problem):
    """Coefficients of 20 random motions."""
    draw = jax.jit(jax.vmap(lambda key: problem.random_coefficients(key, 0.5)))
    return np.asarray(draw(jax.random.split(jax.random.key(7), 20)))


def test_a_clearance_is_a_limit_of_the_distance(problem, random_motions):
    """At the whole of each limit its row is the lack of distance, in units of 0.1 m."""
    coefficients = jnp.asarray(random_motions[0])
    row = problem.constraint_rows(coefficients, jnp.asarray(1.0))["clearance"]
    q, _, _ = problem.series.motion(coefficients, problem.times())
    apart = lgsim.distance(problem.parameters.plant.model, q, *PAIR)
    np.testing.assert_allclose(row, (0.02 - apart) / 0.1, atol=1e-12)


@pytest.mark.parametrize("pairs", [(), ((), ()), "ball", (("ball",), ("bone", "ball")), (("ball",), (3,))])
def test_pairs_that_are_none_are_refused(pairs):
    with pytest.raises(ValueError, match="pairs: expected two tuples of equally many geometry names"):
        ExcitationLimits(pairs=pairs)


def test_names_in_lists_are_static():
    assert hash(ExcitationLimits(pairs=[["ball"], ["bone"]]).pairs) == hash(PAIR)


def test_gradient_is_that_of_finite_differences(problem, random_motions):
    c, step = random_motions[0], np.random.default_rng(4).normal(size=random_motions[0].shape)
    value = jax.jit(jax.value_and_grad(problem.criterion_value))
    h = 1e-5
    (after, _), (before, _), (_, gradient) = (value(c + s * step) for s in (h, -h, 0))
    np.testing.assert_allclose(np.sum(gradient * step), float(after - before) / (2 * h), rtol=1e-6)


@pytest.mark.slow
def test_limits_hold_between_all_points_and_no_random_motion_tells_a_third_as_much(problem, found, random_motions):
    @jax.jit
    def look(sets):
        def one(c):
            return problem.criterion_value(c), {name: jnp.min(m) for name, m in problem.margins(c, fine=25).items()}

        return jax.lax.map(one, sets)

    criteria, margins = look(np.concatenate([np.asarray(found.coefficients)[None], random_motions]))
    assert set(margins) == {"lower", "upper", "velocity", "acceleration", "effort", "clearance"}
    least = np.min(np.stack(list(margins.values())), axis=0)
    assert least[0] >= 0 and min(found.margins.values()) >= 0
    feasible = np.asarray(criteria)[1:][least[1:] >= 0]
    assert len(feasible) >= 3 and np.exp(found.criterion - np.max(feasible)) > 3
    np.testing.assert_allclose(found.criterion, criteria[0])
    assert found.gain == pytest.approx(np.exp(found.criterion - found.initial_criterion))


@pytest.mark.slow
def test_a_design_ends_with_a_verdict(problem, found):
    """At the limits that the motion touches, with what no motion shows; used-up iterations are no end."""
    end = design_excitation(problem, start=found.coefficients, iterations=2000)
    assert end.verdict.outcome is Outcome.AT_BOUND and end.verdict.converged and end.history.settled
    assert end.criterion >= found.criterion - 1e-3
    limits = {name: np.asarray(x) for name, x in problem.joint_limits.items()}
    _, v, a = (np.asarray(x) for x in end.motion(problem.times(8)))
    tau = np.asarray(end.trajectory(rate=len(problem.times(8)) / SERIES.period).tau)
    shares = {"velocity": np.abs(v) / limits["velocity"], "acceleration": np.abs(a) / limits["acceleration"],
              "effort": np.abs(tau) / limits["effort"]}  # fmt: skip
    most = {f"{name} of {joint}": float(np.max(x[:, k])) for name, x in shares.items()
            for k, joint in enumerate(("shoulder", "elbow"))}  # fmt: skip
    touched = [share for name, share in most.items() if name in end.verdict.bounds]
    others = [share for name, share in most.items() if name not in end.verdict.bounds]
    # the search keeps a little below the limits, so that they hold between its points too
    assert touched and others and min(touched) > max(others) and min(touched) > 0.9
    # 22 numbers, of which 8 combinations show
    assert len(end.verdict.undetermined) == 14 and all(np.isnan(share) for _, share in end.verdict.undetermined)
    assert end.verdict.sentence.startswith(f"converged at {len(end.verdict.bounds)} limits (")
    assert "14 of 22 combinations not identifiable from any motion (" in end.verdict.sentence

    short = design_excitation(problem, start=found.coefficients, iterations=3)
    assert short.verdict.outcome is Outcome.FAILED and not short.verdict.converged
    assert short.verdict.sentence.startswith("failed: the last search used all 3 iterations. The motion")
    assert min(short.margins.values()) >= 0


def test_what_no_motion_shows_and_a_prior_decides(problem):
    """Masses of a base that stands still: by their prior where they have one."""
    known = Parameters(problem.parameters.plant, [StandardParameters(prior_deviation=1.0), JointParameter("damping")])
    shares = [share for _, share in ExcitationProblem(known, SERIES).unseen_combinations()]
    assert len(shares) == 14 and set(shares) == {1.0}


@pytest.mark.slow
@pytest.mark.typed
def test_motion_is_saved_for_replay(found, tmp_path):
    replay = found.trajectory(rate=100.0, periods=1.5)
    assert len(replay) == 601 and replay.time[-1] == 6.0
    np.testing.assert_allclose(replay.v[[0, 400]], 0, atol=1e-11)
    forces = jax.jit(lambda t: found.parameters.plant.joint_forces(*found.motion(t)))(replay.time)
    np.testing.assert_allclose(replay.tau, forces, atol=1e-9)
    lines = found.save(tmp_path / "motion.csv", rate=50.0).read_text().splitlines()
    assert len(lines) == 202 and "shoulder" in lines[0]


def test_what_cannot_be_designed_is_told(problem, without_import_hook):
    ball = lgsim.ModelBuilder().add_body("ball", "world", lgsim.joints.Spherical(), mass=1.0, inertia=jnp.eye(3))
    with pytest.raises(ValueError, match=r"joint 'ball': expected joints with one coordinate.*got Spherical; lock it"):
        ExcitationProblem(Parameters(ball.build(), StandardParameters()), SERIES)
    with pytest.raises(ValueError, match="harmonics: expected at least 3"):
        Fourier(4.0, 2)
    with pytest.raises(ValueError, match="period: expected a positive time in s, got 0"):
        Fourier(0.0, 4)
    with pytest.raises(ValueError, match="points: expected at least 40, ten for each harmonic, got 20"):
        ExcitationProblem(problem.parameters, SERIES, points=20)
    with pytest.raises(ValueError, match=r"velocity: expected a number or shape \(2,\), got \(3,\)"):
        dataclasses.replace(ExcitationLimits(), velocity=np.ones(3)).joint_limits(problem.parameters.plant.model)
    with pytest.raises(
        ValueError, match="lower, upper: expected a lower limit below the upper one, got 1 and 0 for shoulder"
    ):
        ExcitationLimits(lower=1.0, upper=0.0).joint_limits(problem.parameters.plant.model)
    with pytest.raises(ValueError, match=r"start: expected shape \(2, 7\), got \(1, 7\)"):
        design_excitation(problem, start=jnp.zeros((1, 7)))
