"""A computed-torque controller moves the same arm to a posture."""

import sys

import jax
import jax.numpy as jnp

import lgsim

jax.config.update("jax_enable_x64", True)

arm = lgsim.load_urdf(lgsim.data.arm7())
start, goal = jnp.zeros(7).at[3].set(-0.3), jnp.array([0.8, 0.6, -0.4, -1.8, 0.5, 1.6, 0.2])
law = lgsim.controls.ComputedTorque(target=goal, stiffness=100.0, damping=20.0)
motion = lgsim.simulate(arm, start, duration=5.0, dt=2e-3, control=law, save_every=25)
assert abs(motion.q[-1] - goal).max() < 0.1  # dry friction holds the last joint
lgsim.view.to_html(motion, sys.argv[1], lgsim.data.arm7(), trace=["flange"], frames_per_second=20.0)
