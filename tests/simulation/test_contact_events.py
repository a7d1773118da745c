"""Contacts in simulations: events, starts that cannot be, methods that follow or refuse them, advice about numbers."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import events, identify, optimize
from lgsim.dynamics.contacts.contact_advice import suggest_contact
from lgsim.integrators.methods import MK4
from lgsim.multibody import ModelBuilder, ModelError, contacts, joints
from lgsim.simulation.accuracy.stiffness import unstable_mode
from lgsim.simulation.fixed_steps import Steps
from lgsim.simulation.motion_field import MOTION_FIELD, motion_jacobian
from lgsim.simulation.state_space import StateSpace
from tests.dynamics.contact_machines import ball, drop

ORACLE = json.loads((Path(__file__).parents[1] / "data" / "contact.json").read_text())
G = 9.81


@pytest.mark.slow
@pytest.mark.typed
def test_touch_and_leave_are_where_free_fall_says():
    """The time of the fall, and after the bounce the speed of the apex."""
    row = next(row for row in ORACLE["drop"]["rows"] if row["e"] == 1.5 and row["h"] == 0.4)
    model = drop(stiffness=row["k"], dissipation=row["c"])
    start = {"q0": jnp.array([row["h"]]), "duration": 1.0, "dt_out": 0.01, "step_check": False}
    down = lgsim.simulate_adaptive(model, **start, events=events.touches(model, "sole"), rtol=1e-10, atol=1e-12)
    assert "the depth of the contact 'sole' is 0 m" in down.result
    np.testing.assert_allclose(down.time[-1], np.sqrt(2 * row["h"] / G), rtol=1e-8)
    up = lgsim.simulate_adaptive(model, **start, events=events.leaves(model, "sole"), rtol=1e-10, atol=1e-12)
    assert up.time[-1] > down.time[-1] + 0.01
    np.testing.assert_allclose(up.v[-1, 0] ** 2 / (2 * G) + up.q[-1, 0], row["apex"], rtol=1e-6)
    with pytest.raises(ValueError, match="contact: expected the name of a contact, got 'soul'; did you mean 'sole'"):
        events.touches(model, "soul")


@pytest.mark.slow
def test_a_start_through_the_surface_is_refused():
    model = ball(0.05, stiffness=1e4)
    q0 = model.neutral().at[2].set(-0.01)
    for run in (
        lambda: lgsim.simulate(model, q0, duration=0.1, dt=1e-3),
        lambda: lgsim.simulate_adaptive(model, q0, duration=0.1, dt_out=1e-2),
    ):
        with pytest.raises(
            ValueError, match=r"q0: the contact 'sole' starts 0.06 m deep.*from 0.05 m on; start at least"
        ):
            run()
    lgsim.simulate(model, q0.at[2].set(0.01), duration=2e-3, dt=1e-3, step_check=False)
    for shape, reach in (
        (contacts.box(0.2, 0.4, 0.6), 0.1), (contacts.vertices([[0, 0, 0], [1, 1, 1]], scale=0.3), 0.15),
        (contacts.capsule(0.02, 0.0), 0.02),
    ):  # fmt: skip
        builder = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
        deep = builder.add_contact("c", "a", shape, contacts.plane(0.7), stiffness=1.0).build()
        with pytest.raises(ValueError, match=f"through the surface from {reach:g} m on"):
            lgsim.simulate(deep, duration=0.1, dt=1e-3)
    builder = ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    point = builder.add_contact("c", "a", contacts.sphere(), contacts.plane(0.7), stiffness=1.0).build()
    lgsim.simulate(point, duration=1e-3, dt=1e-3, step_check=False)  # a point has no size


def foot(**law):
    """A leg on a vertical rail that stands on a ball and may slide, 3 kg."""
    builder = ModelBuilder()
    builder.add_body("rail", "world", joints.Prismatic(), axis=(1.0, 0.0, 0.0))
    builder.add_body("leg", "rail", joints.Prismatic(), axis=(0.0, 0.0, 1.0), mass=3.0)
    return builder.add_contact("foot", "leg", contacts.sphere(0.05), stiffness=1e5, **law).build()


STAND = 0.05 - (3 * G / 1e5) ** (2 / 3)


@pytest.mark.slow
def test_rates_are_those_of_the_contact():
    """At rest: ``mu g / slip_speed`` along the ground, and the roots of the spring with its dissipation across."""
    model = foot(friction=0.5, slip_speed=0.01, dissipation=2.0)
    y = jnp.array([0.0, STAND, 0.0, 0.0])
    jacobian, _, _ = motion_jacobian(jnp.zeros(()), y, ((model, None, None), None))
    rates = np.linalg.eigvals(jacobian)
    depth = 0.05 - STAND
    spring = np.roots([1, 2.0 * G, 1.5 * G / depth])
    np.testing.assert_allclose(np.sort_complex(rates), np.sort_complex([0, -0.5 * G / 0.01, *spring]), atol=1e-7)


@pytest.mark.slow
def test_the_linearization_of_steps_is_that_of_the_field():
    model = ball(0.05, stiffness=1e4, friction=0.4, dissipation=0.5)
    q = jnp.array([0.1, 0.2, 0.04, 0.8, 0.6, 0, 0.0])
    y, args = jnp.concatenate([q, jnp.array([0.3, -0.2, 0.1, 1.0, 2.0, -0.5])]), ((model, None, None), None)
    space, t, s = StateSpace(model.topology, 0), jnp.zeros(()), jnp.asarray(1e-3)
    line = MOTION_FIELD.linearize(space, t, y, args, s)
    np.testing.assert_allclose(line.value, MOTION_FIELD(t, y, args), rtol=1e-12, atol=1e-12)
    J = np.asarray(jax.jacfwd(lambda x: MOTION_FIELD(t, space.move(x, y), args))(jnp.zeros(12)))
    # the chart: the field seen from the start of the step is dexpinv of it
    bent = np.zeros((12, 12))
    h = 1e-6
    for i in range(12):
        x = np.zeros(12)
        x[i] = h
        at = [
            space.dexpinv(jnp.asarray(s * x), MOTION_FIELD(t, space.move(jnp.asarray(s * x), y), args)) for s in (1, -1)
        ]
        bent[:, i] = (np.asarray(at[0]) - np.asarray(at[1])) / (2 * h)
    assert np.abs(bent - J).max() > 0.1
    r = np.random.default_rng(0).normal(size=12)
    right = np.linalg.solve(np.eye(12) - 1e-3 * bent, r)
    np.testing.assert_allclose(line.resolvent(jnp.asarray(r)), right, rtol=0, atol=1e-7 * np.abs(right).max())


@pytest.mark.slow
def test_automatic_finds_the_rates_of_friction():
    model = foot(friction=0.8, slip_speed=1e-3, dissipation=1.0)
    state = np.array([0.0, STAND, 0.2, 0.0])
    mode = unstable_mode(Steps(model, None, None, None, MK4, 2e-3), [0.0], state[None])
    assert mode is not None and mode.joint == "rail" and "contacts" in mode.cause
    np.testing.assert_allclose(mode.rate, 0.8 * G / 1e-3, rtol=1e-6)
    run = lgsim.simulate(model, state[:2], state[2:], duration=0.1, dt=2e-3, method=lgsim.Automatic())
    assert not run.result and "Rodas" in run.method
    stop = 0.2**2 / (2 * 0.8 * G)  # to the end of its slide, less what is lost near the slip speed
    np.testing.assert_allclose(run.q[-1, 0], stop, rtol=1e-2)


@pytest.mark.slow
def test_checked_motions_are_the_same_and_name_the_contact():
    model = foot(friction=0.5)
    given = {"dt": 1e-4, "steps": 20}
    plain = lgsim.rollout(model, jnp.array([0.0, 0.049]), jnp.array([0.1, 0.0]), **given)
    checked = lgsim.rollout(model, jnp.array([0.0, 0.049]), jnp.array([0.1, 0.0]), **given, check=True)
    np.testing.assert_allclose(checked.q, plain.q, rtol=1e-14)
    broken = jax.tree.map(lambda x: x, model)
    broken = broken.replace(topology=model.topology, contacts=model.contacts.at[0, 0].set(jnp.nan))
    with pytest.raises(FloatingPointError, match="stiffness of the contact 'foot'"):
        lgsim.rollout(broken, jnp.array([0.0, 0.049]), jnp.zeros(2), **given, check=True)


def test_what_would_ignore_contacts_refuses_them():
    model = foot()
    q0 = jnp.array([0.0, 0.1])
    with pytest.raises(ValueError, match=r"method: .* requires a model without contacts, got 'foot'"):
        lgsim.simulate(model, q0, duration=0.1, dt=1e-2, method=lgsim.VariationalTree())
    with pytest.raises(ValueError, match=r"method: .* requires a model without contacts"):
        lgsim.rollout(model, q0, jnp.zeros(2), dt=1e-2, steps=2, method=lgsim.VariationalTree())
    with pytest.raises(ValueError, match="model: expected a model without contacts"):
        optimize.SymplecticEulerDynamics(model, 1e-2)
    plant = identify.Plant(model)
    with pytest.raises(ModelError, match="model: expected a model without contacts for joint torques"):
        plant.signals(q0, q0, q0)
    samples = identify.TorqueSamples(*(jnp.zeros((4, 2)) for _ in range(5)))
    unknowns = identify.Parameters(plant, [identify.JointParameter("damping")])
    with pytest.raises(ModelError, match="fit by simulation"):
        identify.fit(unknowns, samples, identify.TorqueFit())
    with pytest.raises(ModelError, match="fit by simulation"):
        identify.base_parameters(unknowns)


@pytest.mark.parametrize("row", ORACLE["restitution"]["rows"], ids=lambda row: f"c {row['c']}, {row['u_in']} m/s")
def test_suggested_dissipation_gives_the_restitution(row):
    model = ball(stiffness=1.0)
    u, out = float(row["u_in"]), float(row["u_out"])
    found = suggest_contact(model, depth=1e-3, restitution=out / u, speed=u)
    # near e = 1 the dissipation is a small difference
    np.testing.assert_allclose(found.dissipation, float(row["c"]), rtol=1e-9 if u > 0.1 else 1e-6)


def test_suggested_stiffness_and_rates():
    """Rest at the depth on so many points; oscillations fall by 1/e in the duration: the Jacobian's own roots."""
    model = ball(0.05, mass=2.0, stiffness=1.0)
    found = suggest_contact(model, depth=1e-3, duration=0.05, points=4, slip_speed=0.02)
    np.testing.assert_allclose(4 * found.stiffness * 1e-3**1.5, 2.0 * G, rtol=1e-12)
    np.testing.assert_allclose(found.friction_rate, G / 0.02, rtol=1e-12)
    own = suggest_contact(foot(), depth=1e-3, duration=0.05)
    standing = foot().replace_contact("foot", stiffness=own.stiffness, dissipation=own.dissipation)
    y = jnp.array([0.0, 0.05 - 1e-3, 0.0, 0.0])
    modes = np.linalg.eigvals(motion_jacobian(jnp.zeros(()), y, ((standing, None, None), None))[0])
    ringing = modes[np.abs(modes.imag) > 1]
    np.testing.assert_allclose(ringing.real, -1 / 0.05, rtol=1e-9)
    np.testing.assert_allclose(np.abs(ringing), own.rate, rtol=1e-9)
    assert suggest_contact(model, depth=1e-3).dissipation == 0
    assert suggest_contact(model, depth=1e-3, restitution=1.0).dissipation == 0
    assert lgsim.suggest_contact is suggest_contact


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depth": 0.0}, "depth: expected a positive number, got 0"),
        ({"depth": 1e-3, "duration": -1.0}, "duration: expected a positive number"),
        ({"depth": 1e-3, "restitution": 0.0}, "restitution: expected a number above 0 and at most 1"),
        ({"depth": 1e-3, "restitution": 0.5, "duration": 0.1}, "duration, restitution: expected one of them"),
        ({"depth": 1e-3, "exponent": 0.5}, "exponent: expected 1 or more"),
    ],
)  # fmt: skip
def test_bad_advice(given, message):
    with pytest.raises(ValueError, match=message):
        suggest_contact(ball(stiffness=1.0), **given)


def test_no_weight_no_advice():
    with pytest.raises(ValueError, match="model: expected a model with weight"):
        suggest_contact(ball(stiffness=1.0).replace(gravity=jnp.zeros(3)), depth=1e-3)


@pytest.mark.slow
def test_numbers_of_a_contact_are_found_from_a_bounce():
    """Multiple shooting sees the contact: the residuals of the true machine are zero, of another stiffness not."""
    model = drop(stiffness=1e4, dissipation=0.3)
    truth = lgsim.rollout(model, jnp.array([0.05]), jnp.zeros(1), dt=1e-3, steps=300)
    from lgsim.identify.estimators.multiple_shooting import equations_of_motion

    y = jnp.concatenate([truth.q[110], truth.v[110]])
    found = equations_of_motion(jnp.zeros(()), y, (identify.Plant(model), (jnp.zeros(1), None)))
    np.testing.assert_allclose(found, MOTION_FIELD(jnp.zeros(()), y, ((model, None, None), None)), rtol=1e-12)
    assert found[1] > 0, "the ball is pushed up"
