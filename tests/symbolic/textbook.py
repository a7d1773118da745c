"""The machines of a textbook, with symbols, and their equations by Lagrange, which know nothing of lgsim."""

import json
from pathlib import Path

import numpy as np
import sympy

import lgsim
from lgsim.multibody import joints

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "symbolic.json").read_text())
DOWN = (0, 0, -9.81)


def up(z):
    T = np.eye(4)
    T[2, 3] = z
    return T


def link(mass=1.2, height=0.4):
    return {"mass": mass, "center": [0, 0, height], "inertia": np.diag([0.125, 0.25, 0.3125])}


def arm(count, joint=joints.Revolute, axes=None, gravity=DOWN):
    """Links along z, one above the other."""
    builder = lgsim.ModelBuilder(gravity=gravity)
    for i in range(count):
        builder.add_body(
            f"b{i + 1}", f"b{i}" if i else "world", joint(), placement=up(1.0 if i else 0.0),
            axis=[0, 1, 0] if axes is None else axes[i], **link(),
        )  # fmt: skip
    return builder.build()


def double_pendulum():
    return lgsim.symbolic.model(arm(2), {
        "mass.b1": "m1", "mass.b2": "m2", "center.b1.z": "c1", "center.b2.z": "c2", "inertia.b1.yy": "I1",
        "inertia.b2.yy": "I2", "placement.b2.z": "l", "gravity": "g",
    })  # fmt: skip


def numeric_cart_pole():
    builder = lgsim.ModelBuilder(gravity=DOWN)
    builder.add_body("cart", "world", joints.Prismatic(), axis=[1, 0, 0], mass=1.5)
    return builder.add_body("pole", "cart", joints.Revolute(), axis=[0, 1, 0], **link()).build()


def cart_pole():
    return lgsim.symbolic.model(numeric_cart_pole(), {
        "mass.cart": "mc", "mass.pole": "mp", "center.pole.z": "r", "inertia.pole.yy": "J", "gravity": "g",
    })  # fmt: skip


def reference(machine, name):
    """A matrix of the reference, in real symbols."""

    class Words(dict):  # I and S are no constants here
        def __missing__(self, word):
            return sympy.Symbol(word, real=True)

    text = REFERENCE[machine][name]
    found = eval(text, {"__builtins__": {}}, Words(sin=sympy.sin, cos=sympy.cos))
    return sympy.Matrix(found) if isinstance(found, list) else found


def same(a, b):
    gap = sympy.Matrix(a) - sympy.Matrix(b)
    assert gap.applyfunc(sympy.simplify).is_zero_matrix, gap


def at_numbers(matrix, values):
    """A matrix of formulas at numbers."""
    at = {s: values[s.name] for s in matrix.free_symbols}
    return np.array(matrix.xreplace({s: sympy.Float(x, 25) for s, x in at.items()}).evalf(20).tolist(), float)
