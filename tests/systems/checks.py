"""What holds for every problem: invariants along a solution, gradients, and fields that belong to a Hamiltonian."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import lgsim


def floats(strings):
    return np.array(strings, dtype=np.float64)


def along(function, states, args):
    """``function(y, args)`` at every saved state."""
    return np.asarray(jax.vmap(lambda y: function(y, args))(states))


def solve(problem, time, steps, method=lgsim.MK8, drift=2e-12):
    """The last state; every invariant is checked on the way, relative to its own size but at least to one."""
    solution = lgsim.integrate(
        method, problem.action, problem.field, problem.initial, dt=time / steps, steps=steps, args=problem.args
    )
    for name, invariant in problem.invariants.items():
        values = along(invariant, solution.ys, problem.args)
        assert np.abs(values - values[0]).max() < drift * max(1.0, np.abs(values).max()), name
    return jax.tree.map(lambda leaf: leaf[-1], solution.ys)


def check_gradients(problem, *others, dt=0.02, steps=4):
    """Reverse mode through a run equals central differences along the manifold and in every number of ``args``.

    ``others`` are problems of the same kind with other states and numbers, such as one at rest. The method is the
    simplest one, and so is the reverse mode: what others add is tested with them, and costs compilation.
    """
    action, field = problem.action, problem.field
    sizes = jax.tree.map(np.shape, problem.initial)
    rng = np.random.default_rng(7)
    weights = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), problem.initial)
    ratios = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), problem.args)
    turn = rng.normal(size=action.dim)

    @jax.jit
    @partial(jax.value_and_grad, argnums=(0, 1))
    def objective(sigma, args, y):
        settings = {"dt": dt, "steps": steps, "args": args, "checkpoint": None}
        end = lgsim.integrate(lgsim.LieEuler, action, field, action.move(sigma, y), **settings).ys
        products = jax.tree.map(lambda w, leaf: jnp.sum(w * leaf[-1]), weights, end)
        return sum(jax.tree.leaves(products))

    for case in (problem, *others):
        assert jax.tree.map(np.shape, case.initial) == sizes
        args = jax.tree.map(np.asarray, case.args)
        direction = jax.tree.map(lambda x, ratio: ratio * np.where(x == 0, 0.1, x), args, ratios)

        def shifted(s, case=case, args=args, direction=direction):
            return objective(s * turn, jax.tree.map(lambda x, d: x + s * d, args, direction), case.initial)

        by_turn, by_args = shifted(0.0)[1]
        products = jax.tree.map(lambda g, d: np.sum(np.asarray(g) * d), by_args, direction)
        slope = float(by_turn @ turn) + float(sum(jax.tree.leaves(products)))
        assert np.isfinite(slope)
        h = 1e-3
        up, down, up2, down2 = (float(shifted(s)[0]) for s in (h, -h, 2 * h, -2 * h))
        differences = (8 * (up - down) - (up2 - down2)) / (12 * h)
        scale = max(1.0, float(np.linalg.norm(by_turn)))
        assert abs(slope - differences) < 1e-8 * scale, (case.name, slope, differences)


def check_hamiltonian(problem, y):
    """The field is (dH/dmu, -dH/dg), dH/dg along g -> exp(xi) g, by differentiating H.

    Source: Celledoni et al. 2021, (14).
    """
    g, mu = y
    group = problem.action.group.base

    def turned(xi):
        return problem.hamiltonian(group.compose(group.exp(xi), g), mu, problem.args)

    by_momentum = jax.grad(problem.hamiltonian, 1)(g, mu, problem.args)
    expected = jnp.concatenate([by_momentum, -jax.grad(turned)(jnp.zeros(group.dim))])
    np.testing.assert_allclose(
        problem.field(0.0, y, problem.args), expected, rtol=0, atol=1e-12 * float(jnp.max(jnp.abs(expected)))
    )
