"""An arm of seven joints falls under its own weight, with friction."""

import sys

import jax
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

arm = lgsim.load_urdf(lgsim.data.arm7())
start = np.array([0.3, 0.6, 0.0, -1.2, 0.0, 0.5, 0.0])
motion = lgsim.simulate(arm, start, duration=4.0, dt=2e-3, save_every=25)
lgsim.view.to_html(motion, sys.argv[1], lgsim.data.arm7(), trace=["flange"], frames_per_second=20.0, floor=-1.0)
