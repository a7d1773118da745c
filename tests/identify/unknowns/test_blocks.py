"""Every block against changes of a plant by hand: names, values, bounds and the plant that it makes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.unknowns.block import select_names
from lgsim.identify.unknowns.body_blocks import CentersOfMass, Inertias, Masses, StandardParameters, upper_factor
from lgsim.identify.unknowns.frame_blocks import GravityDirection, Placements, SharedBlock
from lgsim.identify.unknowns.joint_blocks import DirectionalParameter, JointParameter, SignalScale, TorqueOffset
from lgsim.identify.unknowns.plant import Plant
from lgsim.lie import se3
from lgsim.multibody import inertia
from tests.identify import arms


@eqx.filter_jit
def _apply(block, plant, x):
    return block.apply(plant, x)


def apply(block, plant, x):
    """The plant that a block makes; one program for each block, where each operation alone would be one."""
    return _apply(block, plant, jnp.asarray(x, float))


@pytest.fixture(scope="module")
def plant():
    return Plant(arms.planar(damping=0.2, friction=0.3), scale=2.0, offset=0.1, stribeck=0.05)


mass_center_inertia = jax.jit(inertia.mass_center_inertia)
pseudo_inertia = jax.jit(inertia.pseudo_inertia)


def inertias(plant):
    return np.asarray(plant.model.inertias)


def placements(plant):
    return np.asarray(plant.model.placements)


def test_masses_scale_all_ten_parameters(plant):
    block = Masses(["fore"])
    assert block.labels(plant) == ["log mass of fore"]
    moved = apply(block, plant, [np.log(1.5)])
    np.testing.assert_allclose(inertias(moved)[1], 1.5 * inertias(plant)[1])
    np.testing.assert_array_equal(inertias(moved)[0], inertias(plant)[0])
    assert {k: round(float(v), 12) for k, v in block.values(moved).items()} == {"m of fore, kg": 1.8}
    assert block.bounds(plant) == (-np.inf, np.inf)


def test_centers_keep_mass_and_central_inertia(plant):
    block, step = CentersOfMass(["upper"]), np.array([0.01, -0.02, 0.03])
    mass, center, central = mass_center_inertia(inertias(plant)[0])
    moved = mass_center_inertia(inertias(apply(block, plant, step))[0])
    for found, expected in zip(moved, (mass, np.asarray(center) + step, central), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-14)
    assert block.labels(plant)[2] == "z of the center of upper" and "y of upper, m" in block.values(plant)


def test_standard_parameters_are_added(plant):
    block, step = StandardParameters(["fore"]), np.arange(10.0)
    np.testing.assert_allclose(inertias(apply(block, plant, step))[1], inertias(plant)[1] + step)
    assert block.labels(plant)[4] == "Ixx of fore"
    assert block.is_linear and block.affine_indices(plant.model).tolist() == [*range(10, 20)]
    assert block.values(plant)["Izz of fore, kg m^2"] == inertias(plant)[1, 9]


def test_inertias_start_at_the_prior_and_are_always_physical(plant):
    """The mass is exp(2 alpha) times the prior's; t is the shift of the center in parts of the body's spread."""
    block = Inertias()
    np.testing.assert_allclose(inertias(apply(block, plant, np.zeros(20))), inertias(plant), atol=1e-15)
    x = np.zeros(20)
    x[0], x[7] = 0.2, 0.1
    mass, center, _ = mass_center_inertia(inertias(apply(block, plant, x))[0])
    before, start, _ = (np.asarray(part) for part in mass_center_inertia(inertias(plant)[0]))
    np.testing.assert_allclose(mass, before * np.exp(0.4))
    pseudo = np.asarray(pseudo_inertia(inertias(plant)[0]))
    spread = pseudo[:3, :3] / pseudo[3, 3] - np.outer(start, start)
    S = np.asarray(jax.jit(upper_factor)(spread))
    np.testing.assert_allclose(np.asarray(center) - start, 0.1 * S[:, 0], atol=1e-12)
    for step in 2 * np.random.default_rng(0).normal(size=(5, 20)):
        for row in inertias(apply(block, plant, step)):
            assert np.linalg.eigvalsh(np.asarray(pseudo_inertia(row)))[0] > 0
    assert block.labels(plant)[11] == "d1 of fore" and block.prior_deviation == 1.0


def test_upper_factor_gives_the_matrix_back():
    A = np.random.default_rng(0).normal(size=(3, 4, 4))
    A = A @ A.transpose(0, 2, 1)
    U = np.asarray(jax.jit(upper_factor)(A))
    np.testing.assert_allclose(U @ U.mT, A, atol=1e-12)
    np.testing.assert_array_equal(np.tril(U, -1), 0)


def test_numbers_of_joints_are_added_to_with_bounds_of_their_own(plant):
    block = JointParameter("damping", ["elbow"])
    moved = apply(block, plant, [0.3])
    np.testing.assert_allclose(moved.model.damping, [0.2, 0.5])
    np.testing.assert_array_equal(moved.model.friction, plant.model.friction)
    low, high = block.bounds(plant)
    np.testing.assert_allclose(low, [-0.2])
    np.testing.assert_array_equal(high, [np.inf])
    assert block.labels(plant) == ["damping of elbow"]
    assert [*block.values(moved)] == ["damping of elbow, N m s/rad"] and block.is_linear
    speed = JointParameter("friction_speed")
    assert not speed.is_linear and speed.affine_indices(plant.model) is None
    assert np.all(np.isneginf(JointParameter("rest").bounds(plant)[0]))


@pytest.mark.parametrize(
    ("block", "field", "linear"),
    [(TorqueOffset(), "offset", True), (JointParameter("stribeck"), "stribeck", True)],
)  # fmt: skip
def test_numbers_of_signals_and_friction_are_added_to(plant, block, field, linear):
    moved = apply(block, plant, [0.1, -0.2])
    np.testing.assert_allclose(getattr(moved, field), np.asarray(getattr(plant, field)) + np.array([0.1, -0.2]))
    assert block.labels(plant) == [f"{field} of shoulder", f"{field} of elbow"] and block.is_linear is linear
    if linear:
        before, after = (np.asarray(p.dynamic_parameters) for p in (plant, moved))
        step = np.zeros(before.shape)
        step[block.affine_indices(plant.model)] = [0.1, -0.2]
        np.testing.assert_allclose(after - before, step, atol=1e-15)


@pytest.mark.parametrize("name", ["friction_speed", "stribeck_speed"])
def test_speeds_of_friction_are_logarithmic_with_a_weak_prior(plant, name):
    """A factor of ten is one standard deviation; a record's speeds bound those without bounds of their own."""
    block = JointParameter(name)
    moved = apply(block, plant, [np.log(2), -np.log(5)])
    np.testing.assert_allclose(getattr(moved.model, name), [0.2, 0.02])
    np.testing.assert_allclose(block.prior_deviation, np.log(10))
    np.testing.assert_array_equal(np.abs(block.bounds(plant)), np.inf)
    there, bounded = block.within_speeds(plant, jnp.array([1e-3, jnp.inf]), jnp.array([0.5, 0.0]))
    # the prior stays a factor of ten within the bounds; a joint that rests has no highest speed
    np.testing.assert_allclose(getattr(there.model, name), [0.05, 0.1])
    np.testing.assert_allclose(bounded.bounds(there), np.log([[0.02, 0.1], [10, np.inf]]))
    assert list(bounded.value_limits(there).values()) == [(0.0, np.inf)] * 2
    given = JointParameter(name, lower=0.01, upper=1.0)
    assert given.within_speeds(plant, jnp.ones(2), jnp.ones(2)) == (plant, given)
    np.testing.assert_allclose(given.bounds(plant), np.log([[0.1, 0.1], [10, 10]]))


