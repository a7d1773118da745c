"""What a loop keeps changes what is computed again, and no derivative."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.xla import native_with_derivatives, save_in_checkpoint, save_marked_values
from lgsim.integrators.integrate import integrate


def dear(mark):
    """arctan with a rule that needs its value, marked or not."""

    @jax.custom_jvp
    def f(x):
        return jnp.arctan(x)

    @f.defjvp
    def _(primals, tangents):
        y = mark(f(*primals))
        return y, jnp.cos(y) ** 2 * tangents[0]

    return f


def plain(x):
    return x


def times(f, x):
    """How often a program of the gradient evaluates arctan."""
    return str(jax.make_jaxpr(jax.grad(lambda x: jnp.sum(f(x))))(x)).count("= atan ")


def test_is_the_value():
    x = jnp.arange(3.0)
    assert save_in_checkpoint(x) is not None
    np.testing.assert_array_equal(save_in_checkpoint(x), x)
    np.testing.assert_array_equal(jax.jit(jax.vmap(save_in_checkpoint))(x), x)


def test_is_computed_once():
    x = jnp.linspace(-1.0, 2.0, 5)
    by_policy = [jax.checkpoint(dear(mark), policy=save_marked_values) for mark in (save_in_checkpoint, plain)]
    assert [times(f, x) for f in by_policy] == [1, 2]
    assert times(jax.checkpoint(dear(save_in_checkpoint)), x) == 2  # the mark alone does nothing


@pytest.mark.parametrize("mark", [save_in_checkpoint, plain])
def test_gradients_are_the_same(mark):
    x = jnp.linspace(-1.0, 2.0, 5)
    f = jax.checkpoint(dear(mark), policy=save_marked_values)
    for order, derivative in enumerate((jax.grad, lambda f: jax.grad(jax.grad(f)), lambda f: jax.jacfwd(jax.grad(f)))):
        found = jax.vmap(derivative(f))(x)
        right = 1 / (1 + x * x) if order == 0 else -2 * x / (1 + x * x) ** 2
        np.testing.assert_allclose(found, right, rtol=1e-13)


def marked(f):
    """The field f as a value that is kept, as the rule of forward dynamics has its own."""

    @jax.custom_jvp
    def field(y, k):
        return f(y, k)

    @field.defjvp
    def _(primals, tangents):
        value, slope = jax.jvp(f, primals, tangents)
        return save_in_checkpoint(value), slope

    return field


def growth(y, k):
    return k * y * (1 - y)


def logistic(y, k):
    """The solution of ``y' = k y (1 - y)`` after TIME."""
    return y * jnp.exp(k * TIME) / (1 - y + y * jnp.exp(k * TIME))


STEPS, TIME = 20, 1.0


@pytest.mark.slow
@pytest.mark.parametrize("f", [growth, native_with_derivatives(growth)], ids=["plain", "native"])
@pytest.mark.parametrize(
    "checkpoint", [None, "step", pytest.param(7, marks=pytest.mark.exhaustive), "recursive"], ids=str
)
@pytest.mark.parametrize(
    "second",
    [jax.hessian, pytest.param(lambda f: jax.jacrev(jax.grad(f)), marks=pytest.mark.exhaustive)],
    ids=["forward", "reverse"],
)
def test_second_derivatives_of_an_integration(f, checkpoint, second):
    """With kept values in the field: those of the same steps without, and of the exact solution."""
    action = lgsim.actions.LeftTranslation(lgsim.Euclidean(1))

    def end(rate, checkpoint):
        def of(x):
            solution = integrate(
                lgsim.MK4, action, lambda t, y, k: rate(y, k), x[:1], dt=TIME / STEPS, steps=STEPS, args=x[1:],
                checkpoint=checkpoint,
            )  # fmt: skip
            return solution.ys[-1, 0]

        return of

    x = jnp.array([0.3, 1.7])
    found = jax.jit(second(end(marked(f), checkpoint)))(x)
    right = jax.jit(jax.hessian(end(growth, None)))(x)
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found, jax.hessian(lambda x: logistic(*x))(x), rtol=0, atol=1e-5)
