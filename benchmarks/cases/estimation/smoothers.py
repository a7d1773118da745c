"""Smoothers: their cost compared with that of the filter, and in parallel over time compared with in sequence."""

import harness

import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from cases.estimation.flights import POSE, PROCESS, START, flown
from lgsim import estimate
from lgsim.estimate.linear_smoother import LinearProblem, parallel, sequential


def smoothing(report):
    """Microseconds of a step of the filter, all results kept, and of the smoother after it, in a batch of flights."""
    flights = flown(100 if report.quick else 1000)
    given = jax.tree.map(lambda a: jnp.asarray(a[:64]), (flights.inputs, flights.poses))

    def filtered(inputs, poses):
        return flights.estimate(PROCESS, POSE, START, inputs, poses)

    run, smooth = jax.jit(jax.vmap(filtered)), jax.jit(jax.vmap(estimate.smooth))
    found = run(*given)
    calls = {"filter": lambda: run(*given), "smoother": lambda: smooth(found)}
    seconds = harness.interleave(calls, repeats=5 if report.quick else 20, clock=time.process_time)
    each = 64 * len(flights.ts)
    report.table(
        "Smoothing 64 flights: a step of a run", ["part", "µs"], [[name, 1e6 * s / each] for name, s in seconds.items()]
    )
    report.figure("smoother / filter", seconds["smoother"] / seconds["filter"])
    report.bound("smoother / filter", seconds["smoother"] / seconds["filter"], at_most=1.5)


def in_parallel(report):
    """Milliseconds of a linear problem of six components in sequence and in parallel, by its length."""
    rows, pays, forms = [], [], {"in sequence": sequential, "in parallel": lambda problem: parallel(problem)}
    for length in (64,) if report.quick else (16, 64, 256, 1024, 4096):
        problem = _problem(length, 6)
        calls = {name: partial(jax.jit(f), problem) for name, f in forms.items()}
        seconds = list(harness.interleave(calls, repeats=5 if report.quick else 20, clock=time.process_time).values())
        found, peer = (call() for call in calls.values())
        gap = max(float(jnp.abs(x - y).max()) for x, y in zip(found, peer, strict=True))
        report.bound(f"difference of the two at {length} times", gap, at_most=1e-8)
        rows.append([length, *(1e3 * each for each in seconds), seconds[0] / seconds[1]])
        pays += [length] if seconds[1] < seconds[0] else []
    device = jax.devices()[0].device_kind
    report.table(
        f"The most probable motion, one iteration, on {device}",
        ["times", "in sequence, ms", "in parallel, ms", "gain"], rows,
    )  # fmt: skip
    report.figure("length from which parallel pays", pays[0] if pays else float("inf"))


def _problem(k, n):
    rng = np.random.default_rng(0)
    F = np.eye(n) + np.diag([0.01] * (n - 3), 3)
    read = (np.arange(k) % 10 == 0)[:, None, None]
    return LinearProblem(*map(jnp.asarray, (
        np.zeros(n), 0.1 * np.eye(n), np.tile(F, (k, 1, 1)), np.zeros((k, n)), np.tile(0.01 * np.eye(n), (k, 1, 1)),
        rng.normal(size=(k, 3)), np.eye(3, n) * read, np.tile(0.1 * np.eye(3), (k, 1, 1)),
    )))  # fmt: skip
