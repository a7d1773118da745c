"""Helps are printed as they are written, at every width, with brackets and without the source's line breaks."""

import inspect
import itertools
import re
import typing

import pytest
import typer
from typer.testing import CliRunner

from lgsim.cli import app as commands
from lgsim.cli import montecarlo
from lgsim.cli.exit_status import Exit, epilog
from lgsim.cli.terminal import Command, LiteralGroup
from lgsim.support.verdict import RESOLVED

FUNCTIONS = {
    "": commands.lgsim,
    **{command.__name__: command for command in commands.COMMANDS},
    "montecarlo run": montecarlo.run,
    "montecarlo report": montecarlo.report,
}
TEXTS = {"montecarlo": [montecarlo.app.info.help]}
EPILOGS = {"": epilog(), "montecarlo": epilog("montecarlo run")}


def written(name):
    """The texts of a command: its docstring, and the helps of its parameters."""
    if name in TEXTS:
        return TEXTS[name]
    function = FUNCTIONS[name]
    infos = [hint.__metadata__[0] for hint in typing.get_type_hints(function, include_extras=True).values()
             if hasattr(hint, "__metadata__")]  # fmt: skip
    return [inspect.getdoc(function), *(info.help for info in infos if has_help(info))]


def has_help(info):
    """click 8.5 takes the help from the arguments of typer 0.21, whoever prints it."""
    return isinstance(info, typer.models.OptionInfo) or ARGUMENTS_HAVE_HELP


def printed(words, columns):
    result = CliRunner().invoke(commands.app, [*words, "--help"], env={"COLUMNS": str(columns)})
    assert result.exit_code == 0, result.output
    return result.stdout


def packed(text):
    """A text without its frame and its breaks."""
    return re.sub(r"[\s│]", "", text)


def help_of(cls, text, **options):
    app = typer.Typer(add_completion=False, **options)

    @app.command(cls=cls)
    def only(name: typing.Annotated[str, typer.Option(help=text)] = ""):
        pass

    only.__doc__ = text
    app.registered_commands[0].help = text
    return CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).stdout


def _arguments_have_help():
    app = typer.Typer(add_completion=False)

    @app.command()
    def only(name: typing.Annotated[str, typer.Argument(help="seen")]):
        pass

    return "seen" in CliRunner().invoke(app, ["--help"]).stdout


ARGUMENTS_HAVE_HELP = _arguments_have_help()


@pytest.mark.parametrize("columns", [80, 100, 133, 200])
@pytest.mark.parametrize("name", [*FUNCTIONS, *TEXTS], ids=lambda name: name or "lgsim")
def test_every_help_is_printed_as_it_is_written(name, columns):
    shown = packed(printed(name.split(), columns))
    lost = [text for text in [*written(name), EPILOGS.get(name, epilog(name))] if packed(text) not in shown]
    assert not lost, lost


def test_there_are_brackets_to_lose():
    assert {"[machine]", "[start]", "[wind]"} <= set(re.findall(r"\[\w+\]", " ".join(written("simulate")))) or (
        not ARGUMENTS_HAVE_HELP
    )


@pytest.mark.parametrize("text", ["[b]bold[/b] [/b] [m] [link=x] [[a]] [1]", "a [table] and \\[escaped]"])
@pytest.mark.parametrize("mode", ["rich", None])
def test_marks_of_style_are_text(text, mode):
    assert help_of(Command, text, rich_markup_mode=mode).count(text) == 2


def test_groups_take_brackets_too():
    app = typer.Typer(add_completion=False, cls=LiteralGroup, help="of [b]all[/b]", rich_markup_mode="rich")
    for name in ("one", "two"):
        app.command(name, cls=Command, help=f"{name} [machine]")(lambda: None)
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"}).stdout
    assert all(text in shown for text in ("of [b]all[/b]", "one [machine]", "two [machine]"))


