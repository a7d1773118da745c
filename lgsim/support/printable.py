"""Names that users and files give, where they go into a text: a line for people, or a comment of generated code.

Nothing in such a name ends a line, a comment or a string, or steers a terminal.
"""

from __future__ import annotations

MARKS = frozenset(" _.-,;:()[]{}<>=+^/|'!%&~@")
"""What a comment may hold beside letters and digits.

Without ``*`` no comment of C begins or ends, without a backslash no two lines are one, without ``?`` there are no
trigraphs, and without ``"`` no docstring ends.
"""


def printable(name: str) -> str:
    r"""The text of a name in a line: what no screen shows is an escape, such as ``\x1b``, ``\n`` or ``\u202e``.

    These are control characters, ends of lines, marks of the direction of writing, marks without width, lone
    surrogates: what ``repr`` escapes too. All other characters stay, backslashes too.
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
