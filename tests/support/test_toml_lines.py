"""The lines of keys in a TOML file."""

from lgsim.support.toml_lines import lines_of


def test_lines_of_keys():
    """In tables, arrays of tables, arrays over several lines, inline tables, texts that look like tables."""
    text = '''# a = 1
title = "a [b] = # no"
[a]
x = 1.5 # y = 2
points = [
  [0, 1.5e-3], # one
  [1, 2],
]
s = """
[not.a.table]
k = 3
"""
b.c = {d = 1, "e f" = [1, 2]}
[[reach]]
frame = 'x'
[[reach]]
frame = "y"
[reach.weight]
w = +inf
'''
    assert lines_of(text) == {
        ("title",): 2, ("a",): 3, ("a", "x"): 4, ("a", "points"): 5, ("a", "points", 0): 6, ("a", "points", 0, 0): 6,
        ("a", "points", 0, 1): 6, ("a", "points", 1): 7, ("a", "points", 1, 0): 7, ("a", "points", 1, 1): 7,
        ("a", "s"): 9, ("a", "b"): 13, ("a", "b", "c"): 13, ("a", "b", "c", "d"): 13, ("a", "b", "c", "e f"): 13,
        ("a", "b", "c", "e f", 0): 13, ("a", "b", "c", "e f", 1): 13, ("reach", 0): 14, ("reach", 0, "frame"): 15,
        ("reach", 1): 16, ("reach", 1, "frame"): 17, ("reach", 1, "weight"): 18, ("reach", 1, "weight", "w"): 19,
    }  # fmt: skip


def test_windows_line_ends_dates_and_deep_arrays():
    """Line ends of two characters count once; a date and many brackets are values like others."""
    text = 'a = 1979-05-27 07:32:00\r\n[t]\r\nb = [[[\r\n1]]]\r\n"c.d" = 1\r\n'
    found = lines_of(text)
    assert (found[("a",)], found[("t", "b")], found[("t", "b", 0, 0, 0)], found[("t", "c.d")]) == (1, 3, 4, 5)
