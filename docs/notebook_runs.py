"""Notebooks at the build: each is run in a kernel and an empty folder of its own, and what it gave is kept.

What is kept serves as long as the notebook and the package are the same.
"""

from __future__ import annotations

import asyncio
import os
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

import nbclient
import nbformat
from sources import LARGEST, ROOT, digest

SECONDS = 900
"""A cell may take so long."""

PYTHONPATH = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
"""A notebook that reads `../benchmarks` finds it from another folder too."""

INLINE = "module://matplotlib_inline.backend_inline"
"""What draws into the notebook, whatever the environment says."""


def notebooks() -> list[Path]:
    """The notebooks, in the order of their numbers."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def build(kept: Path, workers: int | None = None) -> dict[str, Path]:
    """Run each notebook that is not kept for the package as it stands; the file that holds its outputs, by its name.

    Args:
        kept: The folder of what was run.
        workers: How many are run at a time, by default one for each processor.

    Raises:
        RuntimeError: some fail; the message has all of them.
    """
    kept.mkdir(parents=True, exist_ok=True)
    made = {each.name: kept / f"{each.stem}.{digest(each)}.ipynb" for each in notebooks()}
    for old in kept.glob("*.ipynb"):
        if old not in made.values():
            old.unlink()
    missing = [notebook for notebook in notebooks() if not made[notebook.name].exists()]
    failed = []
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        # the later ones take longer: from the last one on no processor is left without work
        tasks = {pool.submit(run, notebook, made[notebook.name]): notebook.name for notebook in reversed(missing)}
        for task in as_completed(tasks):
            try:
                print(f"{tasks[task]}: {task.result():.0f} s", flush=True)
            except Exception as error:  # a cell that fails or takes too long, a kernel that dies, a picture too large
                failed.append(f"{tasks[task]}:\n{error}")
    if failed:
        raise RuntimeError("notebooks that fail:\n" + "\n".join(failed))
    return made


def run(notebook: Path, target: Path) -> float:
    """Run a notebook as a reader would, and write it with its outputs and the seconds it took, which are returned.

    Args:
        notebook: The notebook.
        target: Where to.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
        ValueError: a picture is above its size, or a figure that is shown is none.
    """
    content = nbformat.read(notebook, as_version=4)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            content, timeout=SECONDS, resources={"metadata": {"path": folder}}, extra_arguments=["--log-level=ERROR"]
        )
        asyncio.run(client.async_execute(env={**os.environ, "PYTHONPATH": PYTHONPATH, "MPLBACKEND": INLINE}))
    seconds = time.monotonic() - start
    drawn = False
    for data in _data(content):
        sizes = [len(text) for kind, text in data.items() if kind.startswith("image/")]
        drawn |= bool(sizes)
        if max(sizes, default=0) > LARGEST:
            raise ValueError(f"{notebook.name}: a picture of {max(sizes)} bytes, expected at most {LARGEST}")
        if not sizes and data.get("text/plain", "").startswith("<Figure"):
            raise ValueError(f"{notebook.name}: a figure is no picture but the text {data['text/plain']}")
    if not drawn and any("plt.show()" in cell.source for cell in content.cells):
        raise ValueError(f"{notebook.name}: it shows figures, and there is no picture among its outputs")
    where = f"{os.cpu_count()} processors, {platform.machine()}"
    told = (
        f"*Run when this page was built: {seconds:.0f} s, compiling included ({where}, jax {metadata.version('jax')}).*"
    )
    content.cells.insert(1, nbformat.v4.new_markdown_cell(told))
    part = target.with_suffix(".part")
    nbformat.write(content, part)
    part.replace(target)
    return seconds


def _data(content: nbformat.NotebookNode) -> list[dict[str, str]]:
    outputs = [each for cell in content.cells for each in cell.get("outputs", ())]
    return [each["data"] for each in outputs if "data" in each]
