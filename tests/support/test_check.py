"""Arguments are refused with their names, what was expected and what came; Python numbers are taken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.support import check

MANY = "x: expected an array of float32 or float64, or Python numbers, got"
ONE = "x: expected an array of float32 or float64, got"
REFUSED = {
    "None": (None, f"{MANY} None; give e.g. jnp.zeros\\(\\(2,\\)\\)"),
    "a text": ("abc", f"{MANY} the string 'abc'"),
    "a dictionary": ({}, f"{MANY} dict"),
    "a function": (len, f"{MANY} builtin_function"),
    "None in a list": ([None, 1.0], f"{MANY} a list with None in it"),
    "a string in a tuple": (("a", "b"), f"{MANY} a tuple with a string in it"),
    "an array of objects": (np.array([None, 1.0]), f"{MANY} ndarray"),
    "complex": ([1j, 2.0], f"{ONE} complex128; take its real part"),
    "truth values": ([True, False], f"{ONE} bool; give floats"),
    "integers of numpy": (np.array([1, 2]), f"{ONE} int64; convert it, e.g. x.astype\\(float\\)"),
    "integers of JAX": (jnp.array([1, 2]), f"{ONE} int64; convert it"),
    "half precision": (jnp.zeros(2, jnp.float16), f"{ONE} float16"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_is_no_array_of_floats(wrong):
    value, message = REFUSED[wrong]
    with pytest.raises(TypeError, match=message):
        check.floating("x", value, 2)


@pytest.mark.parametrize("value", [[0, 0], (0, 1), [0, 1.5], [0.0, 1.5], [10**30, 1]], ids=str)
def test_python_numbers_are_floats(value):
    found = check.floating("x", value, 2)
    assert found.dtype == jnp.float64
    np.testing.assert_array_equal(found, [float(x) for x in value])


def test_python_numbers_take_the_type_of_the_others():
    assert check.floating("x", [1, 2], 2, dtype=jnp.float32).dtype == jnp.float32
    x, y = check.arguments(x=([1, 2.0], (2,)), y=(np.zeros(2, np.float32), (2,)))
    assert x.dtype == y.dtype == jnp.float32
    assert check.floating("x", 3).weak_type


def test_lists_of_arrays_and_traced_numbers_pass():
    x = jax.jit(lambda a: check.floating("x", [a, 2 * a], 2))(1.5)
    np.testing.assert_array_equal(x, [1.5, 3.0])


@pytest.mark.parametrize(
    ("value", "message"),
    [([1, 2, 3], r"x: expected shape \(\.\.\., 2\), got \(3,\)"), ([[1], [2, 3]], "got lists of different lengths")],
)
def test_shapes(value, message):
    with pytest.raises(ValueError, match=message):
        check.floating("x", value, 2)


@pytest.mark.parametrize("value", [True, False, np.True_, 1.0, "1", None, np.ones(2, int)], ids=repr)
def test_what_is_no_count(value):
    with pytest.raises(TypeError, match="steps: expected an integer"):
        check.count("steps", value)


@pytest.mark.parametrize("value", [3, np.int32(3), np.array(3), jnp.array(3)], ids=repr)
def test_counts(value):
    assert check.count("steps", value) == 3


@pytest.mark.parametrize("value", [True, None, "1", 1j, np.array(1j), np.array(True), {}], ids=str)
def test_what_is_no_number(value):
    with pytest.raises(TypeError, match="dt: expected a number, got"):
        check.number("dt", value)


def test_numbers():
    for value in (1, 0.5, np.float32(1), np.array(2), jnp.array(0.5)):
        check.number("dt", value)
    jax.jit(lambda x: check.number("dt", x))(0.1)
    with pytest.raises(ValueError, match=r"dt: expected a single number, got shape \(2,\)"):
        check.number("dt", [1.0, 2.0])
