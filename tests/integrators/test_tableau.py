"""The tableaus: order conditions against known values, every shipped method, and faults that must be refused."""

import json
from dataclasses import replace
from math import fsum
from pathlib import Path

import numpy as np
import pytest

import lgsim
from lgsim.integrators.group_words import Commutator, Exponentials
from lgsim.integrators.order_conditions import (
    classical_conditions,
    classical_residuals,
    condition_in_words,
    density,
    forest_name,
    lie_conditions,
    lie_order_residuals,
    node_count,
    ordered_forests,
    ordered_trees,
    rooted_trees,
)
from lgsim.integrators.tableau import ButcherTableau, CommutatorFreeTableau, crouch_grossman
from tests.integrators.stepper import integrate

SHIPPED = {name: method.tableau for name, method in lgsim.METHODS.items()}
PAIRS = {name: tableau for name, tableau in SHIPPED.items() if tableau.embedded_order is not None}
COMPOSED = {name: tableau for name, tableau in SHIPPED.items() if isinstance(tableau, CommutatorFreeTableau)}
ORACLE = json.loads((Path(__file__).parents[1] / "data" / "method_orders.json").read_text())

# Rounding of the coefficients leaves 6e-16; a wrong 14th digit in CG4 leaves 3e-15.
ROUNDING = 1e-15


def residuals(tableau, order, estimate=False):
    """Nodes and absolute residual of every condition, of the method or of its estimate."""
    if isinstance(tableau, ButcherTableau) and not tableau.commutators:
        weights = tableau.b_embedded if estimate else tableau.b
        conditions = classical_conditions(order)
        nodes = [1 + node_count(tree) for tree in conditions]
        values = classical_residuals(tableau.a, weights, order)
    else:
        if isinstance(tableau, ButcherTableau):
            stages = tuple(Exponentials(0, (row,)) for row in tableau.a)
            update, terms = Exponentials(0, (tableau.b,)), tableau.commutators
        elif estimate:
            stages, update, terms = (*tableau.stages, *tableau.embedded_stages), tableau.embedded, ()
        else:
            stages, update, terms = tableau.stages, tableau.update, ()
        nodes = [node_count(forest) for forest in lie_conditions(order)]
        values = lie_order_residuals(stages, update, order, terms)
    return np.array(nodes), np.abs(values)


def field(y):
    """The field of tests/data/method_orders.json."""
    return np.array([1 + y[0, 1] + y[2, 2] * y[1, 0], 0.5 - y[1, 2] + y[0, 0] ** 2, y[2, 0] - 0.7 * y[1, 1] + 0.3])


def error(tableau, steps, estimate=False):
    return np.max(np.abs(integrate(tableau, field, np.eye(3), steps, estimate) - np.array(ORACLE["Y1"])))


# The conditions themselves.


def test_numbers_of_trees():
    # Cayley; Hairer, Norsett, Wanner I, Table II.2.1, and the Catalan numbers.
    assert [len(set(rooted_trees(n))) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]
    assert [len(set(ordered_trees(n))) for n in range(1, 6)] == [1, 1, 2, 5, 14]
    assert [len(set(ordered_forests(n))) for n in range(6)] == [1, 1, 2, 5, 14, 42]
    with pytest.raises(ValueError, match="at least one node"):
        rooted_trees(0)


def test_densities():
    # Hairer, Norsett, Wanner I, Table II.2.1: the trees of order 4 have gamma 4, 8, 12, 24.
    assert sorted(density(tree) for tree in rooted_trees(4)) == [4, 8, 12, 24]


def test_classical_residuals_of_order_four_by_hand():
    rng = np.random.default_rng(0)
    a, b = np.tril(rng.normal(size=(5, 5)), -1), rng.normal(size=5)
    c = a.sum(axis=1)
    by_hand = [
        b.sum() - 1,
        b @ c - 1 / 2,
        b @ c**2 - 1 / 3,
        b @ a @ c - 1 / 6,
        b @ c**3 - 1 / 4,
        b @ (c * (a @ c)) - 1 / 8,
        b @ a @ c**2 - 1 / 12,
        b @ a @ a @ c - 1 / 24,
    ]
    rows = [tuple(row[:i]) for i, row in enumerate(a)]
    np.testing.assert_allclose(sorted(classical_residuals(rows, tuple(b), 4)), sorted(by_hand), rtol=0, atol=1e-13)


