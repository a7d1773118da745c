"""Every public function of a model refuses what is no array or no model at the door, with the argument's name."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim import dynamics
from tests.public_record import listed

ARRAYS = {"q", "v", "a", "tau", "x", "p", "q0", "q1", "v0", "dv", "dq"}
FRAME = "tip"


@pytest.fixture(scope="module")
def model():
    body = {"mass": 1.0, "inertia": np.eye(3)}
    builder = lgsim.ModelBuilder().add_body("arm", "world", lgsim.joints.Revolute(), **body)
    builder.add_body("hand", "arm", lgsim.joints.Prismatic(), **body).add_frame(FRAME, "hand")
    return builder.add_contact(
        "foot", FRAME, lgsim.contacts.sphere(0.1), stiffness=1e4, dissipation=0.5, friction=0.5
    ).build()


def required(f):
    """The arguments that a function must be given."""
    parameters = inspect.signature(f).parameters.values()
    return [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]


def takes_a_state(f):
    known = ARRAYS | {"model", "frame", "f", "dt", "s", "steps"}
    return inspect.isfunction(f) and ARRAYS & set(required(f)) and set(required(f)) <= known


OF_MODEL = {n: getattr(m, n) for m in (dynamics, lgsim) for n in listed(m) if takes_a_state(getattr(m, n))}
METHODS = {f"Model.{n}": getattr(lgsim.Model, n) for n in ("retract", "difference", "interpolate", "rate", "velocity")}
CASES = {
    f"{name} {argument}": (f, argument)
    for name, f in {**OF_MODEL, **METHODS}.items()
    for argument in required(f)
    if argument in ARRAYS | {"dt", "s"}
}
WRONG = {"None": None, "text": "abc", "object": object(), "complex": jnp.zeros(2, complex)}


def called(f, model, **given):
    usual = dict.fromkeys(ARRAYS, jnp.zeros(2)) | {"model": model, "self": model, "frame": FRAME, "dt": 0.1, "s": 0.5}
    usual |= {"f": lambda q: q @ q, "steps": 1}
    if "loop" in f.__name__ and isinstance(model, lgsim.Model):
        usual["model"] = model.add_coupling("gear", *model.joint_names, [0, 1])
    return f(**({name: usual[name] for name in required(f)} | given))


def test_most_functions_are_here():
    assert len(OF_MODEL) >= 40
    assert {"forward_dynamics", "rollout", "tangent_grad", "center_of_mass"} <= set(OF_MODEL)


@pytest.mark.parametrize("case", CASES)
def test_what_is_no_array_is_named(case, model, without_import_hook):
    f, argument = CASES[case]
    for value in WRONG.values():
        with pytest.raises(TypeError, match=rf"^{argument}: expected .* got "):
            called(f, model, **{argument: value})


@pytest.mark.parametrize("name", OF_MODEL)
def test_what_is_no_model_is_named(name, without_import_hook):
    for value in (None, "arm.urdf"):
        with pytest.raises(TypeError, match=r"^model: expected an lgsim.Model, got (NoneType|str)"):
            called(OF_MODEL[name], value)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_python_numbers_take_the_type_of_the_model(dtype, model, without_import_hook):

    own = jax.tree.map(lambda x: x.astype(dtype), model)
    numbers, arrays = [0, 1], jnp.array([0.0, 1.0], dtype)
    found = lgsim.forward_dynamics(own, numbers, (1, 0.5), numbers)
    np.testing.assert_array_equal(found, lgsim.forward_dynamics(own, arrays, jnp.array([1.0, 0.5], dtype), arrays))
    assert found.dtype == dtype
    motion = lgsim.rollout(own, [0, 0], [0, 0], dt=0.1, steps=2, torques=[0, 1])
    assert motion.q.dtype == dtype
    assert own.retract(arrays, [0, 0]).dtype == dtype


def test_integers_in_arrays_stay_refused(model, without_import_hook):
    with pytest.raises(TypeError, match=r"q: expected an array of .* got int64; convert it, e.g. q.astype"):
        lgsim.mass_matrix(model, np.zeros(2, int))
