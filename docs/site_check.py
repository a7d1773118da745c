"""Faults of a built site: dead links and anchors, files of other hosts, sizes, the sidebar, the search, the browser.

    python docs/site_check.py folder

With Node.js (`node`), the site's own search is asked for terms of the field. With Chromium (`chromium`, `chromedriver`
and the package selenium), every page is opened 390 pixels wide: no message of the console, no request to another host,
nothing wider than the screen.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sources import GROUPS, LARGEST, NO_SEARCH

SITE = 25_000_000
"""Bytes of the whole site."""

API_PAGE = 300_000
"""Bytes of a page of the API."""

ENTRIES = 9
"""Entries of a group of the sidebar."""

WIDTH = 390
"""Pixels of a narrow screen."""

TERMS = (
    "end effector", "closed chain", "kinematic loop", "collision avoidance", "system identification", "joint limits",
    "confidence interval", "convergence", "operational space", "model predictive control", "trajectory optimization",
    "Monte Carlo", "forward_dynamics",
)  # fmt: skip
"""Queries that the search must answer with a page."""


class Page(HTMLParser):
    """The links of a page, the files that it loads and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record a tag."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in ("script", "img", "iframe", "source", "video") and given.get("src"):
            self.loaded.append(given["src"])
        if (
            tag == "link"
            and given.get("href")
            and given.get("rel") in ("stylesheet", "icon", "preload", "shortcut icon")
        ):
            self.loaded.append(given["href"])


def faults(folder: Path) -> Iterator[str]:
    """One line for each fault of the files.

    Args:
        folder: Folder of the site.
    """
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: expected HTML pages, found none"
    for file, page in pages.items():
        own = file.relative_to(folder)
        if "_static" in own.parts:  # a replay is a page of its own, which holds all it shows
            continue
        for link in page.loaded:
            if urlsplit(link).netloc:
                yield f"{own}: it loads {link} from another host"
        for link in [*page.links, *page.loaded]:
            yield from (f"{own}: {fault}" for fault in _dead(link, file, folder, pages))
        if own.parts[0] == "api" and file.stat().st_size > API_PAGE:
            yield f"{own}: {file.stat().st_size} bytes, expected at most {API_PAGE} of a page of the API"
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".png", ".svg", ".jpg", ".gif") or "replays" in file.parts:
            if file.is_file() and file.stat().st_size > LARGEST:
                yield f"{file.relative_to(folder)}: {file.stat().st_size} bytes, expected at most {LARGEST}"
    total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if total > SITE:
        yield f"the site has {total} bytes, expected at most {SITE}"


def sidebar(folder: Path) -> Iterator[str]:
    """One line for each fault of the home page's sidebar: its groups, their sizes, and titles that occur twice.

    Args:
        folder: Folder of the site.
    """
    text = (folder / "index.html").read_text(encoding="utf-8")
    tree = text.partition('<div class="sidebar-tree">')[2].partition("</div>")[0]
    parts = re.split(r'<p class="caption"[^>]*>(.*?)</p>', tree, flags=re.DOTALL)
    found = {_words(name): body for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    if tuple(found) != GROUPS:
        yield f"the sidebar has the groups {', '.join(found)}, expected {', '.join(GROUPS)}"
    for group, body in found.items():
        entries = len(re.findall(r'<li class="toctree-l1', body))
        if entries > ENTRIES:
            yield f"the sidebar's group {group} has {entries} entries, expected at most {ENTRIES}"
    links = re.findall(r'<a class="[^"]*reference internal"[^>]*>(.*?)</a>', tree, re.DOTALL)
    for title, count in Counter(map(_words, links)).items():
        if count > 1:
            yield f"the sidebar has the title {title!r} {count} times"


def _words(text: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", text)).split())


def searched(folder: Path) -> Iterator[str]:
    """One line for each fault of the search: a term without a page, or a page of benchmark tables among the results.

    Args:
        folder: Folder of the site.
    """
    command = ["node", str(Path(__file__).with_name("search_check.js")), str(folder), *TERMS]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        yield f"the search fails: {done.stderr.strip()}"
        return
    tables = {page.with_suffix("").as_posix() for page in NO_SEARCH}
    for term, found in json.loads(done.stdout).items():
        if not found:
            yield f"the search finds no page for {term!r}"
        yield from (f"the search finds {page} for {term!r}" for page in sorted(tables & {*found}))


def _dead(link: str, file: Path, folder: Path, pages: dict[Path, Page]) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target /= "index.html"
    if not target.exists() or not target.is_relative_to(folder):
        yield f"it links to {link}, and there is no such file"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        yield f"it links to {link}, and {target.name} has no such anchor"


def shown(folder: Path) -> Iterator[str]:
    """One line for each fault that a browser reports.

    Args:
        folder: Folder of the site.

    Raises:
        ImportError: selenium is not installed.
    """
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    profile = tempfile.mkdtemp()
    for flag in (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
        "disable-component-update", "disable-sync", "allow-file-access-from-files", f"user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": 800, "deviceScaleFactor": 1, "mobile": True}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for file in sorted(folder.rglob("*.html")):
            own = file.relative_to(folder)
            if "_static" in own.parts:
                continue
            browser.get(file.as_uri())
            wide = browser.execute_script("return document.documentElement.scrollWidth")
            if wide > WIDTH:
                yield f"{own}: {wide} pixels wide on a screen of {WIDTH}"
            for entry in browser.get_log("browser"):
                if entry["level"] == "SEVERE":
                    yield f"{own}: {entry['message']}"
            for entry in browser.get_log("performance"):
                event = json.loads(entry["message"])["message"]
                address = event.get("params", {}).get("request", {}).get("url", "")
                if event["method"] == "Network.requestWillBeSent" and address.startswith("http"):
                    yield f"{own}: it asks another host, {address}"
    finally:
        browser.quit()
        shutil.rmtree(profile, ignore_errors=True)


def main(folder: Path) -> int:
    """Print the faults of a site; 1 if there are any.

    Args:
        folder: Folder of the site.
    """
    found = list(faults(folder))
    if (folder / "index.html").exists():
        found += sidebar(folder)
    if shutil.which("node"):
        found += searched(folder)
    else:
        print("note: node is not installed: the search was not checked")
    if shutil.which("chromium") and shutil.which("chromedriver"):
        found += shown(folder)
    else:
        print("note: chromium and chromedriver are not installed: no page was opened")
    print(*found, sep="\n")
    pages = len(list(folder.rglob("*.html")))
    print(f"{pages} pages, {len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
