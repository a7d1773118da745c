"""The site: every public name has its anchor, every page its place, and what is wrong is found."""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the extra docs is missing: pip install 'lgsim[docs]'")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import api_pages  # noqa: E402
import definitions  # noqa: E402
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
    module = re.findall(r"^\.\. py:(?:current)?module:: (.*)$", text, re.MULTILINE)
    described = re.findall(r"^\.\. py:(?:class|function|data):: (\w+)", text, re.MULTILINE)
    return {f"{module[0]}.{name}" for name in described} | set(re.findall(r'<span id="([^"]+)">', text))


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
def test_the_page_of_a_module_has_the_anchors_of_its_names(api):
    """Also those that a page of a section or another module describes."""
    for name, module in MODULES.items():
        wanted = {f"{name}.{each}" for each in listed(module) if not inspect.ismodule(getattr(module, each))}
        assert wanted <= places((api / f"{name}.rst").read_text(encoding="utf-8")), name


def test_every_public_name_and_module_has_a_sentence():
    assert [path for path, value in api_pages.anchors(MODULES).items() if not api_pages.summary(path, value)] == []
    assert [name for name, module in MODULES.items() if not inspect.getdoc(module)] == []


def test_a_method_has_its_order_and_stages_from_its_coefficients():
    import lgsim
    from lgsim.integrators import methods

    for name in methods.__all__:
        method = getattr(lgsim, name)
        text = api_pages.summary(f"lgsim.{name}", method)
        assert f" of order {method.order}" in text, text
        assert api_pages.text_of(f"lgsim.{name}", method) == api_pages.text_of(
            f"lgsim.integrators.methods.{name}", method
        )
    assert api_pages.text_of("lgsim.MK54", lgsim.MK54).startswith(
        "Munthe-Kaas method of order 5 with 7 stages and an embedded estimate of order 4.\n\n"
    )
    assert "Source: Kutta 1901" in api_pages.text_of("lgsim.MK4", lgsim.MK4)


def test_the_index_has_every_module_by_its_task(api):
    text = (api / "index.rst").read_text(encoding="utf-8")
    assert set(re.findall(r":doc:`(lgsim[\w.]*)`", text)) == set(MODULES)


def test_a_page_of_the_api_is_small(api):
    """The site's bound in bytes of HTML, as bytes of text."""
    assert max(page.stat().st_size for page in api.glob("*.rst")) < 60_000


def test_the_plain_text_has_every_name_once():
    text = api_pages.plain_text(MODULES)
    headings = re.findall(r"^(lgsim[\w.]*)(?=\(|$)", text, re.MULTILINE)
    described = {path for path in headings if path not in MODULES}
    assert {"lgsim.simulate", "lgsim.MK4", "lgsim.optimize.solve"} <= described
    shown = {path.rpartition(".")[2] for path in described}
    assert {path.rpartition(".")[2] for path in api_pages.anchors(MODULES)} <= shown
    assert "Munthe-Kaas method of order 4 with 4 stages." in text


def test_annotations_are_shown_as_written():
    import lgsim

    written = definitions.annotations(lgsim.optimize.MultibodyDynamics.step)
    assert written["t"] == "Number" and written["return"] == "Point"
    assert definitions.annotations(lgsim.optimize.MultibodyDynamics)["model"] == "Model"


def test_a_name_leads_to_its_text_and_its_notebooks(api):
    text = (api / "lgsim-simulation.rst").read_text(encoding="utf-8")
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


def test_a_badge_of_another_host_becomes_a_text(tmp_path):
    write(tmp_path / "a.ipynb")
    title = "# Title [![Open](https://x.org/b.svg)](https://x.org/a) ![c](d.png)"
    text = (tmp_path / "a.ipynb").read_text(encoding="utf-8").replace("# Title", title)
    (tmp_path / "a.ipynb").write_text(text, encoding="utf-8")
    sources.copy_notebook(tmp_path / "a.ipynb", tmp_path / "made" / "a.ipynb")
    (cell,) = json.loads((tmp_path / "made" / "a.ipynb").read_text())["cells"]
    assert cell["source"] == "# Title [Open](https://x.org/a) ![c](d.png)"


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
    assert list(site_check.faults(tmp_path / "nothing")) == [f"{tmp_path / 'nothing'}: expected HTML pages, found none"]


