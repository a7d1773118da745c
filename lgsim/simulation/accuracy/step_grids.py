"""Motions recomputed with other steps and from neighboring initial states, for estimates of the integration error.

All of them use the same compiled program: ``advance`` takes the step as an argument.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from lgsim.lie.action import Point

Advance = Callable[[Point, int, tuple[int, int]], Point]
"""``advance(y, node, (a, b))``: the states (count, ...) at the next ``count`` nodes after a node, from the state y
there, with steps b/a of the motion's length; the number of steps between nodes is constant."""
Difference = Callable[[Point, Point], Float[np.ndarray, "count dim"]]
"""``difference(y0, y1)``: the algebra vectors (count, dim) between states (count, ...)."""

PARTED = 0.5
"""The fraction of a motion's size beyond which the distance between two motions carries no information."""


class Gaps(NamedTuple):
    """The distances between two motions.

    Attributes:
        node: The nodes of the first motion at which both have a state, (count,), increasing from 1.
        gap: The absolute values of the algebra components between them, (count, dim).
        whole: True if the motions stayed close enough to be compared to the end.
    """

    node: Int[np.ndarray, " count"]
    gap: Float[np.ndarray, "count dim"]
    whole: bool


def compare(
    advance: Advance,
    difference: Difference,
    states: Point,
    steps: tuple[int, int],
    scale: Float[np.ndarray, " dim"],
    *,
    every: int = 1,
    start: Point | None = None,
    until: int | None = None,
) -> tuple[Gaps, Point]:
    """Compute a motion with steps b/a of the length and compare it with known states until the two diverge.

    Args:
        states: The known states at every ``every``-th node (count + 1, ...), starting with the initial state.
        steps: (a, b), without a common divisor.
        scale: Sizes of the algebra's components, relative to which distances are measured.
        every: Nodes from one known state to the next.
        start: Another initial state; by default that of the known motion.
        until: The last node to compare; by default the last one of the motion.

    Returns:
        The gaps, and the states of the other motion at its own nodes, including the initial state.
    """
    a, b = steps
    last = len(jax.tree.leaves(states)[0]) - 1
    last = last if until is None else min(last, until // every)
    y = jax.tree.map(jnp.asarray, jax.tree.map(lambda x: x[0], states) if start is None else start)
    own = [jax.tree.map(lambda x: np.asarray(x)[None], y)]
    nodes, gaps, done, whole = [np.zeros(0, int)], [np.zeros((0, len(scale)))], 0, True
    # nodes of the other motion that coincide with known states, up to the last one
    apart = a * every // math.gcd(b, a * every)
    end = last * every * a // b // apart * apart
    while whole and done < end:
        found = jax.tree.map(np.asarray, advance(y, done, steps))
        own.append(found)
        count = len(jax.tree.leaves(found)[0])
        at = np.arange(done + 1, done + count + 1)
        here = np.flatnonzero((at % apart == 0) & (at <= end))
        node = at[here] * b // a
        # fixed length, so that the difference is compiled once
        there, which = (np.concatenate([x, np.zeros(count - len(here), int)]) for x in (node // every, here))
        with np.errstate(over="ignore", invalid="ignore"):
            gap = difference(
                jax.tree.map(lambda x, k=there: x[k], states), jax.tree.map(lambda x, k=which: x[k], found)
            )
            gap = np.abs(np.asarray(gap, float)[: len(here)])
            whole = bool(np.all(gap <= PARTED * scale))  # False for NaN
        nodes.append(node)
        gaps.append(gap)
        y, done = jax.tree.map(lambda x: jnp.asarray(x[-1]), found), done + count
    inside = last * every * a // b + 1
    other = jax.tree.map(lambda *leaves: np.concatenate(leaves)[:inside], *own)
    return Gaps(np.concatenate(nodes), np.concatenate(gaps), whole), other
