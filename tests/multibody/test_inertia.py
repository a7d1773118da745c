"""The ten inertial parameters: against Pinocchio, and what makes them those of a body."""

import jax.numpy as jnp
import numpy as np
import pinocchio as pin
import pytest

from lgsim.multibody import inertia as ten
from lgsim.multibody.builder import ten_parameters
from tests.multibody.trees import body, rotation

RNG = np.random.default_rng(11)
BODIES = [body(RNG) for _ in range(6)]


def arrays(parts, dtype=float):
    return tuple(jnp.asarray(np.array([part[key] for part in parts]), dtype) for key in ("mass", "center", "inertia"))


def theirs(part):
    return pin.Inertia(part["mass"], part["center"], part["inertia"])


def close(found, right):
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-14 * np.abs(np.asarray(right)).max())


def test_parameters_are_pinocchios():
    values = ten.parameters(*arrays(BODIES))
    close(values, [theirs(part).toDynamicParameters() for part in BODIES])
    assert len(ten.PARAMETERS) == 10
    close([ten_parameters(*(np.array(part[key]) for key in ("mass", "center", "inertia"))) for part in BODIES], values)


def test_only_the_upper_triangle_is_read():
    mass, center, inertia = arrays(BODIES)
    close(ten.parameters(mass, center, jnp.triu(inertia)), ten.parameters(mass, center, inertia))


def test_mass_center_and_inertia_come_back():
    for found, right in zip(ten.mass_center_inertia(ten.parameters(*arrays(BODIES))), arrays(BODIES), strict=True):
        close(found, right)


def test_batches_of_any_rank():
    mass, center, inertia = arrays(BODIES)
    values = ten.parameters(mass.reshape(2, 3), center.reshape(2, 3, 3), inertia.reshape(2, 3, 3, 3))
    assert values.shape == (2, 3, 10)
    one = ten.parameters(mass[4], center[4], inertia[4])
    close(values[1, 1], one)
    assert [x.shape for x in ten.mass_center_inertia(one)] == [(), (3,), (3, 3)]
    for f, shape in ((ten.rotational_inertia, (3, 3)), (ten.pseudo_inertia, (4, 4))):
        assert f(values).shape == (2, 3, *shape)
        close(f(values)[1, 1], f(one))


def test_rotational_inertia_is_about_the_origin():
    for values, part in zip(ten.parameters(*arrays(BODIES)), BODIES, strict=True):
        close(ten.rotational_inertia(values), theirs(part).matrix()[3:, 3:])


def test_pseudo_inertia_is_pinocchios():
    values = ten.parameters(*arrays(BODIES))
    pseudo = ten.pseudo_inertia(values)
    close(pseudo, [theirs(part).toPseudoInertia().toMatrix() for part in BODIES])
    close(ten.from_pseudo_inertia(pseudo), values)
    assert np.linalg.eigvalsh(np.asarray(pseudo)).min() > 0


def test_pseudo_inertia_is_a_sum_over_points():
    """``sum_i m_i (x_i, 1) (x_i, 1)^T``."""
    x, m = RNG.normal(size=(5, 3)), RNG.uniform(1, 2, 5)
    moment = sum(k * (p @ p * np.eye(3) - np.outer(p, p)) for k, p in zip(m, x, strict=True))
    values = np.concatenate([[m.sum()], m @ x, moment[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])
    homogeneous = np.hstack([x, np.ones((5, 1))])
    close(ten.pseudo_inertia(jnp.asarray(values)), homogeneous.T @ np.diag(m) @ homogeneous)
    assert ten.defect(values) is None


@pytest.mark.float32
def test_dtype(dtype):
    values = ten.parameters(*arrays(BODIES, dtype))
    for array in (values, *ten.mass_center_inertia(values), ten.pseudo_inertia(values)):
        assert array.dtype == dtype
    assert ten.from_pseudo_inertia(ten.pseudo_inertia(values)).dtype == dtype


def of_moments(moments, mass=2.0, center=(0.1, -0.2, 0.3)):
    """Ten parameters of principal moments about axes in general position."""
    R = rotation(np.random.default_rng(1))
    return ten_parameters(np.array(mass), np.array(center), R @ np.diag(moments) @ R.T)


LARGEST = (
    "has a non-physical inertia: of its principal moments {} kg m^2 the largest exceeds the sum of"
    " the others (triangle inequality)"
)
DEFECTS = {
    "nan": (np.full(10, np.nan), "has entries that are not finite"),
    "negative mass": (of_moments([1.0, 1.0, 1.0], mass=-2.5), "has the negative mass -2.5 kg"),
    "inertia without mass": (np.array([0, 0, 0, 0, 1, 0, 1, 0, 0, 1.0]), "has no mass but an inertia"),
    "moment without mass": (np.array([0, 0.1, 0, 0, 0, 0, 0, 0, 0, 0]), "has no mass but an inertia"),
    "overflow": (
        np.array([1e-300, 1e10, 0, 0, 1, 0, 1, 0, 0, 1.0]),
        "has inertial parameters out of the range of floats",
    ),
    "not positive": (
        of_moments([-0.5, 1.0, 2.0]),
        "has an inertia that is not positive definite: principal moments -0.5, 1, 2 kg m^2",
    ),
    "triangle": (of_moments([1.0, 1.5, 2.6]), LARGEST.format("1, 1.5, 2.6")),
    "moved without its parallel axes": (
        np.array([1.0, 0, 0, 1.0, 0.5, 0, 0.5, 0, 0, 0.5]),
        "has an inertia that is not positive definite: principal moments -0.5, -0.5, 0.5 kg m^2",
    ),
}  # fmt: skip
SOUND = {
    "a body": of_moments([1.0, 1.5, 2.4]),
    "a disc": of_moments([1.0, 1.0, 2.0]),
    "a rod": of_moments([0.0, 1.0, 1.0]),
    "a point": of_moments([0.0, 0.0, 0.0]),
    "nothing": np.zeros(10),
    "a disc, rounded to float32": of_moments([1.0, 1.0, 2.0]).astype(np.float32).astype(float),
    "what a file rounds": of_moments([1.0, 1.0, 2.0 + 1e-6]),
}


@pytest.mark.parametrize("case", DEFECTS)
def test_defects_are_said(case):
    values, message = DEFECTS[case]
    assert ten.defect(values) == message


@pytest.mark.parametrize("case", SOUND)
def test_bodies_have_no_defect(case):
    assert ten.defect(SOUND[case]) is None


@pytest.mark.parametrize("case", ["not positive", "triangle", "moved without its parallel axes"])
def test_the_nearest_body_can_exist(case):
    values = DEFECTS[case][0]
    near = ten.nearest_physical(values)
    assert ten.defect(near) is None
    np.testing.assert_allclose(near[:4], values[:4], rtol=1e-15)
    sigma = [np.asarray(ten.pseudo_inertia(jnp.asarray(x)))[:3, :3] for x in (near, values)]
    # at fixed mass and center densities differ by their second moments; a projection onto the cone of positive ones
    # has the step at a right angle to the result, and no negative part
    shift = np.outer(values[1:4], values[1:4]) / values[0]
    step, central = sigma[0] - sigma[1], sigma[0] - shift
    assert np.linalg.eigvalsh(step).min() > -1e-14 and np.linalg.eigvalsh(central).min() > -1e-14
    assert abs(np.sum(step * central)) < 1e-14
    assert np.abs(step).max() > 0.01


@pytest.mark.parametrize("case", ["a body", "a disc", "a rod"])
def test_the_nearest_body_of_a_body_is_itself(case):
    close(ten.nearest_physical(SOUND[case]), SOUND[case])
