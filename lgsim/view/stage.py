"""The 3D scene of a model: shapes on its frames, the floor, and a camera that sees the whole motion."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from lgsim.multibody.geometry import Mesh
from lgsim.multibody.model import Model
from lgsim.multibody.topology import ROOT, WORLD
from lgsim.support.packages import package
from lgsim.view.motion import FramePoses
from lgsim.view.shapes import Color, Shape
from lgsim.view.skeleton_shapes import skeleton
from lgsim.view.urdf_visuals import read_visuals

if TYPE_CHECKING:
    from viser import FrameHandle, ViserServer

Parts = Mapping[str, Sequence[tuple[Shape, Mesh]]]
"""Shapes and their triangle meshes, by the name of their frame."""

FIELD = float(np.deg2rad(35.0))
"""Vertical field of view of the camera, rad."""

_ASPECT = 1.4
"""Smallest aspect ratio of a window."""

_FILL = 0.85
"""Filled fraction of the window."""

VIEW = np.array([0.8, -1.0, 0.4]) / np.linalg.norm([0.8, -1.0, 0.4])
"""Direction from the center of the scene to the camera, in the world."""

MOMENTS = 500
"""Largest number of times that determine the position of the camera."""


def corners(names: Sequence[str], parts: Parts, poses: FramePoses) -> Float[np.ndarray, "k 3"]:
    """Corners of the bounding boxes of all parts over the motion, in the world, m.

    Args:
        names: Names of the frames of ``poses``.
        parts: Parts; those on other frames are fixed in the world.
        poses: The poses of the frames.
    """
    every = -(-len(poses.time) // MOMENTS)
    positions, quaternions = poses.positions[::every], poses.quaternions[::every]
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


def camera_view(
    points: Float[np.ndarray, "k 3"],
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"], float]:
    """Camera position, point of view and size of the scene for points in the world, m."""
    if not len(points):
        points = np.array([[-1.0, -1.0, -1.0], [1.0, 1.0, 1.0]])
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, float(np.linalg.norm(high - low))
    right = np.array([-VIEW[1], VIEW[0], 0.0]) / np.hypot(VIEW[0], VIEW[1])
    own = points - middle
    near, across, up = own @ VIEW, np.abs(own @ right), np.abs(own @ np.cross(VIEW, right))
    distance = np.max(near + np.maximum(up, across / _ASPECT) / (_FILL * np.tan(FIELD / 2)))
    return middle + distance * VIEW, middle, size


def grid_cell(size: float) -> float:
    """Cell width of the floor grid, m: the largest 1, 2 or 5 times a power of ten up to a tenth of the size."""
    power = 10.0 ** np.floor(np.log10(size / 10))
    return float(power * max(digit for digit in (1, 2, 5) if digit * power <= size / 10))


def _rotated(
    quaternions: Float[np.ndarray, "times 4"], points: Float[np.ndarray, "k 3"]
) -> Float[np.ndarray, "times k 3"]:
    """Points rotated by each of the quaternions."""
    w, u = quaternions[:, None, :1], quaternions[:, None, 1:]
    across = np.cross(u, points[None]) * 2
    return points[None] + w * across + np.cross(u, across)


Visuals = Mapping[str, Sequence[Shape]] | str | os.PathLike[str] | None
"""Shapes by the name of their frame, the path of a URDF file with shapes, or None for rods and ellipsoids."""


class StageOptions(NamedTuple):
    """Options of a scene.

    Attributes:
        trace: Names of frames whose path is drawn.
        follow: Name of a frame that the camera follows; None for a fixed camera.
        ghosts: Number of transparent copies of the robot, evenly spaced in time.
        floor: Height of the ground, m.
        dark: True for a dark background.
    """

    trace: Sequence[str] = ()
    follow: str | None = None
    ghosts: int = 0
    floor: float = 0.0
    dark: bool = False


def _check(options: StageOptions, names: Sequence[str]) -> None:
    """Check the options for a model.

    Raises:
        ValueError: a frame does not exist, or a number is invalid.
    """
    for argument, wanted in (("trace", options.trace), ("follow", [] if options.follow is None else [options.follow])):
        for name in wanted:
            if name not in names:
                raise ValueError(f"{argument}: expected names of frames, {', '.join(names)}; got {name!r}")
    if options.ghosts < 0 or not np.isfinite(options.floor):
        raise ValueError(
            f"ghosts, floor: expected a nonnegative number and a finite height, got {options.ghosts}, {options.floor}"
        )


_GHOST = 0.18
"""Opacity of the transparent copies."""
_TRACE: Color = (0.90, 0.35, 0.10, 1.0)
LIGHT: tuple[Color, Color] = ((0.87, 0.88, 0.89, 1.0), (0.75, 0.76, 0.78, 1.0))
DARK: tuple[Color, Color] = ((0.17, 0.18, 0.20, 1.0), (0.28, 0.30, 0.33, 1.0))
"""Colors of the floor grid and of its fifth lines, for light and dark backgrounds."""


def _shapes_of(model: Model, visuals: Visuals) -> dict[str, list[Shape]]:
    """Shapes to draw, by the name of their frame.

    Raises:
        ValueError: the model has no frame of a name.
        FileError, ImportError: see ``read_visuals``.
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
    """A model in a viser scene: creates its nodes and moves them."""

    def __init__(
        self,
        server: ViserServer,
        model: Model,
        visuals: Visuals,
        poses: FramePoses,
        options: StageOptions = StageOptions(),  # noqa: B008  a tuple
    ) -> None:
        """Create a scene that shows the first poses.

        Args:
            poses: Poses of the frames over the motion, for camera and floor.

        Raises:
            ValueError: the model has no frame of a name, or an option is invalid.
        """
        names, trace = model.frame_names, options.trace
        _check(options, names)
        self._scene = server.scene
        self._nodes: dict[int, FrameHandle] = {}
        drawn = _shapes_of(model, visuals)
        meshes = {name: [(shape, shape.geometry.triangles()) for shape in shapes] for name, shapes in drawn.items()}
        self._followed = None if options.follow is None else names.index(options.follow)
        self._start = poses.positions[0] if self._followed is None else poses.positions[0, self._followed]
        near = poses
        if self._followed is not None:
            shifts = np.array([self._shift(positions) for positions in poses.positions])
            near = poses._replace(positions=poses.positions + shifts[:, None])
        size = self._set(server, corners(names, meshes, near), options.floor, DARK if options.dark else LIGHT)
        self._roots = [] if self._followed is None else [self._root(name) for name in ("machine", "trace", "ghost")]
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
                position, quaternion = poses.positions[0, index], poses.quaternions[0, index]
            node = self._scene.add_frame(path, show_axes=False, position=position, wxyz=quaternion)
            for number, (shape, mesh) in enumerate(parts):
                self._add(f"{path}/{number}", shape, mesh)
            if name in moving:
                self._nodes[names.index(name)] = node
        for number in range(options.ghosts):
            self._add_ghost(
                number, names, meshes, poses, round((number + 0.5) / options.ghosts * (len(poses.time) - 1))
            )
        for name in trace:
            points = poses.positions[:, names.index(name)]
            if len(points) > 1:
                self._scene.add_line_segments(
                    f"/trace/{name.replace('/', '.')}",
                    np.stack([points[:-1], points[1:]], axis=1).astype(np.float32),
                    colors=_bytes(_TRACE),
                    thickness=0.004 * size,
                )

    def move(self, positions: Float[np.ndarray, "frames 3"], quaternions: Float[np.ndarray, "frames 4"]) -> None:
        """Move the frames.

        Args:
            positions: Origins of the frames in the world, m.
            quaternions: Attitudes of the frames in the world, w first.
        """
        for index, node in self._nodes.items():
            node.position = positions[index]
            node.wxyz = quaternions[index]
        if self._followed is not None:
            # a recorded scene cannot move the camera: the world moves instead
            shift = self._shift(positions)
            for root in self._roots:
                root.position = shift
            self._floor.position = self._floor_place + shift

    def _shift(self, positions: Float[np.ndarray, "frames 3"]) -> Float[np.ndarray, " 3"]:
        """Translation of the world, m, that keeps the followed frame at its horizontal position."""
        way = self._start - positions[self._followed]
        return np.array([way[0], way[1], 0.0])

    def _root(self, name: str) -> FrameHandle:
        """Parent node of one kind, slightly displaced, since only changes are recorded."""
        return self._scene.add_frame(f"/{name}", show_axes=False, position=(0.0, 0.0, 0.001))

    def _add_ghost(self, number: int, names: Sequence[str], parts: Parts, poses: FramePoses, moment: int) -> None:
        """Add transparent copies of the moving parts at one time."""
        for name, mine in parts.items():
            if name not in names:
                continue
            index, path = names.index(name), f"/ghost/{number}/{name.replace('/', '.')}"
            self._scene.add_frame(
                path, show_axes=False, position=poses.positions[moment, index], wxyz=poses.quaternions[moment, index]
            )
            for part, (shape, mesh) in enumerate(mine):
                if shape.color[3] >= 1:
                    self._add(f"{path}/{part}", replace(shape, color=(*shape.color[:3], _GHOST)), mesh)

    def _add(self, path: str, shape: Shape, mesh: Mesh) -> None:
        """Add a shape at the path of a node."""
        opacity = shape.color[3]
        self._scene.add_mesh_simple(
            path,
            # without the pose, so that equal meshes are stored once
            mesh.vertices.astype(np.float32),
            mesh.faces.astype(np.uint32),
            color=_bytes(shape.color),
            opacity=None if opacity >= 1 else opacity,
            flat_shading=mesh.flat,
            position=shape.pose[:3, 3],
            wxyz=package("viser.transforms", "view").SO3.from_matrix(shape.pose[:3, :3]).wxyz,
            # transparent shapes cast no shadow
            cast_shadow=opacity >= 1,
            receive_shadow=opacity >= 1,
        )

    def _set(
        self, server: ViserServer, points: Float[np.ndarray, "k 3"], height: float, lines: tuple[Color, Color]
    ) -> float:
        """Place floor and camera for points in the world, m; return the size of the scene, m."""
        position, middle, size = camera_view(points)
        cell = grid_cell(size)
        self._scene.set_up_direction("+z")
        # slightly lower, so that objects on the floor hide it
        self._floor_place = np.array([0.0, 0.0, height - 0.001 * size])
        self._floor = self._scene.add_grid(
            "/floor",
            infinite_grid=True,
            cell_size=cell,
            section_size=5 * cell,
            cell_color=_bytes(lines[0]),
            section_color=_bytes(lines[1]),
            fade_distance=6 * size,
            shadow_opacity=0.2,
            position=self._floor_place * (1.0 if self._followed is None else 1.001),
        )
        camera = server.initial_camera
        camera.fov = FIELD
        camera.near, camera.far = 0.01 * size, 100.0 * size
        camera.look_at, camera.position = middle, position
        return size


def _bytes(color: Sequence[float]) -> tuple[int, int, int]:
    """Red, green and blue from 0 to 255."""
    red, green, blue = (round(255 * part) for part in color[:3])
    return red, green, blue
