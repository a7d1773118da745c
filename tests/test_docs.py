"""The site: every public name has its anchor, every page its place, and what is wrong is found."""

import ast
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the extra docs is missing: pip install 'lgsim[docs]'")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import api_pages  # noqa: E402
import notebook_runs  # noqa: E402
import site_check  # noqa: E402
import sources  # noqa: E402
import usages  # noqa: E402

from tests.public_record import listed  # noqa: E402

MODULES = sources.public_modules()


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """The pages of the API, as text of Sphinx."""
    folder = tmp_path_factory.mktemp("api")
    links = api_pages.Links("https://example.org", usages.usages(notebook_runs.notebooks()))
    api_pages.write(MODULES, folder, links)
    return folder


def places(text):
    """The paths that a page describes or leads on from."""
    (module,) = re.findall(r"^\.\. py:module:: (.*)$", text, re.MULTILINE)
    described = re.findall(r"^\.\. py:(?:class|function|data):: (\w+)", text, re.MULTILINE)
    return {f"{module}.{name}" for name in described} | set(re.findall(r'<span id="([^"]+)">', text))


@pytest.mark.slow
def test_every_public_name_has_an_anchor(api):
    """Also a function that has its module's name, which tools that read text alone lose."""
    wanted = {
        f"{name}.{each}"
        for name, module in MODULES.items()
        for each in listed(module)
        if not inspect.ismodule(getattr(module, each))
    }
    found = set().union(*(places(page.read_text(encoding="utf-8")) for page in api.glob("lgsim*.rst")))
    assert wanted <= found, sorted(wanted - found)
    assert {"lgsim.dynamics.forward_dynamics", "lgsim.optimize.solve", "lgsim.identify.fit"} <= found
    assert len(found) > 900


@pytest.mark.slow
def test_the_index_has_every_module_by_its_task(api):
    text = (api / "index.rst").read_text(encoding="utf-8")
    assert set(re.findall(r":doc:`(lgsim[\w.]*)`", text)) == set(MODULES)


def test_a_name_leads_to_its_text_and_its_notebooks(api):
    text = (api / "lgsim.rst").read_text(encoding="utf-8")
    entry = re.split(r"^\.\. py:\w+:: ", text.partition(".. py:function:: simulate(")[2], flags=re.MULTILINE)[0]
    assert "`Source <https://example.org/lgsim/simulation/simulate.py#L" in entry
    assert ":doc:`Notebook 4, simulate </notebooks/04_simulate>`" in entry


def test_names_are_found_by_what_a_program_imports():
    import lgsim

    program = (
        "import lgsim\nfrom lgsim import optimize as o\nx = lgsim.simulate\no.solve(3).cost\nfit = y.fit\nlgsim.no"
    )
    found = list(usages.named(ast.parse(program)))
    assert found == [lgsim.simulate, lgsim.optimize.solve]


def test_shapes_are_shown_as_written():
    import lgsim

    shown = api_pages.signature(lgsim.mass_matrix, {id(lgsim.Model): "lgsim.Model"})
    assert shown.startswith("(model: lgsim.Model, q: Float[Array, ") and "'*batch nq'" in shown.replace('"', "'")


def test_marks_that_were_not_meant_are_plain():
    text = "|x| of a*b and `name`, trailing_ and ``*batch``.\n\nCode::\n\n    a * b | c_\n\nEnd."
    found = "\n".join(api_pages.description(text))
    assert r"\|x\| of a\*b and ``name``, trailing\_ and ``*batch``." in found
    assert "    a * b | c_" in found


def test_links_to_what_is_no_page_go_to_the_repository():
    here = Path("docs/gpu.md")
    text = "[a](loops.md#x) [b](../benchmarks/gpu.py) [c](https://x.org) [d](../notebooks) ![e](floors.svg)"
    base = f"{sources.REPOSITORY}"
    assert sources.linked(text, here) == (
        f"[a](loops.md#x) [b]({base}/blob/main/benchmarks/gpu.py) [c](https://x.org) [d]({base}/tree/main/notebooks)"
        " ![e](floors.svg)"
    )
    with pytest.raises(FileNotFoundError, match=r"docs/gpu.md: it links to nowhere.md, and there is no"):
        sources.linked("[x](nowhere.md)", here)


