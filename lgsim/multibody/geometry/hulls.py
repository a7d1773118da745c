"""Convex hull of a few points: vertices, normals of the faces, directions of the edges."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

Points = tuple[tuple[float, float, float], ...]


class Facets(NamedTuple):
    """Faces, edges and vertices of a hull.

    Attributes:
        normals: Unit outward normals of the faces, (f, 3); for a flat hull of its plane and of its edges in the plane.
        offsets: ``n . x`` on each face, (f,).
        edges: Unit directions of the edges, (e, 3), each once.
        corners: Indices of the vertices, (k,).
        triangles: Triangles of the faces, counterclockwise from outside, (t, 3).
    """

    normals: Float[np.ndarray, "f 3"]
    offsets: Float[np.ndarray, " f"]
    edges: Float[np.ndarray, "e 3"]
    corners: Int[np.ndarray, " k"]
    triangles: Int[np.ndarray, "t 3"]


FLAT = 1e-9
"""Tolerance for coplanar points, as a fraction of the extent."""
_SAME = 1e-7
"""Smallest distance between different unit vectors."""


@cache
def facets(at: Points) -> Facets:
    """Faces and edges of the hull of points, by enumeration of all planes through three points; also for flat hulls."""
    points = np.array(at)
    centered = points - points.mean(axis=0)
    size = float(np.abs(centered).max())
    values, axes = np.linalg.svd(centered)[1:] if len(points) > 1 else (np.zeros(3), np.eye(3))
    rank = int(np.sum(values > FLAT * size * np.sqrt(len(points))))
    none = np.zeros((0, 3))
    if rank == 0:
        return Facets(none, np.zeros(0), none, np.array([0]), np.zeros((0, 3), int))
    if rank == 1:
        along = centered @ axes[0]
        ends = np.array([int(along.argmin()), int(along.argmax())])
        return Facets(none, np.zeros(0), axes[:1], ends, np.zeros((0, 3), int))
    if rank == 2:
        ring = _ring(points, np.arange(len(points)), axes[2])
        edges = _unit(np.roll(points[ring], -1, axis=0) - points[ring])
        sides = np.cross(edges, axes[2])
        normals = np.concatenate([axes[2:], -axes[2:], sides])
        offsets = np.array([n @ points[ring[0]] for n in normals[:2]] + list(np.sum(sides * points[ring], axis=1)))
        # nearly coincident points in a plane may form a line of two vertices
        fan = np.array([[ring[0], a, b] for a, b in pairwise(ring[1:])], int).reshape(-1, 3)
        return Facets(normals, offsets, _directions(edges), ring, np.concatenate([fan, fan[:, ::-1]]))
    normals, offsets = _faces(points, size)
    on = np.abs(points @ normals.T - offsets) <= 10 * FLAT * size
    rings = [_ring(points, np.flatnonzero(on[:, f]), n) for f, n in enumerate(normals)]
    corners = np.unique(np.concatenate(rings))
    edges = np.concatenate([points[np.roll(ring, -1)] - points[ring] for ring in rings])
    fans = [np.array([[r[0], a, b] for a, b in pairwise(r[1:])]) for r in rings]
    return Facets(normals, offsets, _directions(_unit(edges)), corners, np.concatenate(fans))


def _faces(points: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Outward normals and offsets of the planes through three points with all others on one side, each once."""
    triples = np.array(list(combinations(range(len(points)), 3)))
    a, b, c = (points[triples[:, i]] for i in range(3))
    n = np.cross(b - a, c - a)
    length = np.linalg.norm(n, axis=1)
    real = length > FLAT * size * size
    n, a = n[real] / length[real, None], a[real]
    found: list[np.ndarray] = []
    for sign in (1, -1):
        above = (points @ (sign * n).T).max(axis=0) - np.sum(sign * n * a, axis=1)
        found.append(sign * n[above <= FLAT * size])
    every = np.concatenate(found)
    kept: list[np.ndarray] = []
    for each in every:
        if not kept or np.min(np.linalg.norm(np.array(kept) - each, axis=1)) > _SAME:
            kept.append(each)
    normals = np.array(kept)
    return normals, (points @ normals.T).max(axis=0)


def _ring(points: np.ndarray, members: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The vertices of the convex polygon of points on a plane, counterclockwise about its normal (Andrew 1979)."""
    x = np.cross(np.eye(3)[np.argmin(np.abs(normal))], normal)
    x /= np.linalg.norm(x)
    plane = np.stack([points[members] @ x, points[members] @ np.cross(normal, x)], axis=1)
    size = float(np.ptp(plane, axis=0).max())
    order = np.lexsort((plane[:, 1], plane[:, 0]))

    def half(sequence: np.ndarray) -> list[int]:
        chain: list[int] = []
        for i in sequence:
            while len(chain) > 1:
                u, w = plane[chain[-1]] - plane[chain[-2]], plane[i] - plane[chain[-1]]
                if u[0] * w[1] - u[1] * w[0] > FLAT * size * size:
                    break
                chain.pop()
            chain.append(int(i))
        return chain[:-1]

    return members[np.array(half(order) + half(order[::-1]))]


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _directions(units: np.ndarray) -> np.ndarray:
    """Unit vectors up to sign, each once."""
    kept: list[np.ndarray] = []
    for each in units:
        if not kept or np.min(np.linalg.norm(np.cross(np.array(kept), each), axis=1)) > _SAME:
            kept.append(each)
    return np.array(kept)


def both_ways(normals: Float[np.ndarray, "f 3"]) -> Float[np.ndarray, "k 3"]:
    """Unit vectors without opposite ones."""
    kept = [n for i, n in enumerate(normals) if not np.any(np.linalg.norm(normals[:i] + n, axis=1) <= _SAME)]
    return np.array(kept).reshape(-1, 3)


def checked_points(owner: str, points: Any) -> Float[np.ndarray, "n 3"]:
    """Check points (n, 3), at least one, all finite.

    Raises:
        ValueError: invalid points.
    """
    array = np.array(points, float)
    if array.size == 0:
        raise ValueError(f"{owner}: points: expected at least one point, got none")
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(f"{owner}: points: expected shape (n, 3), got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{owner}: points: expected finite numbers")
    return array


def thinned(points: Float[np.ndarray, "n 3"], count: int) -> Float[np.ndarray, "k 3"]:
    """At most ``count`` different points, selected by ``spread_out``."""
    _, first = np.unique(points, axis=0, return_index=True)
    return spread_out(points[np.sort(first)], count)


def spread_out(points: Float[np.ndarray, "n 3"], count: int) -> Float[np.ndarray, "k 3"]:
    """At most ``count`` points by farthest-point sampling, starting with the one farthest from the mean."""
    if count >= len(points):
        return points
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    distance = np.full(len(points), np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(np.argmax(distance)))
    return points[chosen]
