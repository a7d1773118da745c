"""A study file that has most keys, and the same study made from Python."""

import jax.numpy as jnp
import numpy as np

from lgsim import controls
from lgsim import montecarlo as mc
from lgsim.formats import load_urdf

STUDY = """
[machine]
file = "arm.urdf"
gravity = [0, 0, -5]

[start]
q = { shoulder = 0.4, elbow = -0.3 }

[time]
dt = 0.02
steps = 4

[control]
law = "pd"
stiffness = 3.0
damping = { elbow = 0.2 }
torque = { shoulder = 0.5 }

[dispersions]
q = { std = { shoulder = 0.1, elbow = 0.2 } }
v = { low = -0.1, high = { elbow = 0.3 } }
masses = { relative = { fore = 0.1 } }
gravity = { std = [0, 0, 0.2] }
control.stiffness = { relative = 0.1 }

[outputs]
keep = ["final_q"]
attitudes = ["tip"]
positions = ["tip"]
history = 3

[[outputs.distance]]
name = "miss"
frame = "tip"
point = [0.1, 0, 0.6]

[[failures]]
name = "far"
output = "miss"
above = 0.1

[sampling]
samples = 200
seed = 3
tile = 16
"""


def changed(*pairs):
    text = STUDY
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def by_hand(files, samples=200):
    """The same study by the library's own words."""
    model = load_urdf(files / "arm.urdf").replace(gravity=jnp.array([0, 0, -5.0]))
    q = jnp.array([0.4, -0.3])
    law = controls.PD(q, jnp.full(2, 3.0), jnp.array([0.0, 0.2]))
    rollout = mc.Rollout(model, q, dt=0.02, steps=4, torques=jnp.array([0.5, 0.0]), control=law)
    own = model.inertias[:, 0]
    names = model.topology.body_names
    spread = np.where(np.array(names) == "fore", 0.1, 0.0)
    distributions = {
        "q0": mc.TangentNormal(model, q, jnp.array([0.1, 0.2])),
        "v0": mc.Uniform(jnp.array([-0.1, -0.1]), jnp.array([0.0, 0.3])),
        "model.inertias": mc.MassDispersion(model.inertias, mc.LogNormal.with_mean(own, spread)),
        "model.gravity": mc.Normal(model.gravity, jnp.array([0, 0, 0.2])),
        "control.stiffness": mc.LogNormal.with_mean(jnp.full(2, 3.0), 0.1),
    }
    outputs = {
        "final_q": mc.outputs.final_q,
        "attitude of tip": mc.outputs.FinalAttitude("tip"),
        "position of tip": mc.outputs.FinalPosition("tip"),
        "history": mc.outputs.Subsampled(3),
        "miss": mc.outputs.FinalDistance("tip", jnp.array([0.1, 0, 0.6])),
    }
    return mc.Study(distributions, rollout, outputs, samples=samples, seed=3, tile=16)
