"""A JAX that nobody has seen yet: whatever fails on the way to LLVM, values and derivatives are right, and one warning
says so.
"""

import warnings
from itertools import count

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import call, elementwise, handlers, store
from lgsim._compile.programs.compiler import compiler
from lgsim._compile.programs.program import Program
from lgsim._compile.programs.read import _CONTROL, RULES, Reader
from lgsim._compile.xla import batch_last, batch_primitive, fallback, jax_internals, straight_line
from tests.multibody import trees

pytestmark = pytest.mark.skipif(jax.default_backend() != "cpu" or compiler() is None, reason="needs a CPU and llvmlite")
X = jnp.linspace(0.2, 0.9, 12).reshape(4, 3)
_number = count()


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """Nothing is kept of former tests, neither programs nor what was told."""
    fallback._told.clear()
    monkeypatch.setenv("LGSIM_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(handlers, "_registered", {})
    yield tmp_path
    fallback._told.clear()


def function(own=lambda x: x):
    """A function of one state, or of a batch on the last axis, with a loop, sums and enough statements for LLVM."""
    turns = 0.1 * next(_number)

    def f(x):
        def step(c, k):
            return jnp.sin(c) + k * jnp.roll(c, 1, axis=0), jnp.sum(c * c, axis=0)

        last, products = jax.lax.scan(step, own(x) + turns, jnp.arange(10.0))
        for _ in range(20):
            last = jnp.cos(last)
        return last + jnp.sum(products, axis=0)[None]

    return f


def derivatives(f):
    """Value, gradient, and the tangent of the gradient, of a batch."""

    def total(x):
        return jnp.sum(jax.vmap(f)(x) ** 2)

    def results(x):
        return (jax.vmap(f)(x), *jax.value_and_grad(total)(x), jax.jvp(jax.grad(total), (x,), (x + 1,))[1])

    return jax.jit(results)(X)


def compared(make, f):
    """Texts of the warnings while a function is compiled; its results are compared with those of XLA."""
    with lgsim.llvm_lowering(False):
        want = derivatives(f)
    with warnings.catch_warnings(record=True) as told, lgsim.llvm_lowering(True):
        warnings.simplefilter("always")
        got = derivatives(make(f))
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * np.max(np.abs(y)))
    return [str(w.message) for w in told if issubclass(w.category, lgsim.LoweringWarning)]


both = pytest.mark.parametrize("make", [batch_last, straight_line], ids=["batch_last", "straight_line"])


@pytest.fixture
def strange():
    """A primitive that is called like one of JAX's and has another parameter than that: the sum of an array."""

    def run(x, *, axes_of_tomorrow):
        return jnp.sum(x, axis=axes_of_tomorrow)

    def back(y, x, *, axes_of_tomorrow):
        return [jnp.broadcast_to(y, x.aval.shape)]

    def batched(x, axes, *, axes_of_tomorrow):
        out = found.bind(jnp.moveaxis(x[0], axes[0], -1), axes_of_tomorrow=axes_of_tomorrow)
        return out, out.ndim - 1

    found = jax_internals.define_primitive(
        "reduce_sum", impl=run, lowering=run, transpose_rule=back, batching_rule=batched, multiple_results=False,
        batch_axes=None,
        computes=False,
        abstract_eval=lambda x, **p: x.update(shape=x.shape[1:]),
    )  # fmt: skip
    return lambda x: found.bind(x, axes_of_tomorrow=(0,))


@both
def test_a_primitive_of_unknown_parameters(make, fresh, strange):
    (text,) = compared(make, function(lambda x: x * strange(x)[None]))
    assert f"JAX {jax.__version__}" in text and "reduce_sum" in text and "no parameter axes" in text
    assert "report" in text and fallback.ISSUES in text


RAISING = {
    "an array's rule": (RULES, "reduce_sum"),
    "an entry's rule": (elementwise.ELEMENTWISE, "sin"),
    "a loop": (_CONTROL, "scan"),
}


@pytest.mark.repeats
@both
@pytest.mark.parametrize("name", RAISING)
def test_a_rule_that_raises(make, name, fresh, monkeypatch):
    def broken(*args):
        raise KeyError("a shape of tomorrow")

    table, primitive = RAISING[name]
    monkeypatch.setitem(table, primitive, broken)
    (text,) = compared(make, function())
    assert f"at the primitive {primitive}" in text and "KeyError: 'a shape of tomorrow'" in text


