"""Random robots with all joint features, and their initial states, durations and step sizes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim.actuators import Actuators, Lag, Transmission
from lgsim.lie import so3
from lgsim.multibody.joint import Row
from lgsim.simulation.actuated_control import ActuatedControl
from lgsim.simulation.equations_of_motion import Control, equations_of_motion, initial_state, state_space

KINDS = {
    "compound": lgsim.joints.Compound((Row(True, 2), Row(False, 0), Row(True, 1))),
    **{
        name.lower(): getattr(lgsim.joints, name)()
        for name in (
            "Revolute", "Prismatic", "Helical", "Cylindrical", "Universal", "Translational", "Planar", "Spherical",
            "Free",
        )
    },
}  # fmt: skip


class Topology(NamedTuple):
    """Joints of a robot with their features, and the method of integration.

    Attributes:
        joints: Type of each joint.
        parents: The body that carries each one, -1 for the world.
        method: Name of the method.
        drives: "none", "pd" for springs and dampers to a configuration, "lag" for the same with actuator lag.
        adaptive: True for step-size control by a tolerance.
        float32: True for single precision.
        steps: The number of steps; 0 for any.
    """

    joints: str
    parents: tuple[int, ...]
    method: str
    drives: str = "none"
    adaptive: bool = False
    float32: bool = False
    steps: int = 0


CHUNK = 8
"""Steps of a compiled program; answers have at least so many."""

CHAIN = (-1, 0, 1, 2, 3, 4, 5)
TOPOLOGIES = {
    "pendulum": Topology("revolute", CHAIN, "MK4"),
    "pendulum, Lie-Euler": Topology("revolute", CHAIN, "LieEuler"),
    "double pendulum": Topology("revolute revolute", CHAIN, "MK4"),
    "chain of four": Topology("revolute revolute revolute revolute", CHAIN, "CF4"),
    "driven arm": Topology("revolute revolute revolute", CHAIN, "MK4", "pd"),
    "driven arm, Gauss": Topology("revolute revolute", CHAIN, "MKGauss4", "pd"),
    "drives that lag": Topology("revolute prismatic revolute", CHAIN, "MK4", "lag"),
    "cart and pole": Topology("prismatic revolute", CHAIN, "MK3"),
    "free body": Topology("free", CHAIN, "MK4"),
    "free body with arms": Topology("free revolute revolute", (-1, 0, 0), "MK5"),
    "free body and ball": Topology("free spherical", CHAIN, "MKGauss2"),
    "ball": Topology("spherical", CHAIN, "CG4"),
    "two balls": Topology("spherical spherical", CHAIN, "CF4", "pd"),
    "screws": Topology("helical cylindrical", CHAIN, "MK4"),
    "universal": Topology("universal revolute", CHAIN, "MK2"),
    "planar": Topology("planar revolute", CHAIN, "MK4", steps=24),
    "slides and ball": Topology("translational spherical", CHAIN, "MK6"),
    "compound": Topology("compound prismatic", CHAIN, "MK8", "pd"),
    "tree": Topology("revolute revolute prismatic revolute helical", (-1, 0, 0, 1, 1), "MK4"),
    "tree, few steps": Topology("revolute spherical revolute", (-1, 0, 0), "CG3", steps=9),
    "arm, single": Topology("revolute revolute", CHAIN, "MK4", "pd", float32=True),
    "ball, single": Topology("spherical revolute", CHAIN, "CF4", float32=True),
    "free body, single": Topology("free revolute", CHAIN, "MK4", float32=True),
    "arm, adaptive": Topology("revolute revolute", CHAIN, "MK54", "pd", adaptive=True),
    "ball, adaptive": Topology("spherical revolute", CHAIN, "CF43", adaptive=True),
    "driven arm, Rodas": Topology("revolute revolute revolute", CHAIN, "Rodas4", "pd"),
    "two balls, ROS3P": Topology("spherical spherical", CHAIN, "ROS3P", "pd"),
    "free body with arms, ROS2": Topology("free revolute revolute", (-1, 0, 0), "ROS2"),
}
"""Those whose method lgsim has are run; each is one program."""


class Answer(NamedTuple):
    """A robot, an initial state, and the settings of its simulation.

    Attributes:
        duration: s.
        dt: s.
        tolerance: Tolerance of adaptive steps.
        rate: The fastest initial rate times dt.
    """

    model: lgsim.Model
    q: np.ndarray
    v: np.ndarray
    control: Control | None
    duration: float
    dt: float
    tolerance: float
    rate: float


def draw(topology, rng, rates):
    """A random robot of a topology, an initial state, a duration of 0.1 to 20 characteristic times, and a step size."""
    model = _machine(topology, rng)
    q, v = _configuration(model, rng), rng.normal(size=model.nv) * rng.choice([0.0, 1.0, 3.0])
    control = None
    if topology.drives != "none":
        stiffness = _wide(rng, 5, 300)
        control = lgsim.controls.PD(
            jnp.asarray(_configuration(model, rng, 0.5), model.dtype), jnp.asarray(stiffness, model.dtype),
            jnp.asarray(stiffness * _wide(rng, 0.03, 0.5), model.dtype),
        )  # fmt: skip
    if topology.drives == "lag":
        lag = Lag(jnp.asarray([_wide(rng, 0.005, 0.2) for _ in range(model.nv)], model.dtype))
        control = ActuatedControl(Actuators(Transmission.of_joints(model), lag), control)
    eigenvalues = np.abs(np.linalg.eigvals(np.asarray(rates(model, jnp.asarray(q, model.dtype),
                                                           jnp.asarray(v, model.dtype), control), float)))  # fmt: skip
    fastest = max(eigenvalues.max(), np.abs(v).max(), 0.5)
    slow = eigenvalues[eigenvalues > 1e-2 * fastest]
    time = 2 * np.pi / max(np.percentile(slow, 25) if len(slow) else fastest, 0.02 * fastest)
    duration = time * _wide(rng, 0.1, 20)
    wanted = _wide(rng, 0.02, 6) / fastest
    steps = topology.steps or int(np.clip(duration / wanted, CHUNK, 3000))
    if topology.steps:
        duration = steps * wanted
    return Answer(model, q, v, control, duration, duration / steps, _wide(rng, 1e-9, 1e-3), fastest * duration / steps)


def field_rates(topology):
    """The Jacobian of the vector field as a function of (model, q, v, control), compiled once."""
    del topology

    @jax.jit
    def jacobian(model, q, v, control):
        space, y = state_space(model, control), initial_state(model, q, v, control)

        def field(x):
            return equations_of_motion(jnp.zeros((), y.dtype), space.move(x, y), ((model, control, None), None))

        return jax.jacfwd(field)(jnp.zeros(space.dim, y.dtype))

    return jacobian


def _wide(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _rotation(rng):
    return np.asarray(so3.exp(jnp.asarray(rng.normal(size=3))))


def _machine(topology, rng):
    builder = lgsim.ModelBuilder(dtype=np.float32 if topology.float32 else np.float64)
    kinds = topology.joints.split()
    friction, damping, springs = rng.random(3) < (0.4, 0.6, 0.4)
    for i, (kind, parent) in enumerate(zip(kinds, topology.parents, strict=False)):
        joint = KINDS[kind]
        mass, spread, turn = _wide(rng, 0.2, 5), rng.uniform(0.003, 0.05, 3), _rotation(rng)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = _rotation(rng), rng.uniform(-0.4, 0.4, 3) * (parent >= 0)
        numbers = {}
        if friction and kind != "free":
            numbers |= {"friction": _wide(rng, 0.05, 3), "friction_speed": _wide(rng, 0.01, 0.5)}
        if damping:
            numbers["damping"] = _wide(rng, 0.01, 10)
        if springs and kind not in ("free", "spherical"):
            numbers |= {"stiffness": _wide(rng, 1, 300), "rest": rng.uniform(-0.5, 0.5)}
        axes = {1: _rotation(rng)[0], 2: _rotation(rng)[:2]}.get(len(joint.rows))
        builder.add_body(
            f"body{i}", "world" if parent < 0 else f"body{parent}", joint, placement=pose,
            axis=axes if kind in ("revolute", "prismatic", "helical", "universal") else None,
            pitch=rng.uniform(0.05, 0.3) if kind == "helical" else 0.0, mass=mass, center=rng.uniform(-0.4, 0.4, 3),
            inertia=mass * turn @ np.diag(spread.sum() - spread) @ turn.T, **numbers,
        )  # fmt: skip
    model = builder.build()
    return model.replace(gravity=jnp.zeros(3, model.dtype)) if rng.random() < 0.2 else model


def _configuration(model, rng, size=1.5):
    q = rng.uniform(-size, size, model.nq)
    for joint, start in zip(model.topology.joints, model.topology.q_starts, strict=False):
        if isinstance(joint, lgsim.joints.Spherical | lgsim.joints.Free):
            at = start + joint.nq - 4
            u = size / 2 * rng.normal(size=3)
            q[at : at + 4] = np.asarray(lgsim.quaternion.exp(jnp.asarray(u)))
    return q
