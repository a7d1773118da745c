"""Distances of solids against coal and closed forms; derivatives against differences, and where they degenerate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.lie import se3
from lgsim.multibody import ModelBuilder, ModelError, geometry, joints

POINTS = np.random.default_rng(7).normal(size=(12, 3)) * 0.5
SOLIDS = {
    "sphere": geometry.Sphere(0.3),
    "capsule": geometry.Capsule(0.2, 0.8),
    "box": geometry.Box((0.4, 0.6, 0.9)),
    "hull": geometry.convex_hull(POINTS),
    "half-space": geometry.HalfSpace(),
}
FORMULAS = [
    ("sphere", "sphere"), ("sphere", "capsule"), ("capsule", "capsule"), ("capsule", "box"), ("box", "sphere"),
    ("half-space", "capsule"), ("box", "half-space"), ("hull", "half-space"),
]  # fmt: skip
SEARCHED = [("hull", "hull"), ("box", "box"), ("box", "hull"), ("hull", "capsule")]


def machine(first, second, dtype=None):
    """A body that moves freely with one solid, and another one in the world."""
    builder = ModelBuilder(dtype=dtype).add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    return builder.add_solid("A", "a", first).add_solid("B", "world", second).build()


def starts(count, seed=0, spread=0.6):
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=(count, 4))
    return jnp.asarray(np.c_[rng.normal(size=(count, 3)) * spread, turn / np.linalg.norm(turn, axis=1, keepdims=True)])


def at(T):
    """The configuration of a pose."""
    return jnp.concatenate([T[:3, 3], lgsim.conversions.quaternion_from_matrix(T[:3, :3])])


def near(a, b, p, model=None):
    """The distance of a solid at a position from another one at the origin."""
    return lgsim.distance(machine(a, b) if model is None else model, jnp.array([*p, 1.0, 0, 0, 0]), "A", "B")


def peer(coal, solid):
    if isinstance(solid, geometry.Sphere):
        return coal.Sphere(solid.radius)
    if isinstance(solid, geometry.Capsule):
        return coal.Capsule(solid.radius, solid.length)
    if isinstance(solid, geometry.Box):
        return coal.Box(*solid.size)
    if isinstance(solid, geometry.HalfSpace):
        return coal.Halfspace(np.array([0.0, 0, 1]), 0.0)
    points = coal.StdVec_Vec3s()
    for p in solid.at:
        points.append(np.array(p))
    return coal.Convex.convexHull(points, True, "Qt")


@pytest.mark.repeats("capsule-box", "box-hull")
@pytest.mark.oracle
@pytest.mark.parametrize("pair", FORMULAS + SEARCHED, ids="-".join)
def test_distances_are_those_of_coal(pair):
    """Apart and overlapping; coal searches to 1e-10, boxes and hulls of lgsim end with a corner, an edge or a face."""
    coal, q = pytest.importorskip("coal"), starts(100)
    found = np.asarray(jax.jit(lambda q: lgsim.distance(machine(*map(SOLIDS.get, pair)), q, "A", "B"))(q))
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = 1e-10
    request.gjk_max_iterations = request.epa_max_iterations = 500
    one, other = (peer(coal, SOLIDS[name]) for name in pair)
    poses = np.asarray(lgsim.forward_kinematics(machine(*map(SOLIDS.get, pair)), q))[:, 0]
    still = coal.Transform3s(np.eye(3), np.zeros(3))
    right = np.array([
        coal.distance(one, coal.Transform3s(T[:3, :3], T[:3, 3]), other, still, request, coal.DistanceResult())
        for T in poses
    ])  # fmt: skip
    assert (right > 0.01).sum() > 5 and (right < -0.01).sum() > 5
    np.testing.assert_allclose(found, right, atol=1e-9 if pair in SEARCHED else 1e-13)


@pytest.mark.slow
@pytest.mark.typed
@pytest.mark.parametrize("pair", [("capsule", "box"), ("box", "hull"), pytest.param(
    ("capsule", "capsule"), marks=pytest.mark.exhaustive)], ids="-".join)  # fmt: skip
def test_derivatives_are_those_of_differences(pair):
    """By q in closed form and by both modes, by sizes and poses; the second one by q."""
    model, q = machine(*map(SOLIDS.get, pair)), starts(24, seed=1)
    v, sizes, shift = jnp.zeros(6), model.solids, jnp.zeros((2, 3))

    def value(v, sizes, shift, q):
        moved = model.replace(solids=sizes, solid_poses=model.solid_poses.at[:, :3, 3].add(shift))
        return lgsim.distance(moved, model.retract(q, v), "A", "B")

    values = jax.jit(jax.vmap(value, (None, None, None, 0)))
    slopes = jax.jit(jax.vmap(jax.grad(value, (0, 1, 2)), (None, None, None, 0)))
    curvature = jax.jit(jax.vmap(jax.jacfwd(jax.grad(value)), (None, None, None, 0)))(v, sizes, shift, q)
    found = slopes(v, sizes, shift, q)
    forward = jax.jit(jax.vmap(jax.jacfwd(value), (None, None, None, 0)))(v, sizes, shift, q)
    d, J = jax.jit(lambda q: lgsim.distance_jacobian(model, q, "A", "B"))(q)
    np.testing.assert_allclose(d, values(v, sizes, shift, q), atol=1e-13)
    np.testing.assert_allclose(J, found[0], atol=1e-12)
    np.testing.assert_allclose(forward, found[0], atol=1e-12)
    h, rng = 1e-6, np.random.default_rng(3)
    for _ in range(2):
        along = [jnp.asarray(rng.normal(size=x.shape)) for x in (v, sizes, shift)]
        along[1] = jnp.where(sizes > 0, along[1], 0.0)
        ends = [[x + s * h * y for x, y in zip((v, sizes, shift), along, strict=True)] for s in (1, -1)]
        right = (values(*ends[0], q) - values(*ends[1], q)) / (2 * h)
        rate = sum(jnp.sum(a * b[None], axis=tuple(range(1, a.ndim))) for a, b in zip(found, along, strict=True))
        np.testing.assert_allclose(rate, right, atol=2e-8)
        ends = [v + s * h * along[0] for s in (1, -1)]
        right = (slopes(ends[0], sizes, shift, q)[0] - slopes(ends[1], sizes, shift, q)[0]) / (2 * h)
        # a nearest point that reaches an end in between is no fault
        wrong = jnp.max(jnp.abs(curvature @ along[0] - right), axis=1)
        assert jnp.sum(wrong > 1e-6) <= 1, wrong


def test_nearest_points_are_as_far_apart_as_is_said():
    """In the world, of all pairs at once, in the order that was asked for; pairs swapped are the same."""
    model = machine(SOLIDS["capsule"], SOLIDS["box"]).add_solid("C", "world", geometry.Sphere(0.1))
    q = starts(20)
    found = jax.jit(lambda q: lgsim.closest_points(model, q, ["A", "C", "B"], ["B", "A", "A"]))(q)
    gap = jnp.sum((found.second - found.first) * found.normal, axis=-1)
    np.testing.assert_allclose(gap, found.distance, atol=1e-13)
    np.testing.assert_allclose(jnp.linalg.norm(found.normal, axis=-1), 1, atol=1e-13)
    np.testing.assert_allclose(found.distance[:, 0], found.distance[:, 2], atol=1e-13)
    np.testing.assert_allclose(found.first[:, 0], found.second[:, 2], atol=1e-12)
    np.testing.assert_allclose(lgsim.distance(model, q, ["B", "C"], "A")[:, 1], found.distance[:, 1], atol=1e-13)
    inside = np.abs(found.second[:, 0]) <= np.array([0.2, 0.3, 0.45]) + 1e-9
    assert np.all(inside), "the second point is on or in the box"


@pytest.mark.slow
@pytest.mark.parametrize("searched", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
def test_degenerate_pairs_have_finite_derivatives(searched):
    """Parallel capsules, touching, centers that agree, no length, a flat hull, deep inside: value and first two."""
    flat = geometry.convex_hull([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
    capsule, sphere, box = (SOLIDS[name] for name in ("capsule", "sphere", "box"))
    cases = [
        (capsule, capsule, [0.5, 0, 0], 0.1), (capsule, capsule, [0.4, 0, 0.1], 0.0),
        (capsule, capsule, [0, 0, 0], -0.4), (capsule, capsule, [0, 0, 1.5], 0.3), (sphere, sphere, [0, 0, 0], -0.6),
        (sphere, sphere, [0.6, 0, 0], 0.0),
        (geometry.Capsule(0.1, 0.0), geometry.Capsule(0.1, 0.0), [0, 0, 0.5], 0.3),
        (geometry.Sphere(0.0), box, [0, 0, 0], -0.2), (capsule, box, [0, 0, 0], -0.4),
        (sphere, box, [0.5, 0, 0], 0.0), (capsule, box, [0.6, 0, 0], 0.2), (box, box, [0, 0, 0], -0.4),
        (box, box, [0.4, 0, 0], 0.0), (box, box, [0.9, 0, 0], 0.5), (flat, geometry.Sphere(0.1), [0, 0, 0.5], 0.4),
        (flat, flat, [0, 0, 0.25], 0.25), (flat, flat, [3, 0, 0], 1.0), (box, flat, [0, 0, 0.2], -0.25),
        (geometry.Box((1.0, 1.0, 0.0)), sphere, [0.2, 0.1, 0], -0.3),
    ]  # fmt: skip
    programs = {}
    for one, other, p, right in cases:
        if (flat in (one, other) or (one, other) == (box, box)) != searched:
            continue
        model = machine(one, other)
        run = programs.setdefault((one.bare, other.bare), jax.jit(lambda m, p: (
            near(None, None, p, m), jax.grad(near, 2)(None, None, p, m), jax.hessian(near, 2)(None, None, p, m)
        )))  # fmt: skip
        value, slope, curvature = run(model, jnp.array(p, float))
        np.testing.assert_allclose(value, right, atol=1e-12, err_msg=f"{one} {other} {p}")
        assert jnp.isfinite(slope).all() and jnp.isfinite(curvature).all(), (one, other, p)
        assert jnp.linalg.norm(slope) < 1 + 1e-9


@pytest.mark.repeats
@pytest.mark.parametrize("pair", [("capsule", "capsule"), ("box", "hull")], ids="-".join)
def test_single_precision_agrees_with_double(pair):
    q = starts(100, seed=5)
    both = [
        jax.jit(lambda q, d=d: lgsim.distance(machine(*map(SOLIDS.get, pair), dtype=d), q, "A", "B"))(q.astype(d))
        for d in (np.float32, np.float64)
    ]
    assert both[0].dtype == np.float32
    np.testing.assert_allclose(both[0], both[1], atol=2e-6)


@pytest.mark.slow
def test_nearly_parallel_capsules_have_exact_slopes():
    """The slope is a unit vector however parallel segments are: how their nearest points run along does not enter."""
    model = machine(SOLIDS["capsule"], SOLIDS["capsule"])
    for angle in 10.0 ** -np.arange(2, 17):
        T = se3.exp(jnp.array([0.7, 0.3, 0, angle, 0.3 * angle, 0]))
        slope = jax.grad(lambda q: lgsim.distance(model, q, "A", "B"))(at(T))[:3]
        np.testing.assert_allclose(jnp.linalg.norm(slope), 1, atol=1e-12)


@pytest.mark.slow
def test_a_sampled_field_is_a_cubic_spline():
    """Values of scipy's natural splines; a quadratic polynomial's slope; beyond the grid a lower bound; leaves move."""
    interpolate = pytest.importorskip("scipy.interpolate")
    samples = np.random.default_rng(0).normal(size=(6, 5, 7))
    model = machine(geometry.Sphere(0.1), geometry.distance_grid(samples, 0.5))
    points = np.random.default_rng(1).uniform(0.05, 1.9, size=(20, 3))
    value = samples
    axes = [0.5 * np.arange(n) for n in samples.shape]
    right = []
    for p in points:
        value = samples
        for axis in range(3):
            value = interpolate.make_interp_spline(axes[axis], value, bc_type="natural")(p[axis])
        right.append(float(value))
    run = jax.jit(jax.vmap(lambda p: near(None, None, p, model)))
    np.testing.assert_allclose(run(jnp.asarray(points)), np.array(right) - 0.1, atol=1e-12)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 21)] * 3, indexing="ij"))
    ball = machine(geometry.Sphere(0.1), geometry.distance_grid(np.linalg.norm(grid, axis=0) - 0.5, 0.1))
    corner = jnp.ones(3)
    p = jnp.array([[0.6, 0.3, 0.2], [0.2, 0.25, 0.1], [3.0, 2.0, 1.0]])
    found = jax.vmap(lambda p: near(None, None, p + corner, ball))(p)
    exact = jnp.linalg.norm(p, axis=1) - 0.6
    np.testing.assert_allclose(found[:2], exact[:2], atol=2e-3)
    assert 0.5 < found[2] / exact[2] <= 1
    slope = jax.grad(lambda p: near(None, None, p + corner, ball))(p[0])
    np.testing.assert_allclose(slope, p[0] / jnp.linalg.norm(p[0]), atol=5e-3)
    raised = jax.grad(lambda c: near(None, None, p[0] + corner, ball.replace(grids=ball.grids + c)))(0.0)
    np.testing.assert_allclose(raised, 1, atol=1e-12)


def test_pairs_that_cannot_be():
    model = machine(SOLIDS["half-space"], SOLIDS["half-space"])
    q = model.neutral()
    for a, b, message in (
        ("A", "A", "expected two different solids, got 'A' twice"), ("A", "C", "got 'C'"), ([], [], "at least one"),
        (["A", "B"], ["B", "A", "B"], "lists of equal length"), ("A", "B", r"'A' \(HalfSpace\) and 'B'.*no distance"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=message):
            lgsim.distance(model, q, a, b)


def test_sizes_may_be_constants_of_a_program():
    """As where a compiled function closes over a machine: XLA ended the process at two pairs of different sizes."""
    model = machine(SOLIDS["capsule"], geometry.Sphere(0.3)).add_solid("C", "a", geometry.Capsule(0.1, 0.5))
    q = starts(1)[0]
    found = jax.jit(lambda q: lgsim.distance(model, q, ["A", "C"], "B"))(q)
    np.testing.assert_allclose(found, lgsim.distance(model, q, ["A", "C"], "B"), atol=1e-14)
