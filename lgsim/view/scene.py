"""3D scenes: a motion as one HTML file that a browser plays, or a live scene."""

from __future__ import annotations

import contextlib
import html
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jax.typing import ArrayLike

from lgsim.multibody.model import Model
from lgsim.support.files import write_whole
from lgsim.support.packages import package
from lgsim.support.printable import printable
from lgsim.view import motion as motions
from lgsim.view.motion import MotionLike
from lgsim.view.stage import Stage, StageOptions, Visuals

if TYPE_CHECKING:
    from viser import ViserServer

LOCAL = "127.0.0.1"
_MAX_PICTURES = 20_000
"""Largest number of frames in one file."""


def to_html(
    motion: MotionLike,
    path: str | os.PathLike[str] | None = None,
    visuals: Visuals = None,
    *,
    frames_per_second: float = 30.0,
    speed: float = 1.0,
    trace: Sequence[str] = (),
    follow: str | None = None,
    ghosts: int = 0,
    floor: float = 0.0,
    title: str = "lgsim",
    dark: bool = False,
) -> str:
    """Write a 3D replay of a motion as one HTML file that needs no network: play, pause, scrub, orbit and zoom.

    The file contains its player, scene and poses. Poses between the configurations of the motion are interpolated by
    ``model.interpolate``.

    Args:
        motion: Any object with ``model``, ``time`` (N,), ``q`` (N, nq), such as a ``Trajectory``.
        path: Path of the file, written atomically; None to write no file.
        visuals: Shapes by the name of their frame (``read_visuals``), the path of a URDF file with shapes, or None for
            rods between the joints and ellipsoids of inertia.
        frames_per_second: Frames per second of playing time.
        speed: Seconds of motion per second of playing time: 0.1 is slow motion.
        trace: Names of frames whose path is drawn.
        follow: Name of a frame that the camera follows, for walking and flying robots.
        ghosts: Number of transparent copies of the robot, evenly spaced in time.
        floor: Height of the ground, m.
        title: Title of the page.
        dark: True for a dark background.

    Raises:
        ModuleNotFoundError: viser is missing; ``pip install 'lgsim[view]'``.
        ValueError: the motion has wrong shapes, times that do not increase or configurations that are not finite;
            the model has no frame of a name; ``frames_per_second`` or ``speed`` is not positive; there would be over
            20 000 frames.
        OSError: the file cannot be written.
    """
    for name, value in (("frames_per_second", frames_per_second), ("speed", speed)):
        if not 0 < value < np.inf:
            raise ValueError(f"{name}: expected a positive number, got {value!r}")
    time = motions.times(motion)
    # rounded, so that rounding errors do not drop the last frame
    count = int(np.floor(round((time[-1] - time[0]) / speed * frames_per_second, 6))) + 1
    if count > _MAX_PICTURES:
        raise ValueError(
            f"frames_per_second: expected at most {_MAX_PICTURES} frames in one file, got {count}; reduce it,"
            " increase speed, or shorten the motion"
        )
    moments = np.minimum(time[0] + np.arange(count) * (speed / frames_per_second), time[-1])
    poses = motions.frame_poses(motion, moments)
    with _server() as server:
        stage = Stage(server, motion.model, visuals, poses, StageOptions(trace, follow, ghosts, floor, dark))
        recording = server.get_scene_serializer()
        for index in range(count):
            stage.move(poses.positions[index], poses.quaternions[index])
            if count > 1:
                recording.insert_sleep(1 / frames_per_second)
        page = recording.as_html(dark_mode=dark)
    head = f'<meta name="generator" content="lgsim scene"><title>{html.escape(printable(title))}</title>'
    page = re.sub(r"<title>.*?</title>", lambda _: head, page, count=1)
    if path is not None:
        write_whole(Path(path), page.encode())
    return page


class Live:
    """A running scene; ``stop()`` or the end of a ``with`` block stops it.

    Attributes:
        server: The viser server, to which further elements can be added.
        url: Address of the scene.
    """

    def __init__(self, server: ViserServer, model: Model, stage: Stage) -> None:
        self.server = server
        self.url = f"http://localhost:{server.get_port()}"
        self._model, self._stage = model, stage
        self._done = threading.Event()
        self._players: list[threading.Thread] = []

    def show(self, q: ArrayLike) -> None:
        """Show a configuration q (nq,)."""
        poses = motions.frame_poses_at(self._model, q)
        self._stage.move(poses.positions[0], poses.quaternions[0])

    def stop(self) -> None:
        """Stop the scene and its server."""
        self._done.set()
        for player in self._players:
            player.join()
        self.server.stop()

    def _play(self, loop: Callable[[], None]) -> None:
        """Run a loop in a thread until the scene is stopped."""
        player = threading.Thread(target=loop, daemon=True, name="lgsim.view.live")
        self._players.append(player)
        player.start()

    def wait(self) -> None:
        """Block until the scene is stopped, at the end of a script."""
        self._done.wait()

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


