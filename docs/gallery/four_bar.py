"""A four-bar linkage: a closed kinematic loop of three bodies that stays closed to rounding."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)


def at(x):
    """A frame whose z axis is the robot's y axis."""
    return np.array([[1, 0, 0, x], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1.0]])


builder, carrier, place = lgsim.ModelBuilder(), "world", np.eye(4)
for name, length in (("crank", 0.4), ("coupler", 0.5), ("rocker", 0.45)):
    builder.add_body(
        name, carrier, lgsim.joints.Revolute(), placement=place.copy(), axis=(0, 1, 0), mass=2 * length,
        center=(length / 2, 0, 0), inertia=np.diag([2e-4, length**3 / 6, length**3 / 6]),
    )  # fmt: skip
    carrier, place[0, 3] = name, length
builder.add_frame("tip", "rocker", at(0.45)).add_frame("pivot", "world", at(0.6))
ring = builder.add_loop("hinge", "pivot", "tip", lgsim.joints.Revolute()).build()
start = lgsim.close_loops(ring, jnp.array([0.6, -2.0, 2.0]), hold=["crank"]).q
motion = lgsim.simulate(ring, np.asarray(start), duration=5.0, dt=2e-3, save_every=25)
assert jnp.max(jnp.abs(lgsim.loop_residual(ring, jnp.asarray(motion.q)))) < 1e-13
lgsim.view.to_html(motion, sys.argv[1], frames_per_second=20.0, floor=-0.6)
