"""A type checker sees the arguments that a class really takes, in their order."""

import dataclasses
import inspect
import json
import subprocess
import sys

import pytest

from tests.public_record import ROOT, listed, modules

pytest.importorskip("pyright", reason="needs pyright")


def records():
    """Public dataclasses of lgsim that can be made, each by its first path."""
    found = {}
    for home, module in modules().items():
        for name in listed(module):
            value = getattr(module, name)
            ours = inspect.isclass(value) and value.__module__.split(".")[0] == "lgsim"
            if ours and dataclasses.is_dataclass(value) and not inspect.isabstract(value):
                found.setdefault(value, f"{home}.{name}")
    return {path: value for value, path in found.items()}


def arguments(text):
    """The names in a signature as pyright writes it."""
    depth, names, word = 0, [], ""
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            names.append(word)
            word = ""
        else:
            word += letter
    return [each.split(":")[0].split("=")[0].strip() for each in [*names, word]]


@pytest.mark.slow
def test_arguments_are_those_at_run_time(tmp_path):
    """A field of an abstract base, which equinox leaves out, would be the first argument."""
    classes = records()
    assert len(classes) > 190
    homes = sorted({path.rpartition(".")[0] for path in classes})
    lines = [f"import {home}" for home in homes] + [f"reveal_type({path}.__init__)" for path in classes]
    (tmp_path / "classes.py").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run([*command, str(tmp_path / "classes.py")], cwd=ROOT, capture_output=True, text=True)
    told = [each["message"] for each in json.loads(done.stdout)["generalDiagnostics"]]
    assert len(told) == len(classes), told[:3]
    for (path, value), message in zip(classes.items(), told, strict=True):
        assert message.startswith(f'Type of "{path}.__init__" is "('), message
        seen = arguments(message.partition('is "(')[2].rpartition(") ->")[0])
        right = [each.name for each in inspect.signature(value).parameters.values()]
        assert [each.lstrip("*") for each in seen if each not in ("self", "*", "/")] == right, path
