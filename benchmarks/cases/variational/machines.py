"""Systems in free motion, without actuation, friction, damping and joint limits, at typical rates of robots."""

import re
from importlib.metadata import distribution
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import robots
from scipy.optimize import minimize

import lgsim
from lgsim import joints
from lgsim.dynamics import spring_energy
from lgsim.formats import read_urdf

FILES = {
    "UR10": ("ur_description/urdf/ur10_robot.urdf", False),
    "Kinova": ("kinova_description/robots/kinova.urdf", False),
    "Allegro hand": ("allegro_hand_description/urdf/allegro_right_hand.urdf", False),
}
TEN = (
    "arm of 7", "Panda", "UR10", "Kinova", "ANYmal", "Talos", "Allegro hand", "20 spherical rods", "satellite",
    "double pendulum",
)  # fmt: skip
FLIGHT_RATE, SATELLITE_RATE = 0.5, 0.1
"""The largest rates at the start of what floats, rad/s and m/s."""
SPRING = 200.0
"""Of the satellite's boom, N m/rad."""
SWING = 0.2
"""Initial distance of the joints from the hanging configuration, rad or m."""


def machine(name):
    """(model, q0, v0) of a free motion.

    Fixed systems start at rest, each joint 0.2 rad to either side of the hanging configuration. Floating ones start in
    the zero configuration, without gravity, at rates of up to 0.5 rad/s, the satellite of up to 0.1 rad/s.
    """
    model = free(_model(name))
    rng = np.random.default_rng(0)
    if model.topology.floats:
        rate = SATELLITE_RATE if name == "satellite" else FLIGHT_RATE
        return model, model.neutral(), jnp.asarray(rate * rng.uniform(-1, 1, model.nv))
    side = SWING * rng.choice([-1.0, 1.0], model.nv)
    return model, model.retract(hanging(model), jnp.asarray(side)), jnp.zeros(model.nv)


def _model(name):
    if name in robots.FILES:
        return robots.robot(name, "float64")
    if name in FILES:
        folder = distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")
        path, floats = FILES[name]
        text = re.sub(r"<mimic[^>]*/>", "", (Path(str(folder)) / path).read_text(encoding="utf-8"))
        return read_urdf(text=text, floating_base=floats, dtype="float64")[0]
    makers = {
        "arm of 7": lambda: lgsim.load_urdf(lgsim.data.arm7()),
        "20 spherical rods": lambda: rods(20, joints.Spherical),
        "satellite": satellite,
        "double pendulum": lambda: rods(2),
    }
    return makers[name]()


def free(model):
    """The model without actuation, friction, damping and joint limits; without gravity if it floats."""
    none = jnp.zeros(model.nv)
    model = model.replace(
        damping=none, friction=none, stribeck=none, limit_stiffness=none, limit_damping=none,
        lower=none - jnp.inf, upper=none + jnp.inf,
    )  # fmt: skip
    return model.replace(gravity=jnp.zeros(3)) if model.topology.floats else model


def hanging(model):
    """The hanging configuration: a minimum of the potential energy near the zero configuration."""
    aside = model.retract(model.neutral(), jnp.full(model.nv, 0.1))
    slope = jax.jit(jax.value_and_grad(lambda d: lgsim.potential_energy(model, model.retract(aside, d))))
    found = minimize(lambda d: [np.asarray(x) for x in slope(jnp.asarray(d))], np.zeros(model.nv), jac=True)
    return model.retract(aside, jnp.asarray(found.x))


def rods(count, joint=joints.Revolute):
    """Rods of 1 kg and 1 m in a row, horizontal at zero."""
    builder = lgsim.ModelBuilder()
    axis = {"axis": [0, 1, 0]} if joint is joints.Revolute else {}
    for i in range(count):
        T = at(float(i > 0), 0.0, 0.0)
        builder.add_body(
            f"rod{i}", "world" if i == 0 else f"rod{i - 1}", joint(), placement=T, mass=1.0, center=[0.5, 0, 0],
            inertia=np.diag([1e-3, 1 / 12, 1 / 12]), **axis,
        )  # fmt: skip
    return builder.build()


