"""A chain of eight links with ball joints falls from the horizontal."""

import sys

import jax
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

builder, carrier = lgsim.ModelBuilder(), "world"
for i in range(8):
    place = np.eye(4)
    place[0, 3] = 0.2 if i else 0.0
    builder.add_body(
        f"link{i}", carrier, lgsim.joints.Spherical(), placement=place, mass=0.2, center=[0.1, 0, 0],
        inertia=np.diag([1e-4, 7e-4, 7e-4]), damping=2e-3,
    )  # fmt: skip
    carrier = f"link{i}"
motion = lgsim.simulate(builder.build(), duration=4.0, dt=1e-3, save_every=50)
assert np.isfinite(motion.q).all()
lgsim.view.to_html(motion, sys.argv[1], frames_per_second=20.0, floor=-1.8)
