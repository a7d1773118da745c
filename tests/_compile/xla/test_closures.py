"""Functions that close over traced numbers: which are converted, and why equinox's conversion does not do."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim._compile.xla.closures import ClosurePytree, closure_to_pytree
from lgsim.actions import Translation
from lgsim.optimize import DiscreteDynamics, Problem, solve


def test_numbers_in_closures_and_defaults_are_leaves():
    """Themselves, through functions of functions, and in keyword defaults; a function without any stays as it is."""

    def outer(k):
        def inner(x, shift=k, *, scale=2 * k):
            return shift + scale * x

        def twice(x):
            return inner(inner(x))

        def recursive(n):
            return k if n == 0 else recursive(n - 1)

        found = closure_to_pytree({"f": twice, "g": len, "h": lambda x: x, "r": recursive})
        assert isinstance(found["f"], ClosurePytree) and len(jax.tree.leaves(found["f"])) == 2
        assert found["g"] is len and not isinstance(found["h"], ClosurePytree)
        assert isinstance(found["r"], ClosurePytree)
        moved = jax.tree.map(lambda leaf: leaf + 1 if isinstance(leaf, jax.core.Tracer) else leaf, found["f"])
        return found["f"](3.0) - twice(3.0), moved(3.0), found["r"](2)

    same, moved, recursive = jax.jit(outer)(jnp.array(0.5))
    # shift 1.5, scale 2, twice
    assert float(same) == 0 and float(moved) == 1.5 + 2 * (1.5 + 2 * 3) and float(recursive) == 0.5


def test_a_function_may_be_called_with_several_shapes():
    """What equinox converts takes the shapes of its example alone."""

    def total(k):
        def f(x):
            return k * jnp.sum(x)

        converted = eqx.filter_closure_convert(f, jnp.zeros(2))
        with pytest.raises(ValueError, match="different dynamic arguments"):
            converted(jnp.ones(3))
        own = closure_to_pytree(f)
        return own(jnp.ones(2)) + own(jnp.ones(3))

    assert float(jax.grad(total)(2.0)) == 5.0


@pytest.mark.slow
def test_a_function_that_only_the_problem_knows_has_its_derivative():
    """In ``args``, where no one else knows what it is called with: here with a state and with a control."""

    def cost(k):
        problem = Problem(
            DiscreteDynamics(Translation(2), lambda t, y, u, args: y + 0.1 * jnp.concatenate([u, y[:1]]), 1),
            jnp.array([1.0, 0.5]),
            horizon=4,
            running=lambda t, y, u, args: args["size"](y) + args["size"](u),
            args={"size": lambda x: k * jnp.sum(x * x) + jnp.sum(x**4)},
        )
        return solve(problem).cost

    value, slope = jax.jit(jax.value_and_grad(cost))(0.3)
    h = 1e-5
    apart = jax.jit(jax.vmap(cost))(jnp.array([0.3 + h, 0.3 - h]))
    np.testing.assert_allclose(slope, (apart[0] - apart[1]) / (2 * h), rtol=1e-6)
    assert float(value) > 0
