"""Names of a machine in generated code: what compilers and parsers read is the same for every name."""

import ast
import shutil
import subprocess

import numpy as np
import pytest

import lgsim
from lgsim import joints
from lgsim._compile.programs.targets import Casadi, Cuda
from lgsim.symbolic import compile, shared_library, targets
from tests.hostile_names import HOSTILE, JOINED

PLAIN = [f"name{i}" for i in range(len(HOSTILE))]
TARGETS = {"c": targets.C(), "cuda": Cuda(), "numpy": targets.NumPy()}


def first(model, q):
    """Gives the first coordinate: q[0] */ or *\\ so."""
    return q[0] * 2.0


def machine(names):
    """Joints and frames of these names on a rail, every second joint with the next one's motion."""
    builder = lgsim.ModelBuilder()
    for i, name in enumerate(names):
        parent, mimic = f"b{i - 1}" if i else "world", (names[i - 1], 2.0, 0.1) if i % 2 else None
        builder.add_body(f"b{i}", parent, joints.Prismatic(), joint_name=name, mimic=mimic, mass=1.0)
        builder.add_frame(name, f"b{i}")
    return builder.build()


def interfaces(names):
    """What a target gets of a function of q, and of the places of all frames."""
    model = machine(names)
    return compile(first, model, same, about=f"first: {names[0]}"), compile(lgsim.forward_kinematics, model, same)


def same(interface):
    """A target that gives what it gets."""
    return interface


@pytest.fixture(scope="module")
def made():
    """(code with the names, code with plain ones) of each language."""
    pairs = list(zip(interfaces(HOSTILE), interfaces(PLAIN), strict=True))
    return {language: [(target(x), target(y)) for x, y in pairs] for language, target in TARGETS.items()}


def read_by_compiler(text, language):
    """The words that a compiler has left without its comments."""
    words = ["-E", "-P", "-trigraphs", "-I."]
    lines = [line for line in text.splitlines() if not line.startswith("#include")]
    return subprocess.run(
        [shutil.which("cc"), *words, "-x", language, "-"], input="\n".join(lines), capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip


needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler, cc")


@needs_cc
@pytest.mark.parametrize("language", ("c", "cuda"))
def test_compilers_read_the_same(made, language):
    for code, plain in made[language]:
        for text, other in ((code.source, plain.source), (code.header, plain.header)):
            left = read_by_compiler(text, "c" if language == "c" else "c++")
            assert "planted" not in left
            assert left == read_by_compiler(other, "c" if language == "c" else "c++")


@needs_cc
@pytest.mark.parametrize("flags", (("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic"), ("-std=gnu17",)))
def test_a_library_has_no_other_function(made, flags, tmp_path):
    library = shared_library([code for code, _ in made["c"]], tmp_path, flags)
    assert not hasattr(library.library, "planted")
    assert library.first(np.arange(float(len(machine(PLAIN).neutral()))) + 1.5) == 3.0


def test_python_has_a_docstring_and_code_alone(made):
    for code, plain in made["numpy"]:
        trees = [ast.parse(text) for text in (code.source, plain.source)]
        for tree in trees:
            function = tree.body[-1]
            assert isinstance(function.body[0].value.value, str)
            del function.body[0]
        assert ast.dump(trees[0]) == ast.dump(trees[1])


def test_names_stand_in_comments_by_letters(made):
    for language in TARGETS:
        for code, _ in made[language]:
            head = code.source
            assert "Gelenk_äöü" in head
            assert "関節 1" in head
            assert not set(head) & set("?\x1b\x9b\x85\u2028\u202e\u200b\x00\r\t\\`$"), language
            code.source.encode("utf-8")


def test_casadi_has_no_names_of_the_machine():
    pytest.importorskip("casadi")
    f = compile(first, machine(HOSTILE), Casadi())
    assert (f.name(), f.name_in(), f.name_out()) == ("first", ["q"], ["result"])


@needs_cc
@pytest.mark.parametrize("name", [name for name in HOSTILE if JOINED in name])
def test_planted_functions_are_what_they_seem(name):
    """In a comment as lgsim wrote it before, some of these names are code: the test above can fail."""
    text = f"/*\n * q[0]  {name.replace('*/', '* /').replace('/*', '/ *')}\n */\n"
    escaped = "planted" in read_by_compiler(text, "c")
    assert escaped == ("*/" not in name.split(JOINED)[0])
