"""The debug mode: the first quantity that is not finite, forward and in reverse mode, by faults put where they hurt."""

import re
import sys
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import joints
from lgsim.simulation import rollout, simulate

Q0, V0 = jnp.array([0.3, -0.4, 1.0, 0.0, 0.0, 0.0]), jnp.array([0.2, 0.0, 0.1, 0.0, 0.3])
STEPS = {"dt": 0.01, "steps": 8}


def machine(**numbers):
    """Two hinges and a ball."""
    builder, lift = lgsim.ModelBuilder(), np.eye(4)
    lift[2, 3] = 0.4
    options = {"mass": 1.0, "center": [0, 0, 0.2], "inertia": 0.02 * np.eye(3)} | numbers
    builder.add_body("upper arm", "world", joints.Revolute(), joint_name="shoulder", axis=[0, 1, 0], **options)
    builder.add_body("fore arm", "upper arm", joints.Revolute(), joint_name="elbow", axis=[0, 1, 0], placement=lift,
                     **options)  # fmt: skip
    builder.add_body("hand", "fore arm", joints.Spherical(), joint_name="wrist", placement=lift, **options)
    return builder.build()


def late(t, q, v, model):
    """The root of a negative number at the elbow from 0.043 s on."""
    return jnp.zeros_like(v).at[1].set(jnp.sqrt(jnp.where(t > 0.043, -1.0, 0.04)))


def kink(t, q, v, model):
    """A finite force with an infinite slope where the elbow is at -0.4: at the start, and half a step of MK4 later."""
    return jnp.zeros_like(v).at[1].set(jnp.sqrt(jnp.abs(q[1] - Q0[1])))


def fault(f, *args):
    """The text of the error, as a plain one or as the end of one of JAX."""
    with pytest.raises((FloatingPointError, jax.errors.JaxRuntimeError)) as caught:
        jax.block_until_ready(f(*args))
    return str(caught.value).rpartition("FloatingPointError: ")[2].strip()


@pytest.fixture(scope="module")
def model():
    return machine()


@pytest.mark.slow
def test_a_control_that_fails_in_the_fifth_step(model, monkeypatch):
    """By joint, body and step; plainly outside of a compiled program, at the end of JAX's text inside of one."""
    right = "step 4 (t = 0.045 s): the force of the control of joint 'elbow', body 'fore arm', is nan"
    with pytest.raises(FloatingPointError, match=re.escape(right)) as caught:
        rollout(model, Q0, V0, control=late, check=True, **STEPS)
    assert str(caught.value) == right
    run = jax.jit(lambda q: rollout(model, q, V0, control=late, check=True, **STEPS).q)
    assert fault(run, Q0) == right
    assert fault(jax.vmap(run), jnp.stack([Q0, Q0])) == right
    monkeypatch.setattr(sys.modules["lgsim.simulation.simulate"], "CHUNK", 3)
    motion = simulate(model, Q0, V0, duration=0.08, dt=0.01, control=late, check=True)
    assert len(motion) == 5 and motion.result.startswith(f"diverged: not finite: {right}; ")
    assert simulate(model, Q0, V0, duration=0.04, dt=0.01, control=late, check=True).result == ""


def test_the_error_is_said_once(model, caplog):
    """JAX writes the traceback of a callback that fails, before its error comes: pages before the one line."""
    with pytest.raises(FloatingPointError):
        rollout(model, Q0, V0.at[0].set(jnp.inf), check=True, **STEPS)
    assert not caplog.records


