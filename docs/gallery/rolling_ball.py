"""A ball rolls through a valley of a height field."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

x = np.linspace(-1.5, 1.5, 31)
valley = lgsim.contacts.height_field(0.3 * x[:, None] ** 2 + 0.15 * x**2, spacing=0.1)
builder = lgsim.ModelBuilder()
builder.add_body("ball", "world", lgsim.joints.Free(), mass=1.0, inertia=4e-3 * np.eye(3))
ball = builder.add_contact("skin", "ball", lgsim.contacts.sphere(0.1), valley, stiffness=1e4, friction=0.5).build()
start = ball.neutral().at[:3].set(jnp.array([1.0, -1.0, 0.56]))
motion = lgsim.simulate(ball, start, duration=6.0, dt=5e-4, save_every=100)
assert abs(motion.q[:, :2]).max() < 1.5 and motion.q[-1, 2] < 0.6
drawn = {"ball": [lgsim.view.Shape(lgsim.view.Sphere(0.1), np.eye(4))]}
lgsim.view.to_html(motion, sys.argv[1], drawn, trace=["ball"], frames_per_second=20.0)
