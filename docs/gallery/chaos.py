"""Two double pendulums that differ by a milliradian diverge within seconds."""

import sys

import jax
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

builder, place = lgsim.ModelBuilder(), np.eye(4)
for name, y in (("a", -0.1), ("b", 0.1)):
    for k, carrier in ((1, "world"), (2, f"{name}1")):
        place[:3, 3] = [0, y, 0] if k == 1 else [0, 0, -0.5]
        builder.add_body(
            f"{name}{k}", carrier, lgsim.joints.Revolute(), placement=place.copy(), axis=[0, 1, 0], mass=1.0,
            center=[0, 0, -0.25], inertia=np.diag([0.02, 0.02, 0.001]),
        )  # fmt: skip
pair = builder.build()
start = np.array([2.5, 1.0, 2.501, 1.0])
motion = lgsim.simulate(pair, start, duration=10.0, dt=1e-3, method=lgsim.MK8, save_every=50)
assert abs(motion.q[20, 0] - motion.q[20, 2]) < 0.1 < abs(motion.q[:, 0] - motion.q[:, 2]).max()
lgsim.view.to_html(motion, sys.argv[1], frames_per_second=20.0, floor=-1.2)
