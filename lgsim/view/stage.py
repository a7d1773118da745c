"""From where the camera sees a whole motion, and where the floor lies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT, WORLD
from lgsim.support.extras import package
from lgsim.view.motion import Places
from lgsim.view.shapes import Color, Mesh, Shape
from lgsim.view.skeleton import skeleton
from lgsim.view.urdf_visuals import read_visuals

Parts = Mapping[str, Sequence[tuple[Shape, Mesh]]]
"""What is drawn, by the name of its frame."""

FIELD = float(np.deg2rad(35.0))
"""The camera's vertical field of view."""

WIDE = 1.4
"""How much wider than high a window is at least taken to be."""

FULL = 0.85
"""How much of the window is filled."""

VIEW = np.array([0.8, -1.0, 0.4]) / np.linalg.norm([0.8, -1.0, 0.4])
"""From the middle of what is drawn to the camera."""

MOMENTS = 500
"""At most so many moments of a motion decide."""


def corners(names: Sequence[str], parts: Parts, places: Places) -> np.ndarray:
    """The corners of the boxes around all parts, at moments of the motion: (k, 3), m."""
    every = -(-len(places.time) // MOMENTS)
    positions, quaternions = places.positions[::every], places.quaternions[::every]
    found = [np.zeros((0, 3))]
    for name, mine in parts.items():
        for shape, mesh in mine:
            low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
            box = np.stack(np.meshgrid(*zip(low, high, strict=True)), axis=-1).reshape(-1, 3)
            points = box @ shape.pose[:3, :3].T + shape.pose[:3, 3]
            if name in names:
                index = names.index(name)
                points = positions[:, None, index] + _rotated(quaternions[:, index], points)
            found.append(points.reshape(-1, 3))
    return np.concatenate(found)


def camera(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """(place of the camera, what it looks at, size of what it sees) for points (k, 3)."""
    if not len(points):
        points = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, float(np.linalg.norm(high - low))
    right = np.array([-VIEW[1], VIEW[0], 0.0]) / np.hypot(VIEW[0], VIEW[1])
    own = points - middle
    near, across, up = own @ VIEW, np.abs(own @ right), np.abs(own @ np.cross(VIEW, right))
    distance = np.max(near + np.maximum(up, across / WIDE) / (FULL * np.tan(FIELD / 2)))
    return middle + distance * VIEW, middle, size


def floor(names: Sequence[str], parts: Parts, places: Places) -> float:
    """The height of the ground, m: zero, or under the lowest solid part where that is lower."""
    solid = {name: [part for part in mine if part[0].color[3] >= 1] for name, mine in parts.items()}
    points = corners(names, solid, places)
    return min(0.0, float(points[:, 2].min())) if len(points) else 0.0


def grid_cell(size: float) -> float:
    """The width of the ground's cells, m: the largest 1, 2 or 5 times a power of ten under a tenth of a size."""
    power = 10.0 ** np.floor(np.log10(size / 10))
    return float(power * max(digit for digit in (1, 2, 5) if digit * power <= size / 10))


def _rotated(quaternions: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points (k, 3) turned by each of the quaternions (F, 4): (F, k, 3)."""
    w, u = quaternions[:, None, :1], quaternions[:, None, 1:]
    across = np.cross(u, points[None]) * 2
    return points[None] + w * across + np.cross(u, across)


Visuals = Mapping[str, Sequence[Shape]] | str | os.PathLike[str] | None
"""Shapes by the name of their frame, or the path of a URDF file that has them, or None for rods and ellipsoids."""

TRACE: Color = (0.90, 0.35, 0.10, 1.0)
LIGHT: tuple[Color, Color] = ((0.87, 0.88, 0.89, 1.0), (0.75, 0.76, 0.78, 1.0))
DARK: tuple[Color, Color] = ((0.17, 0.18, 0.20, 1.0), (0.28, 0.30, 0.33, 1.0))
"""Lines of the ground's cells, and every fifth of them."""


def shapes_of(model: Model, visuals: Visuals) -> dict[str, list[Shape]]:
    """The shapes to draw, by the name of their frame.

    Raises:
        ValueError: a name is none of a frame of the machine.
    """
    if visuals is None:
        return skeleton(model)
    found = read_visuals(visuals) if isinstance(visuals, str | os.PathLike) else dict(visuals)
    names = {*model.frame_names, ROOT}
    unknown = [name for name in found if name not in names]
    if unknown:
        raise ValueError(
            f"visuals: expected names of frames of the model, got {', '.join(map(repr, unknown[:5]))}; the model has"
            f" {', '.join(map(repr, sorted(names)[:8]))}..."
        )
    return {name: list(shapes) for name, shapes in found.items() if shapes}


class Stage:
    """A machine in a scene: builds its nodes, then moves them.

    Args:
        server: A ``viser.ViserServer``.
        model: The machine.
        visuals: What to draw.
        places: The poses that the camera and the floor are chosen for; the first ones are shown.
        trace: Names of frames whose path is drawn.
        dark: Whether the background is dark.
    """

    def __init__(
        self,
        server: Any,
        model: Model,
        visuals: Visuals,
        places: Places,
        trace: Sequence[str] = (),
        dark: bool = False,
    ) -> None:
        names = model.frame_names
        for name in trace:
            if name not in names:
                raise ValueError(f"trace: expected names of frames, {', '.join(names)}; got {name!r}")
        self._scene = server.scene
        self._nodes: dict[int, Any] = {}
        drawn = shapes_of(model, visuals)
        meshes = {name: [(shape, shape.geometry.triangles()) for shape in shapes] for name, shapes in drawn.items()}
        lines = DARK if dark else LIGHT
        size = self._set(server, corners(names, meshes, places), floor(names, meshes, places), lines)
        moving = {*model.body_names}
        moving |= {
            name
            for name, body in zip(model.topology.frame_names, model.topology.frame_bodies, strict=True)
            if body != WORLD
        }
        for name, parts in meshes.items():
            path = f"/machine/{name.replace('/', '.')}"
            position, quaternion = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0])
            if name in names:
                index = names.index(name)
                position, quaternion = places.positions[0, index], places.quaternions[0, index]
            node = self._scene.add_frame(path, show_axes=False, position=position, wxyz=quaternion)
            for number, (shape, mesh) in enumerate(parts):
                self._add(f"{path}/{number}", shape, mesh)
            if name in moving:
                self._nodes[names.index(name)] = node
        for name in trace:
            points = places.positions[:, names.index(name)]
            if len(points) > 1:
                self._scene.add_line_segments(
                    f"/trace/{name.replace('/', '.')}",
                    np.stack([points[:-1], points[1:]], axis=1).astype(np.float32),
                    colors=_bytes(TRACE),
                    thickness=0.004 * size,
                )

    def move(self, positions: np.ndarray, quaternions: np.ndarray) -> None:
        """Puts the frames (frames, 3), (frames, 4) into place."""
        for index, node in self._nodes.items():
            node.position = positions[index]
            node.wxyz = quaternions[index]

    def _add(self, path: str, shape: Shape, mesh: Mesh) -> None:
        opacity = shape.color[3]
        self._scene.add_mesh_simple(
            path,
            # without the pose, so that the file holds equal parts, such as those of legs, once
            mesh.vertices.astype(np.float32),
            mesh.faces.astype(np.uint32),
            color=_bytes(shape.color),
            opacity=None if opacity >= 1 else opacity,
            flat_shading=mesh.flat,
            position=shape.pose[:3, 3],
            wxyz=package("viser.transforms", "view").SO3.from_matrix(shape.pose[:3, :3]).wxyz,
            # what is seen through throws no shadow
            cast_shadow=opacity >= 1,
            receive_shadow=opacity >= 1,
        )

    def _set(self, server: Any, points: np.ndarray, height: float, lines: tuple[Color, Color]) -> float:
        """Floor and camera for what fills points (k, 3); returns its size."""
        place, middle, size = camera(points)
        cell = grid_cell(size)
        self._scene.set_up_direction("+z")
        self._scene.add_grid(
            "/floor",
            infinite_grid=True,
            cell_size=cell,
            section_size=5 * cell,
            cell_color=_bytes(lines[0]),
            section_color=_bytes(lines[1]),
            fade_distance=6 * size,
            shadow_opacity=0.2,
            # a little lower, so that what stands on it is not drawn through it
            position=(0.0, 0.0, height - 0.001 * size),
        )
        lens = server.initial_camera
        lens.fov = FIELD
        lens.near, camera.far = 0.01 * size, 100.0 * size
        lens.look_at, lens.position = middle, place
        return size


def _bytes(color: Sequence[float]) -> tuple[int, int, int]:
    red, green, blue = (round(255 * part) for part in color[:3])
    return red, green, blue
