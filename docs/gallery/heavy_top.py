"""A spinning heavy top is released: it precesses and nutates."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

builder = lgsim.ModelBuilder()
top = builder.add_body(
    "top", "world", lgsim.joints.Spherical(), mass=1.0, center=[0, 0, 0.3], inertia=np.diag([0.02, 0.02, 0.01])
).build()  # fmt: skip
tilted = jnp.array([np.sin(0.3), 0.0, 0.0, np.cos(0.3)])
motion = lgsim.simulate(top, tilted, jnp.array([0.0, 0.0, 60.0]), duration=6.0, dt=1e-3, save_every=50)
assert motion.step_error.resolved
lgsim.view.to_html(motion, sys.argv[1], frames_per_second=20.0)
