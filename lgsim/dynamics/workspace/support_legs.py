"""Which joints lead from the central body to its feet, and which bodies they carry along; static."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lgsim.multibody.loops.refusal import refuse_loops
from lgsim.multibody.topology import WORLD, ModelError, Topology
from lgsim.support.check import unknown_name

BASE = 6
"""Degrees of freedom of the central body."""


@dataclass(frozen=True)
class SupportLegs:
    """The legs of a machine that stands: chains of bodies from the central one, body 0, to each foot's.

    Attributes:
        frames: Of each foot the place of its frame in ``model.frame_names``.
        chains: Of each foot its bodies, from the foot's inward; the central body is in none.
    """

    tree: Topology
    frames: tuple[int, ...]
    chains: tuple[tuple[int, ...], ...]

    @cached_property
    def carrier(self) -> np.ndarray:
        """Of each body (bodies,) the nearest one on the way to its root that is in a chain, or the central one."""
        legs = {0, *(body for chain in self.chains for body in chain)}
        carrier = np.arange(self.tree.bodies)
        for body, parent in enumerate(self.tree.parents):
            if body not in legs:
                carrier[body] = carrier[parent]
        return carrier

    @cached_property
    def leg_dofs(self) -> np.ndarray:
        """The degrees of freedom (m,) of all legs."""
        return np.array(sorted({dof for chain in self.chains for body in chain for dof in self._dofs(body)}), int)

    @cached_property
    def other_dofs(self) -> np.ndarray:
        """The degrees of freedom (k,) that are neither the central body's nor of a leg."""
        return np.setdiff1d(np.arange(BASE, self.tree.nv), self.leg_dofs)

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(degree of freedom, body, whether it is the first of its joint) of each leg's rows from the foot inward.

        Arrays (feet, most rows of a leg); shorter legs end with rows of degree of freedom -1, which do nothing.
        """
        legs = [
            [(dof, body, i == 0) for body in chain for i, dof in enumerate(self._dofs(body))] for chain in self.chains
        ]
        longest = max(map(len, legs))
        full = [leg + [(-1, 0, False)] * (longest - len(leg)) for leg in legs]
        dofs, bodies, first = (np.array([[row[k] for row in leg] for leg in full]) for k in range(3))
        return dofs, bodies, first

    def _dofs(self, body: int) -> range:
        return range(self.tree.v_starts[body], self.tree.v_starts[body + 1])


def support_legs(tree: Topology, frames: Sequence[str]) -> SupportLegs:
    """The legs that end in some frames, checked.

    Raises:
        ModelError: the machine has loops or no floating base; there are no feet, two on one leg, one on the central
            body or on the world; a joint follows another one.
        ValueError: there is no such frame.
    """
    refuse_loops(
        tree, "a workspace", "its legs would not be chains", "take actuated_inverse_dynamics for machines with loops"
    )
    if not tree.floats:
        raise ModelError(
            "model: expected a machine with a floating base, whose central body stands on feet, got one that is fixed"
            " to the world; take controls.ComputedTorque for it"
        )
    if tree.has_mimic:
        name = next(name for name, mimic in zip(tree.joint_names, tree.mimics, strict=True) if mimic is not None)
        raise ModelError(
            f"model: expected joints that all move freely, but {name!r} follows another one; lock or free it"
        )
    if not frames:
        raise ModelError("feet: expected at least one, got none; nothing would hold the machine")
    names = tree.body_names + tree.frame_names
    places, chains, seen = [], [], {}
    for frame in frames:
        if frame not in names:
            raise unknown_name("feet: expected the name of a frame", frame, names)
        place = names.index(frame)
        body = place if place < tree.bodies else tree.frame_bodies[place - tree.bodies]
        if body in (WORLD, 0):
            where = "the world" if body == WORLD else f"the central body {tree.body_names[0]!r}"
            raise ModelError(f"feet: expected frames at the ends of legs, got {frame!r}, which is fixed to {where}")
        chain = []
        while body != 0:
            if body in seen:
                raise ModelError(
                    f"feet: expected legs that part at the central body {tree.body_names[0]!r}, but {frame!r} and"
                    f" {seen[body]!r} both hang on the joint {tree.joint_names[body]!r}; name one of them"
                )
            seen[body] = frame
            chain.append(body)
            body = tree.parents[body]
        places.append(place)
        chains.append(tuple(chain))
    return SupportLegs(tree, tuple(places), tuple(chains))
