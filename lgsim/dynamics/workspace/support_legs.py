"""The joints between the central body and its feet, and the bodies that they carry; static."""

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
    """Support legs: chains of bodies from the central one, body 0, to each foot's body.

    Attributes:
        frames: Index of each foot's frame in ``model.frame_names``.
        chains: Bodies of each leg, from the foot inward, without the central body.
    """

    tree: Topology
    frames: tuple[int, ...]
    chains: tuple[tuple[int, ...], ...]

    @cached_property
    def carrier(self) -> np.ndarray:
        """For each body (bodies,), the nearest ancestor (or itself) in a chain, or the central body."""
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
        """The degrees of freedom (k,) that belong neither to the central body nor to a leg."""
        return np.setdiff1d(np.arange(BASE, self.tree.nv), self.leg_dofs)

    @cached_property
    def rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(degree of freedom, body, True for the first row of a joint) of each leg's rows from the foot inward.

        Arrays (feet, rows of the longest leg); shorter legs are padded with rows of degree of freedom -1.
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
    """The legs that end at given frames, checked.

    Raises:
        ModelError: the model has loops or no floating base; there are no feet, two on one leg, or one on the central
            body or the world; or a joint mimics another one.
        ValueError: a frame does not exist.
    """
    refuse_loops(
        tree, "a workspace", "its legs would not be chains", "use actuated_inverse_dynamics for models with loops"
    )
    if not tree.floats:
        raise ModelError(
            "model: expected a model with a floating base as central body, got one that is fixed to the world; use"
            " controls.ComputedTorque for it"
        )
    if tree.has_mimic:
        name = next(name for name, mimic in zip(tree.joint_names, tree.mimics, strict=True) if mimic is not None)
        raise ModelError(f"model: expected no mimic joints, got {name!r}, which mimics another one; lock or free it")
    if not frames:
        raise ModelError("feet: expected at least one foot, got none; nothing would support the robot")
    # follow each foot inward to the central body; legs must not share a body
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
                    f"feet: expected legs that branch at the central body {tree.body_names[0]!r}, got {frame!r} and"
                    f" {seen[body]!r}, which share the joint {tree.joint_names[body]!r}; name one of them"
                )
            seen[body] = frame
            chain.append(body)
            body = tree.parents[body]
        places.append(place)
        chains.append(tuple(chain))
    return SupportLegs(tree, tuple(places), tuple(chains))
