"""Motions that play on the site's pages, made by lgsim at the build."""

from pathlib import Path

import jax
import numpy as np

import lgsim

LARGEST = 1_500_000
"""Bytes of a replay."""


def home(path: Path) -> None:
    """The arm of lgsim, let go.

    Args:
        path: The file that is written.

    Raises:
        ValueError: it is above its size.
    """
    with jax.enable_x64(True):
        arm = lgsim.load_urdf(lgsim.data.arm7())
        start = np.array([0.3, 0.6, 0.0, -1.2, 0.0, 0.5, 0.0])
        motion = lgsim.simulate(arm, start, duration=4.0, dt=2e-3, save_every=10)
        text = lgsim.view.to_html(motion, path, lgsim.data.arm7(), frames_per_second=20, title="lgsim", floor=-1.0)
    if len(text.encode()) > LARGEST:
        raise ValueError(f"{path.name}: {len(text.encode())} bytes, expected at most {LARGEST} of a replay")
