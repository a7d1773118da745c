"""Orders of convergence, measured: every method on every problem, the error estimates, and proof that faults show."""

import dataclasses
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.integrators.commutator_free import CommutatorFree
from lgsim.integrators.group_words import Exponentials
from lgsim.integrators.munthe_kaas import MuntheKaas, TruncatedDexpinv
from lgsim.integrators.tableau import ButcherTableau
from tests.integrators import problems, stepper
from tests.integrators.engines import default
from tests.integrators.problems import BODIES, ORDERS, PROBLEMS, advance, extrapolate, flat

WINDOW = 0.15
SQRT2 = 2**0.5
# Numbers of steps, by order: from far too few to past the plateau, or to where a slope of 1 or 2 has long settled.
LOW, MIDDLE = [round(16 * SQRT2**k) for k in range(12, 20)], [round(8 * SQRT2**k) for k in range(5, 17)]
HIGH, HIGHEST = [round(20 * 1.2**k) for k in range(20)], [round(10 * 1.15**k) for k in range(22)]
COUNTS = {1: LOW, 2: LOW, 3: MIDDLE, 4: MIDDLE, 5: HIGH, 6: HIGH, 8: HIGHEST}
STEPS = 0.5 * 2.0 ** (-np.arange(16) / 1.5)


def slope(sizes, errors, plateau, points=5):
    """The exponent of errors ~ sizes^p over the smallest sizes whose errors stand above the plateau."""
    above = [(size, error) for size, error, bound in sorted(zip(sizes, errors, plateau, strict=True)) if error > bound]
    assert len(above) >= 4, f"only {len(above)} points above the plateau: {errors}"
    return np.polyfit(*np.log(above[:points]).T, 1)[0]


def final_gaps(run, problem, counts):
    return [flat(run(n, problem.time / n)[0]) - problem.final for n in counts]


def measured_order(method, problem, counts, run=None, dtype=np.float64):
    """The slope of the Euclidean error; rounding adds about eps a step at random, the plateau is twenty times that."""
    gaps = final_gaps(run or advance(method, problem), problem, counts)
    errors = np.linalg.norm(gaps, axis=1) / np.linalg.norm(problem.final)
    return slope(1 / np.array(counts), errors, 20 * np.finfo(dtype).eps * np.sqrt(counts))


def each_method_on_a_problem():
    """By default every method on one problem and every problem with several methods; all on all else."""
    turns = {(name, list(PROBLEMS)[i % len(PROBLEMS)]) for i, name in enumerate(lgsim.METHODS)}
    return default([(name, problem) for name in lgsim.METHODS for problem in PROBLEMS], turns)


@pytest.mark.repeats
@pytest.mark.parametrize(("name", "problem"), each_method_on_a_problem())
@pytest.mark.quick
def test_order_of_convergence(name, problem):
    """The slope of the final error and, for a pair, that of the estimate of one step: h^(embedded order + 1)."""
    method, case = lgsim.METHODS[name], PROBLEMS[problem]()
    run = advance(method, case)
    assert abs(measured_order(method, case, COUNTS[method.order], run) - method.order) < WINDOW
    if method.embedded_order is not None:
        estimates = [float(run(1, h)[1]) for h in STEPS]
        assert abs(slope(STEPS, estimates, np.full_like(STEPS, 1e-13)) - (method.embedded_order + 1)) < WINDOW


# The harness proves itself: faults that circulate in other libraries, and references that do not depend on lgsim.


def without_correction(action, sigma, k):
    """Munthe-Kaas without dexpinv: the sum of stage velocities through one exponential."""
    return k


def swapped_cf4():
    """CF4 with the two exponentials of its update in the wrong order, past the check that refuses it."""
    broken = object.__new__(type(lgsim.CF4.tableau))
    for field in dataclasses.fields(lgsim.CF4.tableau):
        object.__setattr__(broken, field.name, getattr(lgsim.CF4.tableau, field.name))
    update = lgsim.CF4.tableau.update
    object.__setattr__(broken, "update", Exponentials(update.base, update.rows[::-1]))
    return broken


BROKEN = {
    "MK4 without dexpinv": MuntheKaas(lgsim.MK4.tableau, without_correction),
    "CF4 with its last factors swapped": CommutatorFree(swapped_cf4()),
}


@pytest.mark.parametrize(
    ("name", "problem"),
    default(
        [(name, problem) for name in BROKEN for problem in PROBLEMS],
        list(zip(BROKEN, ("SE(3)", "product"), strict=True)),
    ),
)
def test_broken_methods_come_out_as_order_two(name, problem):
    assert BROKEN[name].order == 4
    assert abs(measured_order(BROKEN[name], PROBLEMS[problem](), COUNTS[2]) - 2) < WINDOW


def test_the_tableau_refuses_swapped_factors():
    update = lgsim.CF4.tableau.update
    with pytest.raises(ValueError, match="order"):
        dataclasses.replace(lgsim.CF4.tableau, update=Exponentials(update.base, update.rows[::-1]))


