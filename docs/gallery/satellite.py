"""A satellite turns by moving its arm, while its angular momentum stays zero."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

builder = lgsim.ModelBuilder(gravity=np.zeros(3))
builder.add_body("bus", "world", lgsim.joints.Free(), mass=20.0, inertia=np.diag([1.0, 1.2, 1.4]))
carrier, place = "bus", np.eye(4)
place[:3, 3] = [0.4, 0, 0]
for name, axis in (("upper", [0, 0, 1]), ("lower", [0, 1, 0])):
    builder.add_body(
        name, carrier, lgsim.joints.Revolute(), placement=place.copy(), axis=axis, mass=2.0, center=[0.3, 0, 0],
        inertia=np.diag([0.01, 0.08, 0.08]),
    )  # fmt: skip
    carrier, place[:3, 3] = name, [0.6, 0, 0]
craft = builder.build()
wave = lambda t, q, v, model: jnp.zeros(8).at[6:].set(jnp.array([jnp.cos(2 * t), jnp.sin(2 * t)]))  # noqa: E731
motion = lgsim.simulate(craft, duration=10.0, dt=0.01, control=wave, save_every=10)
assert abs(motion.momentum).max() < 1e-6
lgsim.view.to_html(motion, sys.argv[1], follow="bus", frames_per_second=15.0, floor=-1.5)
