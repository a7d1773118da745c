"""The source of the site: the repository's pages as they lie, the home page, the API and what is made at the build."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import records  # noqa: E402

from tests.public_record import modules as public_modules  # noqa: E402
from tests.public_record import names as public_names  # noqa: E402

__all__ = ["LARGEST", "REPOSITORY", "digest", "gather", "linked", "pages", "pictures", "public_modules", "public_names"]

PAGES = ("CONVENTIONS.md", "CONTRIBUTING.md", "CHANGELOG.md")
BUILT = {Path("docs") / f"{name}.md": name for name in records.PAGES}
"""Pages that are made of the benchmarks' records, with their names there."""
REPOSITORY = "https://github.com/lgsim/lgsim"
LARGEST = 1_500_000
"""Bytes of one file that a page shows: a picture or a replay."""

_LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s#]+)(#[^)\s]*)?(\))")


def gather(folder: Path) -> None:
    """Write the source of the site; pages keep their places, so that their links to each other hold.

    Args:
        folder: Where to; what is there goes.

    Raises:
        FileNotFoundError: a page links to what is not there.
        ValueError: a picture is above its size.
        RecordError: a benchmark's record is bad.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page in pages():
        _write_page(page.relative_to(ROOT), page.read_text(encoding="utf-8"), folder)
    figures = records.pages(records.read()[0])
    for page, name in BUILT.items():
        _write_page(page, figures[name], folder)
    for file in [*sorted((ROOT / "notebooks").glob("*.ipynb")), *sorted((ROOT / "docs" / "gallery").glob("*.py"))]:
        _copy(file, folder)
    home = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    (folder / "index.md").write_text(linked(home, Path("index.md")), encoding="utf-8")
    _copy_pictures(folder)


def pages() -> list[Path]:
    """All pages in Markdown that are written by hand, but the home page."""
    inner = [page for page in sorted((ROOT / "docs").rglob("*.md")) if page != ROOT / "docs" / "index.md"]
    return [*(ROOT / name for name in PAGES), *inner]


def linked(text: str, page: Path) -> str:
    """The text of a page, whose links to files that are no pages go to the repository.

    Args:
        text: The page.
        page: Where it lies, from the root.

    Raises:
        FileNotFoundError: it links to what is not there.
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
    """A hash of a file, the package with its data and `benchmarks/systems`: a change of any of them makes it anew."""
    found = hashlib.sha256(file.read_bytes())
    for each in sorted([*(ROOT / "lgsim").rglob("*"), *(ROOT / "benchmarks" / "systems").rglob("*")]):
        if each.is_file() and "__pycache__" not in each.parts:
            found.update(f"{each.relative_to(ROOT)} ".encode() + each.read_bytes())
    return found.hexdigest()[:16]


def _write_page(page: Path, text: str, folder: Path) -> None:
    target = folder / page
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(linked(text, page), encoding="utf-8")


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