STEPS = {
    "counts of a scan": ("lgsim._compile.programs.state_loops.loop_counts", AttributeError),
    "fingerprint": ("lgsim._compile.programs.call.fingerprint", ZeroDivisionError),
    "text of LLVM": ("lgsim._compile.programs.handlers.llvm_text", IndexError),
    "registering a function": ("lgsim._compile.programs.handlers.register_handler", AttributeError),
    "call of a function": ("lgsim._compile.programs.call.handler_call", TypeError),
}


@pytest.mark.repeats("counts of a scan-batch_last", "text of LLVM-straight_line")
@both
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_raises(make, name, fresh, monkeypatch):
    place, kind = STEPS[name]

    def broken(*args):
        raise kind("of tomorrow")

    monkeypatch.setattr(place, broken)
    (text,) = compared(make, function())
    assert f"{kind.__name__}: of tomorrow" in text


@pytest.mark.slow
def test_dynamics_of_a_machine(fresh, monkeypatch):
    """Forward dynamics, its rule of derivation and sweeps included."""

    def broken(*args):
        raise KeyError("of tomorrow")

    model = trees.build(["revolute", "prismatic", "helical", "revolute", "spherical"], [-1, 0, 1, 1, 3])
    state = trees.state(model, batch=(3,))

    def results():
        def total(q, v, tau):
            return jnp.sum(jax.vmap(lambda *x: lgsim.forward_dynamics(model, *x))(q, v, tau) ** 2)

        return jax.tree.leaves(jax.jit(jax.value_and_grad(total, argnums=(0, 1, 2)))(*state))

    with lgsim.llvm_lowering(False):
        want = results()
    monkeypatch.setattr(Reader, "scan", broken)
    monkeypatch.setitem(elementwise.ELEMENTWISE, "mul", broken)
    monkeypatch.setattr(batch_primitive.BatchProgram, "compiled", _unkept(batch_primitive.BatchProgram.compiled))
    with pytest.warns(lgsim.LoweringWarning, match="KeyError"), lgsim.llvm_lowering(True):
        got = results()
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * np.max(np.abs(y)))


def _unkept(compiled):
    """As ``compiled``, which forgets what other tests have read."""

    def anew(self, *args):
        kept, self._read = self._read, {}
        try:
            return compiled(self, *args)
        finally:
            self._read = kept

    return anew


def test_one_warning_a_process(fresh, monkeypatch):
    monkeypatch.setitem(elementwise.ELEMENTWISE, "sin", lambda: None)
    assert len(compared(batch_last, function())) == 1
    assert compared(batch_last, function()) == []


def test_warnings_that_are_errors_stay_errors(fresh, monkeypatch):
    def warn(*args):
        warnings.warn("of another kind", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr(call, "fingerprint", warn)
    with pytest.raises(RuntimeWarning, match="of another kind"):
        jax.vmap(batch_last(function()))(X)


BROKEN = {
    "empty": b"",
    "text": b"of a later version",
    "another program": Program((), (), (), ()).to_bytes(),
    "cut": "cut",
    "other numbers": b"\xe9\x01\x00\x00\x00",
}


@pytest.mark.repeats
@both
@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_entry_of_the_cache(make, kind, fresh):
    """Of a program that was read, under its right hash: it is read anew, and LLVM compiles it without a word."""
    f = function()
    assert compared(make, f) == []
    entries = [path for path in fresh.iterdir() if path.name.startswith("program_")]
    assert entries, "no program was kept"
    for path in entries:
        code = store.read_entry(path.name)
        given = BROKEN[kind]
        store.write_entry(path.name, code[: len(code) // 2] if given == "cut" else given)
    handlers._registered.clear()
    jax.clear_caches()
    again = batch_last(lambda x: f(x)) if make is batch_last else straight_line(lambda x: f(x))  # nothing is kept of it
    assert compared(lambda f: again, f) == []


@pytest.mark.repeats
@pytest.mark.parametrize("kind", ["cut", "of another version", "a folder", "unreadable"])
def test_broken_files_of_the_cache(kind, fresh):
    """Of programs and of object code."""
    f = function()
    assert compared(batch_last, f) == []
    for path in list(fresh.iterdir()):
        content = path.read_bytes()
        if kind == "a folder":
            path.unlink()
            path.mkdir()
        elif kind == "unreadable":
            path.unlink()
            path.symlink_to(path)
        else:
            path.write_bytes(content[: len(content) // 2] if kind == "cut" else b"lgsim 1\n" + content)
    handlers._registered.clear()
    jax.clear_caches()
    assert compared(batch_last, f) == []
