"""Forces of contacts: every shape against every surface by work and balance, and the law by its formula."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.spatial import Vec
from lgsim.dynamics.contacts.contact_forces import contact_energy, contact_forces, contact_points
from lgsim.dynamics.distances.distance import distance
from lgsim.dynamics.inverse_dynamics import inverse_dynamics
from lgsim.dynamics.kinematics import forward_kinematics, frame_twists
from lgsim.multibody import ModelBuilder, ModelError, contacts, joints, tangent_grad
from lgsim.multibody.contacts.boxes import Box
from lgsim.multibody.contacts.capsules import Capsule
from lgsim.multibody.contacts.contact import Shape
from lgsim.multibody.contacts.planes import Plane
from lgsim.multibody.contacts.round_surfaces import RoundSurface
from tests.dynamics.contact_machines import LAW, ball, each_pair, pair, touching_state

ELASTIC = {"stiffness": 2e3}


def close(found, expected, relative=1e-12):
    np.testing.assert_allclose(found, expected, rtol=0, atol=relative * np.abs(expected).max())


def joint_forces(model, q, wrenches):
    """What wrenches on the bodies are worth in the joints."""
    rest = jnp.zeros(model.nv, q.dtype)
    still = model.replace(gravity=jnp.zeros_like(model.gravity))
    return -inverse_dynamics(still, q, rest, rest, wrenches)


def in_world(model, q, wrenches):
    """Wrenches on the bodies at the world's origin, in its axes."""
    T = np.asarray(forward_kinematics(model, q))[: model.topology.bodies]
    f, n = (np.einsum("bij,bj->bi", T[:, :3, :3], wrenches[:, part]) for part in (slice(0, 3), slice(3, 6)))
    return np.concatenate([f, n + np.cross(T[:, :3, 3], f)], axis=1)


@pytest.mark.slow
@each_pair
def test_without_losses_the_force_is_minus_the_slope_of_the_energy(kinds):
    model = pair(*kinds, ELASTIC)
    q, v = touching_state(model)
    found = contact_forces(model, q, v)
    assert found.depth.max() == pytest.approx(0.02, abs=1e-9)
    energy = np.sum(2e3 / 2.5 * np.maximum(np.asarray(found.depth), 0) ** 2.5)
    np.testing.assert_allclose(contact_energy(model, q), energy, rtol=1e-13)
    close(joint_forces(model, q, found.wrenches), -tangent_grad(lambda q: contact_energy(model, q), model, q), 1e-11)


@pytest.mark.repeats
@each_pair
def test_action_is_reaction(kinds):
    model = pair(*kinds)
    q, v = touching_state(model)
    both = in_world(model, q, np.asarray(contact_forces(model, q, v).wrenches))
    assert np.abs(both[0]).max() > 1
    np.testing.assert_allclose(both[0] + both[1], 0, atol=1e-12 * np.abs(both).max())


@pytest.mark.repeats
@each_pair
def test_power_is_that_of_depth_rates_and_slips(kinds):
    """``P = sum -f_n d' + f_t . u``, rates by differences of depths, which know nothing of twists."""
    model = pair(*kinds)
    q, v = touching_state(model)
    found = contact_forces(model, q, v)
    h = 1e-5
    ahead, back = (contact_points(model, model.retract(q, s * v)).depth for s in (h, -h))
    rate = np.asarray(ahead - back) / (2 * h)
    depth = np.maximum(np.asarray(found.depth), 0)
    normal = 2e3 * depth**1.5 * np.maximum(1 + 0.4 * rate, 0)
    close(found.normal, normal, 1e-7)
    twists = np.asarray(frame_twists(model, q, v))[:2]
    power = np.sum(np.asarray(found.wrenches) * twists)
    along = np.sum(np.asarray(found.tangential) ** 2, axis=1)
    # |f_t| = (mu f_n / sqrt(u^2 + s^2) + nu d^e) u: the slip by bisection of the law
    slip = np.zeros_like(normal)
    for i in np.flatnonzero(normal > 0):
        low, high = 0.0, 1e3
        for _ in range(200):
            u = 0.5 * (low + high)
            more = (0.6 * normal[i] / np.hypot(u, 0.05) + 30 * depth[i] ** 1.5) * u > np.sqrt(along[i])
            low, high = (low, u) if more else (u, high)
        slip[i] = u
    terms = -normal * rate - np.sqrt(along) * slip
    np.testing.assert_allclose(power, terms.sum(), atol=1e-6 * np.abs(terms).sum())
    assert power + np.sum(2e3 * depth**1.5 * rate) < 0, "less than what the springs take"
    assert np.abs(np.sum(np.asarray(found.tangential) * contact_points(model, q).normal, axis=1)).max() < 1e-12


