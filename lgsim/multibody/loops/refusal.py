"""Errors of functions that do not support closed kinematic loops."""

from __future__ import annotations

from lgsim.multibody.topology import ModelError, Topology
from lgsim.support.messages import listed


def refuse_loops(tree: Topology, what: str, why: str, instead: str) -> None:
    """Raise an error for a model with loops.

    Args:
        what: The function that does not support them.
        why: The reason.
        instead: An alternative.

    Raises:
        ModelError: the model has loops.
    """
    if tree.loops:
        names = listed([repr(loop.name) for loop in tree.loops])
        one = len(tree.loops) == 1
        raise ModelError(
            f"model: {what} does not support loops, and this model has {'the loop' if one else 'the loops'}"
            f" {names}: {why}; {instead}"
        )
