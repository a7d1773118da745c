"""Five optimal control problems in lgsim and as data for other programs: the same bodies, costs, bounds, initial states
and guess.

Both take the step ``v+ = v + dt a(q, v, u), q+ = q (+) dt v+``, and running costs times dt.
"""

import json
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import robots
from jax import Array
from peers import export

import lgsim
from lgsim.optimize import ControlEffort, FramePose, MultibodyDynamics, Problem, StateDistance, SymplecticEulerDynamics

QUADROTOR = {"mass": 1.0, "inertia": np.diag([0.01, 0.01, 0.018])}
ARM, DRAG = 0.2, 0.02
PANDA_TORQUES = (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0)
SPREAD = 0.05


@dataclass
class Setup:
    """A problem with two discretizations of lgsim, and its data.

    Attributes:
        euler, fourth: The problem by the symplectic Euler step, and by MK4.
        us: The guess (H, controls).
        starts: States (batch, nq + nv), the first that of the problems.
        data: Data for other programs, without the initial states; see ``write``.
    """

    name: str
    euler: Problem
    fourth: Problem
    us: Array
    starts: Array
    data: dict

    def write(self, folder):
        """A JSON file of the problem, with exact decimal numbers."""
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps({**self.data, "starts": np.asarray(self.starts).tolist()}), encoding="utf-8")
        return path


def pendulum():
    """Swing-up of a rod with a motor."""
    model = lgsim.ModelBuilder().add_body(
        "rod", "world", lgsim.joints.Revolute(), axis=[0, 1, 0], mass=1.0, center=[0, 0, -0.5], inertia=np.eye(3) / 12
    ).build()  # fmt: skip
    goal = np.array([np.pi, 0.0])
    running = [("control", [0.0], [0.1])]
    return assemble("pendulum", model, 0.02, 100, {"kind": "all"}, np.zeros(2), running, [("state", goal, [1e3, 1e2])])


def cart_pole():
    """Swing-up of a cart-pole; the control bounds of the pole are zero."""
    builder = lgsim.ModelBuilder()
    builder.add_body("cart", "world", lgsim.joints.Prismatic(), axis=[1, 0, 0], mass=1.0, inertia=0.1 * np.eye(3))
    builder.add_body(
        "pole", "cart", lgsim.joints.Revolute(), axis=[0, 1, 0],
        mass=0.3, center=[0, 0, -0.5], inertia=0.3 * 0.25 / 3 * np.diag([1, 1, 1e-2]) + 1e-6 * np.eye(3),
    )  # fmt: skip
    goal = np.array([0.0, np.pi, 0.0, 0.0])
    running = [("control", [0.0, 0.0], [0.01, 0.01]), ("state", goal, [0.1, 0.1, 0.01, 0.01])]
    end = [("state", goal, [1e3, 1e3, 1e2, 1e2])]
    bounds = ([-30.0, 0.0], [30.0, 0.0])
    return assemble("cart-pole", builder.build(), 0.02, 100, {"kind": "all"}, np.zeros(4), running, end, bounds)


def panda():
    """Reach a pose with the hand, within torque limits."""
    model = bare(robots.robot("Panda", "float64"))
    q0 = np.array([0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8])
    hand = jnp.asarray([0.9, 0.3, -0.5, -1.4, 0.4, 1.9, 0.2])
    target = np.asarray(lgsim.forward_kinematics(model, hand)[model.frame_names.index(model.body_names[-1])])
    x0 = np.concatenate([q0, np.zeros(7)])
    running = [
        ("control", np.zeros(7), np.full(7, 1e-4)),
        ("state", x0, [*np.full(7, 1e-2), *np.full(7, 1e-2)]),
        ("pose", target, np.ones(6)),
    ]
    end = [("pose", target, np.full(6, 1e3)), ("state", x0, [*np.zeros(7), *np.full(7, 10.0)])]
    held = np.asarray(lgsim.gravity_forces(model, jnp.asarray(q0)))
    bounds = (-np.array(PANDA_TORQUES), np.array(PANDA_TORQUES))
    return assemble("Panda", model, 0.01, 100, {"kind": "all"}, x0, running, end, bounds, held)


def quadrotor():
    """From a rotation of 120 degrees about x to hover, one meter away along each axis; four nonnegative thrusts."""
    model = lgsim.ModelBuilder().add_body("body", "world", lgsim.joints.Free(), **QUADROTOR).build()
    turned = np.array([np.cos(1.0), np.sin(1.0), 0.0, 0.0])
    x0 = np.concatenate([np.zeros(3), turned, np.zeros(6)])
    goal = np.concatenate([np.ones(3), [1.0, 0.0, 0.0, 0.0], np.zeros(6)])
    drives = {
        "kind": "thrusters",
        "places": [[ARM, 0, 0], [0, ARM, 0], [-ARM, 0, 0], [0, -ARM, 0]],
        "turns": [1, -1, 1, -1],
        "drag": DRAG,
    }
    hover = np.full(4, 9.81 / 4)
    running = [("control", hover, np.full(4, 0.1)), ("state", goal, [*np.full(6, 1.0), *np.full(6, 0.1)])]
    end = [("state", goal, np.full(12, 1e3))]
    return assemble("quadrotor", model, 0.02, 100, drives, x0, running, end, (np.zeros(4), np.full(4, 10.0)), hover)


