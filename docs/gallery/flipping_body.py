"""A rigid body that spins about its intermediate axis flips over again and again."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

side = (0.1, 0.3, 0.5)
moments = np.diag([side[1] ** 2 + side[2] ** 2, side[0] ** 2 + side[2] ** 2, side[0] ** 2 + side[1] ** 2]) / 12
builder = lgsim.ModelBuilder(gravity=np.zeros(3))
body = builder.add_body("body", "world", lgsim.joints.Free(), mass=1.0, inertia=moments).build()
motion = lgsim.simulate(body, None, jnp.array([0, 0, 0, 0.01, 4.0, 0.0]), duration=12.0, dt=0.01, save_every=5)
assert motion.step_error.resolved and abs(motion.energy - motion.energy[0]).max() < 1e-6
drawn = {"body": [lgsim.view.Shape(lgsim.view.Box(side), np.eye(4))]}
lgsim.view.to_html(motion, sys.argv[1], drawn, frames_per_second=20.0, floor=-0.5)
