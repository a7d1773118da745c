"""Numbers that no machine has are refused where they are known, and pass where JAX traces them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.multibody import ModelError


@pytest.fixture(scope="module")
def model():
    body = {"mass": 1.0, "inertia": np.eye(3), "damping": 0.3}
    builder = lgsim.ModelBuilder().add_body("arm", "world", lgsim.joints.Revolute(), joint_name="hinge", **body)
    builder.add_body("hand", "arm", lgsim.joints.Spherical(), joint_name="ball", **body)
    return builder.add_frame("tip", "hand").build()


TURNED = jnp.eye(4).at[1, 1].set(2.0)
FAULTS = {
    "a negative damper": (
        {"damping": -1.0},
        "damping of joint 'hinge': expected a finite nonnegative number, got -1",
    ),
    "an infinite damper": (
        {"damping": [0, 0, np.inf, 0]},
        "damping of joint 'ball': expected a finite nonnegative number",
    ),
    "an armature that is none": ({"armature": np.nan}, "armature of joint 'hinge': .* got nan"),
    "a speed of friction of zero": ({"friction_speed": 0.0}, "friction_speed of joint 'hinge': expected a positive"),
    "an effort below zero": (
        {"effort_limit": -5.0},
        "effort_limit of joint 'hinge': expected a nonnegative number",
    ),
    "limits the wrong way round": (
        {"lower": 1.0, "upper": -1.0},
        "of joint 'hinge': expected lower <= upper, got 1 and",
    ),
    "one limit beyond the other": ({"upper": -np.inf, "lower": 0.0}, "expected lower <= upper, got 0 and -inf"),
    "a turned placement": (
        {"placements": jnp.stack([jnp.eye(4), TURNED])},
        "placements of joint 'ball': expected a pose",
    ),
    "a mirror": ({"frames": jnp.diag(jnp.array([1.0, 1, -1, 1]))[None]}, "frames of frame 'tip': expected a pose"),
    "an axis of zero": ({"axes": jnp.eye(4, 3).at[3].set(0)}, "axes of joint 'ball': expected a finite nonzero vector"),
    "gravity": ({"gravity": [0, 0, np.inf]}, "gravity: expected finite numbers, got inf"),
}


@pytest.mark.parametrize("wrong", [None, "stiff", 1j, [None, 1.0], {}], ids=str)
def test_what_is_no_number_is_named(model, wrong):
    with pytest.raises(TypeError, match=r"damping: expected .* got "):
        model.replace(damping=wrong)
    if wrong is not None:  # the neutral configuration
        with pytest.raises(TypeError, match=r"q: expected .* got "):
            model.lock(["hinge"], wrong)


@pytest.mark.parametrize("fault", FAULTS)
def test_numbers_of_no_machine(model, fault):
    numbers, message = FAULTS[fault]
    with pytest.raises(ModelError, match=message):
        model.replace(**{name: jnp.asarray(x, float) for name, x in numbers.items()})


def test_masses_and_columns(model):
    with pytest.raises(ModelError, match="inertias of body 'arm': expected ten finite parameters with a nonnegative"):
        model.replace(inertias=-model.inertias)
    with pytest.raises(ModelError, match="damping of joint 'ball': expected a finite nonnegative number"):
        model.replace(drives=model.drives.at[3, 1].set(-1))


def test_what_machines_have_passes(model):
    same = model.replace(
        **{name: getattr(model, name) for name in ("placements", "screws", "inertias", "drives", "frames")}
    )
    assert same.damping[0] == 0.3
    model.replace(stiffness=-1.0, rest=-2.0, lower=-np.inf, effort_limit=np.inf, inertias=0 * model.inertias)
    many = model.replace(placements=jnp.stack([model.placements] * 3))
    assert many.placements.shape == (3, 2, 4, 4)
    traced = jax.jit(lambda d: model.replace(damping=d).damping)(-1.0)
    assert np.all(traced == -1)
    assert np.all(jax.jacfwd(lambda d: model.replace(damping=d).damping)(0.0) == 1)


def test_quaternions_of_another_norm(model):
    q, v = model.neutral().at[1].set(2.0), jnp.zeros(4)
    for call in (
        lambda: lgsim.simulate(model, q, duration=0.01, dt=0.01),
        lambda: lgsim.rollout(model, q, v, dt=0.01, steps=1),
        lambda: lgsim.simulate_adaptive(model, q, duration=0.01, dt_out=0.01),
    ):
        with pytest.raises(ValueError, match=r"q0: expected a unit quaternion .* of the joint 'ball', got norm 2"):
            call()


@pytest.mark.parametrize(
    ("control", "error", "message"),
    [
        (
            lambda t, q, v, model: jnp.ones(()),
            ValueError,
            r"control: expected joint forces of shape \(4,\), .* got \(\)",
        ),
        (lambda t, q, v, model: jnp.ones(1), ValueError, r"shape \(4,\), that is nv, got \(1,\)"),
        (lambda t, q, v, model: jnp.ones(3), ValueError, r"shape \(4,\), that is nv, got \(3,\)"),
        (
            lambda t, q, v, model: 1.0,
            TypeError,
            r"control: expected joint forces, an array \(4,\) of float64, got float",
        ),
        (lambda t, q, v, model: None, TypeError, "got NoneType"),
        (lambda t, q, v, model: jnp.ones(4, jnp.float32), TypeError, "got one of float32"),
    ],
)
def test_controls_give_a_force_for_each_joint(model, control, error, message):
    for check in (False, True):
        with pytest.raises(error, match=message):
            lgsim.rollout(model, model.neutral(), jnp.zeros(4), dt=0.01, steps=1, control=control, check=check)
    with pytest.raises(error, match=message):
        lgsim.simulate(model, duration=0.01, dt=0.01, control=control)
