"""Names that end a comment, a string, a line or a page, or that steer a terminal; they would run ``planted``."""

import re

JOINED = "void planted(void) { }"
"""What a name adds to a program of C."""

HOSTILE = (
    # comments of C: joined lines, trigraphs, ends and beginnings
    f"a*\\\n/ {JOINED} /\\\n*b", f"a*??/\n/ {JOINED} /??/\n*b", f"a*/ {JOINED} /*b", f"a\\\n*/ {JOINED} /*b",
    "a\\", "a??/", "a/", "*", "//planted",
    # lines
    "a\nplanted", "a\r\nplanted()", "a\rplanted", "a\n\nplanted:\n", "a\u2028planted", "a\u2029planted", "a\x85planted",
    "a\x0b\x0cplanted",
    # strings and comments of Python, templates, shells
    'a"""\nplanted()\n"""', "a'''\nplanted()\n'''", 'a"; planted(); "', "a'; planted(); '", "${planted}", "#{planted}",
    "$(planted())", "=# planted() #=", "`planted`", "%s%n{planted}", "a\\u000aplanted",
    # pages
    "</script><script>planted()</script>", '"><img src=x onerror=planted()>', "]]><!-- planted -->", "&#10;planted",
    # terminals
    "\x1b[2J\x1b[31mplanted", "\x1b]0;planted\x07", "\x9b31mplanted", "a\x00planted", "a\x08\x7f\tplanted",
    "\u202eplanted\u202c", "\u2066planted\u2069", "\u200bplanted\ufeff\u200f", "[red]planted[/red]",
    # letters
    "Gelenk_äöü", "関節 1", "x" * 5000, " ", "../../planted", "=planted()",
)  # fmt: skip

IN_XML = tuple(name for name in HOSTILE if not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", name))
"""Those that a file of XML can hold."""

UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
"""What has no place in a text that is shown; lines of its own end with a newline."""


def faults(text):
    """What names did to a text for people: characters that it must not have, and lines that they began."""
    lines = [line for line in text.splitlines() if line.lstrip(" │└├─#*").startswith("planted")]
    return UNSEEN.findall(text) + lines