def satellite(segments=6):
    """A bus of 120 kg with a boom of segments of 2 m and 3 kg, on free revolute joints with alternating axes."""
    builder = lgsim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.add_body("bus", "world", joints.Free(), mass=120.0, inertia=np.diag([30.0, 25.0, 20.0]))
    for i in range(segments):
        T = at(0.6 if i == 0 else 2.0, 0.0, 0.0)
        builder.add_body(
            f"segment{i}", "bus" if i == 0 else f"segment{i - 1}", joints.Revolute(), placement=T,
            axis=[0, 1, 0] if i % 2 == 0 else [0, 0, 1], mass=3.0, center=[1.0, 0.0, 0.0],
            inertia=np.diag([0.01, 1.0, 1.0]), stiffness=SPRING,
        )  # fmt: skip
    return builder.build()


def floating_tree():
    """A base with a ball joint, a revolute and a prismatic joint on a spring, without gravity: (model, q0, v0)."""
    builder = lgsim.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    limb = {"mass": 1.5, "center": [0.05, 0.02, -0.25], "inertia": np.diag([0.05, 0.06, 0.02])}
    builder.add_body("base", "world", joints.Free(), mass=4.0, inertia=np.diag([0.12, 0.2, 0.25]))
    builder.add_body("ball", "base", joints.Spherical(), placement=at(0.2, 0.1, 0.0), **limb)
    builder.add_body("hinge", "base", joints.Revolute(), placement=at(-0.2, 0.1, 0.1), axis=[1, 1, 0], **limb)
    builder.add_body(
        "slide", "ball", joints.Prismatic(), placement=at(0.0, 0.0, -0.5), axis=[0, 0, 1], stiffness=60.0,
        mass=0.5, inertia=np.diag([0.01, 0.01, 0.01]),
    )  # fmt: skip
    model = builder.build()
    rng = np.random.default_rng(2)
    q = model.retract(model.neutral(), jnp.asarray(0.3 * rng.uniform(-1, 1, model.nv)))
    return model, q, jnp.asarray(0.7 * rng.uniform(-1, 1, model.nv))


def every_joint():
    """A floating tree with every kind of joint, springs and dampers in gravity: (model, q0, v0)."""
    rng = np.random.default_rng(5)
    kinds = (
        joints.Free(), joints.Spherical(), joints.Revolute(), joints.Prismatic(), joints.Universal(),
        joints.Helical(), joints.Cylindrical(), joints.Planar(), joints.Translational(),
    )  # fmt: skip
    builder = lgsim.ModelBuilder()
    for i, joint in enumerate(kinds):
        builder.add_body(
            f"body{i}", "world" if i == 0 else f"body{(i - 1) // 2}", joint, placement=at(*rng.uniform(-0.3, 0.3, 3)),
            mass=rng.uniform(0.5, 2.0), center=rng.uniform(-0.1, 0.1, 3),
            inertia=0.02 * np.diag(rng.uniform(1, 1.5, 3)),
        )  # fmt: skip
    model = builder.build()
    held = jnp.where(jnp.arange(model.nv) < 6, 0.0, 1.0)
    model = model.replace(stiffness=2.0 * held, damping=0.05 * held)
    q = model.retract(model.neutral(), jnp.asarray(0.3 * rng.uniform(-1, 1, model.nv)))
    return model, q, jnp.asarray(0.5 * rng.uniform(-1, 1, model.nv))


def at(*place):
    """A pose without rotation."""
    return np.block([[np.eye(3), np.array(place)[:, None]], [np.zeros(3), 1.0]])


@jax.jit
def energy_along(model, q, v):
    """(energy, kinetic energy) of states (k, nq), (k, nv)."""
    kinetic = lgsim.kinetic_energy(model, q, v)
    return kinetic + lgsim.potential_energy(model, q) + spring_energy(model, q), kinetic


def energy_errors(model, q, v):
    """(the largest change of the energy along states, its root mean square) over the largest kinetic energy."""
    energy, kinetic = (np.asarray(x) for x in energy_along(model, q, v))
    change = np.abs(energy - energy[0]) / kinetic.max()
    return float(change.max()), float(np.sqrt(np.mean(change**2)))


def energy_error(model, q, v):
    """The largest change of the energy along states over the largest kinetic energy."""
    return energy_errors(model, q, v)[0]