def test_every_page_s_links_hold_and_its_pictures_are_small():
    for page in [*sources.pages(), ROOT / "docs" / "index.md"]:
        own = Path("index.md") if page == ROOT / "docs" / "index.md" else page.relative_to(ROOT)
        text = sources.linked(page.read_text(encoding="utf-8"), own)
        for picture in sources.pictures(text, own):
            assert (ROOT / picture).stat().st_size <= sources.LARGEST, (page, picture)


def test_a_picture_above_its_size_fails_the_build(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LARGEST", 1000)
    with pytest.raises(ValueError, match=r"\.svg: \d+ bytes, expected at most 1000 of a picture"):
        sources.gather(tmp_path / "source")


def test_faults_of_a_site_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top">A</h1><a href="b.html#there">b</a> <a href="b.html#gone">b</a> <a href="c.html">c</a>'
        '<a href="#top">up</a><a href="https://x.org/y">out</a><script src="https://x.org/z.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="there">B</p><img src="big.png">')
    (tmp_path / "big.png").write_bytes(bytes(site_check.LARGEST + 1))
    found = list(site_check.faults(tmp_path))
    assert found == [
        "a.html: it loads https://x.org/z.js from another host",
        "a.html: it links to b.html#gone, and b.html has no such anchor",
        "a.html: it links to c.html, and there is no such file",
        f"big.png: {site_check.LARGEST + 1} bytes, expected at most {site_check.LARGEST}",
    ]
    (tmp_path / "b.html").write_text('<p id="there">B</p>')
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a>')
    (tmp_path / "big.png").unlink()
    assert list(site_check.faults(tmp_path)) == []
    assert list(site_check.faults(tmp_path / "nothing")) == [f"{tmp_path / 'nothing'}: there is no page"]