@pytest.mark.slow
@each_pair
def test_derivatives_are_those_of_differences(kinds):
    """By the tangent at q, by v, and by every leaf that a contact knows."""
    model = pair(*kinds)
    q, v = touching_state(model)
    leaves = {"contacts": model.contacts, "frames": model.frames, "placements": model.placements}
    if model.heights is not None:
        leaves["heights"] = model.heights
    rng = np.random.default_rng(5)
    moves = {name: jnp.asarray(rng.normal(size=x.shape)) for name, x in leaves.items()}
    moves["contacts"] = moves["contacts"] * jnp.abs(model.contacts)
    if "heights" in moves:
        moves["heights"] = moves["heights"] * 0.01  # of cells of some centimeters
    moves["q"], moves["v"] = (jnp.asarray(rng.normal(size=model.nv)) for _ in range(2))

    @jax.jit
    def force(s):
        moved = model.replace(
            topology=model.topology, **{name: leaves[name] + s[name] * moves[name] for name in leaves}
        )
        at = model.retract(q, s["q"] * moves["q"])
        return contact_forces(moved, at, v + s["v"] * moves["v"]).wrenches

    zero = {name: jnp.zeros(()) for name in moves}
    forward, reverse = jax.jit(jax.jacfwd(force))(zero), jax.jit(jax.jacrev(force))(zero)
    h = 1e-6
    for name in moves:
        right = (force(zero | {name: jnp.asarray(h)}) - force(zero | {name: jnp.asarray(-h)})) / (2 * h)
        close(forward[name], right, 1e-6)
        close(reverse[name], forward[name], 1e-11)


def test_law_of_a_ball_by_hand():
    """A ball that slides and spins on a plane, all numbers by the formulas of the issue."""
    model = ball(0.1, **LAW)
    q, v = jnp.array([0.3, -0.2, 0.09, 1, 0, 0, 0.0]), jnp.array([0.4, -0.1, -0.25, 1.0, 2.0, -3.0])
    found = contact_forces(model, q, v)
    normal = 2e3 * 0.01**1.5 * (1 + 0.4 * 0.25)
    u = np.array([0.4 - 2.0 * 0.1, -0.1 + 1.0 * 0.1, 0.0])  # of the lowest point
    along = -(0.6 * normal / np.hypot(np.linalg.norm(u), 0.05) + 30 * 0.01**1.5) * u
    np.testing.assert_allclose(found.depth, [0.01], rtol=1e-13)
    np.testing.assert_allclose(found.normal, [normal], rtol=1e-13)
    np.testing.assert_allclose(found.tangential, [along], atol=1e-15)
    force = along + np.array([0, 0, normal])
    np.testing.assert_allclose(found.wrenches[0], [*force, *np.cross([0, 0, -0.1], force)], rtol=1e-13)
    points = contact_points(model, q)
    np.testing.assert_allclose(points.position, [[0.3, -0.2, -0.01]], atol=1e-15)
    np.testing.assert_array_equal(points.normal, [[0, 0, 1]])


OPTIONS = {"stribeck": 0.3, "stribeck_speed": 0.4, "torsion": 0.02, "rolling": 0.005, "spin_speed": 0.7}


