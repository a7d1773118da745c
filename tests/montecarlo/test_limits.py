"""How much of a machine's limits a study uses, against the samples one by one."""

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.montecarlo.limits import study_limit_uses
from lgsim.multibody import joints
from tests.montecarlo import studies

START = jnp.array([0.5])


def study(outputs, **limits):
    model = studies.pendulum().replace(**limits)
    rollout = mc.Rollout(model, START, dt=0.01, steps=30, torques=jnp.array([0.3]), save_every=3)
    varied = {"q0": mc.TangentNormal(model, START, jnp.array([0.2])), "torques": mc.Normal(jnp.array([0.3]), 0.1)}
    return mc.run(mc.Study(varied, rollout, outputs, samples=64, tile=16))


@pytest.mark.slow
@pytest.mark.typed
def test_the_worst_samples():
    """Entry by entry against NumPy on the stored columns; of the history all times count."""
    outputs = {"end": mc.outputs.final_q, "peak_speed": mc.outputs.peak_speed, "drive": mc.outputs.peak_torque}
    found = study(outputs, lower=-0.5, upper=0.9, velocity_limit=4.0, effort_limit=0.4)
    position, speed, torque = study_limit_uses(found)
    end = found.column("end")[:, 0]
    np.testing.assert_allclose(position.part, np.abs(end - 0.2).max() / 0.7, rtol=1e-14)
    np.testing.assert_allclose(speed.part, found.column("peak_speed").max() / 4, rtol=1e-14)
    np.testing.assert_allclose(torque.value, found.column("drive").max(), rtol=1e-14)
    assert [use.kind for use in (position, speed, torque)] == ["position", "speed", "torque"]
    assert all(np.isnan(use.time) and use.joint == "hinge" for use in (position, speed, torque))
    assert torque.part > 1 and torque.passed

    outputs = {"history": mc.outputs.Subsampled(11), "end": mc.outputs.final_q}
    path = study(outputs, lower=-0.5, upper=0.9, velocity_limit=4.0)
    position, speed = study_limit_uses(path)
    states = path.column("history")
    np.testing.assert_allclose(position.part, np.abs(states[..., 0] - 0.2).max() / 0.7, rtol=1e-14)
    np.testing.assert_allclose(speed.part, np.abs(states[..., 1]).max() / 4, rtol=1e-14)


@pytest.mark.slow
def test_where_there_is_nothing_to_say():
    """No limits, no such outputs, no machine, all samples lost, and quaternions, of which a ball has limits."""
    assert study_limit_uses(study({"end": mc.outputs.final_q})) == ()
    assert study_limit_uses(study({"place": mc.outputs.FinalPosition("bob")}, lower=-0.5, upper=0.9)) == ()
    assert study_limit_uses(mc.run(studies.plain())) == ()
    lost = study({"end": mc.outputs.final_q}, lower=-0.5, upper=0.9, stiffness=-1e12)
    assert lost.running.diverged == 64 and study_limit_uses(lost) == ()
    limit = {"lower": [0, 0, -0.1], "upper": [0.1, 0.1, 0.1], "velocity_limit": 1e-3}
    inertia = np.diag([0.02, 0.03, 0.015])
    model = lgsim.ModelBuilder().add_body("ball", "world", joints.Spherical(), mass=0.5, center=[0.05, 0, 0.2],
                                          inertia=inertia, **limit).build()  # fmt: skip
    rollout = mc.Rollout(model, model.neutral(), dt=0.01, steps=5)
    varied = {"v0": mc.Normal(jnp.zeros(3), 1.0)}
    outputs = {"final_q": mc.outputs.final_q, "peak_speed": mc.outputs.peak_speed}
    found = study_limit_uses(mc.run(mc.Study(varied, rollout, outputs, samples=16)))
    assert [use.joint for use in found] == ["ball[0]", "ball[1]", "ball[2]"]
