"""ANYmal on four soft feet, with springs and dampers in the legs, and the same robot in MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import robots
from peers.gait import SPRING
from peers.mujoco_model import mujoco_model

import lgsim

FEET = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
CENTER, RADIUS = (0.0, 0.0, 0.02325), 0.031
"""Of the sphere that is a foot's <collision>, in its frame, m."""
STAND = np.array([-0.1, 0.7, -1.0, 0.1, 0.7, -1.0, -0.1, -0.7, 1.0, 0.1, -0.7, 1.0])
"""Joint angles (hip, thigh, shank) of the legs in the model's order, rad."""
DAMPER = 4.0
"""Of each joint of a leg, N m s/rad."""
FRICTION = 0.8
DEPTH = 2e-3
"""Of the feet at rest, m."""


@cache
def bare():
    """ANYmal with springs in its legs and a frame in the middle of each foot, without contacts."""
    model = robots.robot("ANYmal", "float64")
    driven = np.arange(model.nv) >= 6
    model = model.replace(stiffness=jnp.where(driven, SPRING, 0.0), damping=jnp.where(driven, DAMPER, 0.0))
    place = np.eye(4)
    place[:3, 3] = CENTER
    for foot in FEET:
        model = model.add_frame(f"{foot} ball", foot, place)
    return model


def feet_advice(model):
    """Stiffness and dissipation of the feet."""
    return lgsim.suggest_contact(model, depth=DEPTH, restitution=0.5, points=4)


def on_feet(model, slip_speed):
    """A robot whose feet penetrate by ``DEPTH`` at rest, with viscous friction below ``slip_speed``, m/s."""
    advice = feet_advice(model)
    for foot in FEET:
        model = model.add_contact(
            foot, f"{foot} ball", lgsim.contacts.sphere(RADIUS), stiffness=advice.stiffness,
            dissipation=advice.dissipation, friction=FRICTION, slip_speed=slip_speed,
        )  # fmt: skip
    return model


@cache
def standing():
    """(robot with springs that hold its posture, q at rest): all forces are in equilibrium.

    The leg posture is given; Newton's method solves for the height, pitch and roll of the base.
    """
    model = on_feet(bare(), 0.01)
    q, rest = model.neutral().at[7:].set(jnp.asarray(STAND)), jnp.zeros(model.nv)

    @jax.jit
    def balance(q):
        wrenches = lgsim.contact_forces(model, q, rest).wrenches
        return lgsim.inverse_dynamics(model, q, rest, rest, wrenches)

    q = q.at[2].set(jnp.max(lgsim.contact_points(model, q).depth) - DEPTH)
    moves = np.eye(model.nv)[[2, 3, 4]]
    for _ in range(12):
        here, h = np.asarray(balance(q)), 1e-7
        slopes = [(np.asarray(balance(model.retract(q, h * move))) - here)[2:5] / h for move in moves]
        q = model.retract(q, jnp.asarray(np.linalg.solve(np.transpose(slopes), -here[2:5]) @ moves))
    held = np.asarray(balance(q))[6:]
    return bare().replace(rest=jnp.asarray([*np.zeros(6), *(np.asarray(q)[7:] + held / SPRING)])), q


@cache
def machine(slip_speed):
    """The standing robot."""
    return on_feet(standing()[0], slip_speed)


def twin(model):
    """The robot in MuJoCo: the same bodies, springs and dampers, and spheres on a plane with MuJoCo's contact model."""
    tree = model.topology

    def feet(spec, bodies):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[FRICTION, 0, 0])
        for foot in FEET:
            at = tree.frame_names.index(f"{foot} ball")
            bodies[tree.frame_bodies[at]].add_geom(
                type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS, 0, 0], pos=np.asarray(model.frames[at, :3, 3]),
                friction=[FRICTION, 0, 0], contype=2, conaffinity=1,
            )  # fmt: skip

    made = mujoco_model(model, feet)
    made.opt.disableflags = 0
    made.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    made.dof_damping[:] = np.asarray(model.damping)
    made.jnt_stiffness[1:] = np.asarray(model.stiffness)[6:]
    made.qpos_spring[7:] = np.asarray(model.rest)[6:]
    mujoco.mj_setConst(made, mujoco.MjData(made))
    made.qpos_spring[7:] = np.asarray(model.rest)[6:]  # setConst also sets it
    return made
