"""The machines of the tests of code: small ones with every kind of joint."""

import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import joints
from lgsim.lie import so3


def pose(rng):
    """A random pose of a joint."""
    T = np.eye(4)
    T[:3, :3] = so3.exp(jnp.asarray(rng.normal(size=3)))
    T[:3, 3] = rng.uniform(-0.3, 0.3, 3)
    return T


def body(rng):
    """Numbers of a body."""
    mass, spread = rng.uniform(0.5, 3.0), rng.uniform(0.05, 0.2, 3)
    return {"mass": mass, "center": rng.uniform(-0.2, 0.2, 3), "inertia": mass * np.diag(spread.sum() - spread)}


def chain(*kinds, names=None, mimics=None, pitches=None, straight=False):
    """Bodies in a row, by their joints."""
    rng, builder = np.random.default_rng(0), lgsim.ModelBuilder()
    for i, joint in enumerate(kinds):
        builder.add_body(
            f"b{i}",
            f"b{i - 1}" if i else "world",
            joint,
            placement=None if straight else pose(rng),
            mimic=(mimics or {}).get(i),
            pitch=(pitches or {}).get(i, 0.0),
            **body(rng),
        )
    return builder.build()


def arm2():
    """The double pendulum in the plane x-z."""
    builder, elbow = lgsim.ModelBuilder(), np.eye(4)
    elbow[2, 3] = 0.8
    for name, parent, place in (("upper", "world", None), ("fore", "upper", elbow)):
        builder.add_body(
            name, parent, joints.Revolute(), axis=(0, 1, 0), placement=place, mass=1.5, center=(0, 0, 0.4),
            inertia=np.diag([0.1, 0.12, 0.02]),
        )  # fmt: skip
    return builder.build()


MACHINES = {
    "2R": arm2,
    "cart-pole": lambda: lgsim.load_urdf(lgsim.data.cart_pole()),
    "3-joint spatial": lambda: chain(*[joints.Revolute()] * 3),
    "disk": lambda: chain(joints.Spherical(), straight=True),
    "free body": lambda: chain(joints.Free()),
    "universal joint": lambda: chain(joints.Universal(), joints.Revolute()),
    "prismatic and helical": lambda: chain(joints.Prismatic(), joints.Helical(), joints.Revolute(), pitches={1: 0.1}),
    "mimic": lambda: chain(*[joints.Revolute()] * 3, mimics={2: ("b0", -1.7, 0.3)}),
    "floating base": lambda: chain(joints.Free(), joints.Revolute(), joints.Prismatic()),
}


def states(model, count, seed=1):
    """q, v, x of some random states, rows of numpy."""
    rng = np.random.default_rng(seed)
    dq, v, x = rng.uniform(-1, 1, (3, count, model.nv))
    q = model.retract(model.neutral(), jnp.asarray(2 * dq, model.dtype))
    return np.asarray(q), v.astype(model.dtype), x.astype(model.dtype)
