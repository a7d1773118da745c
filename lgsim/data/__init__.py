"""Files that ship with lgsim, as paths: robots, scenarios, studies and a map of a recording to start from."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

__all__ = [
    "MACHINES",
    "SCENARIOS",
    "STUDIES",
    "arm7",
    "cart_pole",
    "machine",
    "quadrotor",
    "recording_map",
    "scenario",
    "study",
]

MACHINES = ("arm7", "cart_pole", "quadrotor")
"""The robots."""
SCENARIOS = ("reach", "swing_up", "follow")
"""The scenarios of trajectory optimization."""
STUDIES = ("hover", "arm")
"""The Monte Carlo studies."""


def arm7() -> Path:
    """The path of ``arm7.urdf``: an arm of seven revolute joints on a fixed base, for ``lgsim.load_urdf``.

    Kinematics, limits, inertias and friction are published ones of the Franka Emika Panda without its hand; the frame
    ``flange`` is where a tool is fixed.

    Source: named in the file.
    """
    return _path("arm7.urdf")


def cart_pole() -> Path:
    """The path of ``cart_pole.urdf``: a cart on a rail that is pushed, and a pole that hangs from it at zero."""
    return _path("cart_pole.urdf")


def quadrotor() -> Path:
    """The path of ``quadrotor.urdf``: a body of 1.2 kg with four rotors, for ``floating_base=True``; made for lgsim."""
    return _path("quadrotor.urdf")


def machine(name: str) -> Path:
    """The path of the robot of a name in ``MACHINES``.

    Raises:
        ValueError: there is no robot of that name.
    """
    return _path(f"{_known(name, MACHINES)}.urdf")


def scenario(name: str) -> Path:
    """The path of a commented scenario in ``SCENARIOS``, for ``lgsim.scenarios.load_scenario``.

    ``reach``: the arm of seven joints brings its flange to a pose; ``swing_up``: a cart swings its pole up;
    ``follow``: the flange goes along a path.

    Raises:
        ValueError: there is no scenario of that name.
    """
    return _path(f"{_known(name, SCENARIOS)}.toml")


def study(name: str) -> Path:
    """The path of a commented study in ``STUDIES``, for ``lgsim.scenarios.load_study``.

    ``hover``: a quadrotor keeps its place in gusty wind; ``arm``: an arm with an uncertain load.

    Raises:
        ValueError: there is no study of that name.
    """
    return _path(f"study_{_known(name, STUDIES)}.toml")


def recording_map() -> Path:
    """The path of ``recording_map.toml``: all that a map of a recording can say, commented, to copy and change."""
    return _path("recording_map.toml")


def _path(name: str) -> Path:
    return Path(str(resources.files("lgsim.data") / name))


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise ValueError(f"name: expected one of {', '.join(names)}, got {name!r}")
    return name
