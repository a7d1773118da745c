"""Cassie and a Delta robot with closed states, and the same robots in Pinocchio."""

from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import robots

import lgsim

JOINTS = lgsim.joints
CASSIE = "cmeel.prefix/share/example-robot-data/robots/cassie_description/robots/cassie_v2.sdf"


@cache
def machine(name):
    """The robot with its loops; Cassie with masses and joints only."""
    return (
        delta()
        if name == "Delta"
        else lgsim.load_sdf(Path(str(distribution("example-robot-data").locate_file(CASSIE))))
    )


def turn(angle):
    """A pose rotated about z."""
    T = np.eye(4)
    T[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return T


def at(x=0.0, y=0.0, z=0.0):
    """A pose translated from the origin."""
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def delta():
    """Three actuated arms, each with two forearm rods on universal joints, and six ball joints on a free platform."""
    builder = lgsim.ModelBuilder()
    builder.add_body(
        "platform", "world", JOINTS.Free(), mass=0.5, inertia=np.diag([1e-3, 1e-3, 2e-3]), placement=at(z=-0.5)
    )
    for k in range(3):
        A = turn(2 * np.pi * k / 3)
        rod(builder, f"arm{k}", "world", A @ at(x=0.2), (0, 1, 0), 0.3, 0.8)
        for side, y in (("l", 0.06), ("r", -0.06)):
            cross, forearm = f"cross{k}{side}", f"rod{k}{side}"
            builder.add_body(
                cross,
                f"arm{k}",
                JOINTS.Revolute(),
                axis=(0, 1, 0),
                placement=at(0.3, y),
                mass=0.02,
                inertia=2e-6 * np.eye(3),
            )
            rod(builder, forearm, cross, np.eye(4), (0, 0, 1), 0.6, 0.15)
            builder.add_frame(f"end{k}{side}", forearm, at(x=0.6)).add_frame(
                f"pad{k}{side}", "platform", A @ at(0.08, y)
            )
            builder.add_loop(f"ball{k}{side}", f"pad{k}{side}", f"end{k}{side}", JOINTS.Spherical())
    return builder.build()


def rod(builder, name, parent, placement, axis, length, mass):
    """A thin link along x."""
    slender = mass * length**2 / 12
    builder.add_body(
        name, parent, JOINTS.Revolute(), placement=placement, axis=axis, mass=mass, center=(length / 2, 0, 0),
        inertia=np.diag([mass * 0.02**2 / 2, slender, slender]),
    )  # fmt: skip


DIFFERENT = 128
"""States of a robot, which a larger batch repeats."""


def states(name, batch):
    """(q, v, tau) (batch, ...) with the loops closed and velocities along them."""
    return tuple(x[np.arange(batch) % DIFFERENT] for x in _states(name))


@cache
def _states(name):
    model, batch = machine(name), DIFFERENT
    rng = np.random.default_rng(0)
    q = model.retract(model.neutral(), 0.15 * jnp.asarray(rng.normal(size=(batch, model.nv))))
    if name == "Delta":  # arms down, forearms inwards
        start = np.zeros(model.nq)
        start[3] = 1.0
        for k in range(3):
            start[model.q_slices[f"arm{k}"]] = 0.5
            for side in "lr":
                start[model.q_slices[f"cross{k}{side}"]] = 1.3
        q = model.retract(jnp.asarray(start), 0.05 * jnp.asarray(rng.normal(size=(batch, model.nv))))

    @jax.jit
    @jax.vmap
    def close(q, v):
        def newton(q, _):
            J, r = lgsim.loop_jacobian(model, q), lgsim.loop_residual(model, q)
            return model.retract(q, -jnp.linalg.pinv(J, rtol=1e-6) @ r), None

        q, _ = jax.lax.scan(newton, q, None, length=30)
        J = lgsim.loop_jacobian(model, q)
        return q, v - jnp.linalg.pinv(J, rtol=1e-6) @ (J @ v)

    q, v = close(q, jnp.asarray(rng.normal(size=(batch, model.nv))))
    return q, v, jnp.asarray(rng.normal(size=(batch, model.nv)))


def tree(model):
    """The robot without its loops."""
    from dataclasses import replace

    return model.replace(topology=replace(model.topology, loops=()))


class Peer:
    """The robot in Pinocchio with its constraints; states one after another."""

    def __init__(self, name):
        import pinocchio as pin

        self.pin, self.twin, model = pin, robots.Twin(machine(name)), machine(name)
        self.contacts, self.datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
        for loop in model.topology.loops:
            self.contacts.append(self.contact(model, loop))
            self.datas.append(self.contacts[-1].createData())
        self.settings = pin.ProximalSettings(1e-16, 1e-10, 1)
        pin.initConstraintDynamics(self.twin.model, self.twin.data, self.contacts, self.datas)

    def contact(self, model, loop):
        """A ball joint between two frames."""
        pin, tree = self.pin, model.topology
        ends = []
        for frame in (loop.b, loop.a):
            body, place = tree.frame_place(frame)
            T = np.eye(4) if place is None else np.asarray(model.frames[place])
            ends += [body + 1, pin.SE3(T[:3, :3], T[:3, 3])]
        return pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, self.twin.model, *ends, pin.ReferenceFrame.LOCAL)

    def states(self, q, v, tau):
        """States in Pinocchio's order; both robots begin with a free joint."""
        q = np.asarray(q, float)
        columns = [np.asarray(x, float) for x in (q, v, tau)]
        columns[0] = np.concatenate([q[:, :3], q[:, 4:7], q[:, 3:4], q[:, 7:]], axis=1)
        return [tuple(np.ascontiguousarray(x[i]) for x in columns) for i in range(len(q))]

    def accelerations(self, states):
        """A function that runs all states, and gives the last accelerations."""
        model, data = self.twin.model, self.twin.data

        def run():
            for q, v, tau in states:
                out = self.pin.constraintDynamics(model, data, q, v, tau, self.contacts, self.datas, self.settings)
            return out

        return run

    def derivatives(self, states):
        """The same with all derivatives."""
        model, data = self.twin.model, self.twin.data

        def run():
            for q, v, tau in states:
                self.pin.constraintDynamics(model, data, q, v, tau, self.contacts, self.datas, self.settings)
                self.pin.computeConstraintDynamicsDerivatives(model, data, self.contacts, self.datas, self.settings)

        return run
