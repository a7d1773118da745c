"""Forces of time between the stages of the steps, against closed forms of a mass that they push."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

import lgsim
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.multibody import joints
from lgsim.simulation import simulate


@pytest.fixture(scope="module")
def cart():
    """2 kg on a rail, without friction."""
    builder = lgsim.ModelBuilder(gravity=np.zeros(3))
    builder.add_body("cart", "world", joints.Prismatic(), axis=[1, 0, 0], mass=2.0)
    return builder.build()


def pulse(start, length, force):
    return lambda t: jnp.where((t >= start) & (t < start + length), force, 0.0)


def control(numbers, t, q, v, model):
    return pulse(*numbers)(t)[None]


def wrenches(numbers, t, q, v, model):
    return jnp.zeros((1, 6)).at[0, 0].set(pulse(*numbers)(t))


# (start, length, force): 0.8 ms between the stages, and a thrust with both edges in the first quarter of a step
PULSES = [(0.5132, 8e-4, 1000.0), (0.501, 4e-3, 50.0)]


@pytest.mark.parametrize("law", [control, wrenches])
@pytest.mark.parametrize("start, length, force", PULSES)
def test_a_pulse_that_no_stage_sees(cart, law, start, length, force):
    given = {law.__name__: Partial(law, jnp.array([start, length, force]))}
    found = simulate(cart, duration=2.0, dt=0.02, **given)
    true = force / 2 * length * (2.0 - start - length / 2)
    said = found.step_error
    assert np.abs(found.q).max() == 0 and true <= 3 * said.value[-1, 0] <= 9 * true
    assert not said.resolved and said.until == pytest.approx(start + length / 2, abs=length)
    assert f"not converged: the {law.__name__} jumps at t = 0.5" in str(said)
    fine = simulate(cart, duration=2.0, dt=2e-4, **given)
    assert fine.q[-1, 0] == pytest.approx(true, rel=0.2) and "jumps" not in str(fine.step_error)


def test_a_pulse_of_the_commands_of_a_motor_that_lags(cart):
    push = pulse(*PULSES[0])
    drive = Actuators(Transmission.of_joints(cart), Lag(time_constant=jnp.array([0.05])))
    found = simulate(cart, duration=2.0, dt=0.02, actuators=drive, control=lambda t, q, v, model: push(t)[None])
    # the filter keeps the impulse
    assert np.abs(found.q).max() == 0 and not found.step_error.resolved and "jumps at t" in str(found.step_error)


def test_a_small_pulse_is_part_of_the_error(cart):
    """1 N for 0.8 ms beside a sine: far below 5 % of the motion."""
    push = pulse(0.5132, 8e-4, 1.0)
    found = simulate(cart, duration=2.0, dt=0.02, control=lambda t, q, v, model: (jnp.sin(3 * t) + push(t))[None])
    t = found.time
    exact = (t / 3 - np.sin(3 * t) / 9) / 2 + 0.5 * 8e-4 * np.maximum(t - 0.5136, 0)
    true, said = np.abs(found.q[:, 0] - exact).max(), found.step_error
    assert true > 1e-4 and said.resolved and true <= 3 * said.value[:, 0].max() <= 9 * true


@pytest.mark.parametrize("force", [
    lambda t, q, v: 5 * jnp.sin(60 * t)[None],
    lambda t, q, v: -50 * (q - jnp.sin(t)) - 5 * v,
    lambda t, q, v: jnp.sign(jnp.sin(0.5 * t + 0.2))[None] - v,
])  # fmt: skip
def test_forces_that_the_stages_see(cart, force):
    """A fast sine, a tracking controller, and jumps between levels that stages see, of which other steps know."""
    found = simulate(cart, duration=2.0, dt=0.01, control=lambda t, q, v, model: force(t, q, v))
    assert found.step_error.resolved
    fine = simulate(cart, duration=2.0, dt=1e-4, save_every=100, control=lambda t, q, v, model: force(t, q, v))
    true = np.abs(found.q - fine.q).max()
    assert true <= 3 * found.step_error.value[:, 0].max() <= 90 * true + 1e-12
