"""Private shapes of JAX as this version has them: each of them against what the public interface says."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla import jax_internals as internals
from lgsim._compile.xla.jax_internals import UnknownJax

pytestmark = pytest.mark.quick
X = jnp.arange(1.0, 5.0)


def equations(f, *args):
    return {e.primitive.name: e for e in jax.make_jaxpr(f)(*args).jaxpr.eqns}


@pytest.mark.parametrize(("consts", "carry", "entries"), [(0, 1, 1), (2, 1, 0), (1, 3, 2), (3, 2, 1)])
def test_the_operands_of_a_scan(consts, carry, entries):
    weights = [x * X[0] for x in X[:consts]]

    def f(weights, start, xs):
        def step(c, x):
            total = sum(weights, jnp.zeros(()))
            return [y + total for y in c], [c[0] * z for z in x]

        return jax.lax.scan(step, start, xs, length=4)

    def whole(weights, start, xs):
        return f(weights, start, xs)

    start, xs = [jnp.ones(()) * (i + 1) for i in range(carry)], [X * (i + 1) for i in range(entries)]
    scan = equations(whole, weights, start, xs)["scan"]
    assert internals.loop_counts(scan) == (consts, carry)
    assert internals.parameter(scan, "length") == 4
    assert len(scan.invars) == consts + carry + entries


def test_a_scan_of_an_unknown_shape():
    scan = equations(lambda x: jax.lax.scan(lambda c, x: (c, x), 1.0, x), X)["scan"]
    rest = {name: value for name, value in scan.params.items() if name not in ("num_consts", "num_carry", "ft_in")}
    for given in ({}, {"ft_in": None}, {"ft_in": SimpleNamespace(unpack=lambda: ([1], [2], [3]))}):
        equation = scan.replace(params=rest | given)
        with pytest.raises(UnknownJax, match=f"JAX {jax.__version__}: the primitive scan has no numbers"):
            internals.loop_counts(equation)


@jax.custom_jvp
def cube(x):
    return x**3


cube.defjvp(lambda primals, tangents: (cube(*primals), 3 * primals[0] ** 2 * tangents[0]))


@jax.custom_vjp
def fourth(x):
    return x**4


fourth.defvjp(lambda x: (x**4, x), lambda x, y: (4 * x**3 * y,))


@pytest.mark.parametrize("f", [jax.jit(jnp.sin), cube, fourth, jax.checkpoint(jnp.sin)])
def test_calls(f):
    closed = jax.make_jaxpr(f)(X)
    (equation,) = closed.jaxpr.eqns
    assert internals.calls_program(equation.primitive.name)
    called = internals.called_program(equation)
    jaxpr = getattr(called, "jaxpr", called)
    np.testing.assert_allclose(internals.jaxpr_as_fun(internals.ClosedJaxpr(jaxpr, []))(X)[0], f(X), rtol=1e-15)


def test_the_name_of_a_call():
    (equation,) = jax.make_jaxpr(cube)(X).jaxpr.eqns
    assert internals.origin(internals.called_program(equation)) == "cube"
    assert internals.origin(None) == ""


def test_a_missing_parameter():
    (equation,) = jax.make_jaxpr(lambda x: x.reshape(2, 2))(X).jaxpr.eqns
    assert internals.parameter(equation, "new_sizes") == internals.parameters(equation)["new_sizes"] == (2, 2)
    for read in (internals.parameter, lambda e, name: internals.parameters(e)[name]):
        with pytest.raises(UnknownJax, match="the primitive reshape has no parameter newer_sizes"):
            read(equation, "newer_sizes")


def test_rules_of_a_primitive(monkeypatch):
    """2 x of two arrays: values, batches, both modes, dead code in all of it."""
    asked = []

    def double(*x):
        return [2 * each for each in x]

    def moved(primals, tangents):
        zero = [internals.is_symbolic_zero(each) for each in tangents]
        asked.append(zero)
        return doubled.bind(*primals), doubled.bind(*map(internals.instantiated, tangents))

    def back(cotangents, *operands):
        linear = list(map(internals.is_undefined, operands))
        assert any(linear)
        found = doubled.bind(*map(internals.instantiated, cotangents))
        return [y if each else None for y, each in zip(found, linear, strict=True)]

    def keep(used, equation):
        asked.append(used)
        if not any(used):
            return used, None
        pick = [[v for v, each in zip(vs, used, strict=True) if each] for vs in (equation.invars, equation.outvars)]
        return used, equation.replace(invars=pick[0], outvars=pick[1])

    doubled = internals.define_primitive(
        "test_doubled", impl=double, abstract_eval=lambda *x: list(x), lowering=double,
        batching_rule=lambda x, axes: (doubled.bind(*x), list(axes)), jvp_rule=moved, transpose_rule=back,
        batch_axes=None,
        computes=False,
    )  # fmt: skip
    internals.register_dce_rule(doubled, keep)

    def f(x, y):
        return doubled.bind(x, y)

    for run in (f, jax.jit(f), jax.vmap(f)):
        np.testing.assert_array_equal(run(X, X + 1), [2 * X, 2 * X + 2])

    def one(x):
        return jnp.sum(doubled.bind(x, X)[0] ** 2)

    np.testing.assert_allclose(jax.jit(jax.grad(one))(X), 8 * X)
    np.testing.assert_allclose(jax.jit(jax.jvp, static_argnums=0)(one, (X,), (X,))[1], 8 * jnp.sum(X**2))
    assert [False, True] in asked, "no rule was told that a tangent is zero"

    dce_jaxpr = pytest.importorskip("jax.interpreters.partial_eval").dce_jaxpr
    jaxpr = jax.make_jaxpr(lambda x, y: tuple(doubled.bind(x, jnp.sin(y))))(X, X).jaxpr
    left, used = dce_jaxpr(jaxpr, [True, False])
    assert [True, False] in asked and list(used) == [True, False]
    assert [e.primitive.name for e in left.eqns] == ["test_doubled"] and len(left.eqns[0].outvars) == 1
    looped = jax.checkpoint(lambda x: jax.lax.scan(lambda c, _: (doubled.bind(c, jnp.sin(c))[0], None), x, length=2)[0])
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.sum(looped(x) * X)))(X), 4 * X)


@pytest.mark.parametrize("args", [("used", "equation"), ("used", "live", "equation"), ("used", "a", "b", "equation")])
def test_a_rule_of_dead_code_is_called_in_any_way(args):
    equation = SimpleNamespace(invars=[1, 2])
    rules = pytest.importorskip("jax.interpreters.partial_eval").dce_rules
    for keep, want in ((lambda used, e: (used, e), [True, False]), (lambda used, e: e.nothing, [True, True])):
        primitive = internals.Primitive("test_of_dead_code")
        internals.register_dce_rule(primitive, keep)
        given = {"used": (True, False), "equation": equation}
        assert rules.pop(primitive)(*(given.get(each) for each in args)) == (want, equation)


def test_a_setting_compiles_anew():
    setting, traced = internals.Setting("one"), []

    @jax.jit
    def f(x):
        traced.append(setting.value)
        return x + len(setting.value)

    assert f(X)[0] == 4 and f(X)[0] == 4
    with setting.changed("three"):
        assert setting.value == "three" and f(X)[0] == 6
    assert setting.value == "one" and f(X)[0] == 4
    assert traced[:2] == ["one", "three"]


def test_without_jit():
    assert not internals.without_jit()
    with jax.disable_jit():
        assert internals.without_jit()
