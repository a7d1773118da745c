"""Paths of the example files of lgsim: robots, scenarios, studies and a map of a recording."""

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
"""Names of the robots."""
SCENARIOS = ("reach", "swing_up", "follow")
"""Names of the trajectory optimization scenarios."""
STUDIES = ("hover", "arm")
"""Names of the Monte Carlo studies."""


def arm7() -> Path:
    """The path of ``arm7.urdf``: an arm of seven revolute joints on a fixed base, for ``lgsim.load_urdf``.

    Kinematics, limits, inertias and friction are published values of the Franka Emika Panda without its hand; tools are
    attached to the frame ``flange``.

    Source: named in the file.
    """
    return _path("arm7.urdf")


def cart_pole() -> Path:
    """The path of ``cart_pole.urdf``: an actuated cart on a rail with a pole that points down at zero."""
    return _path("cart_pole.urdf")


def quadrotor() -> Path:
    """The path of ``quadrotor.urdf``: a body of 1.2 kg with four rotors, for ``floating_base=True``."""
    return _path("quadrotor.urdf")


def machine(name: str) -> Path:
    """The path of a robot, by its name in `MACHINES`.

    Raises:
        ValueError: an unknown name.
    """
    return _path(f"{_known(name, MACHINES)}.urdf")


def scenario(name: str) -> Path:
    """The path of a commented scenario in ``SCENARIOS``, for ``lgsim.scenarios.load_scenario``.

    ``reach``: a 7-joint arm moves its flange to a pose; ``swing_up``: a cart swings its pole up; ``follow``: the flange
    follows a path.

    Raises:
        ValueError: an unknown name.
    """
    return _path(f"{_known(name, SCENARIOS)}.toml")


def study(name: str) -> Path:
    """The path of a commented study in ``STUDIES``, for ``lgsim.scenarios.load_study``.

    ``hover``: a quadrotor holds its position in gusty wind; ``arm``: an arm with an uncertain payload.

    Raises:
        ValueError: an unknown name.
    """
    return _path(f"study_{_known(name, STUDIES)}.toml")


def recording_map() -> Path:
    """The path of ``recording_map.toml``: a commented map of a recording with all keys."""
    return _path("recording_map.toml")


def _path(name: str) -> Path:
    return Path(str(resources.files("lgsim.data") / name))


def _known(name: str, names: Sequence[str]) -> str:
    if name not in names:
        raise ValueError(f"name: expected one of {', '.join(names)}, got {name!r}")
    return name