@pytest.mark.parametrize(
    "tableau, commutators, order",
    [
        (lgsim.MK4.tableau, 0, 2),
        (lgsim.MK4.tableau, 1, 3),
        (lgsim.MK4.tableau, 2, 4),
        (lgsim.MK4.tableau, 3, 4),
        (lgsim.MK3.tableau, 2, 3),
        (lgsim.MK6.tableau, 5, 6),
    ],
)
def test_truncated_dexpinv(tableau, commutators, order):
    """Order p needs p - 1 commutators, of which the last odd ones have a zero coefficient."""
    method = MuntheKaas(tableau, TruncatedDexpinv(commutators))
    assert method.requires == ("bracket",)
    assert abs(measured_order(method, problems.moving_frame(), COUNTS[order]) - order) < WINDOW


@pytest.mark.parametrize("name", default(["MK4TwoCommutators", "MK4", "CF4"], ("MK4TwoCommutators", "MK4")))
def test_left_translation_of_se3(name):
    """The right translation is among PROBLEMS; the sign of a bracket that is wrong on one side costs two orders."""
    method = lgsim.METHODS[name]
    assert abs(measured_order(method, problems.moving_frame("left"), COUNTS[4]) - 4) < WINDOW


@pytest.mark.parametrize("case", range(len(BODIES["free"])))
def test_extrapolation_agrees_with_jacobi(case):
    """The oracle of the problems without a closed form, on one that has it."""
    data, problem = BODIES["free"][case], problems.free_body(case)
    derivative = partial(problems.body_derivative, inertia=np.array(data["inertia"], np.longdouble))
    end = extrapolate(derivative, flat(problem.initial), 0, data["t"], round(10 * data["t"]))
    np.testing.assert_allclose(end.astype(float), problem.final, rtol=0, atol=5e-16)


def test_extrapolation_converges():
    """Order 2 columns, on y' = y cos t: with 3 columns 6."""

    def error(steps):
        end = extrapolate(lambda t, y: y * np.cos(t), np.ones(1), 0, 2, steps, columns=3)
        return float(abs(end[0] - np.exp(np.sin(np.longdouble(2)))))

    assert abs(np.log2(error(20) / error(40)) - 6) < WINDOW


# Against errors and points made by other programs.

WITH_ERRORS = [name for name in ORDERS["errors"] if name in lgsim.METHODS]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WITH_ERRORS)
def test_errors_on_so3_equal_those_made_elsewhere(name):
    """Six digits, or the rounding of a state of size one.

    By default ``test_tableau.py`` compares the plain reading with these errors, and the next test compares with it.
    """
    problem = problems.table()
    run = advance(lgsim.METHODS[name], problem)
    errors = np.abs(final_gaps(run, problem, ORDERS["n"])).max(axis=1)
    np.testing.assert_allclose(errors, ORDERS["errors"][name], rtol=1e-6, atol=4e-15)


@pytest.mark.repeats
@pytest.mark.parametrize("name", lgsim.METHODS)
def test_integrate_takes_the_same_steps_as_a_plain_reading(name):
    """States of `integrate`, and the estimates of pairs, against numpy on SO(3)."""
    method, problem, steps = lgsim.METHODS[name], problems.table(), 4
    solution = lgsim.integrate(method, problem.action, problem.field, problem.initial, dt=1 / steps, steps=steps)

    def field(y):
        return np.array([1 + y[0, 1] + y[2, 2] * y[1, 0], 0.5 - y[1, 2] + y[0, 0] ** 2, y[2, 0] - 0.7 * y[1, 1] + 0.3])

    def step(y, estimate):
        if isinstance(method.tableau, ButcherTableau):
            weights = method.tableau.b_embedded if estimate else method.tableau.b
            return stepper.munthe_kaas(method.tableau, field, y, 1 / steps, weights)
        update = method.tableau.embedded if estimate else method.tableau.update
        return stepper.commutator_free(method.tableau, field, y, 1 / steps, update)

    y = np.eye(3)
    assert (solution.error_estimate is None) == (method.embedded_order is None)
    for k in range(steps):
        start, y = y, step(y, False)
        np.testing.assert_allclose(solution.ys[k + 1], y, rtol=0, atol=4e-15)
        if method.embedded_order is not None:
            embedded = step(start, True)
            expected = np.linalg.norm(y - embedded)
            if isinstance(method.tableau, ButcherTableau):  # the gap of the algebra vectors
                expected = np.linalg.norm(rotation_vector(y @ start.T) - rotation_vector(embedded @ start.T))
            assert abs(solution.error_estimate[k] - expected) < 1e-14


def rotation_vector(matrix):
    """Of a rotation by less than pi/2, accurate to rounding there."""
    axis = np.array([matrix[2, 1] - matrix[1, 2], matrix[0, 2] - matrix[2, 0], matrix[1, 0] - matrix[0, 1]]) / 2
    sine = np.linalg.norm(axis)
    return axis * (np.arcsin(sine) / sine)


@pytest.mark.float32
@pytest.mark.parametrize("name", default(["MK2", "CF3", "CG3"], ("MK2", "CF3")))
def test_order_in_float32(name):
    """Coefficients and nodes follow the dtype: the slope shows above the plateau of single precision."""
    method, problem = lgsim.METHODS[name], problems.table()
    single = dataclasses.replace(problem, initial=jnp.eye(3, dtype=jnp.float32))
    run = advance(method, single)

    def run_single(steps, dt):
        return run(steps, np.float32(dt))

    assert flat(run_single(4, 0.25)[0]).dtype == np.float32
    counts = [4, 5, 6, 7, 8, 10, 12, 14, 16, 20]
    assert abs(measured_order(method, single, counts, run_single, np.float32) - method.order) < WINDOW
