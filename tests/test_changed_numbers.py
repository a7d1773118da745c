"""New numbers never compile again: each Python float that a user writes, in whatever it stands, is a number of the
program. Of every public class by its fields, and of every public function that computes by what it traces.
"""

import dataclasses
import gc
import inspect

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lgsim
from lgsim import actuators, controls, identify, montecarlo, optimize
from lgsim._compile.xla import compiled, number_field, with_arrays
from lgsim.data import cart_pole
from lgsim.integrators import adaptive
from tests.identify import arms
from tests.public_record import listed, modules

ROTATION = lgsim.actions.RightTranslation(lgsim.SO3)
START = jnp.array([0.1, 2.0])
REST = jnp.zeros(2)

# Classes that JAX does not look into, with numbers: a new number is a new object.
COEFFICIENTS = {
    "ButcherTableau", "CommutatorFreeTableau", "GalerkinScheme", "ImplicitTableau", "RosenbrockTableau", "ThetaScheme",
}  # fmt: skip
ON_THE_HOST = {
    "Butterworth": "a filter of scipy's",
    "Spline": "a filter of scipy's",
    "StopAtConfidence": "compared with results",
    "Vertices": "points of a file, which a model takes as arrays",
    "Mesh": "triangles of a file, which a model takes as arrays",
    "Shape": "what is drawn",
    "ModelBuilder": "makes a model, whose numbers are arrays",
    "RotationMap": "a map, with the angle from which on it serves",
}
RESULTS = {"StepError", "FitStepError", "StudyStepError", "OptimalExcitation", "PosteriorDraws", "Verdict", "Moments"}
READ = {"Trajectory", "Recording", "Inertia"}


def public_classes():
    found = {}
    for module in modules().values():
        for name in listed(module):
            value = getattr(module, name)
            if inspect.isclass(value) and dataclasses.is_dataclass(value) and value.__module__.startswith("lgsim."):
                found[value.__name__] = value
    return found


def test_no_number_of_a_public_class_chooses_a_program():
    """A field that JAX does not see holds no float, in any class that is no table, no result and not for the host."""
    faults = []
    classes = public_classes()
    assert len(classes) > 150
    for name, kind in classes.items():
        hidden = not issubclass(kind, eqx.Module)
        for field in dataclasses.fields(kind):
            of_floats = any(word in str(field.type) for word in ("float", "Float[", "Real["))
            plain = of_floats and "Callable" not in str(field.type)
            if plain and field.init and (hidden or field.metadata.get("static", False)):
                faults.append(name)
    allowed = COEFFICIENTS | set(ON_THE_HOST) | RESULTS | READ
    known = {name for name in faults if name in allowed or name.endswith(("Report", "Estimate"))}
    assert sorted(set(faults) - known) == []


def check_all(lowered, call, tree):
    """Change one float of the arguments after another, and see that nothing is lowered."""
    assert lowered or call(tree) is not None, "nothing is counted"
    call(jax.tree.map(lambda x: 1.003 * x if type(x) is float else x, tree))
    leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
    places = [i for i, (_, leaf) in enumerate(leaves) if type(leaf) is float]
    assert places
    call(tree)
    for i in places:
        path, value = leaves[i]
        changed = [leaf for _, leaf in leaves]
        changed[i] = 1.01 * value if value else 0.01
        lowered.clear()
        call(jax.tree.unflatten(structure, changed))
        assert lowered == [], f"{jax.tree_util.keystr(path)}: {value} -> {changed[i]}"
    lowered.append("counts")


@pytest.fixture(scope="module")
def model():
    return lgsim.load_urdf(cart_pole())


def field(t, R, args):
    return jnp.stack([jnp.cos(t), args[0] * jnp.sin(2 * t), args[1]["x"]])


ARGS = {"t0": 0.3, "args": (1.0, {"x": 2.0})}


