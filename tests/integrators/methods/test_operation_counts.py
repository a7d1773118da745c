"""How often a step evaluates the field, moves and applies dexpinv: Table X of Park and Chung 2005."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import lgsim
from lgsim.actions import Action

TABLE = json.loads((Path(__file__).parents[2] / "data" / "park_chung.json").read_text(encoding="utf-8"))["operations"]


class Counted(Action):
    """Numbers that stay where they are, and a tally of the verbs."""

    tell: Callable = eqx.field(static=True)

    @property
    def dim(self):
        return 3

    def move(self, xi, y):
        self.tell("exp")
        return y

    def dexpinv(self, sigma, xi):
        self.tell("dexpinv")
        return xi


@pytest.mark.parametrize("name", sorted(TABLE))
def test_operations_of_a_step(name):
    """The first stage of a Munthe-Kaas method needs no dexpinv: sigma is zero there."""
    counts = Counter()

    def field(t, y, args):
        counts["field"] += 1
        return jnp.zeros(3)

    with jax.disable_jit():
        getattr(lgsim, name).step(
            Counted(lambda kind: counts.update([kind])), field, jnp.zeros(()), jnp.zeros(3), jnp.ones(()), None
        )
    assert counts == {kind: count for kind, count in TABLE[name].items() if count}