def test_friction_by_direction_has_two_values_for_a_joint(plant):
    block = DirectionalParameter("friction", ["elbow"])
    assert block.labels(plant) == ["friction of elbow at v > 0", "friction of elbow at v < 0"]
    moved = apply(block, plant, [0.3, -0.1])
    np.testing.assert_allclose(moved.model.friction, [0.3, 0.4])
    np.testing.assert_allclose(moved.friction_asymmetry, [0, 0.2])
    np.testing.assert_allclose(block.read(moved), [0.6, 0.2])
    np.testing.assert_allclose(block.bounds(moved)[0], [-0.6, -0.2])
    assert next(iter(block.values(moved))) == "friction of elbow at v > 0, N m" and moved.damping_asymmetry is None


def test_scales_keep_their_sign(plant):
    """Torque constants in logarithms: no step makes a current drive the other way."""
    turned = Plant(plant.model, scale=[2.0, -0.5])
    moved = apply(SignalScale(), turned, [0.1, -30.0])
    np.testing.assert_allclose(moved.scale, [2 * np.exp(0.1), -0.5 * np.exp(-30.0)], rtol=1e-12)
    assert list(SignalScale(unit="N m/A").values(turned)) == ["scale of shoulder, N m/A", "scale of elbow, N m/A"]
    limits = SignalScale().value_limits(turned)
    assert limits == {"scale of shoulder, 1": (0.0, np.inf), "scale of elbow, 1": (-np.inf, 0.0)}
    # limits of the values themselves
    low, high = SignalScale(lower=np.array([1.0, -np.inf]), upper=np.array([np.inf, -0.25])).bounds(turned)
    np.testing.assert_allclose([low[0], high[1]], [np.log(0.5), np.inf])
    np.testing.assert_allclose(low[1], np.log(0.5))