def test_crouch_grossman_condition_of_order_three_by_hand():
    # Hairer, Lubich, Wanner, Geometric Numerical Integration, IV.8.1: beside the classical conditions, order 3 asks for
    # sum b_i^2 c_i + 2 sum_{i<j} b_i c_i b_j = 1/3; the forests [[]][] and [[][]] carry half of theirs.
    rng = np.random.default_rng(1)
    a, b = np.tril(rng.normal(size=(4, 4)), -1), rng.normal(size=4)
    c = a.sum(axis=1)
    by_hand = b**2 @ c + 2 * sum(b[i] * c[i] * b[j] for j in range(4) for i in range(j)) - 1 / 3
    stages = [Exponentials(0, tuple((0.0,) * j + (row[j],) for j in range(i))) for i, row in enumerate(a)]
    update = Exponentials(0, tuple((0.0,) * j + (b[j],) for j in range(4)))
    names = [forest_name(forest) for forest in lie_conditions(3)]
    found = dict(zip(names, lie_order_residuals(stages, update, 3), strict=True))
    np.testing.assert_allclose(2 * found["[[]][]"], by_hand, rtol=0, atol=1e-14)
    np.testing.assert_allclose(2 * found["[[][]]"], b @ c**2 - 1 / 3, rtol=0, atol=1e-14)
    # The left end acts first: its mirror image is another condition.
    assert abs(2 * found["[][[]]"] - by_hand) > 1e-2


# The shipped tableaus.


def test_everything_is_shipped():
    assert len(SHIPPED) == 20
    assert len({tableau.name for tableau in SHIPPED.values()}) == 20
    assert len({hash(tableau) for tableau in SHIPPED.values()}) == 20


@pytest.mark.parametrize("name", SHIPPED)
def test_order_is_the_claimed_one(name):
    tableau = SHIPPED[name]
    nodes, values = residuals(tableau, tableau.order + 1)
    assert values[nodes <= tableau.order].max() < ROUNDING
    # and no more: some condition of the next order fails (the mildest, 5e-5, is the one of Cooper and Verner)
    assert values[nodes > tableau.order].max() > 2e-5


@pytest.mark.parametrize("name", PAIRS)
def test_order_of_the_estimate_is_the_claimed_one(name):
    tableau = PAIRS[name]
    nodes, values = residuals(tableau, tableau.embedded_order + 1, estimate=True)
    assert values[nodes <= tableau.embedded_order].max() < ROUNDING
    assert values[nodes > tableau.embedded_order].max() > 1e-4
    assert tableau.embedded_order == tableau.order - 1


@pytest.mark.parametrize("name", COMPOSED)
def test_commuting_exponentials_leave_a_runge_kutta_method(name):
    # Celledoni et al. (2021), section 2.2: a_kr = sum_j alpha^k_{r,j} and b_r = sum_j beta^j_r.
    tableau = COMPOSED[name]
    count = len(tableau.stages)
    sums = []
    for target in (*tableau.stages, tableau.update):
        total = np.array(sums[target.base]) if sums else np.zeros(count)
        for row in target.rows:
            total[: len(row)] += row
        sums.append(total)
    np.testing.assert_allclose(np.sum(sums[:-1], axis=1), tableau.c, rtol=0, atol=1e-15)
    rows = [row[:i].tolist() for i, row in enumerate(sums[:-1])]
    assert np.abs(classical_residuals(rows, sums[-1].tolist(), tableau.order)).max() < ROUNDING


@pytest.mark.parametrize(
    ("name", "count"),
    # Park, Chung, Table X, column exp.
    [
        *[("CG2", 3), ("CF2", 3), ("MK2", 2), ("CG3", 6), ("CF3", 3), ("MK3", 3), ("CG4", 15), ("CF4", 5), ("MK4", 4)],
        # nine stages with no zero: 9 * 10 / 2
        ("CG5", 45),
    ],
)
def test_exponentials_of_a_step(name, count):
    assert SHIPPED[name].exponentials == count


def test_a_last_stage_that_is_the_update_costs_no_exponential():
    assert lgsim.MK54.tableau.exponentials == 6
    assert lgsim.MK4TwoCommutators.tableau.exponentials == 4


# Whole methods.


@pytest.mark.parametrize("name", ORACLE["errors"])
def test_errors_on_rotations(name):
    method, _, estimate = name.partition(" ")
    found = [error(SHIPPED[method], n, bool(estimate)) for n in ORACLE["n"]]
    # Six digits of an error of 5e-9 are 5e-15: rounding of the 64 steps.
    np.testing.assert_allclose(found, ORACLE["errors"][name], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "steps", "estimate"),
    [
        ("LieEuler", 64, False),
        ("MK2Midpoint", 32, False),
        ("MK5", 8, False),
        ("MK54", 8, False),
        ("MK54", 8, True),
        ("MK6", 4, False),
        ("MK8", 4, False),
        ("CF2", 16, False),
        ("CF43", 16, False),
        ("CG5", 8, False),
    ],
)
def test_order_of_convergence_on_rotations(name, steps, estimate):
    tableau = SHIPPED[name]
    order = tableau.embedded_order if estimate else tableau.order
    observed = np.log2(error(tableau, steps, estimate) / error(tableau, 4 * steps, estimate)) / 2
    assert abs(observed - order) < 0.3


