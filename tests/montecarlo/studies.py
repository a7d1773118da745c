"""Small studies that tests share."""

import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import montecarlo as mc
from lgsim.multibody import joints


def plain(samples=300, seed=3, **more):
    """A function of two Gaussian numbers that diverges for some of them: known moments, cheap."""
    return mc.Study(
        {"x": mc.Normal(jnp.array([1.0, -2.0]), jnp.array([0.5, 2.0])), "s": mc.LogNormal(2.0, 0.1)},
        response, samples=samples, seed=seed, tile=16, failures={"high": lambda y: y["sum"] > 0}, **more,
    )  # fmt: skip


def response(values):
    """Not finite where x[0] > 2, blown up where x[0] < -0.2."""
    x, s = values["x"], values["s"]
    broken = jnp.where(x[0] > 2, jnp.nan, jnp.where(x[0] < -0.2, 1e200, 0))
    return {"sum": s * (x[0] + x[1]) + broken, "pair": jnp.sin(x) * s}


def tumbling():
    """A free body that tumbles, and one on a ball joint."""
    builder = lgsim.ModelBuilder()
    builder.add_body("base", "world", joints.Free(), joint_name="root_joint", mass=2.0, center=[0.1, 0, 0],
                     inertia=np.diag([0.3, 0.4, 0.5]))  # fmt: skip
    builder.add_body("arm", "base", joints.Spherical(), joint_name="shoulder", mass=0.5, center=[0, 0, 0.2],
                     inertia=np.diag([0.02, 0.03, 0.01]))  # fmt: skip
    return builder.build()


def ball():
    """A body on a ball joint."""
    builder = lgsim.ModelBuilder()
    builder.add_body("ball", "world", joints.Spherical(), mass=0.5, center=[0.05, 0, 0.2],
                     inertia=np.diag([0.02, 0.03, 0.015]))  # fmt: skip
    return builder.build()


def pendulum():
    """A point mass of 2 kg on a massless rod of 0.5 m, damped."""
    builder = lgsim.ModelBuilder()
    builder.add_body("bob", "world", joints.Revolute(), joint_name="hinge", axis=[0, 1, 0], mass=2.0,
                     center=[0, 0, -0.5], inertia=1e-3 * np.eye(3), damping=0.1)  # fmt: skip
    return builder.build()