def quadruped():
    """ANYmal in flight: its joints bring the legs to a posture and the trunk to an attitude."""
    model = bare(robots.robot("ANYmal", "float64"))
    legs = np.tile([0.1, 0.7, -1.4], 4)
    x0 = np.concatenate([[0, 0, 1.0, 1, 0, 0, 0], np.zeros(12), [0.5, 0, 2.0, 0.3, 1.0, -0.2], np.zeros(12)])
    goal = np.concatenate([[0, 0, 1.0, 1, 0, 0, 0], legs, np.zeros(18)])
    running = [("control", np.zeros(12), np.full(12, 1e-3)), ("state", goal, [*np.zeros(6), *np.full(12, 0.1),
               *np.zeros(6), *np.full(12, 1e-2)])]  # fmt: skip
    end = [("state", goal, [0, 0, 0, *np.full(3, 1e3), *np.full(12, 1e2), *np.zeros(6), *np.full(12, 1.0)])]
    return assemble("quadruped", model, 0.01, 50, {"kind": "joints"}, x0, running, end)


PROBLEMS = {"pendulum": pendulum, "cart-pole": cart_pole, "Panda": panda, "quadrotor": quadrotor,
            "quadruped": quadruped}  # fmt: skip


def bare(model):
    """The model without features that Pinocchio's model of the same bodies lacks."""
    return model.replace(damping=jnp.zeros(model.nv), friction=jnp.zeros(model.nv))


def selection(model, drives):
    """The matrix S from controls to joint forces."""
    if drives["kind"] == "all":
        return np.eye(model.nv)
    if drives["kind"] == "joints":
        return np.eye(model.nv)[:, 6:]
    S = np.zeros((6, len(drives["turns"])))
    for i, (place, turn) in enumerate(zip(drives["places"], drives["turns"], strict=True)):
        S[2, i] = 1.0
        S[3:, i] = np.cross(place, [0, 0, 1.0]) + turn * drives["drag"] * np.array([0, 0, 1.0])
    return S


def assemble(name, model, dt, horizon, drives, x0, running, end, bounds=(None, None), held=None, batch=512):
    """The problem in lgsim and as data; ``held`` is the guess of each control."""
    S = jnp.asarray(selection(model, drives))
    euler, fourth = SymplecticEulerDynamics(model, dt, S), MultibodyDynamics(model, dt, selection=S)
    action = euler.action

    def cost(terms):
        kinds = {
            "control": lambda target, w: ControlEffort(weight=w, reference=target),
            "state": lambda target, w: StateDistance(action, target, w),
            "pose": lambda target, w: FramePose(model, model.body_names[-1], target, w),
        }
        first, *rest = (kinds[k](jnp.asarray(target, float), jnp.asarray(w, float)) for k, target, w in terms)
        return sum(rest, first)

    given = {"horizon": horizon, "running": dt * cost(running), "terminal": cost(end),
             "lower": None if bounds[0] is None else jnp.asarray(bounds[0]),
             "upper": None if bounds[1] is None else jnp.asarray(bounds[1])}  # fmt: skip
    x0 = jnp.asarray(x0)
    moves = SPREAD * np.random.default_rng(2).normal(size=(batch, action.dim))
    moves[0] = 0.0
    starts = jax.vmap(action.move, (0, None))(jnp.asarray(moves), x0)
    us = jnp.tile(jnp.zeros(S.shape[1]) if held is None else jnp.asarray(held), (horizon, 1))
    data = {
        "bodies": [_plain(vars(body)) for body in export.bodies(model)],
        "drives": drives, "dt": dt, "horizon": horizon, "us": np.asarray(us).tolist(),
        "running": [_term(model, *term) for term in running], "terminal": [_term(model, *term) for term in end],
        "lower": _plain(bounds[0]), "upper": _plain(bounds[1]),
    }  # fmt: skip
    return Setup(name, Problem(euler, x0, **given), Problem(fourth, x0, **given), us, starts, data)


def _term(model, kind, target, weights):
    return {"kind": kind, "target": _plain(target), "weights": _plain(weights), "body": len(model.body_names) - 1}


def _plain(value):
    """The value in the types of JSON."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    return np.asarray(value, float).tolist() if isinstance(value, list | tuple | np.ndarray) else value
