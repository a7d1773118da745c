"""Memory of reverse mode through 10,000 steps of a 7-dof arm, for each checkpointing policy.

    python benchmarks/memory.py --quick     1,000 and 10,000 steps, only from the compiled programs
    python benchmarks/memory.py             the gradients too, with their times, and a record in benchmarks/results

Each row is the gradient of a loss of the last state with respect to the first one, by MK4 at 1 ms in float64. The bytes
are those that XLA allocates for the values between operations, without arguments and results.
"""

import harness  # first: it pins the core before JAX starts its threads

# isort: split
import time

import jax
import jax.numpy as jnp
import numpy as np

import lgsim

jax.config.update("jax_enable_x64", True)

DT, STEPS = 1e-3, 10_000
POLICIES = (None, "step", 100, "recursive")
# Upper bounds: bytes per step, and MiB of all steps.
EACH = {None: 4096, "step": 512}
WHOLE = {100: 0.2, "recursive": 0.1}
# Upper bound of the growth of "recursive" from a tenth of the steps to all.
GROWTH = 2


def loss(model, q, v, steps, checkpoint):
    """A scalar function of the last state."""
    out = lgsim.rollout(model, q, v, dt=DT, steps=steps, save_every=steps, checkpoint=checkpoint)
    return jnp.sum(out.q[-1] ** 2) + jnp.sum(out.v[-1] ** 2)


def program(model, q, v, steps, checkpoint):
    """(compiled gradient, MiB of its intermediate values, seconds of compiling)."""
    found, compiling = harness.compiled(
        jax.grad(lambda model, q, v: loss(model, q, v, steps, checkpoint), argnums=(1, 2)), model, q, v
    )
    return found, found.memory_analysis().temp_size_in_bytes / 2**20, compiling


def run(report):
    """The table."""
    model = lgsim.load_urdf(lgsim.data.arm7())
    # damped, so that the gradient does not grow without bound
    model = model.replace(damping=jnp.full(model.nv, 0.5))
    q, v = jnp.linspace(0.3, -0.4, model.nv), jnp.zeros(model.nv)
    rows, gradients = [], {}
    for policy in POLICIES:
        _, short, _ = program(model, q, v, STEPS // 10, policy)
        gradient, whole, compiling = program(model, q, v, STEPS, policy)
        seconds = float("nan")
        if not report.quick:
            start = time.perf_counter()
            gradients[policy] = jax.block_until_ready(gradient(model, q, v))
            seconds = time.perf_counter() - start
        each = 2**20 * (whole - short) / (STEPS - STEPS // 10)
        rows.append([str(policy), short, whole, each, compiling, seconds])
        report.figure(f"{policy}", whole, "MiB")
        if policy in EACH:
            report.bound(f"{policy}: bytes for each step", each, at_most=EACH[policy])
        if policy in WHOLE:
            report.bound(f"{policy}: MiB for {STEPS} steps", whole, at_most=WHOLE[policy])
        if policy == "recursive":
            report.bound(f"recursive: growth from {STEPS // 10} to {STEPS} steps", whole / short, at_most=GROWTH)
    for policy, found in gradients.items():
        gap = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, gradients["step"], strict=True))
        report.bound(f"{policy}: relative difference of the gradient", gap, at_most=1e-9)
    report.table(
        f"Reverse mode through {STEPS} steps of a 7-dof arm: MiB between operations",
        ["kept", f"{STEPS // 10} steps", f"{STEPS} steps", "bytes for each step", "compile, s", "gradient, s"],
        rows,
    )


if __name__ == "__main__":
    harness.main(run, "memory")