def test_placements_move_in_the_joints_frame(plant):
    block, twist = Placements(["elbow"]), np.array([0.01, 0.02, 0.03, 0.1, -0.2, 0.3])
    moved = apply(block, plant, twist)
    expected = placements(plant)[1] @ np.asarray(jax.jit(se3.exp)(twist))
    np.testing.assert_allclose(placements(moved)[1], expected, atol=1e-15)
    np.testing.assert_array_equal(placements(moved)[0], placements(plant)[0])
    assert block.labels(plant)[3] == "rx of the placement of elbow" and block.affine_indices(plant.model) is None
    assert float(block.values(plant)["z of elbow, m"]) == arms.LENGTH


def test_gravity_turns_about_two_axes_normal_to_it(plant):
    block = GravityDirection()
    moved = np.asarray(apply(block, plant, [0.02, -0.03]).model.gravity)
    np.testing.assert_allclose(np.linalg.norm(moved), 9.81)
    cosine = moved @ np.asarray(plant.model.gravity) / 9.81**2
    np.testing.assert_allclose(np.arccos(cosine), np.hypot(0.02, 0.03), rtol=1e-9)
    assert len(block.labels(plant)) == 2 and block.values(plant)["gravity along z, m/s^2"] == -9.81


def test_shared_blocks_have_the_same_coordinates_with_mirrored_signs():
    """Left and right: equal masses, and centers with opposite y."""
    builder = lgsim.ModelBuilder()
    for side in ("left", "right"):
        builder.add_body(side, "world", lgsim.joints.Revolute(), mass=1.0, inertia=0.1 * np.eye(3))
    plant = Plant(builder.build())
    masses = SharedBlock(Masses(["left", "right"]))
    assert masses.labels(plant) == ["log mass of left and log mass of right"]
    np.testing.assert_allclose(inertias(apply(masses, plant, [np.log(2)]))[:, 0], [2, 2])
    centers = SharedBlock(CentersOfMass(["left", "right"]), signs=[[1, 1, 1], [1, -1, 1]])
    moved = inertias(apply(centers, plant, [0.1, 0.2, 0.3]))
    np.testing.assert_allclose(moved[:, 1:4], [[0.1, 0.2, 0.3], [0.1, -0.2, 0.3]])
    assert masses.affine_indices(plant.model).size == 20 and not masses.is_linear
    offsets = SharedBlock(JointParameter("damping", lower=-1.0, upper=3.0), signs=[[1], [-1]])
    low, high = offsets.bounds(plant)
    np.testing.assert_allclose([low[0], high[0]], [-1, 1])  # x and -x both in [-1, 3]
    with pytest.raises(ValueError, match="members: expected a divisor of the block's 2 coordinates, got 3"):
        SharedBlock(Masses(["left", "right"]), members=3).labels(plant)


def test_what_does_not_exist_is_named(plant, without_import_hook):
    with pytest.raises(ValueError, match=r"bodies: expected names of bodies, got 'for'; did you mean 'fore'"):
        Masses(["for"]).labels(plant)
    with pytest.raises(ValueError, match=r"joints: expected names of joints, got 'wrist'; there are shoulder, elbow"):
        JointParameter("damping", ["wrist"]).labels(plant)
    with pytest.raises(ValueError, match=r"expected a list of names, got the string 'fore'; write \['fore'\]"):
        select_names("bodies", "fore", ["fore"])
    with pytest.raises(
        ValueError, match=r"parameter: expected a parameter of a joint, got 'dampin'; did you mean 'damping'"
    ):
        JointParameter("dampin")
