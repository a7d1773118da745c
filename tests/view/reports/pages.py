"""The parts of a page as texts."""

import base64
import html
import re


def headings(page):
    """The headings of the sections."""
    return [html.unescape(text) for text in re.findall(r"<h2>(.*?)</h2>", page)]


def cells(page):
    """The rows of all tables, as texts."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[html.unescape(re.sub("<.*?>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)] for row in rows]


def rows(page):
    """The rows of all tables by their first cell."""
    return {row[0]: row[1:] for row in cells(page) if row}


def facts(page):
    """The facts in large letters."""
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)
    return {html.unescape(name): html.unescape(value) for name, value in found}


def remarks(page):
    """(kind, text) of all remarks."""
    return [(kind, html.unescape(text)) for kind, text in re.findall(r'<p class="remark (\w+)">(.*?)</p>', page)]


def pictures(page):
    """The number of pictures, each of which is a PNG file in the page."""
    found = re.findall(r'<img src="data:image/png;base64,([^"]*)"', page)
    assert all(base64.b64decode(x).startswith(b"\x89PNG") for x in found)
    return len(found)


def number(text):
    """The number of a cell."""
    return float(text.replace("\u2212", "-"))


def needs_no_network(page):
    """Whether the page asks for nothing from anywhere, the players of motions in it apart."""
    outside = re.sub(r'srcdoc="[^"]*"', "", page)
    return "default-src 'none'" in outside and not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|\#)""", outside)
