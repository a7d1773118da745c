"""The command takes every command line that the pages and notebooks show, as far as words go: no file is looked at."""

import json
import re
import shlex

import pytest
import typer

from lgsim.cli.app import app
from tests.test_readme import ROOT

NO_COMMANDS = {"lgsim trajectory 1"}  # the name of a format
FENCES = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def texts():
    """The pages but the changelog, and the text cells of the notebooks."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        if page.name != "CHANGELOG.md":
            yield page, page.read_text(encoding="utf-8")
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        yield notebook, "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def commands(text):
    """(line, whether it is a word in a sentence) of what begins with ``lgsim``: lines of shells, and words in marks."""
    for kind, block in FENCES.findall(text):
        if kind in ("sh", "bash", "console"):
            lines = (line.strip().removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines())
            yield from ((line, False) for line in lines if line.startswith("lgsim "))
    yield from ((" ".join(found.split()), True) for found in re.findall(r"`(lgsim [^`]+)`", FENCES.sub("", text)))


def words(line):
    """The arguments of a command line, up to where the shell takes over."""
    found = shlex.split(line, comments=True)[1:]
    ends = [found.index(mark) for mark in (">", "|", "&&", ";") if mark in found]
    return found[: min(ends, default=len(found))]


def parse(arguments):
    """Raises an error where the command does not take the arguments."""
    name, command, rest, context = "lgsim", typer.main.get_command(app), list(arguments), None
    while hasattr(command, "resolve_command"):
        if not rest:
            return
        context = command.make_context(name, rest, parent=context)
        name, command, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(name, rest, parent=context)


LINES = sorted(
    {
        (str(page.relative_to(ROOT)), line, told)
        for page, text in texts()
        for line, told in commands(text)
        if line not in NO_COMMANDS and not {"--help", "--version"} & {*words(line)}
    }
)


@pytest.mark.parametrize(("page", "line", "told"), LINES, ids=[f"{page}: {line}" for page, line, _ in LINES])
def test_a_shown_command_is_taken(page, line, told):
    try:
        parse(words(line))
    except Exception as error:
        # a sentence may leave out the file, or what an option is
        if not (told and re.search("Missing parameter|requires an argument", str(error))):
            raise


def test_there_are_many():
    assert len(LINES) > 40


@pytest.mark.parametrize(
    "line", ["lgsim simulate arm.urdf --html run.html", "lgsim simulat arm.urdf", "lgsim info --no"]
)
def test_a_wrong_one_is_found(line):
    with pytest.raises(Exception, match=r"unexpected extra argument|No such command|No such option"):
        parse(words(line))
