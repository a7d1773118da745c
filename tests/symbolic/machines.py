"""Machines with symbols for the tests of formulas."""

import numpy as np

from lgsim import ModelBuilder, joints, symbolic
from tests.multibody import trees

Y = (0, 1, 0)
BAR = {"mass": 1.0, "center": (0, 0, 0.5), "inertia": np.diag([0.1, 0.2, 0.3])}


def above(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def double_pendulum():
    """Two hinges about y, links along z; the symbols are those of tests/data/symbolic.json."""
    made = (
        ModelBuilder()
        .add_body("b1", "world", joints.Revolute(), axis=Y, **BAR)
        .add_body("b2", "b1", joints.Revolute(), axis=Y, placement=above(1.0), **BAR)
        .build()
    )
    names = {f"{kind}.b{i}{end}": f"{letter}{i}" for i in (1, 2) for kind, end, letter in (
        ("mass", "", "m"), ("center", ".z", "c"), ("inertia", ".yy", "I"))}  # fmt: skip
    return symbolic.model(made, {**names, "placement.b2.z": "l", "gravity": "g"})


def cart_pole():
    """A cart on x with a pole about y; the symbols are those of tests/data/symbolic.json."""
    made = (
        ModelBuilder()
        .add_body("cart", "world", joints.Prismatic(), axis=(1, 0, 0), **BAR)
        .add_body("pole", "cart", joints.Revolute(), axis=Y, **BAR)
        .build()
    )
    names = {"mass.cart": "mc", "mass.pole": "mp", "center.pole.z": "r", "inertia.pole.yy": "J", "gravity": "g"}
    return symbolic.model(made, names)


def _three_hinges(axes, placement, values):
    made = ModelBuilder()
    for name, parent, axis in zip("abc", ("world", "a", "b"), axes, strict=True):
        at = np.eye(4) if parent == "world" else placement
        made = made.add_body(name, parent, joints.Revolute(), axis=axis, placement=at, **BAR)
    return symbolic.model(made.build(), values)


def planar_arm():
    """Three hinges about y, links along z; a mass and a length are symbols."""
    return _three_hinges([Y, Y, Y], above(1.0), {"mass.b": "m", "placement.c.z": "l"})


def spatial_arm(values=None):
    """Three hinges about z, y, x with offsets between them, in space."""
    T = above(0.5)
    T[0, 3] = 0.25
    return _three_hinges([(0, 0, 1), Y, (1, 0, 0)], T, values or {})


def three_joints():
    """The spatial arm, a mass and a length of which are symbols."""
    return spatial_arm({"mass.b": "m", "placement.c.x": "l"})


def with_mimic():
    """A hinge, a slide, and a hinge that turns twice as far as the first and the other way round."""
    return symbolic.model(
        ModelBuilder()
        .add_body("a", "world", joints.Revolute(), axis=Y, **BAR)
        .add_body("b", "a", joints.Prismatic(), axis=(0, 0, 1), placement=above(0.5), **BAR)
        .add_body("c", "b", joints.Revolute(), axis=Y, placement=above(0.5), mimic=("a", -2.0, 0.0), **BAR)
        .build()
    )


def helical():
    """A screw that carries a hinge."""
    return symbolic.model(
        ModelBuilder()
        .add_body("a", "world", joints.Helical(), axis=(0, 0, 1), pitch=0.25, **BAR)
        .add_body("b", "a", joints.Revolute(), axis=Y, placement=above(0.5), **BAR)
        .build()
    )


def floating():
    """A free body that carries a hinge."""
    return symbolic.model(
        ModelBuilder()
        .add_body("base", "world", joints.Free(), **BAR)
        .add_body("b", "base", joints.Revolute(), axis=Y, placement=above(0.5), **BAR)
        .build()
    )


def free_body():
    """A free body."""
    return symbolic.model(ModelBuilder().add_body("base", "world", joints.Free(), **BAR).build())


def of_kind(kind):
    """Two joints of a kind with a hinge between them, all numbers at random; and a state of it."""
    model = trees.build([kind, "revolute", kind], [-1, 0, 1], seed=3, armature=True)
    return model, trees.state(model)
