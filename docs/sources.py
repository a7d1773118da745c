"""Source of the site: the pages of the repository, the home page, the API and the pages that the build makes."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import records  # noqa: E402

from tests.public_record import modules as public_modules  # noqa: E402
from tests.public_record import names as public_names  # noqa: E402

__all__ = [
    "GROUPS", "LARGEST", "NO_SEARCH", "REPOSITORY", "SITE", "copy_notebook", "digest", "gather", "groups", "linked",
    "llms", "pages", "pictures", "public_modules", "public_names", "title",
]  # fmt: skip

PAGES = ("CONVENTIONS.md", "CONTRIBUTING.md", "CHANGELOG.md")
BUILT = {Path("docs") / f"{name}.md": name for name in records.PAGES}
"""Pages that are made of the benchmarks' records, with their names there."""
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
REPOSITORY: str = URLS["Source"]
"""Address of the repository, as ``pyproject.toml`` sets it."""
SITE: str = URLS["Documentation"]
"""Address of the site, as ``pyproject.toml`` sets it."""
GROUPS = ("Start", "Guides", "Concepts", "Notebooks", "API", "Benchmarks")
"""Groups of the sidebar, the captions of the home page's toctrees."""
NO_SEARCH = {*BUILT, Path("docs/others_numbers.md")}
"""Pages of tables of numbers, which are no part of the search index."""
LARGEST = 1_500_000
"""Bytes of one file that a page shows: a picture or a replay."""

_TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
_BADGE = re.compile(r"!\[([^\]]*)\]\(https?://[^)\s]*\)")
_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def gather(folder: Path) -> None:
    """Write the source of the site; pages keep their places, so that their links to each other stay valid.

    Args:
        folder: Folder of the source, which is emptied first.

    Raises:
        FileNotFoundError: a page links to a file that does not exist.
        ValueError: a picture is too large.
        RecordError: a benchmark's record is invalid.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page in pages():
        _write_page(page.relative_to(ROOT), page.read_text(encoding="utf-8"), folder)
    figures = records.pages(records.read()[0])
    for page, name in BUILT.items():
        _write_page(page, figures[name], folder)
    for file in sorted((ROOT / "notebooks").glob("*.ipynb")):
        copy_notebook(file, folder / file.relative_to(ROOT))
    for file in sorted((ROOT / "docs" / "gallery").glob("*.py")):
        _copy(file, folder)
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    (folder / "index.md").write_text(linked(home, Path("index.md")), encoding="utf-8")
    _copy_pictures(folder)


def copy_notebook(file: Path, target: Path) -> None:
    """Copy a notebook; a picture of another host, such as a badge, becomes its text, for the site loads no such file.

    Args:
        file: The notebook.
        target: The copy.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_BADGE.sub(r"\1", file.read_text(encoding="utf-8")), encoding="utf-8")


def pages() -> list[Path]:
    """All pages in Markdown that are written by hand, except the home page."""
    inner = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page != ROOT / "docs" / "index.md"]
    return [*(ROOT / name for name in PAGES), *inner]


def groups(text: str) -> dict[str, list[str]]:
    """The pages of each toctree of a page in Markdown, without ending, by its caption ("" without one).

    Args:
        text: The page.
    """
    found = {}
    for body in _TOCTREE.findall(text):
        lines = [line.strip() for line in body.splitlines() if line.strip()]
        options = dict(re.findall(r"^:(\w+): *(.*)$", "\n".join(lines), re.MULTILINE))
        found[options.get("caption", "")] = [line for line in lines if not line.startswith(":")]
    return found


def title(text: str) -> str:
    """The first heading of a page in Markdown or reStructuredText.

    Args:
        text: The page.
    """
    found = re.search(r"^# (.+)$|\A(.+)\n=+$", text, re.MULTILINE)
    return (found[1] or found[2]).strip() if found else ""


def llms(source: Path) -> str:
    """An index of the site for language models, ``llms.txt``: the pages of each group with their addresses.

    Args:
        source: The source of the site.
    """
    home = (source / "index.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [f"# {project['name']}", "", f"> {project['description']}", "", f"Repository: <{REPOSITORY}>"]
    lines += [f"Public API with all docstrings as plain text: <{SITE}/api.txt>"]
    for group, names in groups(home).items():
        lines += ["", f"## {group}", ""]
        for name in names:
            lines += _listed(name, Path(), source)
    return "\n".join(lines) + "\n"


def _listed(name: str, folder: Path, source: Path) -> Iterator[str]:
    """A line for a page and for each page of its toctrees."""
    label, given = re.fullmatch(r"(?:(.+) <)?(.+?)>?", name).groups()
    page = Path(os.path.normpath(folder / given))
    file = next(each for each in (source / f"{page}{end}" for end in (".md", ".rst", ".ipynb")) if each.exists())
    text = file.read_text(encoding="utf-8") if file.suffix != ".ipynb" else ""
    yield f"- [{label or title(text)}]({SITE}/{page.as_posix()}.html)"
    if file.suffix == ".md":
        for names in groups(text).values():
            for each in names:
                yield from _listed(each, page.parent, source)


def linked(text: str, page: Path) -> str:
    """The text of a page, with links to the repository for files that are not pages.

    Args:
        text: The page.
        page: Its path, from the root.

    Raises:
        FileNotFoundError: the page links to a file that does not exist.
    """

    def target(found: re.Match) -> str:
        head, link, anchor, tail = found[1], found[2], found[3] or "", found[4]
        if "://" in link or link.startswith("mailto:"):
            return found[0]
        path = Path(os.path.normpath(page.parent / link))
        if not (ROOT / path).exists() and path not in BUILT:
            raise FileNotFoundError(f"{page}: it links to {link}, and there is no {path}")
        if head.startswith("!") or (path.suffix in (".md", ".ipynb", ".png", ".svg") and not path.name == "README.md"):
            return found[0]
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{head}{REPOSITORY}/{kind}/main/{path.as_posix()}{anchor}{tail}"

    return _LINK.sub(target, text)


def pictures(text: str, page: Path) -> Iterator[Path]:
    """The pictures that a page shows, from the root."""
    for found in re.finditer(r"!\[[^\]]*\]\(([^)\s]+)\)", text):
        if "://" not in found[1]:
            yield Path(os.path.normpath(page.parent / found[1]))


def digest(file: Path) -> str:
    """A hash of a file, the package with its data and `benchmarks/systems`; outputs of a notebook are kept by it."""
    found = hashlib.sha256(file.read_bytes())
    for each in sorted([*(ROOT / "lgsim").rglob("*"), *(ROOT / "benchmarks" / "systems").rglob("*")]):
        if each.is_file() and "__pycache__" not in each.parts:
            found.update(f"{each.relative_to(ROOT)} ".encode() + each.read_bytes())
    return found.hexdigest()[:16]


def _write_page(page: Path, text: str, folder: Path) -> None:
    target = folder / page
    target.parent.mkdir(parents=True, exist_ok=True)
    metadata = "---\nnosearch: true\n---\n\n" if page in NO_SEARCH else ""
    target.write_text(metadata + linked(text, page), encoding="utf-8")


def _copy(file: Path, folder: Path) -> None:
    target = folder / file.relative_to(ROOT)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)


def _copy_pictures(folder: Path) -> None:
    for page in sorted(folder.rglob("*.md")):
        for picture in pictures(page.read_text(encoding="utf-8"), page.relative_to(folder)):
            file = ROOT / picture
            if file.stat().st_size > LARGEST:
                raise ValueError(f"{picture}: {file.stat().st_size} bytes, expected at most {LARGEST} of a picture")
            _copy(file, folder)
