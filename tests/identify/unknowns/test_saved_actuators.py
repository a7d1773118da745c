"""Files of fits hold the actuators of the plant, with all that is static of them."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import actuators
from lgsim._compile.xla import strongly_typed
from lgsim.actuators import Actuators, Transmission
from lgsim.actuators.activation import Activation
from lgsim.actuators.actuators import ActuatorSum
from lgsim.identify.actuator_record import MissingStage, from_record, to_record
from lgsim.identify.fit import fit, load_plant
from lgsim.identify.unknowns.actuator_blocks import ActuatorParameter
from lgsim.identify.unknowns.body_blocks import Masses
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from tests.identify import arms


def drives(model):
    """Two kinds on the same joints: a servo with a motor and a gear, and a bounded filter on one joint."""
    motor = [
        actuators.SampledServo(jnp.array([30.0, 20.0]), 1.1, period=0.004, dead_time=1.0, longest=3),
        actuators.DCMotor(resistance=0.5, torque_constant=0.1, back_emf=0.1),
        actuators.Gear(ratio=jnp.array([50.0, 80.0]), efficiency=0.9),
        actuators.Saturation(-40.0, 40.0),
    ]
    slow = Activation(filters=(True,), integrates=(False,), time_constant=0.1, lower=-1.0, is_bounded=True)
    return ActuatorSum(
        (Actuators(Transmission.of_joints(model), *motor, names=["a", "b"]),
         Actuators(Transmission.of_joints(model, ["elbow"]), slow, names=["extra"]))
    )  # fmt: skip


@pytest.mark.quick
def test_actuators_come_back_as_they_were():
    """Numbers, None, names, flags and lengths; of the same structure, so that programs are not compiled anew."""
    made = drives(arms.planar())
    record, arrays = to_record(made)
    assert "actuators.terms.0.stages.2.ratio" in arrays and arrays["actuators.terms.0.stages.2.ratio"].shape == (2,)
    again = from_record(record, arrays)
    assert bool(eqx.tree_equal(*strongly_typed((made, again)))) and again.terms[0].stages[0].longest == 3
    assert again.terms[0].stages[1].inductance is None and again.terms[1].names == ("extra",)


class Spring(lgsim.actuators.Stage):
    """A stage of one's own."""

    stiffness: actuators.stage.Numbers = actuators.stage.number()

    def respond(self, signal, shaft, states):
        return self.stiffness * (signal - shaft.angle), states


def test_stages_of_ones_own_come_back_where_their_class_is_known():
    made = Actuators(Transmission.of_joints(arms.planar()), Spring(stiffness=3.0))
    record, arrays = to_record(made)
    assert bool(eqx.tree_equal(*strongly_typed((made, from_record(record, arrays)))))
    record["fields"]["stages"]["tuple"][0]["class"] = "robots.springs.Spring"
    with pytest.raises(MissingStage, match=r"the class robots\.springs\.Spring is not imported; import the module"):
        from_record(record, arrays)


@pytest.mark.slow
def test_the_file_of_a_fit_holds_the_plants_actuators(tmp_path):
    """Also what the fit has found of them, and the first states of windows where there are some."""
    model = arms.planar()
    unknowns = Parameters(Plant(model, actuators=drives(model)), [Masses(), ActuatorParameter(
        "terms.0.stages.2.ratio", prior_deviation=1.0)])  # fmt: skip
    found = fit(unknowns, arms.samples(Plant(model), 60, noise=0.1))
    x = found.estimate.x.at[2:].set(jnp.array([5.0, -5.0]))
    starts = jnp.arange(6.0).reshape(2, 3)
    moved = eqx.tree_at(lambda e: (e.x, e.starts), found.estimate, (x, starts), is_leaf=lambda leaf: leaf is None)
    moved = type(found)(unknowns, moved, found.samples)
    path = moved.save(tmp_path / "fit.npz")
    loaded = load_plant(path)
    assert bool(eqx.tree_equal(*strongly_typed((loaded.actuators, moved.plant.actuators))))
    np.testing.assert_allclose(loaded.actuators.terms[0].stages[2].ratio, [55.0, 75.0])
    np.testing.assert_array_equal(np.load(path)["starts"], starts)
    plain = Parameters(Plant(model), [Masses()])
    assert load_plant(fit(plain, found.samples).save(tmp_path / "plain.npz")).actuators is None


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda stage: stage["fields"].update(longest=-5), "expected a count, got -5"),
        (lambda stage: stage["fields"].update(longest=float("inf")), "expected a count, got inf"),
        (lambda stage: stage["fields"].pop("period"), r"expected the fields of lgsim.*SampledServo, got \["),
        (lambda stage: stage["fields"].update(__class__=1), r"expected the fields of lgsim.*SampledServo, got \["),
    ],
)
def test_stages_that_cannot_be(change, fault):
    record, arrays = to_record(drives(arms.planar()))
    change(record["fields"]["terms"]["tuple"][0]["fields"]["stages"]["tuple"][0])
    with pytest.raises(ValueError, match=f"^actuators: {fault}"):
        from_record(record, arrays)
