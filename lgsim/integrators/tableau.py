"""The coefficients of explicit Lie group integrators as self-checking data.

Every tableau is checked on construction: it is explicit, its rows add up to c, and it satisfies all order conditions up
to its claimed order, and so does its embedded scheme.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from lgsim.integrators.group_words import Commutator, Exponentials
from lgsim.integrators.order_conditions import (
    classical_conditions,
    classical_residuals,
    condition_in_words,
    forest_name,
    lie_conditions,
    lie_order_residuals,
    tree_name,
)

# The shipped tableaus have residuals of at most 1e-15, the rounding of their coefficients. Published decimals with an
# error in the 14th digit have 3e-15 (a variant of CG4 in circulation), and the mildest known misprint, the rationals of
# Park and Chung's Table I(b), has 6e-7. The bound lies in between.
ORDER_TOLERANCE = 1e-12

# Rounding units: a coefficient or a node is at most this many correctly rounded operations from its exact value.
_ROUNDINGS = 4


def floats(name: str, what: str, values: Sequence[float], length: int) -> tuple[float, ...]:
    """`values` as exactly `length` finite floats: missing ones are zero, surplus ones must be zero."""
    numbers = [float(value) for value in values]
    for j, number in enumerate(numbers):
        if not math.isfinite(number):
            raise ValueError(f"{name}: {what} has the entry {number} at index {j}")
        if j >= length and number != 0:
            raise ValueError(
                f"{name}: not explicit: {what} weighs the stage value {j}, but only the first {length} are known there"
            )
    return tuple((numbers + [0.0] * length)[:length])


def _check_sum(name: str, what: str, values: Sequence[float], total: float, symbol: str) -> None:
    """Raise unless the values add up to `total` within the rounding of each of them."""
    bound = _ROUNDINGS * np.finfo(np.float64).eps * (math.fsum(map(abs, values)) + abs(total))
    added = math.fsum(values)
    if abs(added - total) > bound:
        raise ValueError(f"{name}: {what} adds up to {added:.16g}, but {symbol} = {total:.16g}")


def check_order(
    name: str,
    order: int,
    conditions: Sequence[str],
    residuals: Float[np.ndarray, " conditions"],
    words: Callable[[str], str] = condition_in_words,
) -> None:
    """Raise an error with the worst failed condition."""
    worst = int(np.argmax(np.abs(residuals)))
    if abs(residuals[worst]) > ORDER_TOLERANCE:
        failed = int(np.sum(np.abs(residuals) > ORDER_TOLERANCE))
        nodes = conditions[worst].count("[")
        said = words(conditions[worst])
        raise ValueError(
            f"{name}: order {order} is claimed, but {failed} of the {residuals.size} order conditions fail; the worst "
            f"one, of order {nodes}, is off by {residuals[worst]:.1e}: {said}"
        )


def check_pair(name: str, order: int, embedded: object, embedded_order: int | None) -> None:
    """Raise unless both orders are at least 1 and an embedded scheme has an order."""
    if order < 1:
        raise ValueError(f"{name}: the order is at least 1, not {order}")
    if (embedded is None) != (embedded_order is None):
        raise ValueError(f"{name}: an embedded scheme and its order are given together")
    if embedded_order is not None and embedded_order < 1:
        raise ValueError(f"{name}: the embedded order is at least 1, not {embedded_order}")


@dataclass(frozen=True)
class ButcherTableau:
    """An explicit Runge-Kutta method: Y_i = y_n + h sum_j a_ij K_j, y_{n+1} = y_n + h sum_i b_i K_i.

    A Munthe-Kaas method applies it to sigma' = dexpinv_sigma(f), sigma(0) = 0, in the Lie algebra. With `commutators`
    it is the form that replaces dexpinv by a few brackets: k_i = h f(Y_i), Y_i = exp(sum_j a_ij k_j + brackets) y_n.

    Attributes:
        name: the name that messages use.
        a: s rows; row i holds i weights after construction (missing ones are zero).
        b: s weights of the update.
        c: s nodes, the row sums of a. Everything is dimensionless.
        order: the order, checked for all rooted trees; with commutators for all ordered forests (left action exp(.) y).
        b_embedded: weights of the scheme that estimates the error, or None.
        embedded_order: the order of that scheme, or None.
        commutators: entries (row, coefficient, j, k) that add coefficient * [k_j, k_k] to the row of a stage, or to the
            update and the embedded scheme if row = s.

    Raises:
        ValueError: the tableau is not explicit, a row does not add up to its node, or an order condition fails by more
            than `ORDER_TOLERANCE`; the message gives the name and the fault.

    Source: Hairer, Norsett, Wanner, Solving ODEs I, II.1; Munthe-Kaas (1999); Celledoni et al. (2021), section 2.2.
    """

    name: str
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    order: int
    b_embedded: tuple[float, ...] | None = None
    embedded_order: int | None = None
    commutators: tuple[Commutator, ...] = ()

    def __post_init__(self) -> None:
        name, stages = self.name, len(self.b)
        check_pair(name, self.order, self.b_embedded, self.embedded_order)
        if len(self.a) != stages or len(self.c) != stages:
            raise ValueError(
                f"{name}: b has {stages} entries, a has {len(self.a)} rows, c has {len(self.c)}: each needs one a stage"
            )
        a = tuple(floats(name, f"row {i} of a", row, i) for i, row in enumerate(self.a))
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", floats(name, "b", self.b, stages))
        object.__setattr__(self, "c", floats(name, "c", self.c, stages))
        if self.b_embedded is not None:
            object.__setattr__(self, "b_embedded", floats(name, "b_embedded", self.b_embedded, stages))
        terms = tuple(Commutator(int(r), float(w), int(j), int(k)) for r, w, j, k in self.commutators)
        object.__setattr__(self, "commutators", terms)
        for term in terms:
            if not (0 <= term.row <= stages and 0 <= term.left < term.row and 0 <= term.right < term.row):
                raise ValueError(f"{name}: not explicit: {term} needs stage values that are not known in its row")
        for i, row in enumerate(self.a):
            _check_sum(name, f"row {i} of a", row, self.c[i], f"c[{i}]")
        self._check_weights(name, self.b, self.order)
        if self.b_embedded is not None and self.embedded_order is not None:
            self._check_weights(f"{name}, embedded scheme", self.b_embedded, self.embedded_order)

    def _check_weights(self, name: str, b: tuple[float, ...], order: int) -> None:
        trees = [tree_name(tree) for tree in classical_conditions(order)]
        check_order(name, order, trees, classical_residuals(self.a, b, order))
        if self.commutators:
            points = tuple(Exponentials(0, (row,)) for row in (*self.a, b))
            residuals = lie_order_residuals(points[:-1], points[-1], order, self.commutators)
            check_order(name, order, [forest_name(forest) for forest in lie_conditions(order)], residuals)

    @property
    def stages(self) -> int:
        """The number of stages s, which is the number of field evaluations in a step."""
        return len(self.b)

    @property
    def exponentials(self) -> int:
        """The number of different exponentials of a Munthe-Kaas step: its distinct nonzero rows."""
        rows = [(*row, *[0.0] * (self.stages - len(row))) for row in (*self.a, self.b)]
        brackets = [tuple(term[1:] for term in self.commutators if term.row == i) for i in range(len(rows))]
        return len({(row, terms) for row, terms in zip(rows, brackets, strict=True) if any(row) or terms})


@dataclass(frozen=True)
class ImplicitTableau:
    """An implicit Runge-Kutta method with full rows, ``Y_i = y_n + h sum_j a_ij K_j`` over all j.

    Attributes:
        name: the name that messages use.
        a: s rows of s weights.
        b: s weights of the update.
        c: s nodes, the row sums of a. Everything is dimensionless.
        order: the order, checked for all rooted trees.

    Raises:
        ValueError: shapes do not fit, a row does not add up to its node, or an order condition fails by more than
            `ORDER_TOLERANCE`; the message gives the name and the fault.

    Source: Hairer, Norsett, Wanner, Solving ODEs I, II.7.
    """

    name: str
    a: tuple[tuple[float, ...], ...]
    b: tuple[float, ...]
    c: tuple[float, ...]
    order: int

    def __post_init__(self) -> None:
        name, stages = self.name, len(self.b)
        check_pair(name, self.order, None, None)
        if len(self.c) != stages or [len(row) for row in self.a] != [stages] * stages:
            raise ValueError(f"{name}: b has {stages} entries, so a needs as many rows of as many weights, and c nodes")
        for i, row in enumerate(self.a):
            _check_sum(name, f"row {i} of a", row, self.c[i], f"c[{i}]")
        trees = [tree_name(tree) for tree in classical_conditions(self.order)]
        check_order(name, self.order, trees, classical_residuals(self.a, self.b, self.order))

    @property
    def stages(self) -> int:
        """The number of stages s, which are solved together."""
        return len(self.b)

    @property
    def embedded_order(self) -> None:
        """None: the method has no error estimate."""
        return None

    @property
    def symmetric(self) -> bool:
        """True if the method is its own adjoint: ``a_(s-1-i, s-1-j) + a_ij = b_j``, and b is palindromic."""
        a, b = np.array(self.a), np.array(self.b)
        bound = _ROUNDINGS * np.finfo(np.float64).eps
        return bool(np.all(abs(a[::-1, ::-1] + a - b) <= bound) and np.all(abs(b[::-1] - b) <= bound))


@dataclass(frozen=True)
class CommutatorFreeTableau:
    """An explicit method whose points are compositions of exponentials of linear combinations of K_i = f(Y_i).

    Attributes:
        name: the name that messages use.
        stages: the s points Y_i; the first is the start of the step, `Exponentials(0, ())`. Row weights after
            construction: i in each row of stage i, s in each row of the update (missing ones are zero).
        update: the point y_{n+1}; it may continue from any stage.
        c: s nodes: the total weight of stage i along its bases. Everything is dimensionless.
        order: the order, checked for all ordered forests.
        embedded: the point that estimates the error, or None. Its rows weigh the s stages and then the extra ones.
        embedded_order: the order of that scheme, or None.
        embedded_stages: extra stages s, s+1, ... that only `embedded` uses (not evaluated for the update).
        embedded_c: the nodes of the extra stages.

    Raises:
        ValueError: see `ButcherTableau`; the message gives the name and the fault.

    Source: Celledoni, Marthinsen, Owren (2003); Park, Chung (29); Celledoni et al. (2021), sections 2.2 and 4.2.
    """

    name: str
    stages: tuple[Exponentials, ...]
    update: Exponentials
    c: tuple[float, ...]
    order: int
    embedded: Exponentials | None = None
    embedded_order: int | None = None
    embedded_stages: tuple[Exponentials, ...] = ()
    embedded_c: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        name, count, extra = self.name, len(self.stages), len(self.embedded_stages)
        check_pair(name, self.order, self.embedded, self.embedded_order)
        if len(self.c) != count or len(self.embedded_c) != extra:
            raise ValueError(
                f"{name}: {count} + {extra} stages, but {len(self.c)} + {len(self.embedded_c)} nodes in c, embedded_c"
            )
        if extra and self.embedded is None:
            raise ValueError(f"{name}: extra stages are for an embedded scheme, got no such scheme")
        if not self.stages or self.stages[0] != Exponentials(0, ()):
            raise ValueError(f"{name}: stage 0 is the start of the step, Exponentials(0, ())")
        points = [self._normal(f"stage {i}", point, i) for i, point in enumerate((*self.stages, *self.embedded_stages))]
        object.__setattr__(self, "stages", tuple(points[:count]))
        object.__setattr__(self, "embedded_stages", tuple(points[count:]))
        object.__setattr__(self, "update", self._normal("the update", self.update, count))
        object.__setattr__(self, "c", floats(name, "c", self.c, count))
        object.__setattr__(self, "embedded_c", floats(name, "embedded_c", self.embedded_c, extra))
        nodes = (*self.c, *self.embedded_c)
        for i, point in enumerate(points):
            weights = [weight for row in point.rows for weight in row]
            _check_sum(
                name, f"stage {i} (base and rows)", [nodes[point.base] if i else 0.0, *weights], nodes[i], f"c[{i}]"
            )
        forests = [forest_name(forest) for forest in lie_conditions(self.order)]
        check_order(name, self.order, forests, lie_order_residuals(self.stages, self.update, self.order))
        if self.embedded is not None and self.embedded_order is not None:
            embedded = self._normal("the embedded scheme", self.embedded, count + extra)
            object.__setattr__(self, "embedded", embedded)
            forests = [forest_name(forest) for forest in lie_conditions(self.embedded_order)]
            residuals = lie_order_residuals(points, embedded, self.embedded_order)
            check_order(f"{name}, embedded scheme", self.embedded_order, forests, residuals)

    def _normal(self, what: str, point: Exponentials, known: int) -> Exponentials:
        """The point with rows of `known` weights; it must continue from one of the first `known` points."""
        if not 0 <= point.base < max(known, 1):
            raise ValueError(f"{self.name}: not explicit: {what} continues from the point {point.base}")
        return Exponentials(point.base, tuple(floats(self.name, f"a row of {what}", row, known) for row in point.rows))

    @property
    def exponentials(self) -> int:
        """The number of exponentials in a step, without those used only by the embedded scheme."""
        return sum(len(point.rows) for point in (*self.stages, self.update))


def crouch_grossman(
    name: str, a: Sequence[Sequence[float]], b: Sequence[float], c: Sequence[float], order: int
) -> CommutatorFreeTableau:
    """The tableau of Y_i = exp(h a_{i,i-1} K_{i-1}) ... exp(h a_i1 K_1) y_n; a zero coefficient has no exponential.

    Args:
        name: the name that messages use.
        a: s rows; row i weighs the stage values 0 .. i-1.
        b: s weights of the update.
        c: s nodes, the row sums of a.
        order: the order, checked for all ordered forests.

    Raises:
        ValueError: see `CommutatorFreeTableau`.

    Source: Crouch, Grossman (1993); Park, Chung (28).
    """

    def point(row: Sequence[float]) -> Exponentials:
        return Exponentials(0, tuple((0.0,) * j + (float(weight),) for j, weight in enumerate(row) if weight != 0))

    return CommutatorFreeTableau(name, tuple(point(row) for row in a), point(b), tuple(float(x) for x in c), order)
