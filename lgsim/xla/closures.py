"""Functions that hold what JAX traces, with it made visible: a rule of differentiation must not close over it."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax.core import Tracer


class Opened(eqx.Module):
    """A function whose traced numbers, in its closure and its defaults, are leaves.

    Attributes:
        held: The numbers.
        frame: The function and all else that it holds.
    """

    held: list[Any]
    frame: Any = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        """What the function returns."""
        return self.frame.function(self.held)(*args)


def opened(tree: Any) -> Any:
    """The tree with its functions opened where they hold tracers, themselves or through functions that they hold."""
    return jax.tree.map(lambda leaf: _open(leaf, ()), tree)


class _Frame:
    """The function, and what it holds: a tree in which None stands for a traced number."""

    def __init__(self, plain: FunctionType, rest: list[Any], shape: Any):
        self.plain, self.rest, self.shape = plain, rest, shape

    def function(self, held: list[Array]) -> FunctionType:
        """The function with other numbers."""
        numbers = iter(held)
        leaves = [next(numbers) if x is None else x for x in self.rest]
        contents, defaults, keywords = jax.tree.unflatten(self.shape, leaves)
        plain = self.plain
        cells = tuple(CellType(x) for x in contents)
        again = FunctionType(plain.__code__, plain.__globals__, plain.__name__, defaults, cells)
        again.__kwdefaults__ = keywords
        return again


def _open(leaf: Any, outer: tuple[Any, ...]) -> Any:
    # a function that calls itself holds itself
    if not isinstance(leaf, FunctionType) or any(leaf is x for x in outer):
        return leaf
    try:
        contents = tuple(cell.cell_contents for cell in leaf.__closure__ or ())
    except ValueError:
        # a name that is bound later
        return leaf
    given = (contents, leaf.__defaults__, leaf.__kwdefaults__)
    parts = jax.tree.map(lambda x: _open(x, (*outer, leaf)), given)
    leaves, shape = jax.tree.flatten(parts)
    held = [x for x in leaves if isinstance(x, Tracer)]
    if not held:
        return leaf
    return Opened(held, _Frame(leaf, [None if isinstance(x, Tracer) else x for x in leaves], shape))
