"""Machines with loops for tests: those of the reference, and small ones with every kind of loop."""

import json
from functools import cache
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import lgsim

REFERENCE = json.loads((Path(__file__).parent.parent / "data" / "loops.json").read_text())
MACHINES = ("four_bar", "delta", "ring_weld", "ring_hinge")
JOINTS = {"revolute": lgsim.joints.Revolute, "free": lgsim.joints.Free}
CLOSING = {"hinge": lgsim.joints.Revolute, "ball": lgsim.joints.Spherical, "weld": lgsim.joints.Fixed}


@cache
def machine(name, dtype=None):
    """A machine of the reference."""
    record, builder = REFERENCE[name], lgsim.ModelBuilder(dtype=dtype)
    for body in record["bodies"]:
        axis = {} if body["axis"] is None else {"axis": body["axis"]}
        builder.add_body(
            body["name"],
            body["parent"],
            JOINTS[body["joint"]](),
            placement=np.array(body["placement"]),
            mass=body["mass"],
            center=body["center"],
            inertia=np.array(body["inertia"]),
            **axis,
        )
    for i, loop in enumerate(record["loops"]):
        builder.add_frame(f"end_a{i}", loop["a"], np.array(loop["A"]))
        builder.add_frame(f"end_b{i}", loop["b"], np.array(loop["B"]))
        builder.add_loop(f"loop{i}", f"end_a{i}", f"end_b{i}", CLOSING[loop["kind"]]())
    return builder.build()


def configuration(name, q):
    """A configuration of the reference, whose quaternions have the scalar last."""
    q = np.array(q, float)
    if name == "delta":
        q[3:7] = q[[6, 3, 4, 5]]
    return jnp.asarray(q)


def states(name):
    """(q, v, tau, record) of each state of a machine."""
    for record in REFERENCE[name]["states"]:
        yield configuration(name, record["q"]), jnp.asarray(record["v"]), jnp.asarray(record["tau"]), record


def pose(p=(0, 0, 0), about=2, angle=0.0):
    T = np.eye(4)
    i, j = (about + 1) % 3, (about + 2) % 3
    T[[i, j], [i, j]], T[i, j], T[j, i] = np.cos(angle), -np.sin(angle), np.sin(angle)
    T[:3, 3] = p
    return T


def chain(builder, count=5, seed=0, joint=lgsim.joints.Revolute):
    """Bodies one after another, about crossed axes."""
    rng = np.random.default_rng(seed)
    up = "world"
    for i in range(count):
        builder.add_body(
            f"link{i}",
            up,
            joint(),
            placement=pose((0.3, 0.05, 0.02), i % 3, 0.4),
            axis=np.eye(3)[i % 3],
            mass=1 + rng.uniform(),
            center=rng.uniform(-0.1, 0.1, 3),
            inertia=np.diag(rng.uniform(0.02, 0.03, 3)),
        )
        up = f"link{i}"
    return up


def tree():
    """A chain of five links without loops."""
    builder = lgsim.ModelBuilder()
    chain(builder)
    return builder.build()


def rod_machine():
    """A chain of five links, its tip at a distance from a frame of the world and from the first link."""
    builder = lgsim.ModelBuilder()
    tip = chain(builder)
    builder.add_frame("tip", tip, pose((0.2, 0.1, 0.0), 1, 0.3)).add_frame("post", "world", pose((0.5, -0.6, 0.7)))
    builder.add_frame("knee", "link0", pose((0.1, 0.2, -0.1), 0, 0.5))
    return builder.add_rod("stay", "post", "tip", 0.9).add_rod("brace", "knee", "tip", 0.8).build()


def coupled_machine():
    """A chain whose joints follow others by polynomials, and one by a mimic joint's line."""
    builder = lgsim.ModelBuilder()
    chain(builder)
    builder.add_coupling("line", "link0", "link3", (0.2, -1.5))
    return builder.add_coupling("curve", "link1", "link4", (0.1, 0.5, -0.7, 0.3, 0.2)).build()


def closed_state(model, seed=0, speed=1.0):
    """(q, v) near a random configuration, by Newton steps and a projection in plain linear algebra."""
    rng = np.random.default_rng(seed)
    q = model.retract(model.neutral(), jnp.asarray(0.4 * rng.normal(size=model.nv)))
    for _ in range(30):
        J, r = np.asarray(lgsim.loop_jacobian(model, q)), np.asarray(lgsim.loop_residual(model, q))
        q = model.retract(q, jnp.asarray(-np.linalg.pinv(J, rcond=1e-9) @ r))
    J = np.asarray(lgsim.loop_jacobian(model, q))
    v = speed * rng.normal(size=model.nv)
    return q, jnp.asarray(v - np.linalg.pinv(J, rcond=1e-9) @ (J @ v))


def closed_states(model, count, seed=0, speed=1.0):
    """``closed_state`` of several seeds, one after another (count, ...)."""
    found = [closed_state(model, seed + i, speed) for i in range(count)]
    return tuple(jnp.stack(x) for x in zip(*found, strict=True))
