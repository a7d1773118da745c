"""The studies of the Monte Carlo benchmark: an arm of seven joints, and three free bodies."""

import jax
import jax.numpy as jnp
import numpy as np
import robots
from peers import conventions
from systems.three_body import chain

from lgsim import montecarlo as mc

DT, STEPS = conventions.DT, conventions.STEPS
"""s, and how many; sections share programs of these, which take seconds to compile."""


def arm():
    """Panda with locked fingers, without damping and friction, which the files of the peers lack."""
    model = robots.robot("Panda", "float64")
    return model.replace(damping=jnp.zeros(model.nv), friction=jnp.zeros(model.nv))


def of_arm(samples, steps, inertias=True, model=None):
    """From rest at random configurations, with random inertias or those of the model."""
    model = arm() if model is None else model
    distributions = {
        "q0": mc.TangentNormal(model, model.neutral(), 0.1),
        **({"model.inertias": mc.InertiaDispersion(model.inertias, 0.02)} if inertias else {}),
    }
    return _study(model, distributions, samples, steps)


def of_three_bodies(samples, steps):
    """Random configurations, velocities and inertias."""
    model = chain()
    distributions = {
        "q0": mc.TangentNormal(model, model.neutral(), 0.1),
        "v0": mc.Normal(jnp.zeros(model.nv), 0.1),
        "model.inertias": mc.InertiaDispersion(model.inertias, 0.02),
    }
    return _study(model, distributions, samples, steps)


def drawn(study, count):
    """The values of the first samples by name, arrays of NumPy."""
    values = jax.jit(jax.vmap(study.sampler.draw))(jnp.arange(count, dtype=jnp.uint32)).values
    return {name: np.asarray(value) for name, value in values.items()}


def _study(model, distributions, samples, steps):
    rollout = mc.Rollout(model, dt=DT, steps=steps, save_every=steps)
    return mc.Study(distributions, rollout, [mc.outputs.final_q, mc.outputs.final_v], samples=samples)
