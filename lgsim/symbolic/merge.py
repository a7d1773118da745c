"""Trigonometric polynomials with the angles of parallel axes merged: ``cos a cos b - sin a sin b = cos(a + b)``."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, no_type_check

from lgsim.symbolic.arithmetics.trigonometric import Polynomial, Trigonometric

_RULES = (  # cosine of the sum and the difference, sine of them: (first pair, second pair, sign of the second)
    ("cos", 1, ("cos", "cos"), ("sin", "sin"), -1),
    ("cos", -1, ("cos", "cos"), ("sin", "sin"), 1),
    ("sin", 1, ("sin", "cos"), ("cos", "sin"), 1),
    ("sin", -1, ("sin", "cos"), ("cos", "sin"), -1),
)


def merged(ring: Trigonometric, x: Any) -> Any:
    """An entry of the ring as a sympy expression, with pairs of angles merged where that reduces the terms."""
    entry = x if isinstance(x, Polynomial) else ring.constant(x)
    terms = {_factors(ring, monomial): coefficient for monomial, coefficient in entry.p.terms()}
    done: set[frozenset] = set()
    while True:
        sums = sorted({angle for turns, _ in terms for _, angle in turns})
        pairs = [p for p in combinations(sums, 2) if frozenset(p) not in done]
        if not pairs:
            break
        for pair in pairs:
            done.add(frozenset(pair))
            terms = _with_pair(terms, *pair)
    return _expression(ring, terms)


Turn = tuple[str, tuple[tuple[str, int], ...]]
"""A sine or cosine, and its angles with their multiples."""


@no_type_check  # at run time: checking a call takes longer than the call
def _factors(ring: Trigonometric, monomial: tuple[int, ...]) -> tuple:
    """A monomial as (sines and cosines, one for each power; powers of the other symbols)."""
    count = len(ring.angles)
    turns = []
    for i in range(2 * count):
        name = "sin" if i < count else "cos"
        turns += [(name, ((ring.angles[i % count], 1),))] * monomial[i]
    return tuple(sorted(turns)), monomial[2 * count :]


@no_type_check  # at run time: checking a call takes longer than the call
def _without(term: tuple, first: Turn, second: Turn) -> tuple | None:
    turns = list(term[0])
    for turn in (first, second):
        if turn not in turns:
            return None
        turns.remove(turn)
    return tuple(turns), term[1]


@no_type_check  # at run time: checking a call takes longer than the call
def _with(rest: tuple, *turns: Turn) -> tuple:
    return tuple(sorted((*rest[0], *turns))), rest[1]


@no_type_check  # at run time: checking a call takes longer than the call
def _with_pair(terms: dict, a: tuple, b: tuple) -> dict:
    """Merge products of sines and cosines of a and b into those of their sum or difference, if two terms become one."""
    terms = dict(terms)
    for function, sign, one, other, ratio in _RULES:
        for term in list(terms):
            coefficient = terms.get(term)
            rest = None if coefficient is None else _without(term, (one[0], a), (one[1], b))
            if rest is None:
                continue
            partner = _with(rest, (other[0], a), (other[1], b))
            if terms.get(partner) != ratio * coefficient:
                continue
            total, flipped = _sum(a, b, sign)
            del terms[term], terms[partner]
            made = _with(rest, (function, total))
            value = terms.get(made, 0) + (-coefficient if flipped and function == "sin" else coefficient)
            if value:
                terms[made] = value
            else:
                del terms[made]
    return terms


@no_type_check  # at run time: checking a call takes longer than the call
def _sum(a: tuple, b: tuple, sign: int) -> tuple[tuple, bool]:
    """The sum a + sign b with a positive first multiple, and True if its sign was changed."""
    total = dict(a)
    for name, count in b:
        total[name] = total.get(name, 0) + sign * count
    kept = tuple(sorted((name, count) for name, count in total.items() if count))
    flipped = bool(kept) and kept[0][1] < 0
    return (tuple((name, -count) for name, count in kept) if flipped else kept), flipped


@no_type_check  # at run time: checking a call takes longer than the call
def _expression(ring: Trigonometric, terms: dict) -> Any:
    s, count = ring.sympy, len(ring.angles)
    functions: dict[str, Callable[[Any], Any]] = {"sin": s.sin, "cos": s.cos}
    parts = []
    for (turns, powers), coefficient in terms.items():
        part = s.Rational(int(coefficient.numerator), int(coefficient.denominator))
        for name, angle in turns:
            part = part * functions[name](s.Add(*(k * ring.symbol(a) for a, k in angle)))
        for symbol, power in zip(ring.generators[2 * count :], powers, strict=True):
            part = part * symbol**power
        parts.append(part)
    return s.Add(*parts)
