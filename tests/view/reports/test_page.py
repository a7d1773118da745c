"""The text of a page."""

import re

import pytest

from lgsim.view.reports import Page
from tests.view.reports.pages import headings, needs_no_network, pictures


def test_pages_show_text_as_it_is(tmp_path):
    """Marks of HTML in names are escaped; numbers and gaps; rows that do not fit are refused."""
    page = Page("a <b> & c", "sub", "foot")
    page.add_section("One & two")
    page.add_table(["x", "y"], [["<i>", -1.5], [None, float("nan")], ["big", 1234567]], caption="<c>", folded="more")
    page.add_facts([("n", 3)])
    page.add_remark("fine", "good")
    text = page.save(tmp_path / "page.html").read_text()
    for shown in ("a &lt;b&gt; &amp; c", "<td>&lt;i&gt;</td>", "−1.5", "1234567", "One &amp; two", "<summary>more<"):
        assert shown in text
    assert text.count("–</td>") == 2 and "<script" not in text and "<i>" not in text
    with pytest.raises(ValueError, match="rows: expected 2 cells, got 1"):
        page.add_table(["x", "y"], [["z"]])
    with pytest.raises(ValueError, match="kind: expected one of good, note, bad, got 'odd'"):
        page.add_remark("text", "odd")


def test_sections_stand_in_their_order_with_a_list_of_them():
    page = Page("title", "below", "at the end")
    page.add_text("before any section")
    page.add_section("First")
    page.add_heading("inner & outer")
    page.add_list(["a", "<b>"])
    page.add_section("Second")
    text = page.html()
    assert headings(text) == ["First", "Second"]
    assert re.findall(r'<a href="#(\w+)">(\w+)</a>', text) == [("part1", "First"), ("part2", "Second")]
    assert text.index("before any section") < text.index("First</h2>") < text.index("<h3>inner &amp; outer</h3>")
    assert "<li>&lt;b&gt;</li>" in text and "<footer>at the end</footer>" in text and needs_no_network(text)


def test_scripts_are_allowed_only_where_a_motion_plays():
    page = Page("title")
    assert "script-src" not in page.html()
    page.add_replay("<script>1 < 2</script>", "a motion")
    assert "script-src" in page.html() and page.html().count("default-src 'none'") == 1
    assert "<script" not in page.html() and "&lt;script&gt;1 &lt; 2" in page.html() and needs_no_network(page.html())


def test_figures_are_pictures_in_the_page():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    page = Page("title")
    page.add_figure(Figure(figsize=(1, 1)), 'a "caption"', dpi=20.0)
    assert pictures(page.html()) == 1 and 'alt="a &quot;caption&quot;"' in page.html()


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    path = Page("ü").save(str(tmp_path / "page.html"))
    assert path == tmp_path / "page.html" and "<title>ü</title>" in path.read_text(encoding="utf-8")
    with pytest.raises(OSError):
        Page("title").save(tmp_path / "none" / "page.html")
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]
