"""Priors for bodies of a file that no body can be: without mass, without extent, or not physically consistent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from lgsim.identify.unknowns.block import select_names
from lgsim.multibody.builder import ten_parameters
from lgsim.multibody.inertia import PLACES, defect, directions_without_extent
from lgsim.multibody.model import Model
from lgsim.multibody.topology import WORLD

THINNEST = 0.1
"""The smallest radius of gyration of a body along an axis, relative to the largest: parts of robots are thicker."""
DENSITY = 1000.0
"""Density of a body without mass, kg/m^3: of water, and of parts of robots with their hollows."""
SMALLEST = 0.1
"""Size of the bodies of a robot without any length, m."""


def nearest_consistent(model: Model, bodies: Sequence[str] | None = None) -> Model:
    """The model with the nearest physically consistent body in place of each inconsistent one, as a prior of ``fit``.

    Mass and center of mass stay. The principal second moments of the mass about its center are raised to at least a
    hundredth of the largest one: the nearest such moments in the Frobenius norm. A body without any extent becomes a
    ball, whose diameter is the distance to the furthest joint or frame on the body. A body without mass becomes such a
    ball of water about the origin of its frame. Consistent bodies do not change.

    Args:
        bodies: Names of the bodies, by default all; leave out massless bodies that only join two axes.

    Raises:
        ValueError: a body does not exist.
    """
    names = select_names("bodies", bodies, model.body_names)
    given = np.asarray(model.inertias)
    rows = {i: _nearest(given[i], radius) for i, radius in enumerate(_radii(model)) if not is_consistent(given[i])}
    rows = {i: row for i, row in rows.items() if model.body_names[i] in names}
    if not rows:
        return model
    new = np.array(given)
    new[list(rows)] = list(rows.values())
    return model.replace(inertias=new)


def is_consistent(values: Float[np.ndarray, " 10"]) -> bool:
    """True if ten inertial parameters have a positive mass with extent in all directions."""
    return bool(values[0] > 0) and defect(values) is None and not directions_without_extent(values)


def _nearest(values: Float[np.ndarray, " 10"], radius: float) -> Float[np.ndarray, " 10"]:
    """The nearest consistent parameters; a radius in m for a body without extent."""
    values = np.asarray(values, float)
    mass, center = values[0], values[1:4] / (values[0] or 1)
    if not mass:
        mass, center = DENSITY * 4 / 3 * np.pi * radius**3, np.zeros(3)
    central = values[PLACES] - values[0] * (center @ center * np.eye(3) - np.outer(center, center))
    spread, axes = np.linalg.eigh(0.5 * np.trace(central) * np.eye(3) - central)
    point = spread[-1] <= 0 or (values[0] > 0 and defect(values) is None and directions_without_extent(values) > 2)
    least = mass * radius**2 / 5 if point else THINNEST**2 * spread[-1]
    sigma = (axes * np.maximum(spread, least)) @ axes.T
    return ten_parameters(np.asarray(mass), center, np.trace(sigma) * np.eye(3) - sigma)


def _radii(model: Model) -> Float[np.ndarray, " bodies"]:
    """Half the distance to the furthest joint or frame on each body, m; of bodies without one, the least of others."""
    tree = model.topology
    reach = np.zeros(tree.bodies)
    holders = [*zip(tree.parents, model.placements, strict=True), *zip(tree.frame_bodies, model.frames, strict=True)]
    for body, pose in holders:
        if body != WORLD:
            reach[body] = max(reach[body], float(np.linalg.norm(np.asarray(pose)[:3, 3])))
    return np.where(reach > 0, reach, np.min(reach[reach > 0], initial=np.inf if np.any(reach > 0) else SMALLEST)) / 2
