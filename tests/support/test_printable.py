"""Names in texts: nothing in them ends a line, a comment or a string, or steers a terminal."""

import re
import unicodedata

import pytest

from lgsim.support.printable import comment_lines, comment_name, printable, printable_lines
from tests.hostile_names import HOSTILE, UNSEEN


def test_there_are_forty_names():
    assert len(set(HOSTILE)) >= 40


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("\x1b[31m", r"\x1b[31m"), ("\u202e", r"\u202e"), ("a\nb\tc\rd", r"a\nb\tc\rd"), ("\x9b", r"\x9b"),
        ("\x7f\x00", r"\x7f\x00"), ("\u200b\ufeff", r"\u200b\ufeff"), ("\udcff", r"\udcff"), ("é 関節 🤖", "é 関節 🤖"),
        (r"a\b [b] $x$", r"a\b [b] $x$"), ("", ""),
    ],
)  # fmt: skip
def test_unseen_characters_are_escapes(name, shown):
    assert printable(name) == shown


def test_all_of_unicode():
    """By the categories of Unicode: controls, formats, surrogates, separators of lines."""
    for code in range(0x110000):
        letter = chr(code)
        if unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert re.fullmatch(r"\\[ntr]|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}|\\U[0-9a-f]{8}", printable(letter)), hex(code)
        elif unicodedata.category(letter)[0] in "LNPSM":
            assert printable(letter) == letter


def test_lines_of_a_text_stay():
    assert printable_lines("one\n  two\x1b\n") == "one\n  two\\x1b\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_in_code(name):
    found = comment_name(name)
    assert len(found) == len(name)
    assert all(letter in "_ .-" or letter.isalnum() for letter in found)
    assert comment_name(found) == found


@pytest.mark.parametrize("name", HOSTILE)
def test_lines_of_a_comment(name):
    for line in comment_lines(name):
        assert not set(line) & set('\\?*"#$`\r\n')
        assert not UNSEEN.search(line)


def test_the_words_of_lgsim_stay_in_a_comment():
    text = "q[0..3]  quaternion (w, x, y, z), rad/s^2, 2 q + 1 <= 3: that's it"
    assert comment_lines(text) == [text]
