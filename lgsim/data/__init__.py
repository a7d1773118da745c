"""Robots that ship with lgsim, as paths for its readers."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

__all__ = ["arm7", "cart_pole", "quadrotor"]


def arm7() -> Path:
    """The path of ``arm7.urdf``: an arm of seven revolute joints on a fixed base, for ``lgsim.load_urdf``.

    Kinematics, limits, inertias and friction are published ones of the Franka Emika Panda without its hand; the frame
    ``flange`` is where a tool is fixed.

    Source: named in the file.
    """
    return Path(str(resources.files("lgsim.data") / "arm7.urdf"))


def cart_pole() -> Path:
    """The path of ``cart_pole.urdf``: a cart on a rail that is pushed, and a pole that hangs from it at zero."""
    return Path(str(resources.files("lgsim.data") / "cart_pole.urdf"))


def quadrotor() -> Path:
    """The path of ``quadrotor.urdf``: a body of 1.2 kg with four rotors, for ``floating_base=True``; made for lgsim."""
    return Path(str(resources.files("lgsim.data") / "quadrotor.urdf"))
