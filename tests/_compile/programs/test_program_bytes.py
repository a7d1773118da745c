"""Programs as bytes: whatever else is given ends in one kind of error, and allocates nothing of the size it claims."""

import marshal
import random
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import Program, ProgramFormatError, read
from lgsim._compile.programs.operations import KINDS, OPS
from lgsim._compile.programs.program import Builder, Port, Statement
from tests.multibody import trees


def small():
    """A program of all kinds of values, with an input without entries and one of no axes."""

    def f(x, n, b, none):
        del none
        y = jnp.where(b, jnp.sin(x) * 2.5, -0.0 - x)
        return y, jnp.float32(1.5) * y[0].astype(jnp.float32), n + jnp.int32(-7), b & True

    return read(f, jnp.ones(3), jnp.int32(2), jnp.array([True, False, True]), jnp.zeros((0, 4)))


def test_a_program_comes_back():
    model = trees.build(["revolute", "spherical", "prismatic"], [-1, 0, 1], seed=3)
    for program in (small(), read(lgsim.forward_dynamics, model, *trees.state(model)), Program((), (), (), ())):
        again = Program.from_bytes(program.to_bytes())
        assert again == program and again.digest() == program.digest()
        assert repr(again) == repr(program)  # types too, and the sign of a zero


@pytest.mark.parametrize("kind", KINDS)
def test_constants_of_each_kind_come_back(kind):
    if kind == "bool":
        values = [False, True]
    elif kind.startswith("float"):
        values = [0.0, -0.0, np.inf, -np.inf, 0.1, np.finfo(kind).max, np.finfo(kind).smallest_subnormal]
    else:
        values = [np.iinfo(kind).min, np.iinfo(kind).max, 1]
    build = Builder()
    x = build.input(kind, (len(values),))
    numbers = [build.constant(kind, value) for value in values]
    chosen = [build("select", build("eq", i, i), i, n) for i, n in zip(x.tolist(), numbers, strict=True)]
    program = build.program([(kind, np.array(chosen))])
    again = Program.from_bytes(program.to_bytes())
    assert repr(again.constants) == repr(program.constants) and len(again.constants) == len(values)
    assert [type(value) for _, value in again.constants] == [type(value) for _, value in program.constants]


def wrong():
    """Bytes by a word for what is wrong with them."""
    program = small()
    sound = program.to_bytes()
    change = program.statements[0]
    faults = {
        "nothing": b"",
        "text": b"of a later version",
        "of another version": sound.replace(b"program 1", b"program 2", 1),
        "marshal": marshal.dumps((1, 2, 3)),
        "deep marshal": b"\xa9\x01" * 5000 + b"N",
        "large marshal": b"[\xff\xff\xff\x7f",
        "code": marshal.dumps(compile("1", "x", "exec")),
        "more behind": sound + b"\0",
        "large counts": sound[:16] + b"\xff" * 32 + sound[48:],
        "huge counts": sound[:16] + (2**62).to_bytes(8, "little") * 4 + sound[48:],
    }
    programs = {
        "an operand of a later statement": program._replace(
            statements=(
                change._replace(operands=(program.entries + 1,) * len(change.operands)),
                *program.statements[1:],
            )
        ),
        "an operand that is no constant": program._replace(
            statements=(change._replace(operands=(-1000,) * len(change.operands)), *program.statements[1:])
        ),
        "too few operands": program._replace(statements=(Statement("add", "float64", (0,)), *program.statements[1:])),
        "too many operands": program._replace(
            statements=(Statement("sin", "float64", (0, 1)), *program.statements[1:])
        ),
        "an output of no value": program._replace(
            outputs=(program.outputs[0]._replace(values=(10**6,) * 3), *program.outputs[1:])
        ),
        "inputs in another order": program._replace(
            inputs=(program.inputs[0]._replace(values=(2, 1, 0)), *program.inputs[1:])
        ),
        "an input of another shape": program._replace(
            inputs=(Port("float64", (7,), program.inputs[0].values), *program.inputs[1:])
        ),
        "a shape below zero": program._replace(
            inputs=(Port("float64", (-1, -3), program.inputs[0].values), *program.inputs[1:])
        ),
        "an axis beyond memory": program._replace(
            inputs=(program.inputs[0], program.inputs[1], program.inputs[2], Port("float64", (0, 2**61), ()))
        ),
    }
    return faults | {name: each.to_bytes() for name, each in programs.items()}


@pytest.mark.parametrize("name", wrong())
def test_what_is_no_program_is_one_error(name):
    with pytest.raises(ProgramFormatError, match=r"^expected .*, got .*"):
        Program.from_bytes(wrong()[name])


def test_a_cut_program_is_one_error():
    sound = small().to_bytes()
    for length in range(len(sound)):
        with pytest.raises(ProgramFormatError):
            Program.from_bytes(sound[:length])


def test_changed_bytes_are_one_error_or_a_program():
    """Each byte in turn, and many at once: what comes back is a program that can be evaluated or is refused."""
    sound, draw = small().to_bytes(), random.Random(1)
    mutants = [sound[:i] + bytes([sound[i] ^ 1 << draw.randrange(8)]) + sound[i + 1 :] for i in range(len(sound))]
    for _ in range(1000):
        mutant = bytearray(sound)
        for _ in range(draw.randint(1, 20)):
            mutant[draw.randrange(len(mutant))] = draw.choice([0, 1, 127, 128, 255])
        mutants.append(bytes(mutant))
    taken = 0
    tracemalloc.start()
    for mutant in mutants:
        try:
            program = Program.from_bytes(mutant)
        except ProgramFormatError:
            continue
        taken += 1
        assert Program.from_bytes(program.to_bytes()).to_bytes() == program.to_bytes()
        for i, statement in enumerate(program.statements):
            assert statement.op in OPS and statement.kind in KINDS
            assert all(-len(program.constants) <= x < program.entries + i for x in statement.operands)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < taken < len(mutants)
    assert peak < 10e6, peak
