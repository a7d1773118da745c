"""Motions for the tests of pictures."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim.data import arm7


def of(model, time, q, v=None, tau=None):
    """What a picture asks for."""
    zeros = np.zeros((len(time), model.nv))
    return SimpleNamespace(model=model, time=time, q=q, v=zeros if v is None else v, tau=zeros if tau is None else tau)


def of_the_arm(count, seconds):
    """The arm that ships with lgsim, each joint on a sine."""
    model = lgsim.load_urdf(arm7())
    time = np.linspace(0.0, seconds, count)
    middle = np.array([0.0, -0.3, 0.0, -2.0, 0.0, 1.8, 0.8])
    size, rate = np.array([0.8, 0.5, 0.5, 0.5, 0.8, 0.6, 0.9]), np.array([0.6, 0.9, 0.7, 1.2, 1.0, 0.8, 1.5])
    angle = rate * time[:, None]
    return of(model, time, middle + size * np.sin(angle), size * rate * np.cos(angle), np.sin(angle))


def of_a_pendulum(count=101):
    """A point of 2 kg, 0.5 m from an axis along y, that turns evenly, whatever forces that takes."""
    model = (
        lgsim.ModelBuilder()
        .add_body("bob", "world", lgsim.joints.Continuous(), axis=[0.0, 1.0, 0.0], mass=2.0, center=[0.0, 0.0, -0.5])
        .build()
    )
    time = np.linspace(0.0, 1.0, count)
    rate = 3.0
    tau = 2.0 * 9.81 * 0.5 * np.sin(rate * time)[:, None]
    return of(model, time, rate * time[:, None], np.full((count, 1), rate), tau)


def of_a_free_body(count=11):
    """A free body and a slider on it, moving evenly along their tangents."""
    builder = lgsim.ModelBuilder()
    builder.add_body("body", "world", lgsim.joints.Free(), joint_name="base", mass=1.0, inertia=np.eye(3))
    builder.add_body("slide", "body", lgsim.joints.Prismatic(), mass=0.5, center=[0.1, 0.0, 0.0])
    model = builder.build()
    time, v = np.linspace(0.0, 1.0, count), np.array([0.3, 0.1, 0.2, 0.4, 0.5, 0.6, 0.7])
    q = jax.vmap(lambda t: model.retract(model.neutral(), t * jnp.asarray(v)))(jnp.asarray(time))
    return of(model, time, q, np.tile(v, (count, 1)))
