"""Functions that close over traced values, as pytrees of these values, so that differentiation rules see them."""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any

import equinox as eqx
import jax
from jax import Array
from jax.core import Tracer
from jaxtyping import PyTree


# not equinox.filter_closure_convert: it needs a function's arguments, and its result accepts only their shapes, while
# functions in a problem are called at points and with shapes that only they know (tests/_compile/xla/test_closures.py)
class ClosurePytree(eqx.Module):
    """A function whose traced values, in its closure and its defaults, are leaves.

    Attributes:
        numbers: The traced values.
        frame: The function, and everything else that it closes over.
    """

    numbers: list[Any]
    frame: _Frame = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        """Call the function with these values."""
        return self.frame.function(self.numbers)(*args)


def closure_to_pytree(tree: PyTree) -> PyTree:
    """The tree with each function that closes over tracers replaced by a ``ClosurePytree``.

    This includes tracers in its closure, in functions of its closure, and in its defaults. All other leaves, and
    functions without tracers, are unchanged.
    """
    return jax.tree.map(lambda leaf: _open(leaf, ()), tree)


class _Frame:
    """A function, and the contents of its closure and its defaults, with None for each traced value.

    Args:
        shape: Structure of the leaves, (contents of the closure, defaults, keyword defaults).
    """

    def __init__(self, plain: FunctionType, rest: list[Any], shape: Any):
        self.plain, self.rest, self.shape = plain, rest, shape

    def function(self, numbers: list[Array]) -> FunctionType:
        """The function with other values in its closure and its defaults."""
        following = iter(numbers)
        leaves = [next(following) if x is None else x for x in self.rest]
        contents, defaults, keywords = jax.tree.unflatten(self.shape, leaves)
        plain = self.plain
        cells = tuple(CellType(x) for x in contents)
        again = FunctionType(plain.__code__, plain.__globals__, plain.__name__, defaults, cells)
        again.__kwdefaults__ = keywords
        return again


def _open(leaf: Any, outer: tuple[Any, ...]) -> Any:
    """A leaf, converted if it is a function that closes over tracers; ``outer`` are the enclosing functions."""
    # a recursive function contains itself
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
    return ClosurePytree(numbers, _Frame(leaf, [None if isinstance(x, Tracer) else x for x in leaves], shape))
