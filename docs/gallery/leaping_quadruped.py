"""A quadruped stretches its legs in flight at a gravity of 3 m/s^2, and its trunk turns the other way."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

builder = lgsim.ModelBuilder(gravity=np.array([0, 0, -3.0]))
builder.add_body("trunk", "world", lgsim.joints.Free(), mass=10.0, inertia=np.diag([0.07, 0.24, 0.26]))
for leg, x, y in (("LF", 0.2, 0.12), ("RF", 0.2, -0.12), ("LH", -0.2, 0.12), ("RH", -0.2, -0.12)):
    hip, knee = np.eye(4), np.eye(4)
    hip[:3, 3], knee[2, 3] = (x, y, 0), -0.2
    for name, carrier, place, mass in (("thigh", "trunk", hip, 0.8), ("shank", f"{leg} thigh", knee, 0.3)):
        builder.add_body(
            f"{leg} {name}", carrier, lgsim.joints.Revolute(), axis=[0, 1, 0], placement=place, mass=mass,
            center=[0, 0, -0.1], inertia=np.diag([0.004, 0.004, 0.0006]), armature=0.005,
        )  # fmt: skip
dog = builder.build()
stretch = jnp.concatenate([dog.neutral()[:7], jnp.array([-0.4, -0.4] * 2 + [0.9, -1.4] * 2)])
gains = jnp.zeros(14).at[6:].set(6.0), jnp.zeros(14).at[6:].set(0.4)
speed = jnp.zeros(14).at[:3].set(jnp.array([2.0, 0.0, 3.0]))
start = jnp.concatenate([dog.neutral()[:7], jnp.array([0.5, -1.2] * 2 + [0.6, -0.8] * 2)]).at[2].set(0.4)
law = lgsim.controls.PD(stretch, *gains)
motion = lgsim.simulate(dog, start, speed, duration=2.0, dt=1e-3, control=law, save_every=50)
lgsim.view.to_html(motion, sys.argv[1], follow="trunk", frames_per_second=20.0)