# Faults.


def test_rows_add_up_to_the_nodes():
    with pytest.raises(ValueError, match=r"mine: row 1 of a adds up to 1, but c\[1\] = 0\.9"):
        replace(lgsim.MK2.tableau, name="mine", c=(0.0, 0.9))
    with pytest.raises(ValueError, match=r"mine: stage 3 \(base and rows\) adds up to 1, but c\[3\] = 0\.5"):
        replace(lgsim.CF4.tableau, name="mine", c=(0.0, 0.5, 0.5, 0.5))
    with pytest.raises(ValueError, match=r"mine: stage 4 \(base and rows\) adds up to 0\.75, but c\[4\] = 0\.5"):
        replace(lgsim.CF43.tableau, name="mine", embedded_c=(0.5,))


def test_implicit_rows_are_refused():
    with pytest.raises(ValueError, match="trapezoid: not explicit: row 1 of a weighs the stage value 1"):
        ButcherTableau("trapezoid", a=((), (0.5, 0.5)), b=(0.5, 0.5), c=(0.0, 1.0), order=2)
    with pytest.raises(ValueError, match=r"late: not explicit: Commutator.* needs stage values that are not known"):
        replace(lgsim.MK4.tableau, name="late", commutators=(Commutator(2, -1 / 8, 1, 2),))
    stages = (Exponentials(0, ()), Exponentials(0, ((0.0, 1.0),)))
    with pytest.raises(ValueError, match="late: not explicit: a row of stage 1 weighs the stage value 1"):
        CommutatorFreeTableau("late", stages, Exponentials(0, ((0.5, 0.5),)), (0.0, 1.0), 2)
    stages = (Exponentials(0, ()), Exponentials(1, ((1.0,),)))
    with pytest.raises(ValueError, match="late: not explicit: stage 1 continues from the point 1"):
        CommutatorFreeTableau("late", stages, Exponentials(0, ((0.5, 0.5),)), (0.0, 1.0), 2)


def test_conditions_in_words():
    """Hairer, Norsett, Wanner I, II.2, Table 2.2: the formulas of trees of up to four nodes."""
    formulas = {
        "[]": "sum_i b_i = 1/1",
        "[[]]": "sum_i b_i c_i = 1/2",
        "[[][]]": "sum_i b_i c_i c_i = 1/3",
        "[[[]]]": "sum_ij b_i a_ij c_j = 1/6",
        "[[][[]]]": "sum_ij b_i c_i a_ij c_j = 1/8",
        "[[[[]]]]": "sum_ijk b_i a_ij a_jk c_k = 1/24",
        "[][[]]": "that of the rooted trees [][[]], in which each pair of brackets is a node with its children inside",
    }
    assert {name: condition_in_words(name) for name in formulas} == formulas


def test_a_wrong_order_is_refused():
    with pytest.raises(
        ValueError,
        match=r"RK4: order 5 is claimed, but \d+ of the 17 order conditions fail; the worst one, of order 5, is",
    ):
        replace(lgsim.MK4.tableau, order=5)
    with pytest.raises(ValueError, match=r"the worst one, of order 2, is off by -2.0e-01: sum_i b_i c_i = 1/2$"):
        ButcherTableau("x", a=((), (1.0,)), b=(0.5, 0.3), c=(0.0, 1.0), order=2)
    with pytest.raises(ValueError, match=r"CF4: order 5 is claimed, but \d+ of the 64 order conditions fail"):
        replace(lgsim.CF4.tableau, order=5)
    with pytest.raises(ValueError, match=r"Dormand-Prince 5\(4\), embedded scheme: order 5 is claimed"):
        replace(lgsim.MK54.tableau, embedded_order=5)
    with pytest.raises(ValueError, match="CF43, embedded scheme: order 4 is claimed"):
        replace(lgsim.CF43.tableau, embedded_order=4)
    with pytest.raises(ValueError, match="RK4: the order is at least 1, not 0"):
        replace(lgsim.MK4.tableau, order=0)


def test_the_order_of_the_last_factors_of_cf4_matters():
    update = Exponentials(0, lgsim.CF4.tableau.update.rows[::-1])
    with pytest.raises(ValueError, match=r"CF4: order 4 is claimed, but .* off by"):
        replace(lgsim.CF4.tableau, update=update)
    assert replace(lgsim.CF4.tableau, update=update, order=2).order == 2


