"""Ground whose height is known on a grid: scipy's splines, points that are nearest by search, planes, and one leaf."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.interpolate import CubicSpline, RectBivariateSpline
from scipy.optimize import minimize

import lgsim
from lgsim.dynamics.contacts.contact_forces import contact_forces, contact_points
from lgsim.multibody import ModelBuilder, ModelError, contacts, joints, serialization
from lgsim.support.fingerprint import fingerprint
from tests.dynamics.contact_machines import LAW

SPACING = (0.1, 0.13)


def ground(nx=9, ny=8, amplitude=0.01, seed=0):
    """Smooth hills: heights of random waves, of some millimeters for each cell."""
    rng = np.random.default_rng(seed)
    x, y = nodes(nx, ny)
    waves = [(rng.normal(), rng.uniform(3, 9, 2), rng.uniform(0, 6)) for _ in range(6)]
    return amplitude * sum(a * np.sin(k[0] * x[:, None] + k[1] * y + p) for a, k, p in waves)


def nodes(nx, ny):
    return (np.arange(nx) - (nx - 1) / 2) * SPACING[0], (np.arange(ny) - (ny - 1) / 2) * SPACING[1]


def spline(heights, x, y, dx=0, dy=0):
    """The natural spline of scipy along one axis after the other, at points (n,) each."""
    at_x, at_y = nodes(*heights.shape)
    along_y = CubicSpline(at_y, heights, axis=1, bc_type="natural")(y, dy)
    return np.array([
        CubicSpline(at_x, column, bc_type="natural")(point, dx)
        for column, point in zip(along_y.T, np.atleast_1d(x), strict=True)
    ])  # fmt: skip


def stone(heights, radius=0.0, law=LAW, dtype=None, spacing=SPACING):
    """A free ball above the ground."""
    builder = ModelBuilder(dtype=dtype)
    builder.add_body("stone", "world", joints.Free(), mass=1.0, inertia=0.004 * np.eye(3))
    surface = contacts.height_field(heights, spacing)
    return builder.add_contact("sole", "stone", contacts.sphere(radius), surface, **law).build()


def at(model, x, y, z):
    """Configurations of the ball at points."""
    where = jnp.stack(jnp.broadcast_arrays(*map(jnp.asarray, (x, y, z))), axis=-1)
    return jnp.broadcast_to(model.neutral(), (*where.shape[:-1], 7)).at[..., :3].set(where)


@pytest.mark.slow
def test_the_surface_is_the_natural_spline_of_scipy():
    """Points on it have the depth zero, and its normals are those of scipy's derivatives."""
    heights, rng = ground(), np.random.default_rng(1)
    model = stone(heights)
    x, y = (rng.uniform(-1, 1, 40) * 0.98 * at_[-1] for at_ in nodes(*heights.shape))
    found = contact_points(model, at(model, x, y, spline(heights, x, y)))
    np.testing.assert_allclose(found.depth, 0, atol=1e-15)
    normal = np.stack([-spline(heights, x, y, 1, 0), -spline(heights, x, y, 0, 1), np.ones(40)], axis=1)
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    np.testing.assert_allclose(found.normal[:, 0], normal, atol=1e-13)


@pytest.mark.slow
def test_far_from_the_border_every_spline_is_the_same():
    x, y = np.arange(41) - 20.0, np.arange(37) - 18.0
    heights = np.random.default_rng(3).normal(size=(41, 37)) * 0.02
    model = stone(heights, spacing=1.0)
    place = np.random.default_rng(4).uniform(-3, 3, size=(2, 20))
    other = RectBivariateSpline(x, y, heights)(*place, grid=False)
    np.testing.assert_allclose(contact_points(model, at(model, *place, other)).depth, 0, atol=1e-10)


