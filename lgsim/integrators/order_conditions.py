"""Order conditions of Runge-Kutta methods and of Lie group methods made of exponentials.

Classical: the rooted trees, b . phi(tau) = 1 / gamma(tau).

Lie-Butcher: an integrator and the exact flow both act on functions as series in the frozen derivatives of the field.
The coefficients sit on ordered forests, and a method has order p when the two series agree on all forests of at most p
nodes. A point Y has coefficients alpha on forests; the stage value f(Y) has coefficients phi on trees, phi(tau) =
alpha(children of tau). An element of the Lie algebra made of stage values is a series too, with the exponential of
the concatenation product. A composition of maps is the concatenation product of their series, the map that acts first
being the left factor. The exact flow obeys |omega tau| alpha(omega tau) = alpha(omega) alpha(children of tau).

Sources: Hairer, Norsett, Wanner, Solving ODEs I, II.2; Owren, Marthinsen (1999), Runge-Kutta methods adapted to
manifolds and based on rigid frames; Owren (2006), Order conditions for commutator-free Lie group methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations_with_replacement, product
from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from lgsim.integrators.group_words import Commutator, Exponentials

# A tree is the tuple of the subtrees at its root, and a forest is a tuple of trees: the same nested tuple is a
# tree or the forest of its children, depending on the name of the variable.
Coefficients = Sequence[float]
Residuals = Float[np.ndarray, " conditions"]
Series = Float[np.ndarray, " forests"]  # the coefficient of each forest, the empty one first


@lru_cache
def node_count(forest: tuple) -> int:
    """The number of nodes of a forest; a tree has one node more than the forest of its children."""
    return sum(1 + node_count(tree) for tree in forest)


def tree_name(tree: tuple) -> str:
    """The name of a tree in brackets: `[]` is the single node, `[[][]]` a root with two leaves."""
    return "[" + "".join(tree_name(child) for child in tree) + "]"


def forest_name(forest: tuple) -> str:
    """The name of a forest: the brackets of its trees, one after the other."""
    return "".join(tree_name(tree) for tree in forest)


def condition_in_words(name: str) -> str:
    """The order condition of a forest given by name: a formula for a single tree, otherwise a description.

    ``[[]]``, a root with one leaf, is ``sum_i b_i c_i = 1/2``, and ``[[][[]]]`` is
    ``sum_ij b_i c_i a_ij c_j = 1/8``. Source: Hairer, Norsett, Wanner, Solving ODEs I, II.2.
    """
    forest = forest_of(name)
    if len(forest) != 1:
        return brackets_in_words(name)
    letters: list[str] = []

    def weight(tree: tuple) -> str:
        letter = chr(ord("i") + len(letters))
        letters.append(letter)
        return letter + "".join(f" a_{letter}{weight(child)}" if child else f" c_{letter}" for child in tree)

    found = weight(forest[0])
    return f"sum_{''.join(letters)} b_{found} = 1/{density(forest[0])}"


def brackets_in_words(name: str) -> str:
    """A description of the brackets of a name, for conditions without a formula as short as for Runge-Kutta methods."""
    return f"that of the rooted trees {name}, in which each pair of brackets is a node with its children inside"


def forest_of(name: str) -> tuple:
    """The forest of a name, the inverse of ``forest_name``."""
    stack: list[list[tuple]] = [[]]
    for letter in name:
        if letter == "[":
            stack.append([])
        else:
            tree = tuple(stack.pop())
            stack[-1].append(tree)
    return tuple(stack[0])


def _partitions(total: int, largest: int) -> list[dict[int, int]]:
    """All partitions of `total` into parts of at most `largest`: {part: how many}."""
    if total == 0:
        return [{}]
    if largest == 0:
        return []
    partitions = []
    for count in range(total // largest + 1):
        for rest in _partitions(total - count * largest, largest - 1):
            partitions.append({largest: count, **rest} if count else rest)
    return partitions


@lru_cache
def rooted_trees(nodes: int) -> tuple[tuple, ...]:
    """All rooted trees with this many nodes (1, 1, 2, 4, 9, 20, 48, 115, ... for 1, 2, ... nodes)."""
    if nodes < 1:
        raise ValueError(f"a rooted tree has at least one node, not {nodes}")
    trees = []
    for parts in _partitions(nodes - 1, nodes - 1):
        choices = [list(combinations_with_replacement(rooted_trees(size), count)) for size, count in parts.items()]
        trees += [sum(chosen, ()) for chosen in product(*choices)]
    return tuple(trees)


@lru_cache
def ordered_trees(nodes: int) -> tuple[tuple, ...]:
    """All ordered (planar) trees with this many nodes (1, 1, 2, 5, 14, ... for 1, 2, ... nodes)."""
    if nodes < 1:
        raise ValueError(f"an ordered tree has at least one node, not {nodes}")
    return ordered_forests(nodes - 1)


@lru_cache
def ordered_forests(nodes: int) -> tuple[tuple, ...]:
    """All ordered forests with this many nodes (1, 1, 2, 5, 14, 42, ... for 0, 1, ... nodes)."""
    if nodes == 0:
        return ((),)
    return tuple(
        (tree, *rest)
        for first in range(1, nodes + 1)
        for tree in ordered_trees(first)
        for rest in ordered_forests(nodes - first)
    )


def classical_conditions(order: int) -> tuple[tuple, ...]:
    """The rooted trees of at most `order` nodes, in the order of the entries of `classical_residuals`."""
    return tuple(tree for nodes in range(1, order + 1) for tree in rooted_trees(nodes))


@lru_cache
def density(tree: tuple) -> int:
    """gamma(tau) = |tau| times the densities of the subtrees at the root (Hairer, Norsett, Wanner I, II.2)."""
    return (1 + node_count(tree)) * prod(density(child) for child in tree)


def classical_residuals(a: Sequence[Coefficients], b: Coefficients, order: int) -> Residuals:
    """Residual b . phi(tau) - 1 / gamma(tau) of every rooted tree of at most `order` nodes; phi = prod A phi(child).

    Args:
        a: rows of the tableau; row i holds at most i entries (explicit), missing ones are zero.
        b: the s weights of the update.

    Returns:
        The residuals in the order of `classical_conditions(order)`, shape (trees,), dimensionless.
    """
    stages = len(b)
    matrix = np.zeros((stages, stages))
    for i, row in enumerate(a):
        matrix[i, : len(row)] = row
    weights = np.asarray(b, dtype=np.float64)
    phi: dict[tuple, Float[np.ndarray, " stages"]] = {}
    branch: dict[tuple, Float[np.ndarray, " stages"]] = {}
    residuals = []
    for tree in classical_conditions(order):
        phi[tree] = np.ones(stages)
        for child in tree:
            phi[tree] = phi[tree] * branch[child]
        branch[tree] = matrix @ phi[tree]
        residuals.append(weights @ phi[tree] - 1 / density(tree))
    return np.asarray(residuals)


def linearly_implicit_residuals(
    alpha: Float[np.ndarray, "stages stages"],
    beta: Float[np.ndarray, "stages stages"],
    b: Float[np.ndarray, " stages"],
    order: int,
) -> Residuals:
    """Residual b . phi(tau) - 1 / gamma(tau) of every rooted tree of at most `order` nodes for a Rosenbrock method.

    phi is a product over the children of a node, of beta phi(child) for a single child and of alpha phi(child) for
    several: linear terms act through the Jacobian too.

    Args:
        alpha: the weights of the points of the stages.
        b: the weights of the update.

    Returns:
        The residuals in the order of `classical_conditions(order)`, shape (trees,), dimensionless.

    Source: Hairer, Wanner, Solving ODEs II, IV.7, theorem 7.4.
    """
    phi: dict[tuple, Float[np.ndarray, " stages"]] = {}
    residuals = []
    for tree in classical_conditions(order):
        weights = beta if len(tree) == 1 else alpha
        phi[tree] = np.prod([np.ones(len(b)), *(weights @ phi[child] for child in tree)], axis=0)
        residuals.append(b @ phi[tree] - 1 / density(tree))
    return np.asarray(residuals)


class _Series(NamedTuple):
    """Index tables of series on the ordered forests of at most `order` nodes; entry 0 is the empty forest.

    Attributes:
        exact: the coefficients of the exact flow, (forests,).
        single: for each tree the index of the forest with only this tree, (trees,).
        children: for each tree the index of the forest of its children, (trees,).
        starts: for each forest the first of its splits into a left and a right forest, (forests,).
        left: for each split the index of the left forest, (splits,).
        right: for each split the index of the right forest, (splits,).
    """

    order: int
    exact: Series
    single: Int[np.ndarray, " trees"]
    children: Int[np.ndarray, " trees"]
    starts: Int[np.ndarray, " forests"]
    left: Int[np.ndarray, " splits"]
    right: Int[np.ndarray, " splits"]

    def concatenate(self, first: Series, second: Series) -> Series:
        """The concatenation product: the coefficient of a forest sums over its splits into left and right."""
        return np.add.reduceat(first[self.left] * second[self.right], self.starts)

    def exponential(self, element: Series) -> Series:
        """1 + e + e^2/2! + ... in the concatenation product, by Horner's rule; e has no empty forest."""
        one = np.zeros_like(self.exact)
        one[0] = 1
        power = one
        for m in range(self.order, 0, -1):
            power = one + self.concatenate(element, power) / m
        return power


