"""Long motions, call after call of one program."""

import harness

import time

import jax
import jax.numpy as jnp

import lgsim
from lgsim import Newton, VariationalTree

TWO = Newton(2, tolerance=1e-6)
"""Two iterations: a last change of 1e-6 leaves an error of 1e-12 of the step, and more are taken where it is larger."""
SECOND, FOURTH = VariationalTree(newton=TWO), VariationalTree(order=4, newton=TWO)
STEPS, EVERY = 1000, 10
"""Of one call of a program, and between two saved states."""


def program(model, method, q, v, steps=STEPS, every=EVERY):
    """(``(q, v, dt)``: the saved states after those, seconds to compile it)."""

    def motion(model, q, v, dt):
        found = lgsim.rollout(model, q, v, dt=dt, steps=steps, save_every=every, method=method, checkpoint=None)
        return found.q[1:], found.v[1:]

    compiled, seconds = harness.compiled(motion, model, q, v, jnp.asarray(1e-3))
    return (lambda q, v, dt: compiled(model, q, v, jnp.asarray(dt))), seconds


def follow(run, q, v, dt, duration, steps=STEPS):
    """All saved states of whole calls that fill the duration."""
    pieces = [(q[None], v[None])]
    for _ in range(-(-round(duration / dt) // steps)):
        pieces.append(run(pieces[-1][0][-1], pieces[-1][1][-1], dt))
    return tuple(jnp.concatenate(parts) for parts in zip(*pieces, strict=True))


def in_turns(functions, repeats):
    """Median CPU seconds of a call, in turns; other processes on the core do not count."""
    return harness.interleave(functions, repeats, least=5e-3, clock=time.process_time)


def timed(function, *args):
    """(result, CPU seconds without other processes on the core)."""
    start = time.process_time()
    found = jax.block_until_ready(function(*args))
    return found, time.process_time() - start
