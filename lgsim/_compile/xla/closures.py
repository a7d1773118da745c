"""Functions that close over numbers that JAX traces, as pytrees of these: a rule of differentiation must see them."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax.core import Tracer
from jaxtyping import PyTree


# not equinox.filter_closure_convert: it needs a function's arguments, and what it gives takes their shapes alone, while
# functions in a problem are called at places and with shapes that only they know (tests/_compile/xla/test_closures.py)
class Opened(eqx.Module):
    """A function whose traced numbers, in its closure and its defaults, are leaves.

    Attributes:
        numbers: The traced numbers.
        frame: The function, and all else that it closes over.
    """

    numbers: list[Any]
    frame: _Frame = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        """What the function returns with these numbers."""
        return self.frame.function(self.numbers)(*args)


def opened(tree: PyTree) -> PyTree:
    """The tree with an ``Opened`` in the place of each function that closes over tracers.

    Tracers count that a function closes over itself or through functions in its closure, and those in its defaults. All
    other leaves, and functions without tracers, stay as they are.
    """
    return jax.tree.map(lambda leaf: _open(leaf, ()), tree)


class _Frame:
    """A function, and the contents of its closure and its defaults: leaves in which None stands for a traced number.

    Args:
        shape: Structure of the leaves, (contents of the closure, defaults, keyword defaults).
    """

    def __init__(self, plain: FunctionType, rest: list[Any], shape: Any):
        self.plain, self.rest, self.shape = plain, rest, shape

    def function(self, numbers: list[Array]) -> FunctionType:
        """The function with other numbers in its closure and its defaults."""
        following = iter(numbers)
        leaves = [next(following) if x is None else x for x in self.rest]
        contents, defaults, keywords = jax.tree.unflatten(self.shape, leaves)
        plain = self.plain
        cells = tuple(CellType(x) for x in contents)
        again = FunctionType(plain.__code__, plain.__globals__, plain.__name__, defaults, cells)
        again.__kwdefaults__ = keywords
        return again


def _open(leaf: Any, outer: tuple[Any, ...]) -> Any:
    """A leaf, opened if it is a function that closes over tracers; ``outer`` are the functions around it."""
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
    numbers = [x for x in leaves if isinstance(x, Tracer)]
    if not numbers:
        return leaf
    return Opened(numbers, _Frame(leaf, [None if isinstance(x, Tracer) else x for x in leaves], shape))