@pytest.mark.slow
def test_the_distance_is_that_of_the_nearest_point():
    """By scipy's search over scipy's spline, on either side of the surface."""
    heights, rng = ground(), np.random.default_rng(2)
    model = stone(heights, radius=0.03)
    place = rng.uniform(-0.25, 0.25, size=(6, 2))
    above = np.array([0.05, 0.02, 0.01, -0.005, -0.01, 0.0])
    height = spline(heights, *place.T)
    found = contact_points(model, at(model, *place.T, height + above))
    for i, (foot, z) in enumerate(zip(place, height + above, strict=True)):

        def square(s, foot=foot, z=z):
            return np.sum((s - foot) ** 2) + (spline(heights, s[:1], s[1:])[0] - z) ** 2

        best = minimize(square, foot, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-20})
        distance = np.sign(above[i]) * np.sqrt(best.fun)
        np.testing.assert_allclose(found.depth[i, 0], 0.03 - distance, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("place", [(0.13, -0.21), (3.0, -2.0)], ids=["on the grid", "beyond it"])
def test_a_slope_of_heights_is_a_plane(place):
    """All that a plane on a frame does, force for force, on the grid and where it goes on straight."""
    a, b = 0.3, -0.2
    x, y = nodes(5, 4)
    field = stone(a * x[:, None] + b * y, radius=0.1)
    normal = np.array([-a, -b, 1]) / np.sqrt(1 + a * a + b * b)
    slope = np.eye(4)
    slope[:3, :3] = np.linalg.qr(np.column_stack([normal, [1, 0, 0], [0, 1, 0]]))[0][:, [1, 2, 0]]
    slope[:3, 2] = normal
    slope[:3, 1] = np.cross(slope[:3, 2], slope[:3, 0])
    builder = ModelBuilder().add_frame("slope", "world", slope)
    builder.add_body("stone", "world", joints.Free(), mass=1.0, inertia=0.004 * np.eye(3))
    flat = builder.add_contact("sole", "stone", contacts.sphere(0.1), against="slope", **LAW).build()
    q = at(field, *place, a * place[0] + b * place[1] + 0.09)
    v = jnp.array([0.3, -0.1, -0.5, 1.0, 2.0, -1.0])
    for found, right in zip(contact_forces(field, q, v), contact_forces(flat, q, v), strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=1e-11 * max(1.0, np.abs(right).max()))


@pytest.mark.slow
def test_curvature_is_continuous_over_nodes_and_the_border():
    """The second derivative of the depth along a line over nodes and off the grid has no jump."""
    heights = ground(5, 4, amplitude=0.003)
    model = stone(heights)
    edge = nodes(5, 4)[0][-1]

    def depth(x):
        return contact_points(model, model.neutral().at[0].set(x).at[1].set(0.05)).depth[0]

    bend = jax.jit(jax.vmap(jax.grad(jax.grad(depth))))
    for x in (edge, edge - SPACING[0], edge - 2 * SPACING[0]):
        left, right, apart = bend(jnp.array([x - 1e-9, x + 1e-9, x - 0.5 * SPACING[0]]))
        np.testing.assert_allclose(left, right, atol=1e-6)
        assert np.abs(apart - left) > 1e-2, "and it changes within a cell"


@pytest.mark.slow
def test_points_far_above_rough_ground_do_not_touch_it():
    rough = np.random.default_rng(5).normal(size=(9, 8)) * 0.3
    model = stone(rough, radius=0.05)
    rng = np.random.default_rng(6)
    q = at(model, *(rng.uniform(-0.4, 0.4, size=(2, 300))), rng.uniform(1.5, 3, 300))
    found = contact_points(model, q)
    assert (np.asarray(found.depth) < -0.1).all() and np.isfinite(found.normal).all()
    np.testing.assert_array_equal(contact_forces(model, q, jnp.ones((300, 6))).normal, 0)


def rover(heights):
    """A body with a wheel in front and one behind, on one ground."""
    builder = ModelBuilder()
    builder.add_body("hull", "world", joints.Free(), mass=1.0, inertia=0.01 * np.eye(3))
    for name, x in (("front", 0.1), ("rear", -0.1)):
        place = np.eye(4)
        place[0, 3] = x
        builder.add_frame(name, "hull", place)
        builder.add_contact(
            name, name, contacts.sphere(0.05), contacts.height_field(heights, SPACING), friction=0.5, stiffness=1e3
        )
    return builder.build()


@pytest.mark.slow
def test_contacts_share_the_heights_of_their_frame():
    """One leaf, whose gradient is that of differences; both contacts count in it."""
    heights = ground(5, 4)
    model = rover(heights)
    assert model.heights.shape == (20,) and model.height_slices == {"world": slice(0, 20)}
    np.testing.assert_allclose(model.heights.reshape(5, 4), heights, rtol=1e-15)
    q, v = model.neutral().at[2].set(0.02), jnp.array([0.3, 0.1, -0.2, 0.1, 0.2, 0.3])

    def push(heights):
        return contact_forces(model.replace(heights=heights), q, v).wrenches[0] @ jnp.arange(1.0, 7)

    assert contact_forces(model, q, v).normal.min() > 0
    slope = jax.grad(push)(model.heights)
    move = jnp.asarray(np.random.default_rng(0).normal(size=20))
    h = 1e-6
    right = (push(model.heights + h * move) - push(model.heights - h * move)) / (2 * h)
    np.testing.assert_allclose(slope @ move, right, rtol=1e-7)
    # a batch of grounds
    many = jax.vmap(push)(jnp.stack([model.heights, model.heights + 0.001]))
    np.testing.assert_allclose(many, [push(model.heights), push(model.heights + 0.001)], rtol=1e-12)


def test_machines_keep_their_ground():
    """Files, edits and digests: the heights go with the frame that has them."""
    model = rover(ground(5, 4))
    again = serialization.from_record(*serialization.to_record(model))
    assert again.topology == model.topology
    np.testing.assert_array_equal(again.heights, model.heights)
    assert fingerprint(again) == fingerprint(model) != fingerprint(model.replace(heights=model.heights + 1e-3))
    arm = ModelBuilder().add_body("arm", "world", joints.Revolute(), mass=1.0, inertia=np.eye(3))
    tray = arm.add_contact(
        "tray", "arm", contacts.sphere(0.1), contacts.height_field(np.zeros((2, 2)), 1.0), stiffness=1.0
    ).build()
    both = model.attach(tray, "hull", prefix="tool ")
    assert both.height_slices == {"world": slice(0, 20), "hull": slice(20, 24)}
    rigid = both.lock(["tool arm"], both.neutral())
    assert rigid.contact_names == ("front", "rear") and rigid.heights.shape == (20,)
    still = both.lock(["hull"], both.neutral())
    assert still.contact_names == ("tool tray",) and still.height_slices == {"hull": slice(0, 4)}
    assert still.heights.shape == (4,)
    with pytest.raises(ModelError, match="attach: frame 'world': expected one height field on a frame"):
        model.attach(tray, "world", prefix="tool ")
    even = contacts.height_field(np.zeros((2, 2)), 1.0)
    more = tray.add_contact("c", "arm", contacts.sphere(0.2), even, stiffness=1.0)
    assert more.heights.shape == (4,)
    with pytest.raises(ModelError, match="contact 'c': surface: expected the one height field of the frame 'world'"):
        tray.add_contact("c", "arm", contacts.sphere(0.2), contacts.height_field(np.ones((2, 2)), 1.0), stiffness=1.0)


@pytest.mark.slow
def test_a_ball_rolls_in_a_bowl_and_keeps_its_energy():
    """Without friction and dissipation, in and out of cells, in a batch."""
    x, y = nodes(9, 8)
    model = stone(0.3 * (x[:, None] ** 2 + y**2), radius=0.05, law={"stiffness": 1e4})
    q0 = model.neutral().at[:3].set(jnp.array([0.2, 0.1, 0.05 + 0.3 * 0.05]))
    q = jnp.stack([q0, q0.at[0].set(0.1)])

    def motion(q):
        run = lgsim.rollout(model, q, jnp.zeros(6), dt=5e-4, steps=1000, save_every=100, method=lgsim.MK4)
        return run.q, run.v

    places, speeds = jax.jit(jax.vmap(motion))(q)
    energy = [lgsim.kinetic_energy(model, places, speeds), lgsim.potential_energy(model, places)]
    total = sum(energy) + lgsim.contact_energy(model, places)
    assert np.ptp(energy[0]) > 0.05 and np.ptp(places[0, :, 0]) > 1.2 * SPACING[0]
    np.testing.assert_allclose(total, total[:, :1].repeat(11, 1), atol=1e-7)


@pytest.mark.repeats
@pytest.mark.float32
def test_follows_the_dtype(dtype):
    model = stone(np.zeros((3, 4)), radius=0.1, dtype=dtype)
    assert model.heights.dtype == dtype
    found = contact_forces(model, at(model, 0.01, 0.02, 0.09).astype(dtype), jnp.zeros(6, dtype))
    assert {x.dtype for x in found} == {np.dtype(dtype)}
    np.testing.assert_allclose(found.depth, [0.01], rtol=1e-4)


@pytest.mark.parametrize(
    ("heights", "spacing", "message"),
    [
        (np.zeros(4), 1.0, r"heights: expected a grid \(nx, ny\) of at least two by two, got shape \(4,\)"),
        (np.zeros((1, 4)), 1.0, r"heights: .* at least two by two, got shape \(1, 4\)"),
        ([[0.0, 1.0], [0.0]], 1.0, "heights: expected a grid .*, got rows of different lengths"),
        ([[0.0, np.nan], [0.0, 0.0]], 1.0, "heights: expected finite numbers"),
        (np.zeros((2, 2)), 0.0, "spacing: expected a positive number or two, got 0"),
        (np.zeros((2, 2)), (1.0, 2.0, 3.0), "spacing: expected a positive number or two"),
    ],
)
def test_no_grid(heights, spacing, message):
    with pytest.raises(ValueError, match=f"height_field: {message}"):
        contacts.height_field(heights, spacing)


def test_bad_numbers_of_a_model():
    model = rover(ground(5, 4))
    with pytest.raises(ModelError, match="heights of frame 'world': expected finite numbers, got nan"):
        model.replace(heights=model.heights.at[3].set(jnp.nan))
    with pytest.raises(ModelError, match=r"heights: expected shape \(20,\), got \(5, 4\)"):
        model.replace(heights=model.heights.reshape(5, 4))
    with pytest.raises(ModelError, match="contact 'front': surface_spacing_x: expected a positive number, got 0"):
        model.replace_contact("front", surface_spacing_x=0.0)
    bare = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3)).build()
    with pytest.raises(ModelError, match="heights: expected None, no contact has a height field"):
        bare.replace(heights=jnp.zeros(4))
