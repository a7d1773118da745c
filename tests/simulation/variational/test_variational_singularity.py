"""Variational steps past the singularity of a gimbal: each one is that of the motion, or is told as not solved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import lgsim
from lgsim import VariationalTree, joints

BODIES = {
    "small": {"mass": 1.0, "center": [0.05, 0.02, 0.1], "inertia": np.diag([0.02, 0.03, 0.04])},
    "large": {"mass": 2.0, "center": [0.1, 0.2, 0.3], "inertia": np.diag([1.0, 2.0, 1.5])},
}
DT, STEPS = 1e-3, 40


def gimbal(body):
    """Hinges about x, y and z in a row, whose rings have no mass."""
    builder = lgsim.ModelBuilder()
    builder.add_body("outer ring", "world", joints.Revolute(), axis=[1, 0, 0])
    builder.add_body("inner ring", "outer ring", joints.Revolute(), axis=[0, 1, 0])
    return builder.add_body("body", "inner ring", joints.Revolute(), axis=[0, 0, 1], **BODIES[body]).build()


def ball(body):
    return lgsim.ModelBuilder().add_body("body", "world", joints.Spherical(), **BODIES[body]).build()


def start(away, w):
    """(angles, rates) of the hinges where the body turns by w in its axes and y is so far from a quarter turn."""
    q = np.array([0.3, np.pi / 2 - away, -0.2])
    y, z = (Rotation.from_euler(axis, angle).as_matrix() for axis, angle in (("y", q[1]), ("z", q[2])))
    columns = np.stack([z.T @ y.T[:, 0], z.T[:, 1], [0, 0, 1]], axis=1)
    return q, np.linalg.solve(columns, w)


def motions(model, q0, v0, **options):
    """Compiled, so that a step that is not solved ends in states that are no numbers, not in an error."""
    move = lambda q, v: lgsim.rollout(model, q, v, dt=DT, steps=STEPS, method=VariationalTree(**options))  # noqa: E731
    return jax.jit(jax.vmap(move))(jnp.asarray(q0), jnp.asarray(v0))


def attitude_errors(body, away, rates, **options):
    """(solved, error in rad) of each state (starts, steps + 1), beside the same body on a spherical joint."""
    q0, v0 = np.stack([start(*each) for each in zip(away, rates, strict=True)]).swapaxes(0, 1)
    found = motions(gimbal(body), q0, v0, **options)
    quaternions = Rotation.from_euler("XYZ", q0).as_quat()[:, [3, 0, 1, 2]]
    expected = motions(ball(body), quaternions, rates, **options)
    assert np.isfinite(expected.q).all()
    solved = np.asarray(found.residuals) <= VariationalTree().largest_residual(jnp.float64)
    # a motion ends with its first step that is not solved
    solved = np.logical_and.accumulate(solved, axis=1)
    q = np.where(solved[..., None], found.q, q0[:, None])
    assert np.abs(q - q0[:, None]).max() < 2 * np.pi  # no hinge turns for nothing
    turns = Rotation.from_euler("XYZ", q.reshape(-1, 3)).inv() * Rotation.from_quat(
        np.asarray(expected.q)[..., [1, 2, 3, 0]].reshape(-1, 4)
    )
    return solved, np.where(solved, turns.magnitude().reshape(solved.shape), 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "away", "w"),
    [
        pytest.param("large", 3e-4, [1.3604728975956157, 16.353814205120166, -11.827844935547832], id="half a turn"),
        pytest.param("small", 1e-7, [-29.005134655130284, -1.3183648341416314, -0.3372998018876115], id="many turns"),
    ],
)
def test_a_step_is_that_of_the_motion(body, away, w):
    """The body turned by nearly half a turn in a step, or hinges by 1e5 turns, beside which any change is small."""
    solved, errors = attitude_errors(body, [away], np.array([w]))
    assert errors.max() < 1e-6
    assert solved.all()


MAPS = ["quaternion", *(pytest.param(name, marks=pytest.mark.slow) for name in ("cayley", "exp"))]


@pytest.mark.slow
@pytest.mark.parametrize("name", MAPS)
def test_starts_near_a_singularity(name):
    """Nearly all steps are solved, and rightly; 1e-9 from it rates of hinges leave 1e-7 of those of the body."""
    rng = np.random.default_rng(0)
    away = np.repeat([7e-2, 8e-4, 1e-4, 1e-5, 1e-7, 1e-9], 50)
    rates = rng.normal(size=(300, 3)) * 10 ** rng.uniform(-1, 1.3, (300, 1))
    solved, errors = attitude_errors("small", away, rates, map=name)
    assert errors.max() < 1e-6
    assert errors[away > 1e-5].max() < 1e-10
    assert np.mean(solved[:, -1]) > 0.97