@pytest.mark.repeats
@pytest.mark.parametrize("method", [lgsim.MK4, lgsim.SymplecticTheta(0.5, lgsim.Newton(4, 1e-9))], ids=["MK4", "theta"])
def test_integrate(lowered, method):
    def call(given):
        return lgsim.integrate(field=field, action=ROTATION, y0=jnp.eye(3), steps=4, **given)

    if method is lgsim.MK4:
        check_all(lowered, call, {"method": method, "dt": 0.1, **ARGS})
        return
    energy = lgsim.HamiltonianField(lgsim.SO3, lambda t, y, args: args * jnp.sum(y[1] ** 2))
    y0 = (jnp.eye(3), jnp.array([0.1, 0.2, 0.3]))
    check_all(
        lowered,
        lambda given: lgsim.integrate(
            action=lgsim.actions.LeftTranslation(lgsim.Cotangent(lgsim.SO3)), field=energy, y0=y0, steps=3, **given
        ),
        {"method": method, "dt": 0.1, "args": 0.7},
    )


def test_adaptive_solve(lowered):
    def call(given):
        return adaptive.solve(lgsim.MK54, ROTATION, field, jnp.eye(3), **given)

    check_all(lowered, call, {"t1": 1.3, "controller": adaptive.ElementaryController(1e-4), **ARGS})


LAWS = {
    "sum": lambda model: controls.PD(REST, 5.0, 1) + controls.ComputedTorque(REST, 4.0, 1.0),
    "motor limits": lambda model: controls.MotorLimits(controls.PD(REST, 5.0, 1.0)),
}


@pytest.mark.repeats
@pytest.mark.parametrize("law", LAWS)
def test_simulate_and_rollout(lowered, model, law):
    tree = {"control": LAWS[law](model), "dt": 1e-3}
    check_all(lowered, lambda x: lgsim.simulate(model, START, **x), {"duration": 0.02, **tree})
    check_all(lowered, lambda x: lgsim.rollout(model, START, REST, steps=4, **x), {"t0": 0.5, **tree})


@pytest.mark.slow
def test_simulate_adaptive(lowered, model):
    tree = {"control": controls.PD(REST, 5.0, 1.0), "duration": 0.1, "dt_out": 0.05, "rtol": 1e-6, "atol": 1e-8}
    check_all(lowered, lambda x: lgsim.simulate_adaptive(model, START, **x), tree)


def test_actuators(lowered, model):
    drive = actuators.Actuators(
        actuators.Transmission.of_joints(model), actuators.Lag(0.02), actuators.Gear(3.0, 0.9),
        actuators.Saturation(-5, 5),
    )  # fmt: skip
    tree = jax.tree.map(lambda x: float(x) if jnp.ndim(x) == 0 else x, drive)

    def call(drive):
        return lgsim.rollout(model, START, REST, dt=1e-3, steps=3, actuators=drive, commands=jnp.ones(2))

    check_all(lowered, call, tree)


