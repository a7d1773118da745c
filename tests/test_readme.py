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
# tests of their own look at what these leave
OTHERS = {"docs/posterior.md", "docs/code_generation.md"}
RUN = sorted({str(page.relative_to(ROOT)) for page in PAGES if blocks(page.read_text(encoding="utf-8"))} - OTHERS)
FIRST = {"README.md", "docs/getting_started.md"}


def case(name):
    """What a newcomer does not run first is slow."""
    return name if name in FIRST else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("name", list(map(case, RUN)))
def test_page_runs(name, tmp_path):
    done = run(ROOT / name, tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_readme_is_short_and_holds_on_a_package_index():
    """A page of an index has no files beside it: links and pictures are whole addresses, of one repository."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120 and len(blocks(text)) == 1
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    source, raw = urls["Source"], urls["Source"].replace("github.com", "raw.githubusercontent.com")
    built = [f"{urls['Documentation']}/docs/{name}.html" for name in records.PAGES]
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert len(links) > 10
    for link in links:
        if link in built:
            continue
        head = next((head for head in (f"{source}/blob/main/", f"{raw}/main/") if link.startswith(head)), None)
        assert head, link
        assert (ROOT / link.removeprefix(head)).is_file(), link


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