@pytest.mark.parametrize("name", ["simulate", "identify", "montecarlo run"])
def test_paragraphs_fill_their_lines(name):
    """The source's breaks at 120 columns left half lines on every narrower terminal."""
    lines = printed(name.split(), 80).split("╭")[0].splitlines()
    paragraphs = [part.splitlines() for part in "\n".join(line.strip() for line in lines).split("\n\n")]
    long = [part for part in paragraphs if len(part) > 2]
    assert long
    for part in long:
        for line, after in itertools.pairwise(part):
            assert len(f"{line} {after.split()[0]}") > 78, line


VERBS = set(
    """Apply Check Compute Connect Continue Control Convert Draw Drive Embed Estimate Find Fit Generate Give Hold
    Identify Ignore Keep Leave Lock Plot Print Read Replace Replay Report Run Save Serve Set Show Simulate Skip Start
    Turn Use Write""".split()
)
"""First words of helps, all imperative."""
LONGEST = 170
"""Characters of the help of an option."""
LISTED = 64
"""Characters of a command's first line, so that it is one line of the list of commands at 80 columns."""


def parameters(name):
    """The options and arguments of a command with their types."""
    hints = typing.get_type_hints(FUNCTIONS[name], include_extras=True)
    return {
        key: (hint.__metadata__[0], hint.__origin__) for key, hint in hints.items() if hasattr(hint, "__metadata__")
    }


@pytest.mark.parametrize("name", FUNCTIONS, ids=lambda name: name or "lgsim")
def test_helps_are_short_and_imperative(name):
    """The first line of a command is one line of the list of commands."""
    title = inspect.getdoc(FUNCTIONS[name]).split("\n\n")[0]
    assert title.split()[0].rstrip(",") in VERBS and title.endswith(".") and len(title) <= (LISTED if name else 78)
    wrong = [
        info.help
        for info, _ in parameters(name).values()
        if info.help.split()[0] not in VERBS or not info.help.endswith(".") or len(info.help) > LONGEST
    ]
    # the functions and methods that a help lists are what makes it long
    assert not [text for text in wrong if "inverse_dynamics, " not in text and not text.startswith("Set the method.")]


@pytest.mark.parametrize("name", FUNCTIONS, ids=lambda name: name or "lgsim")
def test_helps_of_physical_quantities_have_units(name):
    units = r", (s|m|m/s²|rad/s or m/s|inches|samples|N m or N)\b|: rad, m,|fraction"
    for info, kind in parameters(name).values():
        if kind in (float, float | None):
            assert re.search(units, info.help), info.help


def test_an_argument_that_may_be_left_out_has_one_pair_of_brackets():
    assert "[FILE]" in printed(["demo"], 80) and "[[" not in printed(["demo"], 80)
    assert "[MOTION]" in printed(["identify"], 80)


def test_the_help_of_a_simulation_has_the_numbers_of_the_code():
    shown = packed(printed(["simulate"], 200))
    assert RESOLVED == 0.05
    assert packed(f"more than {100 * RESOLVED:g} % of the motion is not converged in the step size") in shown


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("simulate", "--method", "nix"), ("LieEuler", "variational4")),
        (("generate", "--language", "nix"), ("numpy", "casadi")),
        (("montecarlo", "--example", "nix"), ("hover", "arm")),
    ],
    ids=" ".join,
)
def test_a_wrong_choice_lists_all_once(words, names):
    from lgsim import data

    file = () if "--example" in words else (str(data.arm7()),)
    message = CliRunner().invoke(commands.app, [*words, *file]).stderr
    assert "got 'nix'" in message
    assert all(len(re.findall(rf"\b{name}\b", message)) == 1 for name in names), message


def test_every_reason_belongs_to_commands_that_there_are():
    assert {command for reason in Exit for command in reason.commands} <= set(FUNCTIONS)
    assert {reason.status for reason in Exit} == {0, 1, 2, 3, 130}
