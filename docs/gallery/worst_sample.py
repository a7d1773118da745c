"""The worst of two hundred Monte Carlo samples of a cart-pole with a random initial state and damping."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import montecarlo

jax.config.update("jax_enable_x64", True)

machine = lgsim.load_urdf(lgsim.data.cart_pole())
start = jnp.array([0.0, 3.0])
law = lgsim.controls.PD(jnp.array([0.0, np.pi]), jnp.array([-1.0, 0.0]), jnp.array([-1.0, 0.0]))
study = montecarlo.Study(
    {"q0": montecarlo.TangentNormal(machine, start, 0.05), "model.damping": montecarlo.Uniform([0.0, 0.0], [0.5, 0.1])},
    montecarlo.Rollout(machine, q0=start, dt=5e-3, steps=600, save_every=10),
    {"cart": lambda motion: jnp.abs(motion.q[:, 0]).max()},
    samples=200,
)
found = montecarlo.run(study)
motion = study.replay(int(found.column("cart").argmax()))
lgsim.view.to_html(motion, sys.argv[1], lgsim.data.cart_pole(), frames_per_second=20.0, floor=-1.0)
