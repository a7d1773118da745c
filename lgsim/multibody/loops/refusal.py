"""What machines with loops are refused by name, where it would let them drift or tear or mean something else."""

from __future__ import annotations

from lgsim.multibody.topology import ModelError, Topology
from lgsim.support.messages import listed


def refuse_loops(tree: Topology, what: str, why: str, instead: str) -> None:
    """Refuse a machine with loops.

    Args:
        what: Who refuses it.
        why: What would be wrong.
        instead: What to take.

    Raises:
        ModelError: it has loops.
    """
    if tree.loops:
        names = listed([repr(loop.name) for loop in tree.loops])
        one = len(tree.loops) == 1
        raise ModelError(
            f"model: {what} does not take machines with loops, and this one has {'the loop' if one else 'the loops'}"
            f" {names}: {why}; {instead}"
        )
