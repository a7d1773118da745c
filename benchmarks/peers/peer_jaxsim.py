"""jaxsim: its articulated-body algorithm, in body-fixed velocities; steps of a robot that stands on points."""

from functools import partial

import conventions
import jax
import jax.numpy as jnp
import jaxsim.api as js
from jaxsim.rbda import contacts


class Peer(conventions.Body):
    """One state at a time, in the peer's numbers."""

    def __init__(self, robot):
        self.model = js.model.JaxSimModel.build_from_model_description(robot.file("sdf"), gravity=9.81)
        super().__init__(robot, self.model.joint_names())

    def forward_dynamics(self, q, v, tau):
        base, joints = js.model.forward_dynamics_aba(self.model, self._data(q, v), joint_forces=tau)
        return jnp.concatenate([base[: self.robot.base_v], joints])

    def inverse_dynamics(self, q, v, a):
        return js.model.inverse_dynamics(self.model, self._data(q, v), joint_accelerations=a)[1]

    def mass_matrix(self, q):
        M = js.model.free_floating_mass_matrix(self.model, self._data(q, jnp.zeros(self.robot.nv)))
        return M if self.robot.floats else M[6:, 6:]

    def _data(self, q, v):
        return placed(self, self.model, q, v)


def placed(robot, model, q, v):
    """The library's data of a state."""
    base = {}
    if robot.floats:
        base = {
            "base_position": q[:3],
            "base_quaternion": q[3:7],
            "base_linear_velocity": v[:3],
            "base_angular_velocity": v[3:6],
        }
    return js.data.JaxSimModelData.build(
        model,
        joint_positions=q[robot.base_q :],
        joint_velocities=v[robot.base_v :],
        velocity_representation=js.common.VelRepr.Body,
        **base,
    )


def stand(law, file, q, v, dt, steps, bodies, points, stiffness, dissipation, friction, spring, damper, rest):
    """Steps of robots that stand on points of their bodies, with joint springs; the final height of each.

    Args:
        law: (model of contact, its parameters) of (stiffness, dissipation, friction).
        file: Folder of the exported robot.
        q, v: A batch of states in lgsim's coordinates.
        dt, steps: Step size and number of steps.
        bodies, points: The points that touch the ground: bodies by their place in lgsim, points in their frames.
        stiffness, dissipation, friction: Of the contacts.
        spring, damper, rest: Of the joints, in lgsim's order.
    """
    robot = conventions.Robot(file)
    model, params = law(float(stiffness), float(dissipation), float(friction))
    machine = js.model.JaxSimModel.build_from_model_description(
        robot.file("sdf"), gravity=9.81, time_step=float(dt), contact_model=model, contact_params=params
    )
    parameters = machine.kin_dyn_parameters
    feet = parameters.contact_parameters.replace(
        body=tuple(machine.link_names().index(f"link{i}") for i in bodies),
        point=jnp.asarray(points),
        enabled=(True,) * len(bodies),
        validate=False,
    )
    parameters = parameters.replace(contact_parameters=feet, validate=False)
    machine = machine.replace(kin_dyn_parameters=parameters, validate=False)
    own = conventions.Body(robot, machine.joint_names())
    q, v, _ = own.states(q, v, v)
    rest = jnp.asarray(rest[own.order])

    def end(q, v):
        def step(data, _):
            torques = spring * (rest - data.joint_positions) - damper * data.joint_velocities
            return js.model.step(machine, data, joint_force_references=torques), None

        return jax.lax.scan(step, placed(robot, machine, q, v), length=int(steps))[0].base_position[2]

    return jax.vmap(end), (q, v)


def soft(stiffness, dissipation, friction):
    """Springs and dampers of Hunt and Crossley, with lgsim's normal force: ``K d^(1 + p) + D d^q d'``."""
    params = contacts.SoftContactsParams.build(K=stiffness, D=stiffness * dissipation, mu=friction, p=0.5, q=1.5)
    return contacts.SoftContacts.build(), params


def relaxed(stiffness, dissipation, friction):
    """Its relaxed rigid contacts with its own numbers."""
    del stiffness, dissipation
    return contacts.RelaxedRigidContacts.build(), contacts.RelaxedRigidContactsParams.build(mu=friction)


SCENES = {"stand, soft": partial(stand, soft), "stand, relaxed": partial(stand, relaxed)}
