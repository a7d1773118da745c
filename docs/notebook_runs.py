"""Execution of the notebooks: at the build of the site, and to store their outputs in the repository.

    python docs/notebook_runs.py notebooks/01_tour.ipynb     runs a notebook and stores its outputs in the file

At the build each notebook runs in a kernel and an empty folder of its own. The result is reused while the notebook and
the package are unchanged.
"""

from __future__ import annotations

import asyncio
import base64
import io
import os
import platform
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path

import nbclient
import nbformat
from PIL import Image
from sources import LARGEST, ROOT, digest
from stored_outputs import TIMED, faults

SECONDS = 900
"""Time limit of a cell, s."""

PYTHONPATH = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
"""Import path of a kernel, which runs in another folder than that of the notebook."""

INLINE = "module://matplotlib_inline.backend_inline"
"""Matplotlib's backend in a kernel, whatever the environment says."""


def notebooks() -> list[Path]:
    """The notebooks, in the order of their numbers."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def build(kept: Path, workers: int | None = None) -> dict[str, Path]:
    """Run the notebooks without a current result; return the file with the outputs of each, by name.

    Args:
        kept: Folder of the results.
        workers: Number of parallel runs; None for one for each processor.

    Raises:
        RuntimeError: some notebooks fail; the message lists them.
    """
    kept.mkdir(parents=True, exist_ok=True)
    made = {each.name: kept / f"{each.stem}.{digest(each)}.ipynb" for each in notebooks()}
    for old in kept.glob("*.ipynb"):
        if old not in made.values():
            old.unlink()
    missing = [notebook for notebook in notebooks() if not made[notebook.name].exists()]
    failed = []
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        # the later notebooks take longer and start first
        tasks = {pool.submit(run, notebook, made[notebook.name]): notebook.name for notebook in reversed(missing)}
        for task in as_completed(tasks):
            try:
                print(f"{tasks[task]}: {task.result():.0f} s", flush=True)
            except Exception as error:  # a failed cell, a time limit, a dead kernel, a large picture
                failed.append(f"{tasks[task]}:\n{error}")
    if failed:
        raise RuntimeError("notebooks that fail:\n" + "\n".join(failed))
    return made


def run(notebook: Path, target: Path) -> float:
    """Run a notebook as a reader would, write it with its outputs, and return the seconds that it took.

    Args:
        notebook: The notebook.
        target: The file to write.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
        ValueError: a picture is too large, or a figure is stored as text.
    """
    content, seconds = executed(notebook)
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
    note = (
        f"*Run when this page was built: {seconds:.0f} s, compiling included ({where}, jax {metadata.version('jax')}).*"
    )
    content.cells.insert(1, nbformat.v4.new_markdown_cell(note))
    part = target.with_suffix(".part")
    nbformat.write(content, part)
    part.replace(target)
    return seconds


def executed(notebook: Path) -> tuple[nbformat.NotebookNode, float]:
    """A notebook after a run in an empty folder, and the seconds that it took.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    content = nbformat.read(notebook, as_version=4)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        client = nbclient.NotebookClient(
            content, timeout=SECONDS, resources={"metadata": {"path": folder}}, extra_arguments=["--log-level=ERROR"]
        )
        asyncio.run(client.async_execute(env={**os.environ, "PYTHONPATH": PYTHONPATH, "MPLBACKEND": INLINE}))
    return content, time.monotonic() - start


def store(notebook: Path) -> float:
    """Run a notebook, store its outputs in its own file, and return the seconds that it took.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
        ValueError: ``faults`` finds some.
    """
    content, seconds = executed(notebook)
    content.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for cell in content.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [] if TIMED.search(cell.source) else _plain(cell.outputs)
    text = nbformat.writes(content, indent=1, ensure_ascii=False) + "\n"
    if found := faults(content, len(text.encode())):
        raise ValueError(f"{notebook.name}:\n" + "\n".join(found))
    notebook.write_text(text, encoding="utf-8")
    return seconds


def _plain(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Outputs without counts and metadata, texts on one stream joined, figures as pictures of 256 colors."""
    made: list[nbformat.NotebookNode] = []
    for output in outputs:
        if output.output_type == "stream" and made and made[-1].get("name") == output.name:
            made[-1].text += output.text
            continue
        if "execution_count" in output:
            output.execution_count = None
        if "data" in output:
            output.metadata = {}
            if "image/png" in output.data:
                output.data = {"image/png": _small(output.data["image/png"])}
        made.append(output)
    return made


def _small(png: str) -> str:
    """A picture as PNG with a palette of 256 colors."""
    file = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        few = picture.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(file, format="png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def _data(content: nbformat.NotebookNode) -> list[dict[str, str]]:
    outputs = [each for cell in content.cells for each in cell.get("outputs", ())]
    return [each["data"] for each in outputs if "data" in each]


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {store(Path(name)):.0f} s", flush=True)
