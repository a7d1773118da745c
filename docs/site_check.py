"""What is wrong with a built site: dead links and anchors, files of other hosts, sizes, what a browser complains of.

    python docs/site_check.py folder

Where Chromium is installed (`chromium` and `chromedriver`, and the package selenium), every page is opened as well, 390
pixels wide: no message of the console, no request to another host, nothing wider than the screen.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sources import LARGEST

SITE = 25_000_000
"""Bytes of the whole site."""

WIDTH = 390


class Page(HTMLParser):
    """What a page links to, what it loads and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take up a tag."""
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
    """One line for each fault that the files show.

    Args:
        folder: The site.
    """
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.html"))}
    if not pages:
        yield f"{folder}: there is no page"
    for file, page in pages.items():
        own = file.relative_to(folder)
        if "_static" in own.parts:  # a replay is a page of its own, which holds all it shows
            continue
        for link in page.loaded:
            if urlsplit(link).netloc:
                yield f"{own}: it loads {link} from another host"
        for link in [*page.links, *page.loaded]:
            yield from (f"{own}: {fault}" for fault in _dead(link, file, folder, pages))
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".png", ".svg", ".jpg", ".gif") or "replays" in file.parts:
            if file.is_file() and file.stat().st_size > LARGEST:
                yield f"{file.relative_to(folder)}: {file.stat().st_size} bytes, expected at most {LARGEST}"
    total = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if total > SITE:
        yield f"the site has {total} bytes, expected at most {SITE}"


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
    """One line for each fault that a browser shows.

    Args:
        folder: The site.

    Raises:
        ImportError: there is no selenium.
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
        folder: The site.
    """
    found = list(faults(folder))
    if shutil.which("chromium") and shutil.which("chromedriver"):
        found += shown(folder)
    else:
        print("note: there is no chromium and chromedriver: no page was opened")
    print(*found, sep="\n")
    pages = len(list(folder.rglob("*.html")))
    print(f"{pages} pages, {len(found)} faults")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