@lru_cache
def _series(order: int) -> _Series:
    """The tables for at most `order` nodes, with the coefficients of the exact flow by their recursion."""
    forests = [forest for nodes in range(order + 1) for forest in ordered_forests(nodes)]
    index = {forest: i for i, forest in enumerate(forests)}
    trees = [tree for nodes in range(1, order + 1) for tree in ordered_trees(nodes)]
    splits = [[(index[forest[:cut]], index[forest[cut:]]) for cut in range(len(forest) + 1)] for forest in forests]
    left, right = np.array(list(chain.from_iterable(splits)), dtype=np.intp).T
    starts = np.cumsum([0, *map(len, splits)], dtype=np.intp)[:-1]
    exact = np.ones(len(forests))
    for i, forest in enumerate(forests[1:], start=1):
        exact[i] = exact[index[forest[:-1]]] * exact[index[forest[-1]]] / node_count(forest)
    return _Series(
        order,
        exact,
        np.array([index[(tree,)] for tree in trees], dtype=np.intp),
        np.array([index[tree] for tree in trees], dtype=np.intp),
        starts,
        left,
        right,
    )


def lie_conditions(order: int) -> tuple[tuple, ...]:
    """The ordered forests of 1 to `order` nodes, in the order of the entries of `lie_order_residuals`.

    They outnumber the independent conditions (1, 1, 3, 8, 25 with 1 to 5 nodes), since the coefficients of products of
    exponentials obey the shuffle relations. All of them can be satisfied together.
    """
    return tuple(forest for nodes in range(1, order + 1) for forest in ordered_forests(nodes))