def test_options_of_the_law_by_hand():
    """More friction at rest, and couples against spinning and rolling, by the formulas of ``contact_forces``."""
    model = ball(0.1, **LAW, **OPTIONS)
    q, v = jnp.array([0.3, -0.2, 0.09, 1, 0, 0, 0.0]), jnp.array([0.4, -0.1, -0.25, 1.0, 2.0, -3.0])
    found, plain = contact_forces(model, q, v), contact_forces(ball(0.1, **LAW), q, v)
    normal, u = 2e3 * 0.01**1.5 * (1 + 0.4 * 0.25), np.array([0.2, 0.0, 0.0])
    friction = 0.6 + 0.3 * np.exp(-((0.2 / 0.4) ** 2))
    along = -(friction * normal / np.hypot(0.2, 0.05) + 30 * 0.01**1.5) * u
    np.testing.assert_allclose(found.tangential, [along], atol=1e-14)
    couple = -normal / np.sqrt(14 + 0.49) * np.array([0.005 * 1.0, 0.005 * 2.0, 0.02 * -3.0])
    np.testing.assert_allclose(found.couple, [couple], rtol=1e-12)
    force = along + np.array([0, 0, normal])
    np.testing.assert_allclose(found.wrenches[0, 3:], np.cross([0, 0, -0.1], force) + couple, rtol=1e-12)
    np.testing.assert_array_equal(plain.couple, np.zeros((1, 3)))
    assert model.contact_numbers("sole").keys() - ball(0.1, **LAW).contact_numbers("sole").keys() == OPTIONS.keys()


@pytest.mark.slow
@each_pair
def test_options_take_energy_and_keep_the_balance(kinds):
    """Couples are opposite, and the power beyond that of the plain law is what friction and couples say."""
    free = {**LAW, "friction": 0.0, "viscous": 0.0}
    model, plain = pair(*kinds, {**free, "torsion": 0.02, "rolling": 0.005}), pair(*kinds, free)
    q, v = touching_state(model)
    found, without = contact_forces(model, q, v), contact_forces(plain, q, v)
    both = in_world(model, q, np.asarray(found.wrenches))
    np.testing.assert_allclose(both[0] + both[1], 0, atol=1e-12 * np.abs(both).max())
    more = np.sum(np.asarray(found.wrenches - without.wrenches) * np.asarray(frame_twists(model, q, v))[:2])
    R = np.asarray(forward_kinematics(model, q))[:2, :3, :3]
    spin = [R[i] @ np.asarray(frame_twists(model, q, v))[i, 3:] for i in (0, 1)]
    np.testing.assert_allclose(more, np.sum(np.asarray(found.couple) @ (spin[0] - spin[1])), rtol=1e-9)
    assert more < 0
    slopes = jax.jacfwd(lambda v: contact_forces(model, q, v).wrenches)(jnp.zeros(model.nv))
    assert np.isfinite(slopes).all()


def test_a_smooth_contact_has_the_exponent_two():
    body = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    model = body.add_contact("c", "a", contacts.sphere(0.1), stiffness=3e3, smooth=True).build()
    found = contact_forces(model, model.neutral().at[2].set(0.09), jnp.zeros(6))
    np.testing.assert_allclose(found.normal, [3e3 * 0.01**2], rtol=1e-12)


def test_a_contact_never_pulls():
    model = ball(0.1, **LAW)
    q = jnp.array([0, 0, 0.09, 1, 0, 0, 0.0])
    assert contact_forces(model, q, jnp.array([0, 0, 10.0, 0, 0, 0])).normal == 0.0


