"""Tasks of the GPU benchmark: robots, states, functions of a state, and the time of a call."""

import os
import statistics
import time
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import robots

import lgsim

jax.config.update("jax_enable_x64", True)

STEPS = 100
"""Of a rollout."""
NAMES = ("q", "v", "tau")


def machine(name, dtype):
    """A robot of the benchmarks, or "cart-pole", which comes with lgsim."""
    if name == "cart-pole":
        return lgsim.load_urdf(lgsim.data.cart_pole(), dtype=dtype)
    return robots.robot(name, np.dtype(dtype))


def states(model, batch):
    """q, v, tau, each (batch, ...)."""
    few = robots.state(model, min(batch, 4096))
    return tuple(jnp.asarray(np.resize(np.asarray(x), (batch, *x.shape[1:]))) for x in few)


def forward_dynamics(model, q, v, tau):
    return (lgsim.forward_dynamics(model, q, v, tau),)


def products(model, q, v, tau):
    """Cotangents of q, v and tau."""
    return jax.vjp(lambda *x: lgsim.forward_dynamics(model, *x), q, v, tau)[1](v)


def step(model, q, v, tau):
    """One step of MK4."""
    return motion(model, q, v, tau, 1)


def motion(model, q, v, tau, steps):
    """The last state of a rollout by MK4."""
    dt = jnp.asarray(1e-3, model.dtype)
    run = lgsim.rollout(model, q, v, dt=dt, steps=steps, torques=tau, save_every=steps)
    return run.q[-1], run.v[-1]


def gradient(model, q, v, tau, steps):
    """Gradient of the sum of squares of a rollout's last state."""
    return jax.grad(lambda *x: sum(jnp.sum(y * y) for y in motion(model, *x, steps)), (0, 1, 2))(q, v, tau)


FUNCTIONS = {"forward dynamics": forward_dynamics, "products": products, "MK4 step": step}


def on_cpu(f, model, given):
    """The same in float64 on the host, by XLA only."""
    host = jax.devices("cpu")[0]
    wide = jax.tree.map(lambda x: jax.device_put(np.asarray(x, np.float64), host), (model, *given))
    with jax.default_device(host), lgsim.compiling_for("cpu"), lgsim.llvm_lowering(False), lgsim.cuda_kernels(0):
        found = _mapped(f)(*wide)
    return [np.asarray(x) for x in found]


@cache
def _mapped(f):
    # few states: compilation dominates
    return jax.jit(jax.vmap(f, (None, 0, 0, 0)), compiler_options={"xla_backend_optimization_level": "0"})


def far(got, want):
    """The largest error of any result, relative to its largest value; NaN if a value is not finite."""
    errors = [np.max(np.abs(np.asarray(a, np.float64) - b)) / np.max(np.abs(b)) for a, b in zip(got, want, strict=True)]
    return float(np.max(errors))


def seconds(f, *args, turns=5, least=0.05):
    """Median seconds of a call; each turn waits for the results once."""
    jax.block_until_ready(f(*args))
    start = time.perf_counter()
    jax.block_until_ready(f(*args))
    calls = max(1, int(least / max(time.perf_counter() - start, 1e-6)))
    samples = []
    for _ in range(turns):
        start = time.perf_counter()
        found = [f(*args) for _ in range(calls)][-1]
        jax.block_until_ready(found)
        samples.append((time.perf_counter() - start) / calls)
    return statistics.median(samples)


def capability():
    """Ten times the compute capability of the GPU, 0 without one."""
    first = jax.devices()[0]
    return int(10 * float(first.compute_capability)) if first.platform in ("gpu", "cuda") else 0


def cores():
    """Devices of the host."""
    return os.cpu_count() or 1