SOLVERS = {
    "ILQR": optimize.ILQR(
        max_iterations=3, gradient_tolerance=1e-5, decrease_tolerance=1e-12, gap_tolerance=1e-8, regularization=1
    ),
    "AugmentedLagrangian": optimize.AugmentedLagrangian(max_iterations=2, tolerance=1e-5),
    "DirectShooting": optimize.DirectShooting(optax.adam(0.1), max_iterations=3, gradient_tolerance=1e-4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_solve(lowered, model, name):
    dynamics = optimize.MultibodyDynamics(model, 0.02)
    tree = {
        "running": optimize.ControlEffort(1, 0.1) + optimize.JointVelocity(model, 0.1, 0.2),
        "terminal": optimize.StateDistance(dynamics.action, jnp.zeros(4), 2.0) + optimize.Posture(model, REST, 1.5),
        "solver": SOLVERS[name],
        "args": 0.3,
    }

    def call(x):
        problem = optimize.Problem(
            dynamics, jnp.concatenate([START, REST]), horizon=6, running=x["running"], terminal=x["terminal"],
            args=x["args"],
        )  # fmt: skip
        return optimize.solve(problem, jnp.full((6, 2), 0.1), solver=x["solver"])

    check_all(lowered, call, tree)


@pytest.mark.slow
def test_inverse_kinematics(lowered):
    arm = lgsim.load_urdf(lgsim.data.arm7())
    pose = lgsim.forward_kinematics(arm, jnp.full(7, 0.3))[-1]

    def call(x):
        name = arm.topology.body_names[-1]
        return optimize.inverse_kinematics(arm, name, pose, jnp.full(7, 0.2), posture=jnp.zeros(7), **x)

    check_all(lowered, call, {"weight": 2.0, "tolerance": 1e-6, "damping": 1e-3, "posture_weight": 0.1})


@pytest.mark.slow
def test_a_study(lowered, model):
    """Its outputs and its failure hold floats of the user's."""

    def call(x):
        study = montecarlo.Study(
            {"v0": montecarlo.Normal(REST, x["std"])},
            montecarlo.Rollout(model, START, steps=5, dt=x["dt"]),
            {"swing": x["swing"]},
            failures={"far": x["far"]},
            samples=64,
        )
        return montecarlo.run(study, step_check=False)

    far = montecarlo.outputs.OutOfBounds("swing", low=-0.5, high=0.5)
    check_all(lowered, call, {"std": jnp.asarray(0.1), "dt": 1e-3, "far": far, "swing": Swing(2.0)})


class Swing(eqx.Module):
    gain: float

    def __call__(self, motion):
        return self.gain * jnp.max(jnp.abs(motion.q))


@pytest.mark.slow
def test_a_fit(lowered):
    truth = identify.Plant(arms.planar(friction_speed=0.1, damping=[0.3, 0.2]), offset=[0.2, -0.1])
    samples = arms.samples(truth, 60, noise=0.1)

    def call(x):
        blocks = [
            identify.Masses(prior_deviation=x["masses"]), identify.JointParameter("damping", upper=x["upper"]),
        ]  # fmt: skip
        unknowns = identify.Parameters(arms.planar(friction_speed=0.1), blocks)
        return identify.fit(unknowns, samples, x["estimator"])

    estimator = identify.TorqueFit(loss=identify.Huber(1.5), tolerance=1e-8, max_iterations=20)
    check_all(lowered, call, {"masses": 0.5, "upper": 5.0, "estimator": estimator})


def test_what_a_user_writes_is_an_operand():
    traced = []

    class Own(eqx.Module):
        gain: float
        steps: int
        name: str = "own"

    @compiled
    def f(own, x, more):
        traced.append(own.name)
        return own.gain * x * own.steps + more[0]["a"]

    x = np.float32(2)
    assert f(Own(1.5, 2), x, ({"a": 0.25},)) == 6.25 and f(Own(2.5, 2), x, ({"a": 0.5},)) == 10.5
    assert len(traced) == 1
    assert f(Own(1.5, 2), x, ({"a": 0.25},)).dtype == np.float32, "a float follows the dtype of what it meets"
    f(Own(1.5, 3), x, ({"a": 0.25},))
    assert len(traced) == 2, "a whole number chooses a program"
    tree = with_arrays({"a": 1.0, "b": 2, "c": True, "d": "text", "e": None, "f": x})
    assert tree["a"].weak_type and tree["b"] == 2 and tree["c"] is True and tree["d"] == "text" and tree["f"] is x


def test_whole_numbers_in_fields_for_numbers():
    class Own(eqx.Module):
        a: float = number_field()
        b: float = number_field(2)

    own = Own(3)
    assert type(own.a) is float and type(own.b) is float and (own.a, own.b) == (3.0, 2.0)
    assert Own(True).a is True and Own(None).a is None


def test_a_law_that_was_not_there_is_another_program_once(lowered, model):
    """Friction of Stribeck: the first nonzero one adds equations; another number adds none."""

    @jax.jit
    def f(model):
        return lgsim.forward_dynamics(model, START, REST + 0.1, REST)

    first, second = (model.replace(stribeck=jnp.full(2, x)) for x in (0.1, 0.2))
    other = model.replace(damping=2 * model.damping)
    f(model)
    lowered.clear()
    f(first)
    assert lowered, "it has become an array: the pages need not say that the first one compiles"
    lowered.clear()
    f(second), f(other)
    assert lowered == []


@pytest.mark.slow  # twelve programs of a rollout
def test_programs_of_functions_that_are_gone_are_let_go():
    """Of a control that is a new lambda each time, ``jax.clear_caches`` leaves a few of JAX's own keys."""
    model, q = lgsim.load_urdf(cart_pole()), jnp.zeros(2)

    def kept(count):
        for _ in range(count):
            lgsim.rollout(model, q, q, dt=1e-3, steps=2, control=lambda t, q, v, model: -v)
        jax.clear_caches()
        gc.collect()
        return len(gc.get_objects())

    before = kept(2)
    assert kept(10) - before < 10 * 100  # a program has thousands