@pytest.mark.slow
def test_capsules_are_as_deep_as_their_distance_says():
    """Another implementation of segments; pairs cross, lie end to end, and are parallel."""
    rng = np.random.default_rng(2)
    model = pair(Capsule, RoundSurface)
    own = model.contact_numbers("touch")
    depth = jax.jit(lambda q: contact_points(model, q).depth)
    solids = [("first", "hand frame", ""), ("second", "ball frame", "surface_")]
    solids = model.add_solids(
        [(name, frame, lgsim.geometry.Capsule(own[prefix + "radius"], own[prefix + "length"]), None)
         for name, frame, prefix in solids]
    )  # fmt: skip
    for seed in range(20):
        q = model.random(jax.random.key(seed)).at[:3].multiply(0.1).at[7:10].multiply(0.1)
        np.testing.assert_allclose(depth(q)[0], -distance(solids, q, "first", "second"), atol=1e-12)
    side = ModelBuilder().add_body("rod", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    side.add_contact("c", "rod", contacts.capsule(0.1, 0.4), contacts.round_surface(0.2, 0.6), stiffness=1.0)
    parallel = side.build()
    q = parallel.neutral().at[0].set(0.5).at[2].set(float(rng.uniform(-0.1, 0.1)))
    np.testing.assert_allclose(contact_points(parallel, q).depth, [0.1 + 0.2 - 0.5], rtol=1e-14)
    for order in (jax.jacfwd, lambda f: jax.jacfwd(jax.jacrev(f))):
        slopes = order(lambda q: contact_forces(parallel, q, jnp.ones(6)).wrenches)(q.at[0].set(0.29))
        assert np.isfinite(slopes).all()


def test_corners_and_edges_of_a_box_are_on_its_surface():
    count = 3
    builder = ModelBuilder().add_body("box", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    model = builder.add_contact("c", "box", contacts.box(0.2, 0.4, 0.6, edges=count), stiffness=1.0).build()
    found = np.asarray(contact_points(model, model.neutral()).position)
    assert len(found) == 8 + 12 * count == len(np.unique(found.round(12), axis=0))
    on = np.isclose(np.abs(found), [0.1, 0.2, 0.3])
    assert (on.sum(axis=1) >= 2).all() and (on.sum(axis=1) == 3).sum() == 8


def test_thinned_vertices_are_far_apart():
    rng = np.random.default_rng(0)
    many = rng.normal(size=(400, 3))
    many /= np.linalg.norm(many, axis=1)[:, None]
    few = np.array(contacts.vertices(many, most=20).kind.at)
    assert all(np.isclose(many, x).all(axis=1).any() for x in few)
    gaps = np.linalg.norm(few[:, None] - few[None], axis=2) + 9 * np.eye(20)
    assert gaps.min() > 0.5, "20 points of a sphere can be 0.7 apart"
    assert contacts.vertices(many, most=500).kind.at == contacts.vertices(many).kind.at


STATES = {
    "flight": (0.2, [0.0] * 6),
    "touch": (0.1, [0.0] * 6),
    "touch at speed": (0.1, [0.3, 0, -1.0, 0, 0, 0]),
    "rest": (0.09, [0.0] * 6),
    "zero slip": (0.09, [0.2, 0, 0, 0, 2.0, 0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("surface", [contacts.plane(), contacts.round_surface(0.0)], ids=["plane", "point"])
def test_derivatives_are_finite_in_flight_at_touch_at_rest_and_without_slip(surface):
    builder = ModelBuilder().add_body("ball", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    model = builder.add_contact("c", "ball", contacts.sphere(0.1), surface, **LAW).build()

    def force(model, q, v):
        return contact_forces(model, q, v).wrenches.sum() + contact_energy(model, q)

    first = jax.jit(jax.grad(force, argnums=(0, 1, 2), allow_int=True))
    second = jax.jit(jax.jacfwd(jax.grad(force, argnums=(1, 2)), argnums=(0, 1, 2)))
    for state, (height, v) in STATES.items():
        at = model, model.neutral().at[2].set(height), jnp.array(v)
        chex.assert_tree_all_finite((first(*at), second(*at)), custom_message=state)


@pytest.mark.slow
def test_no_direction_leads_out_of_a_center():
    builder = ModelBuilder().add_body("ball", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    model = builder.add_contact("c", "ball", contacts.sphere(0.1), contacts.round_surface(0.2), **LAW).build()
    found = contact_forces(model, model.neutral(), jnp.ones(6))
    np.testing.assert_allclose(found.depth, [0.3])
    slopes = jax.jacfwd(lambda q: contact_forces(model, q, jnp.ones(6)).wrenches)(model.neutral())
    assert np.isfinite(found.wrenches).all() and np.isfinite(slopes).all()


@pytest.mark.slow
def test_several_contacts_on_a_body_add_up():
    """One body with contacts of three kinds: the sum of machines with one contact each."""

    def machine(names):
        builder = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
        builder.add_body("b", "a", joints.Revolute(), mass=1.0, inertia=np.eye(3))
        builder.add_frame("f", "a", np.array([[0, -1, 0, 0.1], [1, 0, 0, 0.2], [0, 0, 1, 0.0], [0, 0, 0, 1]]))
        shapes = {
            "one": ("a", contacts.sphere(0.3), None), "two": ("b", contacts.capsule(0.3, 0.2), None),
            "three": ("f", contacts.box(0.5, 0.5, 0.5), None), "four": ("f", contacts.sphere(0.4), None),
            "five": ("b", contacts.sphere(0.3), contacts.round_surface(0.3)),
        }  # fmt: skip
        for name in names:
            frame, shape, surface = shapes[name]
            builder.add_contact(name, frame, shape, surface, **LAW)
        return builder.build()

    names = ("one", "two", "three", "four", "five")
    whole = machine(names)
    q = whole.neutral().at[:3].set(jnp.array([0.1, 0.0, 0.2])).at[7].set(0.4)
    v = jnp.asarray(np.random.default_rng(0).normal(size=7))
    found = contact_forces(whole, q, v)
    alone = [contact_forces(machine([name]), q, v) for name in names]
    assert all(x.normal.max() > 0 for x in alone)
    close(found.wrenches, sum(x.wrenches for x in alone))
    for key in ("depth", "normal", "tangential"):
        close(getattr(found, key), np.concatenate([getattr(x, key) for x in alone]))
    assert whole.point_slices == {
        "one": slice(0, 1), "two": slice(1, 3), "three": slice(3, 11), "four": slice(11, 12), "five": slice(12, 13),
    }  # fmt: skip


@pytest.mark.slow
def test_batches_are_single_states():
    model = pair(Box, Plane)
    states = [touching_state(model, seed=seed) for seed in range(3)]
    q, v = (jnp.stack(x) for x in zip(*states, strict=True))
    many = contact_forces(model, q, v)
    for i, (each_q, each_v) in enumerate(states):
        for found, right in zip(many, contact_forces(model, each_q, each_v), strict=True):
            close(found[i], right)
    # a batch of numbers of the contact
    array = model.contacts[None] * jnp.array([1.0, 1.1, 1.2])[:, None, None]
    scaled = jax.vmap(lambda c: contact_forces(model.replace(contacts=c), *states[0]).wrenches)(array)
    close(scaled[1], contact_forces(model.replace(contacts=array[1]), *states[0]).wrenches)


@pytest.mark.repeats("float64")
@pytest.mark.float32
def test_follows_the_dtype(dtype):
    model = pair(Capsule, RoundSurface, dtype=dtype)
    q, v = touching_state(model)
    found = contact_forces(model, q, v)
    assert {x.dtype for x in found} == {np.dtype(dtype)} and contact_energy(model, q).dtype == dtype
    np.testing.assert_allclose(found.depth, [0.02], rtol=1e-4)
    both = in_world(model, q, np.asarray(found.wrenches))
    np.testing.assert_allclose(both[0] + both[1], 0, atol=20 * np.finfo(dtype).eps * np.abs(both).max())


@pytest.mark.slow
def test_a_shape_of_ones_own_is_one_class():
    """A ring of points: energy, balance and file need nothing but the class."""
    from dataclasses import dataclass

    from lgsim.multibody import serialization

    @dataclass(frozen=True)
    class Ring(Shape):
        """Four points about the z axis."""

        sizes = ("width",)

        def count(self, surface):
            return 4

        def points(self, sizes):
            size, zero = sizes["width"], jnp.zeros_like(sizes["width"])
            rows = [Vec(size, zero, zero), Vec(-size, zero, zero), Vec(zero, size, zero), Vec(zero, -size, zero)]
            return Vec(*(jnp.concatenate(parts) for parts in zip(*rows, strict=True)))

    try:
        test_without_losses_the_force_is_minus_the_slope_of_the_energy((Ring, Plane))
        test_action_is_reaction((Ring, RoundSurface))
        model = pair(Ring, Plane)
        again = serialization.from_record(*serialization.to_record(model))
        assert again.topology == model.topology
    finally:
        del Shape.kinds["Ring"]


def test_bad_input_of_forces():
    model = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3)).build()
    with pytest.raises(ModelError, match="model: expected a model with contacts"):
        contact_forces(model, model.neutral(), jnp.zeros(6))
    with pytest.raises(ModelError, match="model: expected a model with contacts"):
        contact_points(model, model.neutral())
    assert contact_energy(model, model.neutral()) == 0.0
    touching = ball(**LAW)
    with pytest.raises(ValueError, match="v: expected shape"):
        contact_forces(touching, touching.neutral(), jnp.zeros(7))
    assert lgsim.contact_forces is contact_forces