def test_a_large_page_of_the_api_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(site_check, "API_PAGE", 1000)
    (tmp_path / "api").mkdir()
    (tmp_path / "api" / "a.html").write_text("x" * 1001)
    assert list(site_check.faults(tmp_path)) == ["api/a.html: 1001 bytes, expected at most 1000 of a page of the API"]


def test_faults_of_a_sidebar_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(site_check, "GROUPS", ("Start", "API"))
    entry = '<li class="toctree-l1"><a class="reference internal" href="a.html">{}</a></li>'
    body = "".join(entry.format(title) for title in ["One", "Two", "One", *"abcdefg"])
    page = '<div class="sidebar-tree"><p class="caption" role="heading"><span>{}</span></p><ul>{}</ul></div>'
    (tmp_path / "index.html").write_text(page.format("Start", body))
    assert list(site_check.sidebar(tmp_path)) == [
        "the sidebar has the groups Start, expected Start, API",
        "the sidebar's group Start has 10 entries, expected at most 9",
        "the sidebar has the title 'One' 2 times",
    ]


def listed_pages():
    """(caption, title, page) of every entry of the toctrees of the home page and of the pages in them."""
    found, open_ = [], [(Path("docs/index.md"), Path())]
    while open_:
        file, folder = open_.pop()
        for caption, entries in sources.groups((ROOT / file).read_text(encoding="utf-8")).items():
            for entry in entries:
                label, name = re.fullmatch(r"(?:(.+) <)?(.+?)>?", entry).groups()
                page = Path(os.path.normpath(folder / name))
                own = ROOT / f"{page}.md"
                text = own.read_text(encoding="utf-8") if own.exists() else ""
                found.append((caption, label or sources.title(text) or page.name, page))
                if text:
                    open_.append((own.relative_to(ROOT), page.parent))
    return found


def test_the_sidebar_has_six_groups_of_at_most_nine_entries_and_no_title_twice():
    groups = sources.groups((ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert tuple(groups) == sources.GROUPS
    assert {name: len(entries) for name, entries in groups.items() if len(entries) > site_check.ENTRIES} == {}
    titles = [title for _, title, _ in listed_pages()]
    assert sorted({each for each in titles if titles.count(each) > 1}) == []


def test_every_page_and_notebook_is_in_the_sidebar_once():
    pages = [page.as_posix() for _, _, page in listed_pages()]
    wanted = [
        each.relative_to(ROOT).with_suffix("").as_posix() for each in [*sources.pages(), *notebook_runs.notebooks()]
    ]
    wanted += [each.with_suffix("").as_posix() for each in sources.BUILT]
    wanted += ["api/index", *(f"api/{api_pages.file_of(task)}" for task in api_pages.TASKS)]
    assert sorted(pages) == sorted(wanted)


def test_pages_of_benchmark_tables_are_no_part_of_the_search(tmp_path):
    sources.gather(tmp_path / "source")
    for page in sorted((tmp_path / "source").rglob("*.md")):
        out = page.relative_to(tmp_path / "source") in sources.NO_SEARCH
        assert page.read_text(encoding="utf-8").startswith("---\nnosearch: true\n---") == out, page
    assert {each.name for each in sources.NO_SEARCH} == {"speed.md", "accuracy.md", "checks.md", "others_numbers.md"}


def test_the_summary_of_benchmarks_has_four_charts():
    page = Path("docs/benchmarks.md")
    charts = list(sources.pictures((ROOT / page).read_text(encoding="utf-8"), page))
    assert 1 <= len(charts) <= 4 and all(chart.parent == Path("benchmarks/results") for chart in charts)


def test_the_index_for_language_models_lists_the_pages(tmp_path, api):
    sources.gather(tmp_path / "source")
    shutil.copytree(api, tmp_path / "source" / "api")
    text = sources.llms(tmp_path / "source")
    assert text.startswith("# lgsim\n\n> ") and f"<{sources.SITE}/api.txt>" in text
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(sources.GROUPS)
    for page in (*sources.pages(), *notebook_runs.notebooks()):
        assert f"{sources.SITE}/{page.relative_to(ROOT).with_suffix('.html').as_posix()})" in text, page


def test_the_repository_s_address_is_one_setting():
    address = "github.com/" + "lgsim/lgsim"
    for file in sorted((ROOT / "docs").glob("*.py")):
        assert address not in file.read_text(encoding="utf-8"), file


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
