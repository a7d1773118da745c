"""sympy.physics.mechanics: equations of a chain by Kane's method, simplified by ``cse``."""

import time

import numpy as np
import sympy
from sympy.physics.mechanics import KanesMethod, Point, ReferenceFrame, RigidBody, dynamicsymbols, inertia

import lgsim

AXES = ("z", "y", "x")
OFFSET = (sympy.Rational(1, 4), sympy.Rational(1, 10), sympy.Rational(1, 2))
CENTER = (sympy.Rational(1, 20), sympy.Rational(1, 30), sympy.Rational(1, 5))
MOMENTS = (sympy.Rational(1, 10), sympy.Rational(1, 5), sympy.Rational(1, 4))
MASS, GRAVITY = sympy.Rational(3, 2), sympy.Rational(981, 100)


def chain(length):
    """Mass matrix and forcing of a chain of revolute joints about z, y, x, z, ... with offsets, by Kane's method.

    Returns:
        (q, u, M, h) with ``M a + h = tau``, and the seconds that it took.
    """
    start = time.perf_counter()
    q, u = dynamicsymbols(f"q1:{length + 1}"), dynamicsymbols(f"u1:{length + 1}")
    world, origin = ReferenceFrame("N"), Point("O")
    origin.set_vel(world, 0)
    frame, point, bodies, loads = world, origin, [], []
    for i in range(length):
        axis = getattr(frame, AXES[i % 3])
        turned = frame.orientnew(f"B{i}", "Axis", [q[i], axis])
        turned.set_ang_vel(frame, u[i] * axis)
        hinge = point if i == 0 else point.locatenew(f"P{i}", _along(frame, OFFSET))
        if i:
            hinge.v2pt_theory(point, world, frame)
        center = hinge.locatenew(f"C{i}", _along(turned, CENTER))
        center.v2pt_theory(hinge, world, turned)
        bodies.append(RigidBody(f"body{i}", center, turned, MASS, (inertia(turned, *MOMENTS), center)))
        loads.append((center, -MASS * GRAVITY * world.z))
        frame, point = turned, hinge
    kane = KanesMethod(world, q, u, [a - b.diff() for a, b in zip(u, q, strict=True)])
    kane.kanes_equations(bodies, loads)
    return (q, u, kane.mass_matrix, -kane.forcing), time.perf_counter() - start


def _along(frame, vector):
    return sum((a * b for a, b in zip(vector, (frame.x, frame.y, frame.z), strict=True)), 0 * frame.x)


def shared(q, u, M, h):
    """Operations after ``cse``, and a function of numbers (q, u) that returns (M, h)."""
    names, reduced = sympy.cse([M, h])
    count = sum(sympy.count_ops(x) for _, x in names) + sum(sympy.count_ops(x) for x in reduced)
    return count, sympy.lambdify([[*q], [*u]], [M, h], cse=True)


def twin(length):
    """The same chain as a model of lgsim."""
    made = lgsim.ModelBuilder()
    for i in range(length):
        T = np.eye(4)
        T[:3, 3] = [float(x) for x in OFFSET] if i else 0.0
        made = made.add_body(
            f"body{i}", f"body{i - 1}" if i else "world", lgsim.joints.Revolute(), placement=T,
            axis=np.eye(3)["xyz".index(AXES[i % 3])], mass=float(MASS), center=[float(x) for x in CENTER],
            inertia=np.diag([float(x) for x in MOMENTS]),
        )  # fmt: skip
    return made.build()
