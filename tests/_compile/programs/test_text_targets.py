"""C and NumPy: every operation of a program's tables against numpy, on one state and in batches."""

import jax
import numpy as np
import pytest

from lgsim._compile.programs import read
from lgsim._compile.programs.operations import OPS
from lgsim._compile.programs.program import Builder, fold
from lgsim._compile.programs.read import SINE_AND_COSINE
from lgsim._compile.programs.targets import C, Described, Interface, NumPy, c, numpy
from lgsim.symbolic import shared_library

BINARY = ("add", "sub", "mul", "div", "rem", "max", "min", "eq", "ne", "lt", "le", "gt", "ge", "atan2", "pow")
LOGIC = ("and", "or", "xor", "not")
LIMITED = {"asin": 0.7, "acos": 0.7, "atanh": 0.7}
ABOVE_ONE = ("acosh", "log", "sqrt", "pow")
SIGNED = (-1.7, 2.5, 0.6, -0.4)


def single_operation(op, kind="float64"):
    """(interface, arguments, expected) of a program of one operation at some numbers."""
    builder = Builder()
    logic = op in LOGIC
    of = "bool" if logic else kind
    count = 3 if op == "select" else 2 if op in BINARY or (logic and op != "not") else 1
    size = 4
    inputs = [builder.input("bool" if op == "select" and i == 0 else of, (size,)) for i in range(count)]
    result = [builder.append(op, tuple(int(x[i]) for x in inputs), _kind(op, of)) for i in range(size)]
    program = builder.program([(_kind(op, of), np.array(result))])
    args = []
    for i in range(count):
        if logic or (op == "select" and i == 0):
            args.append(np.array([True, False, i == 0, i == 1]))
        else:
            numbers = np.roll(SIGNED, i)
            numbers = np.clip(numbers, -0.7, 0.7) if op in LIMITED else numbers
            numbers = 1 + np.abs(numbers) if op in ABOVE_ONE or (op == "log1p") else numbers
            args.append(numbers.astype(kind))
    kinds = ["bool" if x.dtype == bool else kind for x in args]
    want = [fold(op, _kind(op, of), [(k, x[i]) for k, x in zip(kinds, args, strict=True)]) for i in range(size)]
    names = tuple(Described(f"x{i}") for i in range(count))
    return Interface(f"one_{op}", program, names, (Described("y"),)), args, np.array(want)


def _kind(op, kind):
    if op == "convert":
        return "int64"
    return "bool" if op in ("eq", "ne", "lt", "le", "gt", "ge", "signbit", *LOGIC) else kind


OPERATIONS = [op for op in OPS if op in c.OPERATORS and not op.startswith("shift")]


def check_c(ops, folder, kind):
    """All operations in one library."""
    made = [single_operation(op, kind) for op in ops]
    library = shared_library([C()(interface) for interface, _, _ in made], folder)
    for interface, args, want in made:
        got = getattr(library, interface.name)(*args)
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(kind).eps, atol=0, err_msg=interface.name)


@pytest.mark.parametrize("kind", ("float64", "float32"))
def test_every_operation_in_c(kind, tmp_path):
    check_c(OPERATIONS, tmp_path, kind)


def test_every_operation_has_a_text():
    """But bits, which only the target LLVM has, and what C leaves open."""
    assert set(OPS) - set(c.OPERATORS) == {"bitcast", "shift_right_logical"}
    assert set(OPS) - set(numpy.OPERATORS) == {"bitcast", "shift_right_logical"}


def run_numpy(interface, *args):
    """What the text for NumPy computes."""
    space = {}
    exec(NumPy()(interface).source, space)
    return space[interface.name](*args)


@pytest.mark.parametrize("op", OPERATIONS)
def test_operation_in_numpy(op):
    interface, args, want = single_operation(op)
    np.testing.assert_array_equal(run_numpy(interface, *args), want)
    batch = [np.broadcast_to(x, (3, 4)) for x in args]
    np.testing.assert_array_equal(run_numpy(interface, *batch), np.broadcast_to(want, (3, 4)))


WRONG = {"add": "{0} - {1}", "sub": "{0} + {1}", "mul": "-({0} * {1})", "neg": "+{0}", "div": "{0} * {1}"}


@pytest.mark.parametrize("op", WRONG)
def test_wrong_sign_is_caught(op, tmp_path, monkeypatch):
    for table in (c.OPERATORS, numpy.OPERATORS):
        monkeypatch.setitem(table, op, WRONG[op])
    interface, args, want = single_operation(op)
    assert np.abs(run_numpy(interface, *args) - want).max() > 0.1
    with pytest.raises(AssertionError, match=op):
        check_c([op], tmp_path, "float64")


def test_arrays_of_many_axes_are_in_row_major_order(tmp_path):
    def f(x, s):
        return x @ x.T + s, 2 * x[1]

    program = read(f, np.zeros((2, 3)), np.zeros(()))
    interface = Interface("f", program, (Described("x"), Described("s")), (Described("y"), Described("z")))
    x, s = np.arange(6.0).reshape(2, 3), 0.5
    got = shared_library(C()(interface), tmp_path).f(x, s)
    for value, other, want in zip(got, run_numpy(interface, x, s), f(x, s), strict=True):
        np.testing.assert_array_equal(value, want)
        np.testing.assert_array_equal(other, want)


@pytest.mark.parametrize("kind", ("float64", "float32"))
def test_constants_read_back(kind, tmp_path):
    numbers = np.array([0.1, -1e-300, 1e22, 3.0, -0.0, np.inf, -np.inf, np.nan, 5e-324])
    with np.errstate(all="ignore"):
        given = numbers.astype(kind)
    interface = Interface("constants", read(lambda: given), (), (Described("y"),))
    for got in (shared_library(C()(interface), tmp_path).constants(), run_numpy(interface)):
        np.testing.assert_array_equal(got, given)
        np.testing.assert_array_equal(np.signbit(got)[:7], np.signbit(given)[:7])


def test_operation_that_a_language_lacks_is_named():
    program = read(lambda x: jax.lax.bitcast_convert_type(x, np.int64), np.zeros(()))
    interface = Interface("bits", program, (Described("x"),), (Described("y"),))
    with pytest.raises(NotImplementedError, match="the target C has no operation bitcast of float64"):
        C()(interface)


@pytest.mark.parametrize("name", ("restrict", "2x", "a b", "t5", "y"))
def test_names_that_do_not_serve(name):
    program = read(lambda x: 2 * x, np.zeros(()))
    with pytest.raises(ValueError, match=f"name '{name}'"):
        C()(Interface("f", program, (Described(name),), (Described("y"),)))


def test_sine_has_its_name():
    from lgsim._compile.spatial import sincos

    named, plain = (read(lambda x: sincos(x), np.zeros(()), calls=calls) for calls in (SINE_AND_COSINE, None))
    assert named.counts() == {"sin": 1, "cos": 1}
    assert len(plain.statements) > 20 and "sin" not in plain.counts()
