"""Functions of every room of lgsim, as ``f(s, x)``: of a number that all entries of a batch share, and of a vector."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

import lgsim
from lgsim import dynamics, optimize
from lgsim._compile.linalg import cone_qp
from lgsim.multibody import geometry, joints
from tests.dynamics import closed_machines, contact_machines
from tests.multibody import trees


class Function(NamedTuple):
    """A function of a table.

    Attributes:
        f: ``f(s, x)``, differentiable by both.
        size: Of x, which is of the order of 1.
        orders: How often it can be differentiated in every mode.
        explicit: False if operations of JAX in it ask how they are divided where axes of a mesh are explicit.
    """

    f: Callable[[Any, Any], Any]
    size: int
    orders: int = 2
    explicit: bool = True


@cache
def tree():
    """A machine with joints of three kinds, one of them a group."""
    return trees.build(["revolute", "spherical", "prismatic"], [-1, 0, 1], seed=3)


@cache
def field():
    """One free body over uneven ground."""
    shape, surface = contact_machines.PAIRS["Sphere HeightField"]
    return contact_machines.pair(shape, surface, seed=3)


@cache
def ball():
    """A free ball over a plane."""
    return contact_machines.ball(**contact_machines.LAW)


def heavier(model, s):
    return model.replace(inertias=s * model.inertias)


def state(model, x):
    """Configuration and velocity of x (2 nv)."""
    return model.retract(model.neutral(), x[: model.nv]), x[model.nv :]


def of_state(f, model=tree, orders=2, explicit=True):
    """``f(model, q, v)`` of a machine with inertias times s."""
    machine = model()
    return Function(lambda s, x: f(heavier(machine, s), *state(machine, x)), 2 * machine.nv, orders, explicit)


def posed(f):
    """``f(model, q)``."""
    model = tree()
    return Function(lambda s, x: f(model, model.retract(model.neutral(), s * x)), model.nv)


def moving(method, steps=4, model=tree, dt=0.01, orders=2, explicit=True):
    def run(model, q, v):
        found = lgsim.rollout(model, q, v, dt=dt, steps=steps, method=method, torques=0.1 * v)
        return found.v[-1]

    return of_state(run, model, orders, explicit)


def on_sphere(s, x):
    """A rotation driven by a field of its own attitude."""
    R0 = lgsim.so3.exp(x[:3])
    action = lgsim.actions.RightTranslation(lgsim.SO3)
    return lgsim.integrate(lgsim.CF4, action, lambda t, R, args: s * (R @ x[3:]), R0, dt=0.05, steps=4).ys


def closed(name):
    model = closed_machines.machine(name)
    q, v, tau, _ = next(closed_machines.states(name))
    return Function(
        lambda s, x: lgsim.forward_dynamics(heavier(model, s), q, v * (1 + 0.1 * x[: model.nv]), tau), model.nv
    )


def cone(s, x):
    rng = np.random.default_rng(2)
    B, C = jnp.asarray(rng.normal(size=(3, 2, 2))), jnp.asarray(rng.normal(size=(4, 2, 2)))
    d, give, rounding = jnp.ones((4, 2)), jnp.asarray(0.1), jnp.asarray(1e-3)
    return cone_qp.cone_minimum(cone_qp.ConeQP(B, s * x, C, d, give, rounding)).x


def plan():
    """Controls after three iterations of iLQR from a start."""
    cart, push = lgsim.load_urdf(lgsim.data.cart_pole()), jnp.array([[1.0], [0.0]])

    def f(s, x):
        move = optimize.MultibodyDynamics(heavier(cart, s), 0.05, selection=push)
        goal = move.state(jnp.zeros(2))
        problem = optimize.Problem(
            move, move.state(0.1 * x), horizon=6,
            running=optimize.ControlEffort(0.1), terminal=optimize.StateDistance(move.action, goal, 10.0),
        )  # fmt: skip
        return optimize.ILQR(max_iterations=3).run(problem, jnp.zeros((6, 1)), None).us

    return Function(f, 2, 0, explicit=False)


def reach():
    """A configuration of an arm by inverse kinematics."""
    arm = lgsim.load_urdf(lgsim.data.arm7())

    def f(s, x):
        target = s * jnp.array([0.4, 0.1, 0.5]) + 0.02 * x
        return lgsim.optimize.inverse_kinematics(arm, "flange", target, posture_weight=1e-2, max_iterations=30).q

    return Function(f, 3, 1, explicit=False)


def apart():
    """The distance of a free box from a capsule."""
    builder = lgsim.ModelBuilder().add_body("a", "world", joints.Free(), mass=1.0, inertia=np.eye(3))
    builder.add_solid("A", "a", geometry.Box((0.4, 0.6, 0.9))).add_solid("B", "world", geometry.Capsule(0.2, 0.8))
    model = builder.build()

    def f(s, x):
        q = jnp.concatenate([s * (x[:3] + 2.0), lgsim.quaternion.exp(x[3:])])
        return lgsim.distance(model, q, "A", "B")

    return Function(f, 6, 1)


def pressed():
    """The forces of a ball that slips over a plane."""
    model = ball()
    q = jnp.array([0, 0, 0.04, 1.0, 0, 0, 0])
    return Function(lambda s, x: lgsim.contact_forces(heavier(model, s), q, s * x).wrenches, model.nv)


FUNCTIONS: dict[str, Callable[[], Function]] = {
    "pose_logarithm": lambda: Function(lambda s, x: lgsim.se3.log(lgsim.se3.exp(s * x[:6]) @ lgsim.se3.exp(x[6:])), 12),
    "forward_kinematics": lambda: posed(lambda m, q: lgsim.forward_kinematics(m, q)),
    "frame_jacobian": lambda: posed(lambda m, q: lgsim.frame_jacobian(m, q, 2)),
    "center_of_mass": lambda: posed(lambda m, q: lgsim.center_of_mass(m, q)),
    "mass_matrix": lambda: of_state(lambda m, q, v: lgsim.mass_matrix(m, q)),
    "potential_energy": lambda: of_state(lambda m, q, v: lgsim.potential_energy(m, q)),
    "kinetic_energy": lambda: of_state(lgsim.kinetic_energy),
    "bias_forces": lambda: of_state(lgsim.bias_forces),
    "inverse_dynamics": lambda: of_state(lambda m, q, v: lgsim.inverse_dynamics(m, q, v, v)),
    "forward_dynamics": lambda: of_state(lambda m, q, v: lgsim.forward_dynamics(m, q, v, v)),
    "solve_mass_matrix": lambda: of_state(lambda m, q, v: dynamics.solve_mass_matrix(m, q, v)),
    "generalized_momentum": lambda: of_state(lgsim.generalized_momentum),
    "centroidal_momentum_matrix": lambda: of_state(lambda m, q, v: lgsim.centroidal_momentum_matrix(m, q)),
    "torque_regressor": lambda: of_state(
        lambda m, q, v: lgsim.torque_regressor(m, q, v, v) @ m.inertias.reshape(-1), explicit=False
    ),
    "forward_dynamics_derivatives": lambda: of_state(
        lambda m, q, v: tuple(lgsim.forward_dynamics_derivatives(m, q, v, v)), orders=1
    ),
    "contact_forces": pressed,
    "height_field_mass_matrix": lambda: of_state(lambda m, q, v: lgsim.mass_matrix(m, q), field),
    "distance": apart,
    "four_bar": lambda: closed("four_bar"),
    "closed_ring": lambda: closed("ring_weld"),
    "integrate": lambda: Function(on_sphere, 6),
    "rollout": lambda: moving(lgsim.MK4),
    "rollout_crouch_grossman": lambda: moving(lgsim.CG3),
    "rollout_implicit": lambda: moving(lgsim.Rodas4, steps=2, orders=1),
    "rollout_symplectic": lambda: moving(lgsim.VariationalTree(), steps=3, orders=1, explicit=False),
    "rollout_contact": lambda: moving(lgsim.MK4, steps=3, model=ball, dt=1e-3),
    "cone_minimum": lambda: Function(cone, 3),
    "ilqr": plan,
    "inverse_kinematics": reach,
    "tangent_grad": lambda: posed(lambda m, q: lgsim.tangent_grad(lambda q: lgsim.center_of_mass(m, q)[0] ** 2, m, q)),
    "tangent_jacobian": lambda: posed(lambda m, q: lgsim.tangent_jacobian(lambda q: lgsim.center_of_mass(m, q), m, q)),
}
