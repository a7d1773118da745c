"""Notebooks run in a fresh process and an empty folder, and their outputs are stored without traces of a computer."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs"))

import stored_outputs

from tests.test_readme import ROOT

REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

# The cells of a notebook share one namespace; each has a name of its own for tracebacks.
RUNNER = """
names = {"__name__": "__main__"}
for name, code in CELLS:
    exec(compile(code, name, "exec"), names)
"""


def load(notebook):
    return json.loads(notebook.read_text(encoding="utf-8"))


def code_cells(notebook):
    """(name, code) of each code cell; the number is the one that Jupyter shows after running all cells."""
    cells = [cell for cell in load(notebook)["cells"] if cell["cell_type"] == "code"]
    return [(f"{notebook.name} cell {n}", "".join(cell["source"])) for n, cell in enumerate(cells, start=1)]


@pytest.fixture
def run(pytestconfig):
    """Runs a notebook in a folder; what pytest is told to ignore by -W is ignored there too."""
    # a figure that Agg cannot show is the one thing that differs from a reader's screen
    told = ["error", "ignore:FigureCanvasAgg is non-interactive:UserWarning"]
    told += pytestconfig.getoption("pythonwarnings") or []

    def run(notebook, folder):
        cells = code_cells(notebook)
        assert cells, f"{notebook.name} has no code cell"
        return subprocess.run(
            [sys.executable, *(f"-W{each}" for each in told), "-c", f"CELLS = {cells!r}{RUNNER}"],
            cwd=folder,
            env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}"},
            capture_output=True,
            text=True,
        )

    return run


def write(notebook, *cells):
    """A made-up notebook of code cells, with a text cell in front."""
    text = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": ["x = undefined"]}
    code = [
        {"cell_type": "code", "id": f"code-{n}", "metadata": {}, "source": source.splitlines(keepends=True)}
        | {"execution_count": None, "outputs": []}
        for n, source in enumerate(cells)
    ]
    notebook.write_text(json.dumps({"cells": [text, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return notebook


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_each_opens_with_a_title_a_sentence_a_badge_and_its_requirements(notebook):
    first, second = load(notebook)["cells"][:2]
    title, sentence, badge = "".join(first["source"]).split("\n\n")[:3]
    text = " ".join("".join(first["source"]).split())
    assert first["cell_type"] == "markdown" and re.fullmatch(r"# [^\n]+", title)
    assert re.fullmatch(r"This (notebook|tour) [^.]*\.", sentence), sentence
    page = f"{REPOSITORY.removeprefix('https://github.com')}/blob/main/notebooks/{notebook.name}"
    assert badge.startswith("[![Open in Colab](") and badge.endswith(
        f"(https://colab.research.google.com/github{page})"
    )
    needs = re.search(r"\*\*Requirements:\*\* `pip install '(lgsim\[[a-z,]+\])'[^.]* (second|minute)s?\b", text)
    assert needs, text
    assert second["id"] == "colab" and f'"{needs[1]} @ git+{REPOSITORY}"' in "".join(second["source"])


def test_there_are_notebooks():
    assert NOTEBOOKS, "no notebook in notebooks/"


each_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)


@pytest.mark.slow
@each_notebook
def test_notebook_runs_and_writes_no_file(notebook, run, tmp_path):
    done = run(notebook, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.iterdir())


@each_notebook
def test_stored_outputs_are_small_and_have_no_errors_and_no_paths(notebook):
    faults = stored_outputs.faults(load(notebook), notebook.stat().st_size)
    assert not faults, "\n".join(faults)


def test_faults_of_outputs_are_found():
    def found(*outputs, size=1):
        return stored_outputs.faults({"cells": [{"id": "a", "outputs": list(outputs)}]}, size)

    stream = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two/tmp/three 1/2"]}
    assert found(stream) == [] and found() == ["no outputs"]
    assert "expected at most 600000" in found(stream, size=600_001)[0]
    assert "path" in found({**stream, "text": "/tmp/x.csv: 3 rows"})[0]
    assert "address" in found({**stream, "text": "<object at 0x7f0912345678>"})[0]
    assert "stderr" in found({**stream, "name": "stderr"})[0]
    assert "error" in found({"output_type": "error"})[0]
    shown = {"output_type": "display_data"}
    assert "HTML" in found({**shown, "data": {"text/html": "<p>"}})[0]
    assert "figure" in found({**shown, "data": {"image/png": "a" * 140_000}})[0]
    assert found({**shown, "data": {"image/png": "a" * 130_000}}) == []
    assert "figure" in found({**shown, "data": {"text/plain": "<Figure size 1x1>"}})[0]


@each_notebook
def test_notebook_has_no_traces_of_an_editor(notebook):
    page = load(notebook)
    assert (page["nbformat"], page["nbformat_minor"]) == (4, 5)
    assert set(page["metadata"]) == {"kernelspec"} and page["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in page["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in page["cells"]:
        assert cell["metadata"] == {}, cell["id"]
        if cell["cell_type"] == "code":
            assert cell["execution_count"] is None, cell["id"]
            timed = stored_outputs.TIMED.search("".join(cell["source"]))
            assert not (timed and cell["outputs"]), f"{cell['id']}: a computing time differs from run to run"
            for output in cell["outputs"]:
                assert output.get("metadata", {}) == {} and output.get("execution_count") is None, cell["id"]


@each_notebook
def test_notebook_is_linked_from_a_page(notebook):
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"notebooks/{notebook.name}" in page.read_text(encoding="utf-8") for page in pages)


def test_cells_share_a_namespace_and_errors_name_notebook_and_cell(run, tmp_path):
    page = write(tmp_path / "page.ipynb", "x = 1", "y = x\n\nassert y == 2, 'so'", "print('not reached')")
    done = run(page, tmp_path)
    assert done.returncode == 1 and "not reached" not in done.stdout
    assert 'File "page.ipynb cell 2", line 3' in done.stderr and "AssertionError: so" in done.stderr


def test_a_warning_fails_but_showing_a_figure_does_not(run, tmp_path):
    figure = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    page = write(tmp_path / "page.ipynb", figure, "import warnings\nwarnings.warn('look out')")
    done = run(page, tmp_path)
    assert done.returncode == 1
    assert 'File "page.ipynb cell 2", line 2' in done.stderr and "UserWarning: look out" in done.stderr


def test_notebook_without_code_fails(run, tmp_path):
    with pytest.raises(AssertionError, match="no code cell"):
        run(write(tmp_path / "page.ipynb"), tmp_path)
