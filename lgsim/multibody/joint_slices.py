"""Slices of joints in q or v by name, and of the parts of compound joints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Int

from lgsim.multibody.joint import ScrewJoint
from lgsim.multibody.topology import Topology

JOINED = "+"
"""Separator of the names of joints of a file that are one compound joint of the model."""


class JointSlices(dict[str, slice]):
    """Slices of joints by name, in order; parts of compound joints can be looked up, but are not counted.

    A compound joint "hip_x+hip_y", two joints in the file, has one coordinate for each, which ``slices["hip_y"]``
    returns; ``"hip_y" in slices`` is true. Iteration yields the model's joints only.

    Attributes:
        parts: Slices of the parts by name.
    """

    def __init__(self, slices: Mapping[str, slice], topology: Topology) -> None:
        super().__init__(slices)
        self.parts: dict[str, slice] = {}
        for name, joint in zip(topology.joint_names, topology.joints, strict=True):
            words, place = name.split(JOINED), slices[name]
            if isinstance(joint, ScrewJoint) and 1 < len(words) == joint.nv == place.stop - place.start:
                own = {word: slice(place.start + i, place.start + i + 1) for i, word in enumerate(words)}
                self.parts |= {word: part for word, part in own.items() if word not in slices}

    def __missing__(self, name: str) -> slice:
        return self.parts[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.parts


def single_numbers(
    q_slices: Mapping[str, slice], v_slices: Mapping[str, slice]
) -> tuple[Int[np.ndarray, " joints"], Int[np.ndarray, " joints"]]:
    """Indices in q and in v of all joints with vector coordinates."""
    at, speeds = [np.zeros(0, int)], [np.zeros(0, int)]
    for name, q in q_slices.items():
        v = v_slices[name]
        if q.stop - q.start == v.stop - v.start:
            at, speeds = [*at, np.arange(q.start, q.stop)], [*speeds, np.arange(v.start, v.stop)]
    return np.concatenate(at), np.concatenate(speeds)
