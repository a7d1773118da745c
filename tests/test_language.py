"""Pages, docstrings, comments and messages use the words of the field, and a reader's search finds them."""

import pytest

from tests.language import PLACES, SOUGHT, files, hits, python, texts


@pytest.mark.parametrize("place", PLACES)
def test_no_word_that_is_out(place):
    found = list(hits([place]))
    assert not found, "\n".join(found)


def test_a_search_finds_the_words_of_the_field():
    pages = [path for path in files(["README.md", "CONVENTIONS.md", "docs"]) if path.suffix == ".md"]
    prose = " ".join(" ".join(piece.text for piece in texts(path)).lower() for path in pages)
    assert [word for word in SOUGHT if word.lower() not in prose] == []


def test_what_counts_as_prose():
    """Docstrings, comments and messages do; names in code do not."""
    module = "\n".join([
        '"""A machine."""',
        "def machine():", '    """See `machine`."""', "    # of the machine",
        '    raise ValueError("a machine")'
    ])  # fmt: skip
    lines = [piece.line for piece in python("x.py", module) if "machine" in piece.text]
    assert lines == [1, 5, 4]