def live(
    shown: Model | MotionLike,
    visuals: Visuals = None,
    *,
    host: str = LOCAL,
    port: int = 8080,
    frames_per_second: float = 30.0,
    trace: Sequence[str] = (),
    follow: str | None = None,
    ghosts: int = 0,
    floor: float = 0.0,
) -> Live:
    """Show a scene on a local web server: a motion with a time slider, or a model with a slider for each joint.

    Args:
        shown: A motion (see ``to_html``), or a model, shown in its neutral configuration.
        visuals: Shapes, see ``to_html``.
        host: Address that the server listens on; the default accepts connections only from this computer.
        port: Port of the server; if it is taken, the next free one.
        frames_per_second: Frames per second of playing time.
        trace: See ``to_html``.
        follow: See ``to_html``.
        ghosts: See ``to_html``.
        floor: See ``to_html``.

    Returns:
        The running scene, with its ``url``.

    Raises:
        ModuleNotFoundError: viser is missing; ``pip install 'lgsim[view]'``.
        ValueError: as ``to_html``.
    """
    server = package("viser", "view").ViserServer(host=host, port=port, verbose=False)
    try:
        if isinstance(shown, Model):
            poses = motions.frame_poses_at(shown, shown.neutral())
            scene = Live(server, shown, Stage(server, shown, visuals, poses, StageOptions(floor=floor)))
            _joint_sliders(server, shown, scene)
            return scene
        time = motions.times(shown)
        moments = np.linspace(time[0], time[-1], max(2, round((time[-1] - time[0]) * frames_per_second) + 1))
        poses = motions.frame_poses(shown, moments)
        stage = Stage(server, shown.model, visuals, poses, StageOptions(trace, follow, ghosts, floor))
        scene = Live(server, shown.model, stage)
        _time_slider(server, stage, poses, scene, frames_per_second)
    except BaseException:
        server.stop()
        raise
    return scene


def _time_slider(
    server: ViserServer, stage: Stage, poses: motions.FramePoses, scene: Live, frames_per_second: float
) -> None:
    """Add a time slider, and play the motion until the scene is stopped."""
    first, last = float(poses.time[0]), float(poses.time[-1])
    step = (last - first) / (len(poses.time) - 1) if last > first else 1.0
    slider = server.gui.add_slider("time (s)", first, max(last, first + step), step, first)
    playing = server.gui.add_checkbox("play", True)
    speed = server.gui.add_slider("speed", 0.1, 4.0, 0.1, 1.0)

    @slider.on_update
    def _(_: Any) -> None:
        index = int(np.clip(round((slider.value - first) / step), 0, len(poses.time) - 1))
        stage.move(poses.positions[index], poses.quaternions[index])

    def play() -> None:
        while not scene._done.wait(1 / frames_per_second):
            if playing.value:
                later = slider.value + speed.value / frames_per_second
                slider.value = first if later > last else later

    scene._play(play)


def _joint_sliders(server: ViserServer, model: Model, scene: Live) -> None:
    """Add a slider for each joint with one coordinate, within its limits."""
    q = np.array(model.neutral(), float)
    lower, upper = np.asarray(model.lower, float), np.asarray(model.upper, float)
    for name in model.joint_names:
        at, row = model.q_slices[name], model.v_slices[name]
        if at.stop - at.start != 1 or row.stop - row.start != 1:
            continue
        low, high = (float(x[row.start]) for x in (lower, upper))
        low, high = (low if np.isfinite(low) else -np.pi), (high if np.isfinite(high) else np.pi)
        start = float(np.clip(q[at.start], low, high))
        q[at.start] = start
        slider = server.gui.add_slider(printable(name), low, high, (high - low) / 400 or 1.0, start)

        @slider.on_update
        def _(_: Any, slider: Any = slider, place: int = at.start) -> None:
            q[place] = slider.value
            scene.show(q)

    scene.show(q)


@contextlib.contextmanager
def _server() -> Iterator[ViserServer]:
    """A local viser server for the duration of a recording."""
    viser, console = package("viser", "view"), package("rich", "view").get_console()
    # viser prints addresses that do not outlive the recording
    talks, console.quiet = not console.quiet, True
    try:
        server = viser.ViserServer(host=LOCAL, port=0, verbose=False)
        try:
            yield server
        finally:
            server.stop()
    finally:
        console.quiet = not talks
