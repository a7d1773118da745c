"""What solids a machine has: builder, edits, files, texts and numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import ModelBuilder, ModelError, geometry, joints, serialization
from lgsim.multibody.geometry.convex_hulls import hull_error
from lgsim.multibody.geometry.hulls import facets, thinned
from lgsim.support.fingerprint import fingerprint
from tests.multibody import trees

KINDS = geometry.Geometry.kinds


def arm(solids=True):
    """Three links with solids on them, and a ball and a floor in the world."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    for name, parent in (("upper", "world"), ("lower", "upper"), ("hand", "lower")):
        numbers = {"joint_name": f"to {name}", "placement": trees.pose(rng), **trees.body(rng)}
        builder.add_body(name, parent, joints.Revolute(), **numbers)
    builder.add_frame("mount", "world", trees.pose(rng))
    if solids:
        for name in ("upper", "lower", "hand"):
            builder.add_solid(f"{name} tube", name, geometry.Capsule(0.1, 0.5), trees.pose(rng))
        builder.add_solid("ball", "mount", geometry.Sphere(0.2)).add_solid("floor", "world", geometry.HalfSpace())
    return builder.build()


def test_machines_without_solids_have_no_leaf_of_them():
    model = arm(solids=False)
    assert model.solids is None and model.grids is None and len(jax.tree.leaves(model)) == 7
    text, numbers = serialization.to_record(model)
    assert not set(numbers) & {"solids", "solid_poses", "grids"}
    assert serialization.from_record(text, numbers).topology == model.topology
    assert fingerprint(model) != fingerprint(arm())


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_files_keep_each_kind(kind):
    builder = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    model = builder.add_solid("one", "a", kind.example()).add_solid("two", "world", geometry.Sphere(0.1)).build()
    again = serialization.from_record(*serialization.to_record(model.exclude([("one", "two")])))
    assert hash(again.topology) == hash(model.exclude([("one", "two")]).topology)
    assert again.topology.exclusions == (("one", "two"),) and again.solid_pairs() == ((), ())
    for name in ("solids", "solid_poses", "grids"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    drawn = kind.example().triangles()
    assert drawn.vertices.shape[1] == 3 and drawn.faces.max() < len(drawn.vertices)


@pytest.mark.slow
def test_edited_machines_keep_their_solids():
    model, q = arm(), jnp.array([0.3, -0.4, 0.5])
    pairs = model.solid_pairs()
    assert ("upper tube", "lower tube") not in set(zip(*pairs, strict=True))
    assert ("upper tube", "hand tube") in set(zip(*pairs, strict=True))
    assert ("ball", "floor") not in set(zip(*pairs, strict=True))
    right = lgsim.distance(model, q, *pairs)
    locked = model.lock(["to lower"], q)
    np.testing.assert_allclose(lgsim.distance(locked, q[jnp.array([0, 2])], *pairs), right, atol=1e-12)
    tool = ModelBuilder().add_body("finger", "world", joints.Prismatic(), **trees.body(np.random.default_rng(4)))
    tool = tool.add_solid("tip", "finger", geometry.Box((0.1, 0.2, 0.3))).add_solid("palm", "world", geometry.Sphere(1))
    whole = model.attach(tool.build(), "hand", prefix="left ")
    assert whole.topology.solids[-1].frame == "hand" and whole.solids.shape == (7, 3)
    np.testing.assert_allclose(lgsim.distance(whole, jnp.append(q, 0.1), *pairs), right, atol=1e-12)
    load = lgsim.multibody.inertia.parameters(jnp.array(1.0), jnp.zeros(3), jnp.eye(3))
    assert whole.add_payload("hand", load).topology == whole.topology
    with pytest.raises(ModelError, match="attach: solid 'ball': the name is taken"):
        model.attach(ModelBuilder().add_body("b", "world", joints.Prismatic(), **trees.body(np.random.default_rng(1)))
                     .add_solid("ball", "b", geometry.Sphere(1.0)).build(), "world")  # fmt: skip


def test_numbers_have_names_and_checks():
    model = arm()
    assert {name: float(x) for name, x in model.solid_numbers("ball").items()} == {"radius": 0.2}
    assert float(model.replace_solid("ball", radius=0.3).solid_numbers("ball")["radius"]) == 0.3
    moved = model.replace_solid("floor", pose=jnp.eye(4).at[2, 3].set(-1.0))
    gap = [lgsim.distance(m, m.neutral(), "ball", "floor") for m in (model, moved)]
    np.testing.assert_allclose(gap[1] - gap[0], 1.0, atol=1e-12)
    for wrong, message in (
        (lambda: model.solid_numbers("bal"), "expected the name of a solid, got 'bal'; did you mean 'ball'"),
        (lambda: arm(solids=False).solid_numbers("ball"), "the model has no solids"),
        (lambda: model.replace_solid("ball", length=1.0), "solid 'ball': expected a size, got 'length'"),
        (lambda: model.replace_solid("ball", radius=-1.0), "solid 'ball': radius: expected a nonnegative number"),
        (lambda: model.replace(solid_poses=2 * model.solid_poses), "solid 'upper tube': pose: expected a homogeneous"),
        (lambda: model.add_solid("ball", "hand", geometry.Sphere(0.1)), "solid 'ball': the name is taken"),
        (lambda: model.add_solid("x", "foot", geometry.Sphere(0.1)), "solid 'x': frame: .*got 'foot'"),
        (lambda: model.add_solid("x", "hand", "sphere"), "solid 'x': geometry: expected a geometry of lgsim.geometry"),
        (lambda: model.add_solid("x", "hand", geometry.Box((1.0, -1.0, 1.0))), "solid 'x': y: expected a nonnegative"),
        (lambda: model.add_solid("x", "hand", geometry.Sphere(0.1), np.eye(3)), r"pose: expected shape \(4, 4\)"),
        (lambda: model.exclude([("ball", "ball")]), "expected pairs of two solids, got 'ball' with itself"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=message):
            wrong()


def test_bad_meshes_and_grids():
    for wrong, message in (
        (lambda: geometry.convex_hull(np.zeros((0, 3))), "convex_hull: points: expected at least one point"),
        (lambda: geometry.convex_hull(np.zeros((3, 2))), r"expected shape \(n, 3\)"),
        (lambda: geometry.convex_hull(np.eye(3), most=3), "most: expected 4 to 64"),
        (lambda: geometry.fit_capsules([[0, 0, np.nan]]), "expected finite numbers"),
        (lambda: geometry.distance_grid(np.zeros((4, 4)), 0.1), "expected a grid"),
        (lambda: geometry.distance_grid(np.zeros((4, 4, 3)), 0.1), "at least 4 along each axis"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            wrong()


def test_hulls_are_those_of_qhull_and_capsules_hold_their_points():
    """Faces, corners and volumes of scipy; a cube and what is inside of it; a plane, a line, a point."""
    spatial = pytest.importorskip("scipy.spatial")
    rng = np.random.default_rng(2)
    points = rng.normal(size=(18, 3))
    right, found = spatial.ConvexHull(points), facets(tuple(map(tuple, points.tolist())))
    assert sorted(found.corners) == sorted(right.vertices)
    assert len(found.normals) == len(right.equations) and len(found.edges) == len(right.equations) * 3 // 2
    nearest = np.abs(found.normals[:, None] - right.equations[None, :, :3]).max(axis=-1).min(axis=1)
    assert nearest.max() < 1e-12
    a, b, c = (points[found.triangles[:, i]] for i in range(3))
    np.testing.assert_allclose(np.sum(a * np.cross(b, c)) / 6, right.volume, rtol=1e-12)
    cube = geometry.convex_hull([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)] + [[0.5, 0.5, 0.5]])
    assert len(cube.at) == 8 and len(facets(cube.at).normals) == 6 and len(facets(cube.at).edges) == 3
    assert hull_error(geometry.convex_hull(points, most=8), points) > 0 == hull_error(cube, np.array(cube.at))
    few = thinned(points, 5)
    assert len(few) == len(np.unique(few, axis=0)) == 5 and len(thinned(points, 18)) == len(thinned(points, 99)) == 18
    for flat, normals in ((np.eye(3), 5), (np.eye(3)[:2], 0), (np.eye(3)[:1], 0)):
        assert len(facets(tuple(map(tuple, flat.tolist()))).normals) == normals
    for capsule, pose in geometry.fit_capsules(points, 1):
        at = (points - pose[:3, 3]) @ pose[:3, :3]
        along = np.clip(at[:, 2], -capsule.length / 2, capsule.length / 2)
        assert np.hypot(np.hypot(at[:, 0], at[:, 1]), at[:, 2] - along).max() <= capsule.radius * (1 + 1e-12)
