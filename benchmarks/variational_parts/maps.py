"""The discrete rotation vectors beside each other on ten machines: errors, iterations, cost."""

from functools import partial

import harness
import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import VariationalTree
from lgsim.dynamics import ROTATION_MAPS
from lgsim.dynamics.discrete.discrete_newton import trial
from variational_parts.machines import energy_error, machine

STEPS, EVERY = 1000, 10
"""Of one call of a program, and between two saved states."""


def program(model, method, q, v):
    """``(q, v, dt)``: the saved states of ``STEPS`` steps."""

    def motion(model, q, v, dt):
        found = lgsim.rollout(
            model, q, v, dt=dt, steps=STEPS, save_every=EVERY, method=method, checkpoint=None
        )
        return found.q[1:], found.v[1:]

    compiled, seconds = harness.compiled(motion, model, q, v, jnp.asarray(1e-3))
    return (lambda q, v, dt: compiled(model, q, v, jnp.asarray(dt))), seconds


def follow(run, q, v, dt, duration):
    """All saved states, call after call of one program."""
    pieces = [(q[None], v[None])]
    for _ in range(round(duration / dt / STEPS)):
        pieces.append(run(pieces[-1][0][-1], pieces[-1][1][-1], dt))
    return tuple(jnp.concatenate(parts) for parts in zip(*pieces, strict=True))


def position_error(model, q, ends):
    """The largest error of a joint, rad or m."""
    return float(np.abs(model.difference(ends, q)).max())


def iterations(model, name, q, v, dt, steps=200, most=30):
    """(mean, most) of the iterations from the extrapolated displacement that leave an error of 1e-12 of the step.

    Newton's method is quadratic: those up to the first change of at most 1e-6.
    """
    change, small = trial(ROTATION_MAPS[name]), jnp.asarray(1e-8)

    def step(h, state, _):
        q, p, d, before = state

        def further(x):
            return (x[1] < most) & ~(x[2] <= 1e-6)

        def iterate(x):
            d, count, _ = x
            y, _, size = change(model, q, p, d, h, small)
            return d + y, count + 1, size

        d1, count, _ = jax.lax.while_loop(further, iterate, (2 * d - before, 0, jnp.asarray(jnp.inf)))
        _, p, _ = change(model, q, p, d1, h, small)
        return (model.retract(q, d1), p, d1, d), count

    @jax.jit
    def run(q, v, h):
        start = q, lgsim.generalized_momentum(model, q, v), h * v, h * v
        return jax.lax.scan(partial(step, h), start, None, length=steps)[1]

    counts = np.asarray(run(q, v, jnp.asarray(dt)))
    return counts.mean(), counts.max()
