"""The gallery at the build: run its scripts, draw stills, and store the player of the replays once.

A replay of lgsim holds its own player, which is nine tenths of the file; on the site all replays load one player.
"""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import sys
from pathlib import Path

from sources import LARGEST, digest

SCRIPTS = Path(__file__).parent / "gallery"
LINES = 40
"""Bound of the lines of a script."""

_PLAYER = re.compile(r'<script data-p="([^"]*)"')
_READ = "document.currentScript.dataset"


def scripts() -> list[Path]:
    """The scripts of the gallery."""
    return sorted(SCRIPTS.glob("*.py"))


def build(folder: Path) -> None:
    """Make each replay and its still, unless the folder has them for this script and this package.

    Args:
        folder: Folder of the replays, which is kept between builds.

    Raises:
        ValueError: a script is too long, or its replay too large.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = set()
    for script in scripts():
        text = script.read_text(encoding="utf-8")
        if len(text.splitlines()) >= LINES:
            raise ValueError(f"{script.name}: {len(text.splitlines())} lines, expected fewer than {LINES}")
        kept = folder / f"{script.stem}.{digest(script)}.made"
        wanted.add(kept.name)
        if not kept.exists():
            make(script, folder)
            kept.touch()
    for old in folder.glob("*.made"):
        if old.name not in wanted:
            old.unlink()


def make(script: Path, folder: Path) -> None:
    """Run a script and write its replay and a still of its motion.

    Args:
        script: Path of the script.
        folder: Folder of the replay.

    Raises:
        ValueError: the replay is too large.
    """
    page = folder / f"{script.stem}.html"
    before = sys.argv
    sys.argv = [str(script), str(page)]
    try:
        motion = runpy.run_path(str(script))["motion"]
    finally:
        sys.argv = before
    size = page.stat().st_size
    if size > LARGEST:
        raise ValueError(f"{script.name}: its replay has {size} bytes, expected at most {LARGEST}")
    page.write_text(shared(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    still(motion, folder / f"{script.stem}.svg")


def shared(text: str, folder: Path) -> str:
    """The page of a replay with its player in a separate file.

    Args:
        text: HTML of the page.
        folder: Folder of the player's file.

    Raises:
        ValueError: the page has no player in the expected place.
    """
    found = _PLAYER.search(text)
    if found is None or _READ not in text:
        raise ValueError("replay: expected a page whose player is the first attribute of a script")
    name = f"player-{hashlib.sha256(found[1].encode()).hexdigest()[:12]}.js"
    if not (folder / name).exists():
        (folder / name).write_text(f"window.lgsimPlayer = {json.dumps(found[1])};\n", encoding="utf-8")
    text = text.replace(found[0], f'<script src="{name}"></script><script', 1)
    return text.replace(_READ, f"({{...{_READ}, p: window.lgsimPlayer}})", 1)


def still(motion, path: Path) -> None:
    """Draw the model at eight instants, seen from the side; later instants are darker.

    Args:
        motion: The trajectory.
        path: File of the picture.
    """
    import jax
    import matplotlib
    import numpy as np

    import lgsim

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    model, parents = motion.model, motion.model.topology.parents
    centers = np.asarray(model.inertias[:, 1:4] / model.inertias[:, :1])
    moments = np.linspace(0, len(motion.time) - 1, 8).round().astype(int)
    poses = np.asarray(jax.vmap(lambda q: lgsim.forward_kinematics(model, q))(np.asarray(motion.q)[moments]))
    fig, ax = plt.subplots(figsize=(4.5, 3.2), constrained_layout=True)
    for shade, pose in zip(np.linspace(0.15, 1.0, 8), poses, strict=True):
        for body, parent in enumerate(parents):
            tip = pose[body, :3, 3] + pose[body, :3, :3] @ centers[body]
            base = pose[parent, :3, 3] if parent >= 0 else pose[body, :3, 3]
            line = np.stack([base, pose[body, :3, 3], tip])
            ax.plot(line[:, 0] + 0.3 * line[:, 1], line[:, 2] + 0.15 * line[:, 1], "o-", ms=2, color="C0", alpha=shade)
    ax.set(aspect="equal")
    ax.set_axis_off()
    fig.savefig(path)
    plt.close(fig)
