"""Safe text for names from users and files, in a line for people or in a comment of generated code.

Such a name cannot end a line, a comment or a string, or control a terminal.
"""

from __future__ import annotations

MARKS = frozenset(" _.-,;:()[]{}<>=+^/|'!%&~@")
"""The characters that a comment may contain besides letters and digits.

Without ``*`` no comment in C begins or ends, without a backslash no two lines are joined, without ``?`` there are no
trigraphs, and without ``"`` no docstring ends.
"""


def printable(name: str) -> str:
    r"""The text of a name within a line: invisible characters are escaped, such as ``\x1b``, ``\n`` or ``\u202e``.

    These are control characters, line ends, direction marks, zero-width marks and lone surrogates, as in ``repr``. All
    other characters are kept, including backslashes.
    """
    if name.isprintable():
        return name
    return "".join(x if x.isprintable() else ascii(x)[1:-1] for x in name)


def printable_lines(text: str) -> str:
    r"""``printable`` of each line of a text whose own lines end with ``\n``."""
    return "\n".join(map(printable, text.split("\n")))


def comment_name(name: str) -> str:
    """The text of a name in a comment of code: letters, digits, ``_``, space, ``.`` and ``-``; all else is ``_``."""
    return "".join(x if x.isalnum() or x in "_ .-" else "_" for x in name)


def comment_lines(text: str) -> list[str]:
    """The lines of a text in a comment of code of any language: letters, digits and ``MARKS``; all else is ``_``."""
    return ["".join(x if x.isalnum() or x in MARKS else "_" for x in line) for line in text.splitlines() or [""]]
