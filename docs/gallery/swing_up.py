"""A cart-pole swings up. The force acts only on the cart, and the solver starts without an initial guess."""

import sys

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import optimize

jax.config.update("jax_enable_x64", True)

machine = lgsim.load_urdf(lgsim.data.cart_pole())
dynamics = optimize.MultibodyDynamics(machine, 0.05, selection=jnp.array([[1.0], [0.0]]))
goal = dynamics.state([0.0, np.pi])
problem = optimize.Problem(
    dynamics, dynamics.state(), horizon=50, lower=-20.0, upper=20.0,
    running=optimize.ControlEffort(0.01) + optimize.StateDistance(dynamics.action, goal, 0.01),
    terminal=optimize.StateDistance(dynamics.action, goal, 1000.0),
)  # fmt: skip
motion = optimize.to_trajectory(problem, optimize.solve(problem))
assert abs(motion.q[-1, 1] - np.pi) < 0.05
lgsim.view.to_html(motion, sys.argv[1], lgsim.data.cart_pole(), frames_per_second=20.0, floor=-1.0)
