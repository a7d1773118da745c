"""The problems that must be solved, with short horizons: each from a trivial guess, to a pose within 1e-4.

Conditions hold within 1e-6. Errors are measured on the result, not taken from the solver.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from cases.control import TASKS, steps_of
from cases.control.space import momentum_drift

import lgsim

# the one that runs always; the others compile programs that are larger, of machines of more joints
SMALLEST = "pendulum"
ITERATIONS = 300
"""Of the solver inside, all together."""


@pytest.fixture(scope="module")
def solved():
    """A task and its result, each solved once."""
    known = {}

    def of(name):
        if name not in known:
            task = TASKS[name](True)
            known[name] = task, task.run()
        return known[name]

    return of


def exhaustive(*names):
    return [pytest.param(name, marks=() if name == SMALLEST else pytest.mark.exhaustive) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive(*TASKS))
def test_it_is_solved_from_a_trivial_guess(name, solved):
    task, result = solved(name)
    assert set(task.bounds) <= set(task.errors(result))
    assert task.broken(result) == {}
    if task.problem is not None:
        assert result.message == ""
        assert steps_of(result) <= ITERATIONS


@pytest.mark.slow
@pytest.mark.parametrize("name", exhaustive(SMALLEST, "link lengths"))
def test_it_can_be_looked_at(name, solved):
    """The motion belongs to the machine and is written whole."""
    task, result = solved(name)
    motion = task.trajectory(result)
    assert isinstance(motion, lgsim.Trajectory) and len(motion) > 2
    assert motion.result == "" and np.all(np.isfinite(motion.q))


@pytest.mark.slow
def test_an_error_above_its_bound_or_not_a_number_is_told(solved):
    """A guess is no solution."""
    task, result = solved("pendulum")
    assert {"pose [rad, m]"} <= set(task.broken(result_with_states(result, 0.0)))
    assert "gaps" in task.broken(result_with_states(result, np.nan))


def result_with_states(result, value):
    return eqx.tree_at(lambda r: r.ys, result, jnp.full_like(result.ys, value))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_cat_keeps_its_momentum_to_the_order_of_the_method(solved):
    """No momentum to start with, and torques that act between the bodies alone: what appears is the error of MK4."""
    task, result = solved("falling cat")
    drifts = [momentum_drift(task.problem, result, n) for n in (2, 4, 8)]
    orders = np.log2(drifts[:-1]) - np.log2(drifts[1:])
    np.testing.assert_allclose(orders, 4, atol=0.15)
