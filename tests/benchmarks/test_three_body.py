"""The three-body study of Park and Chung 2005: state, invariants, every digit of the tables, derivatives."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems.three_body import three_body

import lgsim
from lgsim.lie import se3
from lgsim.multibody import inertia
from tests.integrators.engines import default

DATA = json.loads((Path(__file__).parents[1] / "data" / "park_chung.json").read_text())
METHODS = ["CG2", "CG3", "CG4", "CF2", "CF3", "CF4", "MK2", "MK3", "MK4"]
LONG_RUN_TWIST = (0.1, 0.1, 0.1, 0.3, 0.3, 0.3)


def trajectory(problem, method, step=0.1, steps=10, args=None):
    args = problem.args if args is None else args
    return lgsim.integrate(method, problem.action, problem.field, problem.initial, dt=step, steps=steps, args=args).ys


def state(states, k):
    return jax.tree.map(lambda leaf: leaf[k], states)


def reference_state():
    parts = {name: np.array(value, dtype=np.float64) for name, value in DATA["state"].items()}
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = parts["R"], parts["r"]
    return pose, np.concatenate([parts["q"], parts["V"], parts["qdot"]])


def random_arguments(seed):
    """A chain that is not the paper's: generic masses, inertias, offsets, screws and motion."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(3, 3, 3))
    bodies = inertia.parameters(
        jnp.asarray(rng.uniform(1.0, 9.0, 3)),
        jnp.asarray(rng.normal(size=(3, 3))),
        jnp.asarray(np.eye(3) + root @ root.transpose(0, 2, 1)),
    )
    model = three_body().args
    placements = jnp.concatenate([model.placements[:1], se3.exp(jnp.asarray(rng.normal(size=(2, 6))))])
    axes = model.axes.at[6:].set(rng.normal(size=(2, 3)))
    pitches = model.pitches.at[6:].set(rng.normal(size=2))
    chain = model.replace(inertias=bodies, placements=placements, axes=axes, pitches=pitches)
    return chain, jnp.asarray(rng.normal(size=2)), jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.normal(size=2))


@pytest.mark.slow
@pytest.mark.parametrize(("method", "steps"), [("MK8", 10), ("MK54", 100)])
def test_state_after_one_second_is_the_reference(method, steps):
    pose, z = state(trajectory(three_body(), getattr(lgsim, method), 1.0 / steps, steps), -1)
    expected_pose, expected_z = reference_state()
    np.testing.assert_allclose(pose, expected_pose, rtol=0, atol=1e-14)
    np.testing.assert_allclose(z, expected_z, rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["kinetic_energy", "linear_momentum", "angular_momentum"])
def test_invariants_at_the_start_have_their_closed_form(name):
    problem = three_body()
    value = problem.invariants[name](problem.initial, problem.args)
    np.testing.assert_allclose(value, DATA["invariants"][name], rtol=0, atol=3e-14)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in (1, 2))])
def test_generic_chain_keeps_energy_and_momenta(seed):
    """The spheres hide mistakes (isotropic inertia, axes through centers); a generic chain does not."""
    chain, q, twist, rates = random_arguments(seed)
    problem = three_body()
    start = (jnp.eye(4), jnp.concatenate([q, 0.3 * twist, 0.3 * rates]))
    solution = lgsim.integrate(lgsim.MK8, problem.action, problem.field, start, dt=0.01, steps=100, args=chain)
    for name, invariant in problem.invariants.items():
        values = np.asarray(jax.vmap(lambda y, f=invariant: f(y, chain))(solution.ys))
        assert np.abs(values - values[0]).max() < 1e-11 * np.abs(values).max(), name


@pytest.mark.repeats
@pytest.mark.parametrize("method", default(METHODS, ("CG3", "CF4", "MK4")))
def test_drift_at_one_second_equals_the_printed_five_digits(method):
    """Tables VI, VII and VIII: every entry of every method at h = 1 and h = 0.1."""
    problem = three_body()
    for step, steps in ((1.0, 1), (0.1, 10)):
        # ten steps in both cases, so that both run the same compiled program
        end = state(trajectory(problem, getattr(lgsim, method), step), steps)
        column = DATA["steps"].index(step)
        for name, table in DATA["tables"].items():
            invariant = problem.invariants[name]
            difference = invariant(end, problem.args) - invariant(problem.initial, problem.args)
            drift = np.linalg.norm(np.atleast_1d(difference))
            assert f"{drift:.4e}" == f"{float(table[method][column]):.4e}", (name, step)


@pytest.mark.slow
def test_base_turns_at_a_constant_rate_about_the_first_joint():
    """That axis passes through the center of an isotropic body, so nothing can turn the base about it."""
    problem = three_body(twist=LONG_RUN_TWIST)
    end = state(trajectory(problem, lgsim.MK8), -1)
    np.testing.assert_allclose(end[1][7], 0.3, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_gradients_in_every_parameter():
    """Reverse mode through the run equals central differences; the flow keeps the energy, whose gradient is known."""
    problem = three_body()
    weights = jnp.asarray([1.0, -0.7, 0.4])

    @jax.jit
    def energy_and_position(chain):
        end = state(trajectory(problem, lgsim.MK8, args=chain), -1)
        return jnp.stack([problem.invariants["kinetic_energy"](end, chain), weights @ end[0][:3, 3]])

    jacobian = jax.jit(jax.jacrev(energy_and_position))(problem.args)
    # the gradient of the initial energy: half the squared initial speeds of the bodies' origins
    np.testing.assert_allclose(jacobian.inertias[0, :, 0], [0.0, 0.0, 0.5 * 0.8**2], rtol=0, atol=1e-13)

    rng = np.random.default_rng(0)
    rows = [jax.tree.map(lambda x, i=i: x[i], jacobian) for i in (0, 1)]
    for name in ("inertias", "placements", "axes", "pitches"):
        value = getattr(problem.args, name)
        direction = rng.normal(size=value.shape)
        if name == "placements":
            direction[:, 3] = 0

        def along(s, name=name, value=value, direction=direction):
            moved = jnp.asarray(np.asarray(value) + s * direction)
            # what is moved along a line is no pose any more, which replace refuses
            pose = name == "placements"
            chain = replace(problem.args, placements=moved) if pose else problem.args.replace(**{name: moved})
            return np.asarray(energy_and_position(chain))

        h = 5e-4
        difference = (8.0 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12.0 * h)
        # a column view of a stacked Jacobian would count its axes wrongly: one output at a time
        slope = [np.sum(np.asarray(getattr(row, name)) * direction) for row in rows]
        np.testing.assert_allclose(slope, difference, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.slow
@pytest.mark.float32
def test_the_problem_follows_the_dtype():
    problem = three_body(jnp.float32)
    end = state(trajectory(problem, lgsim.MK4), -1)
    assert {leaf.dtype for leaf in jax.tree.leaves((problem.initial, problem.args, end))} == {jnp.dtype("float32")}
    expected_pose, expected_z = reference_state()
    np.testing.assert_allclose(end[0], expected_pose, rtol=0, atol=2e-6)
    np.testing.assert_allclose(end[1], expected_z, rtol=0, atol=2e-6)