def test_each_quantity_has_its_name(model):
    """What is given: a torque of a step, a wrench, a number of the machine, a velocity."""
    torques = jnp.zeros((8, 5)).at[6, 3].set(jnp.nan)
    wrench = lambda t, q, v, model: jnp.zeros((3, 6)).at[2, 1].set(jnp.where(t >= 0.02, jnp.inf, 0.0))  # noqa: E731
    run = lambda model, **more: lambda: rollout(model, Q0, more.pop("v0", V0), check=True, **STEPS, **more)  # noqa: E731
    broken = replace(model, inertias=model.inertias.at[1, 0].set(jnp.nan))
    for f, right in (
        (run(model, torques=torques), "step 6 (t = 0.06 s): the given torque of joint 'wrist', body 'hand', is nan"),
        (run(model, wrenches=wrench), "step 1 (t = 0.02 s): the external wrench on body 'hand' is inf"),
        (run(broken), "step 0 (t = 0 s): the inertias of body 'fore arm' is nan"),
        (
            run(model, v0=V0.at[0].set(jnp.inf)),
            "step 0 (t = 0 s): the state, velocity of joint 'shoulder', body 'upper arm', is inf",
        ),
        (
            run(replace(model, drives=model.drives.at[2, 1].set(jnp.nan))),
            "step 0 (t = 0 s): the passive force of joint 'wrist', body 'hand', is nan",
        ),
    ):
        assert fault(f) == right


@pytest.mark.slow
def test_the_step_where_a_gradient_stops_to_be_finite(model):
    """The motion is finite; backwards the control breaks it in step 0, a loss before all steps."""

    def loss(q0, check, power):
        out = rollout(model, q0, V0, control=kink, check=check, **STEPS)
        return jnp.sum(jnp.abs(out.v[-1] - power) ** power)

    value, slope = jax.jit(jax.value_and_grad(loss), static_argnums=1)(Q0, False, 2.0)
    assert np.isfinite(value) and not np.isfinite(slope).all()
    text = fault(jax.jit(jax.grad(loss), static_argnums=1), Q0, True, 2.0)
    assert re.fullmatch(
        r"reverse mode, step 0 \(t = 0.005 s\): the gradient with respect to the configuration of joint 'elbow', body"
        r" 'fore arm', is (nan|-?inf), through the control",
        text,
    )

    def length(q):
        """The norm of zero, which has no slope."""
        v = rollout(model, q, V0, check=True, **STEPS).v[-1]
        return jnp.linalg.norm(v - jax.lax.stop_gradient(v))

    text = fault(jax.jit(jax.grad(length)), Q0)
    assert text == (
        "reverse mode, step 7 (t = 0.08 s): the gradient with respect to the saved state number 8, velocity of joint"
        " 'shoulder', body 'upper arm', is nan, through what is made of the motion"
    )


@pytest.mark.slow
def test_with_the_check_all_derivatives_stay_and_without_it_nothing_is_left():
    """Equal values, gradients, tangents and batches; the program without it is the one of a rollout that knows none."""
    rod = lgsim.ModelBuilder().add_body("rod", "world", joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0.3, 0, 0],
                                        inertia=0.01 * np.eye(3), friction=0.1).build()  # fmt: skip

    def loss(q0, model, check):
        out = rollout(
            model, q0, jnp.ones(1), dt=0.01, steps=4, torques=jnp.ones((4, 1)), method=lgsim.LieEuler, check=check
        )
        return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.v**2)

    def all_of(check):
        f = lambda q, model: loss(q, model, check)  # noqa: E731
        slopes = jax.vmap(jax.grad(f, (0, 1)), (0, None))(jnp.array([[0.3], [0.4]]), rod)
        return slopes, jax.jvp(lambda q: f(q, rod), (jnp.array([0.3]),), (jnp.ones(1),))

    ours, right = (jax.jit(all_of, static_argnums=0)(check) for check in (True, False))
    chex.assert_trees_all_close(ours, right, rtol=1e-12, atol=1e-12)
    text = [str(jax.make_jaxpr(jax.grad(loss), static_argnums=2)(jnp.ones(1), rod, check)) for check in (True, False)]
    assert all(word in text[0] and word not in text[1] for word in ("debug_callback", "lgsim_probe_gradient"))
