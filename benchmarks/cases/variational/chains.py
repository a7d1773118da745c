"""Newton iterations of a step: long chains, and rotations of a radian per step."""

import jax.numpy as jnp
import numpy as np

import lgsim
from cases.variational.machines import rods
from cases.variational.maps import iterations
from lgsim import VariationalTree, joints


def chains(report):
    """Chains that fall from near horizontal: iterations to 1e-12, and steps that are solved."""
    rows, size = [], (20, 4) if report.quick else (100, 20)
    cases = [
        (f"{size[0]} rods on hinges", rods(size[0]), ((1e-3, 3), (5e-3, 5))),
        (f"{size[1]} rods on ball joints", rods(size[1], joints.Spherical), ((1e-3, 3), (5e-3, 5), (10e-3, 5))),
    ]
    for name, model, steps in cases[: 1 if report.quick else 2]:
        q = model.neutral()
        q = q.at[0].add(0.05) if model.nq == model.nv else q
        for dt, bound in steps:
            mean, most = iterations(model, "quaternion", q, jnp.zeros(model.nv), dt)
            rows.append([name, 1e3 * dt, mean, most])
            report.bound(f"{name}, {1e3 * dt:g} ms: most iterations of 200 steps", most, at_most=bound)
    report.table(
        "Chains from rest near horizontal, 200 steps: iterations that leave an error of 1e-12 of the step",
        ["chain", "step, ms", "mean", "most"],
        rows,
    )


def long_steps(report):
    """A hundred rods of 1 m at 10 ms, where plain Newton's method fails: all steps are solved."""
    model = rods(100)
    q = model.neutral().at[0].add(0.05)
    found = lgsim.rollout(model, q, jnp.zeros(100), dt=0.01, steps=200, method=VariationalTree())
    solved = int(np.sum(np.isfinite(np.asarray(found.q)).all(axis=1))) - 1
    rate = float(jnp.abs(found.v).max())
    report.table(
        "100 rods on hinges at 10 ms from near horizontal",
        ["solved", "of", "largest rate, rad/s"],
        [[solved, 200, rate]],
    )
    report.bound("steps solved of 200, 100 rods at 10 ms", solved, at_least=200)


def turns(report):
    """A body with a link that rotates by up to a radian per step."""
    builder = lgsim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("body", "world", joints.Spherical(), mass=1.0, inertia=np.diag([0.1, 0.15, 0.2]))
    builder.add_body(
        "link", "body", joints.Revolute(), axis=[0, 1, 0], mass=0.2, center=[0, 0, 0.1], inertia=0.01 * np.eye(3)
    )
    model, rows = builder.build(), []
    for name in ("cayley",) if report.quick else ("quaternion", "cayley", "exp"):
        for turn in (0.5, 1.0):
            v = jnp.array([0.6, 0.7, 0.2, 0.05]) * turn / 0.943 / 0.01
            mean, most = iterations(model, name, model.neutral(), v, 0.01, steps=50)
            rows.append([name, turn, mean, most])
            if name != "quaternion":
                report.bound(f"{name}, {turn:g} rad a step: most iterations", most, at_most=8)
    report.table("A ball joint with a link, turning fast", ["map", "rad a step", "mean iterations", "most"], rows)
