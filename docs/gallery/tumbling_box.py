"""A thrown box falls on its corners and comes to rest."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

builder = lgsim.ModelBuilder()
builder.add_body("box", "world", lgsim.joints.Free(), mass=2.0, inertia=np.diag([0.019, 0.011, 0.022]))
law = lgsim.suggest_contact(builder.build(), depth=1e-3, restitution=0.5, points=4)
builder.add_contact(
    "corners", "box", lgsim.contacts.box(0.2, 0.3, 0.16), stiffness=law.stiffness, dissipation=law.dissipation,
    friction=0.6, slip_speed=0.05,
)  # fmt: skip
box = builder.build()
start, speed = box.neutral().at[2].set(0.8), jnp.array([0.8, 0, 0, 3.0, -2.0, 1.0])
motion = lgsim.simulate(box, start, speed, duration=2.0, dt=2.5e-4, save_every=160)
assert motion.q[-1, 2] < 0.2
drawn = {"box": [lgsim.view.Shape(lgsim.view.Box((0.2, 0.3, 0.16)), np.eye(4))]}
lgsim.view.to_html(motion, sys.argv[1], drawn, frames_per_second=25.0)