def test_the_signs_of_the_commutators_matter():
    good = lgsim.MK4TwoCommutators.tableau
    flipped = tuple(term._replace(coefficient=-term.coefficient) for term in good.commutators)
    with pytest.raises(ValueError, match="order 4 is claimed"):
        replace(good, commutators=flipped)
    with pytest.raises(ValueError, match="order 4 is claimed"):
        replace(good, commutators=good.commutators[:1])
    assert replace(good, commutators=flipped, order=2).order == 2


def test_cg3_as_printed_is_refused():
    # Park, Chung, Table I(a), prints a_21 = 3/24.
    b = (13 / 51, -2 / 3, 24 / 17)
    rows = ((), (3 / 24,), (119 / 216, 17 / 108))
    with pytest.raises(ValueError, match=r"CG3: stage 1 \(base and rows\) adds up to 0\.125, but c\[1\] = 0\.75"):
        crouch_grossman("CG3", rows, b, (0.0, 3 / 4, 17 / 24), 3)
    with pytest.raises(ValueError, match="CG3: order 3 is claimed"):
        crouch_grossman("CG3", rows, b, (0.0, 3 / 24, 17 / 24), 3)


def test_the_rationals_of_cg4_are_refused():
    # Park, Chung, Table I(b): they approximate the decimals to 1e-6.
    rows = (
        (),
        (1458 / 1783,),
        (1039 / 3247, 97 / 1470),
        (997 / 1082, 1167 / 2335, -475 / 433),
        (173 / 487, 751 / 3141, 547 / 393, -680 / 613),
    )
    b = (407 / 2969, -135 / 7349, 543 / 734, -267 / 1400, 696 / 2095)
    nodes = (0.0, 1458 / 1783, 743 / 1925, 368 / 1135, 406 / 463)
    with pytest.raises(ValueError, match=r"CG4: stage 2 \(base and rows\) adds up to"):
        crouch_grossman("CG4", rows, b, nodes, 4)
    with pytest.raises(ValueError, match=r"CG4: order 4 is claimed, but .* off by -?\d\.\de-0[67]"):
        crouch_grossman("CG4", rows, b, tuple(fsum(row) for row in rows), 4)


def test_a_wrong_digit_of_cg4_shows():
    # The variant of a_54 that circulates leaves 3e-15, more than the test of the shipped tableaus allows.
    good = lgsim.CG4.tableau
    rows = [[fsum(weights) for weights in stage.rows] for stage in good.stages]
    rows[4][3] = -1.1092979392113565
    variant = crouch_grossman("CG4", rows, [fsum(w) for w in good.update.rows], [fsum(row) for row in rows], 4)
    _, values = residuals(variant, 4)
    assert values.max() > 2 * ROUNDING


def test_incomplete_data_is_refused():
    with pytest.raises(ValueError, match="RK4: b has 3 entries, a has 4 rows"):
        replace(lgsim.MK4.tableau, b=(0.5, 0.25, 0.25))
    with pytest.raises(ValueError, match="Heun: b has the entry nan at index 1"):
        replace(lgsim.MK2.tableau, b=(0.5, float("nan")))
    with pytest.raises(ValueError, match="Heun: an embedded scheme and its order are given together"):
        replace(lgsim.MK2.tableau, embedded_order=1)
    with pytest.raises(ValueError, match="Heun: the embedded order is at least 1, not 0"):
        replace(lgsim.MK2.tableau, b_embedded=(1.0, 0.0), embedded_order=0)
    with pytest.raises(ValueError, match=r"CF3: 3 \+ 0 stages, but 2 \+ 0 nodes"):
        replace(lgsim.CF3.tableau, c=(0.0, 1 / 3))
    with pytest.raises(ValueError, match="CF43: extra stages are for an embedded scheme"):
        replace(lgsim.CF43.tableau, embedded=None, embedded_order=None)
    with pytest.raises(ValueError, match="CF3: stage 0 is the start of the step"):
        replace(lgsim.CF3.tableau, stages=lgsim.CF3.tableau.stages[::-1])


def test_full_matrices_are_taken():
    a = ((0.0, 0.0, 0.0), (1 / 3, 0.0, 0.0), (0.0, 2 / 3, 0.0))
    mine = ButcherTableau("RK3", a, (1 / 4, 0.0, 3 / 4), (0.0, 1 / 3, 2 / 3), 3)
    assert mine == lgsim.MK3.tableau
    assert hash(mine) == hash(lgsim.MK3.tableau)
    numpy_floats = replace(mine, b=tuple(np.array(mine.b)))
    assert all(type(weight) is float for weight in numpy_floats.b)
