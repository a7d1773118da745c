"""Studies whose machine is driven by the actuators of its own file."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import montecarlo as mc
from lgsim.scenarios import ScenarioError
from lgsim.scenarios.study import load_motion, load_study

SERVO = """<mujoco><worldbody><body name="upper"><joint name="a" axis="0 1 0"/>
<inertial pos="0 0 -.2" mass="2" diaginertia=".03 .03 .004"/>
<body name="fore" pos="0 0 -.4"><joint name="b" axis="0 1 0"/>
<inertial pos=".02 0 -.15" mass="1" diaginertia=".01 .01 .001"/></body></body></worldbody>
<actuator><position name="left" joint="a" kp="20" kv="1"/><position name="right" joint="b" kp="10" kv=".5"/></actuator>
</mujoco>"""
STUDY = """
[machine]
file = "servo.xml"
[time]
dt = 0.01
steps = 4
method = "MK4"
[control]
law = "actuators"
commands = { right = 0.5 }
[dispersions]
commands = { std = { left = 0.1 } }
actuators."stages.0.gain" = { relative = 0.2 }
[outputs]
keep = ["final_q"]
"""


@pytest.fixture
def written(write, folder):
    (folder / "servo.xml").write_text(SERVO)

    def written(*changes):
        text = STUDY
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        return write(text)

    return written


def test_a_study_commands_the_actuators_of_its_file(written):
    study = load_study(written()).study
    model = lgsim.load_mjcf(text=SERVO)
    drives, commands = lgsim.load_actuators(model, text=SERVO), jnp.array([0.0, 0.5])
    wanted = mc.Rollout(model, dt=0.01, steps=4, actuators=drives, commands=commands)
    assert bool(eqx.tree_equal(study.rollout.actuators, wanted.actuators)) and study.rollout.control is None
    np.testing.assert_array_equal(study.rollout.commands, commands)
    varied = study.sampler.distributions
    assert set(varied) == {"commands", "actuators.stages.0.gain"}
    np.testing.assert_array_equal(varied["commands"].root, [0.1, 0.0])
    assert bool(eqx.tree_equal(load_motion(written()).rollout.actuators, wanted.actuators))


@pytest.mark.slow
def test_its_samples_are_motions_of_the_servos(written):
    """Of gains and commands that vary; without dispersion the motion of ``lgsim.rollout``."""
    study = load_study(written(), samples=8).study
    finals = np.asarray(mc.run(study).column("final_q"))
    assert finals.shape == (8, 2) and np.all(np.std(finals, axis=0) > 0)
    plan = load_motion(written()).rollout
    still = lgsim.rollout(
        plan.model, plan.q0, plan.v0, dt=0.01, steps=4, actuators=plan.actuators, commands=plan.commands
    ).q[-1]
    assert still[1] > 0.005 and np.all(np.abs(np.mean(finals, axis=0) - still) < 4 * np.std(finals, axis=0))


FAULTS = {
    "unknown actuator": (("{ right = 0.5 }", "{ rigth = 0.5 }"), r"control.commands.rigth: expected the name of a"),
    "too few": (("{ right = 0.5 }", "[1]"), r"control.commands: expected 2 numbers"),
    "torque": (("commands = { right", "torque = [1, 1]\ncommands = { right"), r"control.torque: there is no such key"),
    "unknown number": (("stages.0.gain", "stages.0.gian"), r"dispersions.actuators.stages.0.gian: there is no such"),
    "no actuators": (('"servo.xml"', '"arm.urdf"'), r"control.law: .*expected supported actuators, got none"),
    "no law": (('law = "actuators"\ncommands = { right = 0.5 }', 'law = "none"'), r"expected actuators: set law = "),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_wrong_is_told_with_its_key(case, written, without_import_hook):
    change, message = FAULTS[case]
    with pytest.raises(ScenarioError, match=message):
        load_study(written(change))
