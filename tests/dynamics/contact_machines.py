"""Machines with contacts that tests share."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.dynamics.contacts.contact_forces import contact_points
from lgsim.multibody import ModelBuilder, contacts, joints
from lgsim.multibody.contacts.contact import Shape, Sized, Surface
from tests.multibody import trees

LAW = {"stiffness": 2e3, "dissipation": 0.4, "friction": 0.6, "viscous": 30.0, "slip_speed": 0.05}

PAIRS = {
    f"{shape.__name__} {surface.__name__}": (shape, surface)
    for shape, surface in itertools.product(Shape.kinds.values(), Surface.kinds.values())
    if shape.__module__.startswith("lgsim.") and surface.__module__.startswith("lgsim.")
}
"""Every shape against every surface of lgsim."""
_FEW = ("Sphere HeightField", "Box Plane", "Capsule RoundSurface", "Vertices RoundSurface")
each_pair = pytest.mark.parametrize(
    "kinds", [pytest.param(PAIRS[n], id=n, marks=() if n in _FEW else pytest.mark.exhaustive) for n in PAIRS]
)


def sized(kind, rng):
    """One of a kind with sizes of some centimeters; scales about 0.1, ground that is uneven by some millimeters."""
    example, sizes = kind.example(), {name: float(rng.uniform(0.05, 0.12)) for name in kind.sizes}
    grid = getattr(example, "grid", ())
    return Sized(example, sizes, rng.normal(size=grid) * 3e-3 if grid else None)


def pair(shape, surface, law=LAW, seed=0, dtype=None):
    """Two free bodies, a shape on a frame of one and a surface on a frame of the other."""
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(dtype=dtype)
    for name in ("hand", "ball"):
        builder.add_body(name, "world", joints.Free(), placement=trees.pose(rng), **trees.body(rng))
        builder.add_frame(f"{name} frame", name, trees.pose(rng))
    builder.add_contact("touch", "hand frame", sized(shape, rng), sized(surface, rng), against="ball frame", **law)
    return builder.build()


def touching_state(model, depth=0.02, seed=1):
    """A random state in which the deepest point of the only contact is so deep."""
    rng = np.random.default_rng(seed)
    q = np.array(model.random(jax.random.key(seed)))
    for _ in range(30):
        found = contact_points(model, jnp.asarray(q, model.dtype))
        i = int(np.argmax(found.depth))
        # the base's numbers are those of its joint's frame, whose axes are the placement's
        push = np.asarray(found.normal[i], float) * (float(found.depth[i]) - depth)
        q[:3] += np.asarray(model.placements[0, :3, :3], float).T @ push
    return jnp.asarray(q, model.dtype), jnp.asarray(rng.normal(size=model.nv), model.dtype)


def ball(radius=0.05, mass=1.0, placement=None, frame=None, dtype=None, **law):
    """A free solid ball above the plane of the world, or of a frame of the world with this pose."""
    inertia = 0.4 * mass * max(radius, 0.05) ** 2 * np.eye(3)
    builder = ModelBuilder(dtype=dtype).add_body("ball", "world", joints.Free(), mass=mass, inertia=inertia)
    if frame is not None:
        builder.add_frame("slope", "world", frame)
    against = "world" if frame is None else "slope"
    return builder.add_contact("sole", "ball", contacts.sphere(radius), against=against, **law).build()


def drop(radius=0.05, mass=1.0, gravity=(0.0, 0.0, -9.81), **law):
    """A ball on a vertical rail, its lowest point at the height of its coordinate."""
    builder = ModelBuilder(gravity=gravity)
    placement = np.eye(4)
    placement[2, 3] = radius
    builder.add_body("ball", "world", joints.Prismatic(), axis=(0.0, 0.0, 1.0), placement=placement, mass=mass)
    return builder.add_contact("sole", "ball", contacts.sphere(radius), **law).build()