def lie_order_residuals(
    stages: Sequence[Exponentials],
    update: Exponentials,
    order: int,
    commutators: Sequence[Commutator] = (),
) -> Residuals:
    """Coefficient of the method minus that of the exact flow, for every ordered forest of at most `order` nodes.

    The method is for a left action: y' = f(y) . y, each point is exp(h rows[-1] . K) ... exp(h rows[0] . K) . Y_base.

    Args:
        stages: the points Y_0, Y_1, ...; explicit, so the rows of stage i weigh at most the values 0 .. i-1.
        update: the point whose coefficients are compared.
        commutators: terms added to the last exponential of a stage, or of the update (row = len(stages)).

    Returns:
        The residuals in the order of `lie_conditions(order)`, shape (forests,), dimensionless.
    """
    series = _series(order)
    points: list[Series] = []
    values: list[Series] = []
    start = np.zeros_like(series.exact)
    start[0] = 1
    for i, target in enumerate((*stages, update)):
        point = points[target.base] if i else start
        for j, row in enumerate(target.rows):
            element = np.zeros_like(start)
            for weight, value in zip(row, values, strict=False):
                element = element + weight * value
            if j == len(target.rows) - 1:
                for term in commutators:
                    if term.row == i:
                        # On vector fields of a left action the bracket changes its sign: [u, v] means v u - u v.
                        u, v = values[term.left], values[term.right]
                        bracket = series.concatenate(v, u) - series.concatenate(u, v)
                        element = element + term.coefficient * bracket
            point = series.concatenate(point, series.exponential(element))
        points.append(point)
        value = np.zeros_like(start)
        value[series.single] = point[series.children]
        values.append(value)
    return (points[-1] - series.exact)[1:]
