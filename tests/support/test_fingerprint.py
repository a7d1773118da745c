"""Fingerprints: equal for equal things in every process, different for all that changes a result."""

import functools
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lgsim
from lgsim.support.fingerprint import fingerprint


class Weighted(eqx.Module):
    weight: float
    name: str = eqx.field(static=True, default="w")


class Scaled(eqx.Module):
    weight: float
    name: str = eqx.field(static=True, default="w")


class Pair(NamedTuple):
    a: int
    b: int


class Plain:
    def __init__(self, weight):
        self.weight = weight

    def cost(self, x):
        return self.weight * x


def product(weight):
    return lambda x: weight * x


def countdown(step):
    def count(x):
        return x if x < 0 else count(x - step)

    return count


def default(x, weight=1.0, *, shift=0.0):
    return x


def other_default(x, weight=1.0, *, shift=1.0):
    return x


PAIRS = {
    "numbers": (np.array([1.0, 2.0]), np.array([1.0, 2.5])),
    "signs of zero": (0.0, -0.0),
    "dtypes": (np.zeros(2), np.zeros(2, np.float32)),
    "shapes": (np.zeros((2, 3)), np.zeros((3, 2))),
    "containers": ((1, 2), [1, 2]),
    "nesting": (((1,), 2), ((1, 2),)),
    "bytes": ((b"ab", b"c"), (b"a", b"bc")),
    "keys": ({"a": 1}, {"b": 1}),
    "none": ((None, 1), (1,)),
    "classes of equal fields": (Weighted(1.0), Scaled(1.0)),
    "static fields": (Weighted(1.0), Weighted(1.0, "v")),
    "named tuples": (Pair(1, 2), (1, 2)),
    "random keys": (jax.random.key(0), jax.random.key(1)),
    "functions of other names": (lambda x: jnp.sin(x), lambda x: jnp.cos(x)),
    "constants of functions": (lambda x: 2.0 * x, lambda x: 3.0 * x),
    "closures": (product(1.0), product(2.0)),
    "closures of arrays": (product(np.array([1.0])), product(np.array([2.0]))),
    "functions that hold themselves": (countdown(1), countdown(2)),
    "keyword defaults": (default, other_default),
    "partial": (functools.partial(default, weight=1.0), functools.partial(default, weight=2.0)),
    "compiled functions": (jax.jit(product(1.0)), jax.jit(product(2.0))),
    "objects": (Plain(1.0), Plain(2.0)),
    "methods of objects": (Plain(1.0).cost, Plain(2.0).cost),
    "namespaces": (SimpleNamespace(a=1), SimpleNamespace(a=2)),
    "learning rates": (optax.adam(0.1), optax.adam(0.2)),
    "groups": (lgsim.SO3, lgsim.SE3),
    "methods": (lgsim.MK4, lgsim.CF4),
    "sets": ({1, 2}, {1, 3}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_differs(name):
    one, other = PAIRS[name]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint(one) == fingerprint(one) and len(fingerprint(one)) == 16


def test_equal_things_made_twice_are_equal():
    assert fingerprint(product(1.0)) == fingerprint(product(1.0))
    assert fingerprint(countdown(1)) == fingerprint(countdown(1))
    assert fingerprint(optax.adam(0.1)) == fingerprint(optax.adam(0.1))
    assert fingerprint(Plain(1.0).cost) == fingerprint(Plain(1.0).cost)
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    assert fingerprint(np.arange(3.0)) == fingerprint(jnp.arange(3.0))
    shared = [1.0]
    assert fingerprint([shared, shared]) == fingerprint([[1.0], [1.0]])


def test_modules_and_files_do_not_count():
    """A script that runs as such and one that is imported define the same functions, from any folder."""
    text = "def f(x):\n    def g(y):\n        return 2 * y\n    return [g(z) for z in x]\n"
    found = []
    for file, module in (("/a/b.py", "one"), ("/c/d.py", "__main__")):
        space = {"__name__": module}
        exec(compile("\n" * len(module) + text, file, "exec"), space)
        found.append(fingerprint(space["f"]))
    assert found[0] == found[1]


MARK = """
import jax
jax.config.update("jax_enable_x64", True)
from lgsim.support.fingerprint import fingerprint
from tests.support.test_fingerprint import PAIRS
print(*(fingerprint(one) for one, _ in PAIRS.values()))
"""


def test_equal_in_all_processes():
    root = Path(__file__).parents[2]
    made = subprocess.run([sys.executable, "-c", MARK], cwd=root, capture_output=True, text=True, check=True)
    assert made.stdout.split() == [fingerprint(one) for one, _ in PAIRS.values()]
