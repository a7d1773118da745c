"""Words in the group as data: points that an integrator reaches by composing exponentials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Commutator(NamedTuple):
    """The term coefficient * [k_left, k_right] of one row, with k = h f(Y).

    Attributes:
        row: index of the stage whose row gets the term, or the number of stages for the update.
        coefficient: factor of the bracket, dimensionless.
        left: index of the left stage value in the bracket.
        right: index of the right stage value in the bracket.
    """

    row: int
    coefficient: float
    left: int
    right: int


@dataclass(frozen=True)
class Exponentials:
    """The point exp(h rows[-1] . K) ... exp(h rows[0] . K) . Y_base.

    Attributes:
        base: index of the stage point from which the composition continues: 0 is the start of the step, Y_0 = y_n;
            another base reuses the exponentials of that stage.
        rows: `rows[j][k]` weighs the stage value K_k = f(Y_k) in the exponential j, dimensionless; the first row acts
            first. Without rows it is the point Y_base itself.

    Source: Celledoni, Marthinsen, Owren (2003), Commutator-free Lie group methods; Park, Chung (29).
    """

    base: int
    rows: tuple[tuple[float, ...], ...]
