"""The machines of tests/data/loops.json, and small ones with loops of every kind."""

import json
from functools import cache
from pathlib import Path

import numpy as np

from lgsim.multibody import Model, ModelBuilder, joints

DATA = json.loads((Path(__file__).parents[1] / "data" / "loops.json").read_text())
CLOSING = {"hinge": joints.Revolute(), "ball": joints.Spherical(), "weld": joints.Fixed()}
RINGS = ("four_bar", "delta", "ring_weld", "ring_hinge")


@cache
def machine(name: str) -> Model:
    """A machine of the file; its loops are ``loop0, loop1, ...`` between the frames ``loop0.a`` and ``loop0.b``."""
    builder = ModelBuilder()
    for body in DATA[name]["bodies"]:
        free = body["joint"] == "free"
        builder.add_body(
            body["name"], body["parent"], joints.Free() if free else joints.Revolute(), placement=body["placement"],
            axis=None if free else body["axis"], mass=body["mass"], center=body["center"], inertia=body["inertia"],
        )  # fmt: skip
    for i, loop in enumerate(DATA[name]["loops"]):
        builder.add_frame(f"loop{i}.a", loop["a"], loop["A"]).add_frame(f"loop{i}.b", loop["b"], loop["B"])
        builder.add_loop(f"loop{i}", f"loop{i}.a", f"loop{i}.b", CLOSING[loop["kind"]])
    return builder.build()


def states(name: str) -> tuple[np.ndarray, ...]:
    """(q, v, tau, a) of all states of a machine of the file, each (s, n), in lgsim's order of quaternions."""
    q, v, tau, a = (np.array([state[key] for state in DATA[name]["states"]]) for key in ("q", "v", "tau", "a"))
    return ordered(name, q), v, tau, a


def ordered(name: str, q: np.ndarray) -> np.ndarray:
    """Configurations (..., nq) with the quaternion of a free base as (w, x, y, z)."""
    if DATA[name]["bodies"][0]["joint"] != "free":
        return q
    return np.concatenate([q[..., :3], q[..., 6:7], q[..., 3:6], q[..., 7:]], axis=-1)


def link(mass: float = 1.0, length: float = 0.5) -> dict:
    """Mass, center and inertia of a rod along x."""
    return {"mass": mass, "center": (length / 2, 0, 0), "inertia": np.diag([0.02, 0.03, 0.04]) * mass}


def shifted(*p) -> np.ndarray:
    """The pose of a frame that is not turned."""
    T = np.eye(4)
    T[: len(p), 3] = p
    return T


def every_kind() -> Model:
    """A chain of three hinges, a slide and a payload, with a hinge, a rod and a coupling."""
    builder = ModelBuilder()
    for i, parent in enumerate(("world", "body0", "body1")):
        builder.add_body(
            f"body{i}", parent, joints.Revolute(), joint_name=f"joint{i}", axis=(0, 1, 0), placement=shifted(0.5 * i),
            **link(),
        )  # fmt: skip
    builder.add_body("slide", "world", joints.Prismatic(), joint_name="guide", axis=(1, 0, 0), **link())
    builder.add_body("wheel", "slide", joints.Revolute(), joint_name="hub", **link())
    builder.add_frame("tip", "body2", shifted(0.5)).add_frame("post", "world", shifted(1.2, 0, 0.1))
    builder.add_loop("hinge", "post", "tip", joints.Revolute())
    builder.add_rod("rod", "slide", "body1", 0.7)
    builder.add_coupling("gear", "joint0", "guide", [0.1, 0.2, 0.3])
    return builder.build()
