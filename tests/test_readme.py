"""Every Python block of the pages for users runs, in order, in a fresh process with JAX's own settings."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import records

ROOT = Path(__file__).parents[1]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
URLS = PROJECT["urls"]

# The blocks of a page share one namespace; blank lines in front make a traceback show the page's own line numbers.
RUNNER = """
import sys
page, names = sys.argv[1], {"__name__": "__main__"}
for line, code in BLOCKS:
    exec(compile("\\n" * line + code, page, "exec"), names)
"""


def blocks(text):
    """(number of lines before it, code) of each ```python block."""
    found, inside = [], None
    for number, line in enumerate(text.splitlines(), start=1):
        if inside is None and line.strip() == "```python":
            inside = (number, [])
        elif inside is not None and line.strip() == "```":
            found.append((inside[0], "\n".join(inside[1]) + "\n"))
            inside = None
        elif inside is not None:
            inside[1].append(line)
    assert inside is None, f"the block after line {inside[0]} has no end"
    return found


def run(page, folder):
    code = blocks(page.read_text(encoding="utf-8"))
    assert code, f"{page.name} has no Python block"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", f"BLOCKS = {code!r}{RUNNER}", str(page)],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
# other tests check the files that these write
OTHERS = {"docs/posterior.md", "docs/code_generation.md"}
RUN = sorted({str(page.relative_to(ROOT)) for page in PAGES if blocks(page.read_text(encoding="utf-8"))} - OTHERS)
FIRST = {"README.md", "docs/getting_started/index.md"}


def case(name):
    """Pages that a newcomer does not run first are slow."""
    return name if name in FIRST else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", list(map(case, RUN)))
def test_page_runs(name, tmp_path):
    done = run(ROOT / name, tmp_path)
    assert done.returncode == 0, done.stderr
    if name == "README.md":
        (shown,) = re.findall(
            r"^```text\n(.*?)^```", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        assert done.stdout == shown


def test_the_readme_is_short_and_complete_on_a_package_index():
    """A page of an index comes without files: links and pictures are whole addresses, of one repository."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90 and len(blocks(text)) == 1
    urls = URLS
    source, raw = urls["Source"], urls["Source"].replace("github.com", "raw.githubusercontent.com")
    built = [urls["Documentation"], *(f"{urls['Documentation']}/docs/{name}.html" for name in records.PAGES)]
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 10
    for link in links:
        if link in built:
            continue
        head = next((head for head in (f"{source}/blob/main/", f"{raw}/main/") if link.startswith(head)), None)
        assert head, link
        assert (ROOT / link.removeprefix(head)).is_file(), link


ADDRESS = re.compile(
    r"https://(?:raw\.githubusercontent|github)\.com/[\w.-]+/lgsim\b|https://[\w-]+\.github\.io/lgsim\b"
)


def test_the_address_of_the_repository_is_the_one_of_pyproject():
    """A fork changes [project.urls] there, and replaces the old address in the files that fail here."""
    source, site = URLS["Source"], URLS["Documentation"]
    known = {source, site, source.replace("github.com", "raw.githubusercontent.com")}
    assert URLS["Issues"] == f"{source}/issues" and URLS["Changelog"].startswith(f"{source}/")
    tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("no git: the files of the repository are unknown")
    found = {}
    for name in filter(None, tracked.stdout.split("\0")):
        if Path(name).suffix in (".cff", ".ipynb", ".md", ".py", ".toml", ".txt", ".yml") and (ROOT / name).is_file():
            text = (ROOT / name).read_text(encoding="utf-8")
            found[name] = sorted({address for address in ADDRESS.findall(text)} - known)
    assert found["README.md"] == [] and not {name: other for name, other in found.items() if other}


def test_installation_lists_every_extra_with_its_packages():
    text = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \| ([^|]*) \|", text, re.MULTILINE))
    own = {"dev", "docs", "oracle", "cuda-aot"}  # for work on lgsim
    assert set(rows) | own == set(PROJECT["optional-dependencies"]) and all(f"`{name}`" in text for name in own)
    for name, packages in PROJECT["optional-dependencies"].items():
        if name not in own | {"all"}:
            named = [re.match(r"lgsim\[(\w+)|[\w-]+", each) for each in packages]
            wanted = sorted(f"the extra `{found[1]}`" if found[1] else found[0] for found in named)
            assert sorted(rows[name].split(", ")) == wanted, name
    (every,) = PROJECT["optional-dependencies"]["all"]
    assert set(re.findall(r"\w+", every.partition("[")[2])) | {"all", "casadi", "posterior", "ray"} == set(rows)


def test_the_citation_has_the_address_of_the_repository():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"repository-code: {URLS['Source']}\n" in text and f"url: {URLS['Documentation']}\n" in text


def test_blocks_share_a_namespace_and_errors_carry_the_page_s_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A page\n\n```python\nx = 1\n```\n\n```text\nnot run\n```\n\n```python\nassert x == 2, 'so'\n```\n"
    )
    done = run(page, tmp_path)
    assert done.returncode == 1
    assert f'File "{page}", line 12' in done.stderr and "AssertionError: so" in done.stderr


def test_page_without_a_block_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\nls\n```\n")
    with pytest.raises(AssertionError, match="no Python block"):
        run(page, tmp_path)
