"""Operation counts of straight-line code, in which equal operations on equal entries are done once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np

from lgsim.symbolic.arithmetic import Arithmetic


class _Node:
    """An entry: its operation ("" for an argument) and its operands."""

    __slots__ = ("op", "operands")

    def __init__(self, op: str, operands: tuple[Any, ...]) -> None:
        self.op, self.operands = op, operands


class Count(Arithmetic):
    """Counts operations: ``count.operations_of(evaluate(f, count)(model, *count.symbols(n), ...))``."""

    def symbols(self, count: int) -> np.ndarray:
        """Arguments, (count,)."""
        out = np.empty(count, object)
        for i in range(count):
            out[i] = _Node("", ())
        return out

    def constant(self, x: Any) -> Any:
        """A number, without cost."""
        return _Node("", ())

    def entry(self, x: Any) -> Any:
        """An argument, a number, or any other object used as an argument."""
        return self.number(x) if self.is_number(x) else x if isinstance(x, _Node) else _Node("", ())

    def operations_of(self, results: Any) -> dict[str, int]:
        """The number of each operation that arrays of results need; shared operations count once."""
        stack = [x for leaf in jax.tree.leaves(results) for x in np.asarray(leaf, object).flat]
        seen: dict[int, _Node] = {}
        while stack:
            node = stack.pop()
            if isinstance(node, _Node) and id(node) not in seen:
                seen[id(node)] = node
                stack += node.operands
        return dict(Counter(node.op for node in seen.values() if node.op))

    def sin(self, x: Any) -> Any:
        """The sine."""
        return _Node("sin", (x,))

    def cos(self, x: Any) -> Any:
        """The cosine."""
        return _Node("cos", (x,))

    def sqrt(self, x: Any) -> Any:
        """The square root."""
        return _Node("sqrt", (x,))

    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return _Node("add", (x, y))

    def sub(self, x: Any, y: Any) -> Any:
        """The difference."""
        return _Node("sub", (x, y))

    def mul(self, x: Any, y: Any) -> Any:
        """The product."""
        return _Node("mul", (x, y))

    def div(self, x: Any, y: Any) -> Any:
        """The quotient."""
        return _Node("div", (x, y))

    def neg(self, x: Any) -> Any:
        """The negative."""
        return _Node("neg", (x,))
