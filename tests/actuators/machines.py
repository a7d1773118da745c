"""Machines whose equations are short enough to write them anew."""

import numpy as np

import lgsim
from lgsim.multibody import joints

LIFT = np.eye(4)
LIFT[2, 3] = 0.4
LINK = {"axis": [0, 1, 0], "mass": 1.0, "center": [0, 0, 0.2], "inertia": 0.02 * np.eye(3)}


def cart(mass=2.0, **numbers):
    """A mass on a rail, without gravity: ``m x'' = force``."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 0))
    return builder.add_body("cart", "world", joints.Prismatic(), mass=mass, **numbers).build()


def pendulum(**numbers):
    """A link that hangs: ``0.06 q'' = tau - 0.2 g sin q`` with q = 0 below."""
    builder = lgsim.ModelBuilder(gravity=(0, 0, 9.81))
    return builder.add_body("link", "world", joints.Revolute(), **(LINK | numbers)).build()


def arm(**numbers):
    """Two links that swing in a plane."""
    builder = lgsim.ModelBuilder()
    builder.add_body("upper", "world", joints.Revolute(), **(LINK | numbers))
    return builder.add_body("fore", "upper", joints.Revolute(), placement=LIFT, **(LINK | numbers)).build()
