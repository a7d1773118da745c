"""The words of the pages, docstrings, comments and messages: what is out, and what a reader must be able to find.

python -m tests.language lgsim/optimize docs/contact.md     each hit with its file and line
python -m tests.language --advice docs/contact.md           and what is worth a second look: long sentences
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.syntax import walk

ROOT = Path(__file__).parents[1]
PLACES = ("README.md", "CONTRIBUTING.md", "CONVENTIONS.md", "docs", "notebooks", "lgsim")
OUT = {
    r"mend(s|ed|ing)?\b(?! of)": "fix, repair",
    r"beside": "compared with, against, next to; a column: baseline",
    r"told|tells?|telling": "report, say, estimate, distinguish",
    r"machines?(?! (code|learning|epsilon|precision))": "robot, system or model; for a computer: computer, host",
    r"times as (fast|long|slow)": "speed-up; N times faster",
    r"in parts of": "relative to, as a fraction of",
    r"nothing (decides|determines)": "not identifiable from this record",
    r"(?-i:is none)\b(?! of)": "is not a valid ..., does not exist",
    r"anew": "again, new",
    r"shall": "must, should",
    r"want of": "no ... left, without",
    r"gives? way to": "falls back to",
    r"rings? of bodies": "closed kinematic loop",
    r"(hangs|is hung) from": "re-rooted at",
    r"sharp bits": "common pitfalls",
    r"honest(ly|y)?": "calibrated, correct",
    r"(?<!photochemical )dispersions?|dispersed": "random inputs, distributions, uncertain parameters",
    r"(a )?law of control|laws? that stands?": "controller",
    r"a finding to answer": "an unresolved issue",
    r"begins? anew": "restart",
    r"ends? loudly": "raises",
    r"puts? (it|them|a motion) off": "estimated integration error",
    r"whose numbers?|numbers? of a (machine|model|robot)": "parameters",
    r"in words\b": "with a message",
    r"stands? for itself": "",
}
"""Pattern of what is out, and what is said instead."""
ANY = re.compile(rf"\b({'|'.join(OUT)})\b", re.IGNORECASE)
TOKEN = re.compile(
    r"""("{3}|'{3})(?:\\.|[^\\])*?\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?P<comment>#[^\n]*)""", re.DOTALL
)
"""A string or a comment."""
FIRST = r"(What|Whether|Of|That of|Those of|That|Those)\b"
"""First words that begin no heading and no docstring: both are nouns or sentences."""
SOUGHT = (
    "end effector", "kinematic loop", "closed chain", "collision avoidance", "system identification",
    "confidence interval", "joint limits", "convergence", "operational space", "model predictive control",
    "trajectory optimization", "Monte Carlo",
)  # fmt: skip
"""What a reader types into the search of the pages."""
LONG = 30
"""Words of a sentence from which it is worth a second look."""


class Text(NamedTuple):
    """A piece of prose, where it begins, and whether its first line is a title or a docstring's."""

    file: str
    line: int
    text: str
    first: bool


def markdown(file: str, text: str, start: int = 1) -> Iterator[Text]:
    """The lines of a page without code, addresses, tables of records."""
    fenced = recorded = False
    for i, line in enumerate(text.splitlines(), start):
        if re.match(r"\s*(```|~~~)", line) and not line.startswith("```{"):
            fenced = not fenced
        recorded = (recorded or "<!-- records" in line) and "end of records" not in line
        if fenced or recorded or line.startswith(("```{", ":::", "    ")):
            continue
        line = re.sub(r"`+[^`]+`+|\$[^$]*\$|\]\([^)]*\)|<[^>]*>|https?://\S+", " ", line)
        title = bool(re.match(r"#+ ", line))
        yield Text(file, i, re.sub(r"^#+ ", "", line), title)


def python(file: str, text: str) -> Iterator[Text]:
    """The docstrings, comments and messages of a module."""
    tree = ast.parse(text)
    docs = set()
    nodes = walk(tree)
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            value = getattr(node.body[0], "value", None)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docs.add(value)
                for i, line in enumerate(value.value.splitlines()):
                    # without the name of an argument
                    line = re.sub(r"^\s+\w+: |`+[^`]+`+", " ", line)
                    yield Text(file, value.lineno + i, line, i == 0)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docs and " " in node.value:
            for i, line in enumerate(node.value.splitlines()):
                yield Text(file, node.lineno + i, re.sub(r"`+[^`]+`+", " ", line), False)
    for token in re.finditer(TOKEN, text):
        if token["comment"]:
            line = text.count("\n", 0, token.start()) + 1
            yield Text(file, line, re.sub(r"`+[^`]+`+", " ", token["comment"]), False)


def texts(path: Path) -> Iterator[Text]:
    """The prose of a file."""
    file = str(path.relative_to(ROOT))
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from markdown(file, content)
    elif path.suffix == ".py":
        yield from python(file, content)
    elif path.suffix == ".ipynb":
        for cell in json.loads(content)["cells"]:
            if cell["cell_type"] == "markdown":
                yield from markdown(file, "".join(cell["source"]))


def files(names: list[str]) -> Iterator[Path]:
    """The files that have prose under some names."""
    for name in names:
        path = (ROOT / name).resolve()
        found = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (each for each in found if each.suffix in {".md", ".py", ".ipynb"} and "_build" not in each.parts)


def hits(names: list[str]) -> Iterator[str]:
    """What is out in these files, with file, line and what to say."""
    for path in files(names):
        for piece in texts(path):
            for pattern, better in OUT.items() if re.search(ANY, piece.text) else ():
                if match := re.search(rf"\b({pattern})\b", piece.text, re.IGNORECASE):
                    yield f"{piece.file}:{piece.line}: {match[0]!r} -> {better}"
            if piece.first and (match := re.match(FIRST, piece.text.strip())):
                yield f"{piece.file}:{piece.line}: begins with {match[0]!r} -> a noun, or a sentence that states it"


def long_sentences(names: list[str]) -> Iterator[str]:
    """Sentences of the pages that are long."""
    for path in files(names):
        if path.suffix != ".py":
            prose = " ".join(
                piece.text if piece.text.strip() else "." for piece in texts(path) if "|" not in piece.text
            )
            for sentence in re.split(r"(?<=[.:;!?])\s", prose):
                if len(sentence.split()) > LONG:
                    yield f"{path.relative_to(ROOT)}: {len(sentence.split())} words: {sentence.strip()[:160]}"


def main() -> int:
    """Print the hits."""
    parser = argparse.ArgumentParser(description="Words that are out.")
    parser.add_argument("names", nargs="*", default=list(PLACES))
    parser.add_argument("--advice", action="store_true", help="long sentences as well")
    args = parser.parse_args()
    found = list(hits(args.names))
    print("\n".join([*found, *(long_sentences(args.names) if args.advice else ())]))
    print(f"{len(found)} words are out")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
