"""No name in a page is an element of HTML, and none is drawn as something else."""

import html
from html.parser import HTMLParser

import pytest

from lgsim.identify.recording.report import Finding, Report
from lgsim.support.printable import printable
from lgsim.view.reports.page import Page
from tests.hostile_names import HOSTILE, UNSEEN, faults

OWN = {"html", "head", "meta", "title", "style", "body", "main", "header", "h1", "h2", "h3", "p", "nav", "a", "section",
       "ul", "li", "dl", "div", "dt", "dd", "table", "thead", "tbody", "tr", "th", "td", "caption", "details",
       "summary", "footer", "figure", "figcaption", "iframe"}  # fmt: skip
"""The elements that a page makes of its own."""


class Reader(HTMLParser):
    """What a browser reads: elements, their attributes, texts."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)

    def handle_comment(self, data):
        self.tags.add("comment")


def page(name):
    """A page with a name in every place for a text."""
    made = Page(name, name, name)
    made.add_section(name)
    made.add_heading(name)
    made.add_text(name)
    made.add_remark(name)
    made.add_list([name])
    made.add_facts([(name, name)])
    made.add_table([name, "number"], [[name, 1.0]], caption=name, folded=name)
    made.add_replay("<p>scene</p>", name)
    return made.html()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_page(name):
    text = page(name)
    assert not UNSEEN.search(text)
    reader = Reader()
    reader.feed(text)
    assert reader.tags <= OWN
    assert not {each for each in reader.attributes if each.startswith("on")}
    assert sum(data == printable(name) for data in reader.texts) >= 14


@pytest.mark.slow
def test_a_scene_has_a_plain_title():
    pytest.importorskip("viser")
    import numpy as np

    import lgsim
    from lgsim.simulation import Trajectory
    from lgsim.view import to_html

    builder = lgsim.ModelBuilder()
    names = [name for name in HOSTILE if len(name) < 200]
    for i, name in enumerate(names):
        builder.add_body(name, names[i - 1] if i else "world", lgsim.joints.Prismatic(), mass=1.0)
    model, zero = builder.build(), np.zeros((1, len(names)))
    motion = Trajectory(model, np.zeros(1), zero, zero, zero)
    plain = to_html(motion, title="title")
    text = to_html(motion, title="</title><script>planted()\x1b\n", trace=names[:2], follow=names[3])
    assert "planted" not in html.unescape(text).replace(printable("</title><script>planted()\x1b\n"), "")
    assert text.count("<script") == plain.count("<script")


def test_findings_of_a_record_are_lines_each():
    findings = [Finding("gap", name, 1, f"at {name}", f"{name} filled") for name in HOSTILE]
    report = Report(tuple(findings))
    assert not faults(str(report))
    assert all("\n" not in line for line in report.lines(100))
    assert str(report).count("\n") == len(report.lines())
