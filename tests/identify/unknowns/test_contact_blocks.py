"""Numbers of contacts as unknowns: names, values, bounds, and what a recorded bounce says of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import contacts, identify, joints

RADIUS, MASS, DT = 0.033, 0.058, 5e-4


def ball(**law):
    """A hollow ball of the size and mass of a tennis ball."""
    builder = lgsim.ModelBuilder()
    builder.add_body("ball", "world", joints.Free(), mass=MASS, inertia=2 / 3 * MASS * RADIUS**2 * np.eye(3))
    return builder.add_contact("sole", "ball", contacts.sphere(RADIUS), slip_speed=0.2, **law).build()


TRUE = {"stiffness": 1e4, "dissipation": 0.15, "friction": 0.3}


def test_names_values_and_bounds():
    plant = identify.Plant(ball(**TRUE))
    block = identify.ContactParameter("friction", lower=0.1)
    assert block.labels(plant) == ["friction of contact sole"]
    moved = block.apply(plant, jnp.array([0.05]))
    assert {k: round(float(x), 12) for k, x in block.values(moved).items()} == {"friction of contact sole, 1": 0.35}
    np.testing.assert_allclose(np.concatenate(block.bounds(plant)), [-0.2, np.inf])
    assert block.value_limits(plant) == {"friction of contact sole, 1": (0.1, np.inf)}
    for name, x in moved.model.contact_numbers("sole").items():
        assert name == "friction" or x == plant.model.contact_numbers("sole")[name]
    stiff = identify.ContactParameter("stiffness", relative=True, upper=2e4)
    np.testing.assert_allclose(stiff.value_array(stiff.apply(plant, jnp.array([0.5]))), [1e4 * np.exp(0.5)])
    np.testing.assert_allclose(np.concatenate(stiff.bounds(plant)), [-np.inf, np.log(2.0)])
    assert identify.ContactParameter("surface_height").lower == -np.inf
    assert identify.ContactParameter("exponent").lower == 1.0


def test_several_contacts_may_share_a_number():
    builder = lgsim.ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    for name in ("left", "right"):
        builder.add_contact(name, "a", contacts.sphere(0.1), stiffness=1.0, friction=0.5)
    builder.add_contact("tail", "a", contacts.box(1.0, 1.0, 1.0), stiffness=1.0)
    plant = identify.Plant(builder.build())
    assert identify.ContactParameter("radius").labels(plant) == [f"radius of contact {x}" for x in ("left", "right")]
    both = identify.unknowns.SharedBlock(identify.ContactParameter("friction", ["left", "right"]))
    moved = both.apply(plant, jnp.array([0.25])).model
    assert [float(moved.contact_numbers(x)["friction"]) for x in ("left", "right", "tail")] == [0.75, 0.75, 0.0]


def test_bad_names():
    plant = identify.Plant(ball(**TRUE))
    with pytest.raises(
        ValueError, match="number: expected a parameter of a contact, got 'fricton'; did you mean 'fric"
    ):
        identify.ContactParameter("fricton").labels(plant)
    with pytest.raises(ValueError, match="contacts: expected names of contacts, got 'soul'; did you mean 'sole'"):
        identify.ContactParameter("friction", ["soul"]).labels(plant)
    bare = lgsim.ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3)).build()
    with pytest.raises(ValueError, match="contacts: the plant's model has no contacts"):
        identify.ContactParameter("friction").labels(identify.Plant(bare))


@pytest.mark.slow
def test_a_bounce_shows_dissipation_and_friction():
    """A spinning ball filmed at 200 Hz with noise: the truth lies within four deviations, which are small."""
    model, steps = ball(**TRUE), 800
    q0, v0 = model.neutral().at[2].set(RADIUS + 0.2), jnp.array([0.8, 0.2, 0.0, 0.0, -40.0, 0.0])
    run = lgsim.rollout(model, q0, v0, dt=DT / 4, steps=4 * steps, save_every=4)
    assert (np.asarray(run.q[:, 2]) < RADIUS).any() and float(run.v[-1, 2]) != 0
    deviation = np.array([5e-4] * 3 + [1e-2] * 3)
    noise = np.random.default_rng(0).normal(size=(steps + 1, 6)) * deviation
    film = jax.vmap(model.retract)(run.q, jnp.asarray(noise))
    weight = np.zeros(steps + 1)
    weight[::10] = 1.0
    camera = identify.Channel(identify.PositionSensor(), film, deviation, weight)
    prior = ball(stiffness=1e4, dissipation=0.05, friction=0.2)
    blocks = [identify.ContactParameter("dissipation"), identify.ContactParameter("friction")]
    parameters = identify.Parameters(identify.Plant(prior), blocks)
    fit = identify.fit(parameters, identify.SensorRecords(DT, {"camera": camera}), identify.SimulationFit(100))
    assert fit.verdict.outcome is identify.Outcome.CONVERGED
    for name, deviation_ in fit.deviations.items():
        truth = TRUE[name.split()[0]]
        assert deviation_ < 0.05 * truth
        assert abs(fit.values[name] - truth) < 4 * deviation_