@pytest.mark.slow
def test_sphinx_fails_on_a_warning(tmp_path):
    """With the site's settings: a dead anchor of a page."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "index.md").write_text("# Home\n\n[x](#nowhere)\n")
    env = {"DOCS_SOURCE": str(source), "PATH": "", "HOME": str(tmp_path)}
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-c",
        str(ROOT / "docs"),
        str(source),
        str(tmp_path / "site"),
    ]
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    assert run.returncode != 0 and "nowhere" in run.stderr, run.stderr
    (source / "index.md").write_text("# Home\n\n$x^2$, [up](#home)\n")
    run = subprocess.run(command, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "_static/mathjax/tex-chtml.js" in text and "https://cdn" not in text
    assert list((tmp_path / "site" / "_static" / "mathjax").rglob("*.woff"))


def write(notebook, *cells):
    text = {"cell_type": "markdown", "id": "text", "metadata": {}, "source": "# Title"}
    code = [
        {
            "cell_type": "code",
            "id": f"code{n}",
            "metadata": {},
            "source": source,
            "execution_count": None,
            "outputs": [],
        }
        for n, source in enumerate(cells)
    ]
    notebook.write_text(json.dumps({"cells": [text, *code], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))


def test_notebooks_are_run_once_and_tell_how_long(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "lgsim").mkdir()
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(notebook_runs, "ROOT", tmp_path)
    write(tmp_path / "notebooks" / "a.ipynb", "import os\nprint(6 * 7, os.listdir())")
    made = notebook_runs.build(tmp_path / "kept")
    cells = json.loads(made["a.ipynb"].read_text(encoding="utf-8"))["cells"]
    assert re.fullmatch(r"\*Run when this page was built: \d+ s, .*\*", "".join(cells[1]["source"]))
    assert "".join(cells[2]["outputs"][0]["text"]) == "42 []\n"

    monkeypatch.setattr(notebook_runs, "run", lambda *_: pytest.fail("it was kept"))
    assert notebook_runs.build(tmp_path / "kept") == made
    (tmp_path / "lgsim" / "new.py").write_text("")
    with pytest.raises(pytest.fail.Exception, match="it was kept"):
        notebook_runs.build(tmp_path / "kept")
    assert not made["a.ipynb"].exists()


def test_notebooks_that_fail_are_named(tmp_path, monkeypatch):
    (tmp_path / "notebooks").mkdir()
    monkeypatch.setattr(notebook_runs, "ROOT", tmp_path)
    write(tmp_path / "notebooks" / "a.ipynb", "1 / 0")
    write(tmp_path / "notebooks" / "b.ipynb", "x = 1")
    with pytest.raises(RuntimeError, match=r"notebooks that fail:\na.ipynb:[\s\S]*ZeroDivisionError"):
        notebook_runs.build(tmp_path / "kept")
    assert [file.name.split(".")[0] for file in (tmp_path / "kept").iterdir()] == ["b"]


@pytest.mark.slow
def test_figures_of_a_notebook_are_on_its_page(tmp_path, monkeypatch):
    """Whatever backend the environment asks for: with Agg, as in make, a figure would be a line of text."""
    monkeypatch.setenv("MPLBACKEND", "Agg")
    write(tmp_path / "a.ipynb", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()")
    notebook_runs.run(tmp_path / "a.ipynb", tmp_path / "b.ipynb")
    outputs = json.loads((tmp_path / "b.ipynb").read_text(encoding="utf-8"))["cells"][2]["outputs"]
    assert "image/png" in outputs[0]["data"]

    write(tmp_path / "c.ipynb", "from matplotlib.figure import Figure\nFigure()")
    with pytest.raises(ValueError, match=r"c.ipynb: a figure is no picture but the text <Figure size"):
        notebook_runs.run(tmp_path / "c.ipynb", tmp_path / "d.ipynb")

    write(tmp_path / "c.ipynb", "class plt:\n    show = staticmethod(lambda: None)\nplt.show()")
    with pytest.raises(ValueError, match=r"c.ipynb: it shows figures, and there is no picture"):
        notebook_runs.run(tmp_path / "c.ipynb", tmp_path / "d.ipynb")


@pytest.mark.slow
def test_outputs_are_stored_without_counts_times_and_metadata(tmp_path):
    figure = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    timed = "import time\nprint(time.perf_counter())"
    write(tmp_path / "a.ipynb", "print(1)\nprint(2)\n3", figure, timed)
    notebook_runs.store(tmp_path / "a.ipynb")
    page = json.loads((tmp_path / "a.ipynb").read_text(encoding="utf-8"))
    assert list(page["metadata"]) == ["kernelspec"]
    assert all(cell["metadata"] == {} and cell.get("execution_count") is None for cell in page["cells"])
    printed, drawn, nothing = (cell["outputs"] for cell in page["cells"][1:])
    assert "".join(printed[0]["text"]) == "1\n2\n" and "".join(printed[1]["data"]["text/plain"]) == "3"
    assert list(drawn[0]["data"]) == ["image/png"] and drawn[0]["metadata"] == {} and nothing == []

    write(tmp_path / "b.ipynb", "import os\nprint(os.getcwd())")
    with pytest.raises(ValueError, match=r"b.ipynb:\ncode0: a path or an address"):
        notebook_runs.store(tmp_path / "b.ipynb")


def test_a_picture_of_a_notebook_above_its_size_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(notebook_runs, "LARGEST", 1000)
    picture = "from IPython.display import Image\nImage(bytes(2000), format='png')"
    write(tmp_path / "a.ipynb", picture)
    with pytest.raises(ValueError, match=r"a.ipynb: a picture of \d+ bytes, expected at most 1000"):
        notebook_runs.run(tmp_path / "a.ipynb", tmp_path / "b.ipynb")
    assert not (tmp_path / "b.ipynb").exists()
