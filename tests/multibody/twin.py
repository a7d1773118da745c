"""A model of lgsim as a model of Pinocchio, with the maps between their coordinates.

Every type of joint has its own entry in ``PEERS``, so that one that is added to the register of joints is refused here
until somebody says what it is in Pinocchio: nothing is guessed from its rows.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from lgsim.multibody import joints
from lgsim.multibody.inertia import mass_center_inertia


class Twin:
    """The model in Pinocchio, built from its numbers; or a model of Pinocchio's that has joints of the same names."""

    def __init__(self, model, built=None):
        self.model = model
        tree = model.topology
        if built is not None:
            self.pin, self.ids = built, [built.getJointId(name) for name in tree.joint_names]
            self._place()
            return
        self.pin = pin.Model()
        self.pin.gravity.linear = np.asarray(model.gravity)
        self.ids = []
        for i, joint in enumerate(tree.joints):
            parent = 0 if tree.parents[i] < 0 else self.ids[tree.parents[i]]
            rows = slice(tree.row_starts[i], tree.row_starts[i + 1])
            kind = peer(joint).model(joint, np.asarray(model.axes[rows]), np.asarray(model.pitches[rows]))
            T = np.asarray(model.placements[i])
            new = self.pin.addJoint(parent, kind, pin.SE3(T[:3, :3], T[:3, 3]), tree.joint_names[i])
            mass, center, inertia = (np.asarray(x) for x in mass_center_inertia(model.inertias[i]))
            self.pin.appendBodyToJoint(new, pin.Inertia(float(mass), center, inertia), pin.SE3.Identity())
            self.ids.append(new)
        self._place()

    def _place(self):
        """Where coordinates are, and the armature, which bodies do not bring."""
        self.pin.armature = np.zeros(self.pin.nv)
        self.v_index = np.concatenate(
            [np.arange(self.pin.joints[j].idx_v, self.pin.joints[j].idx_v + self.pin.joints[j].nv) for j in self.ids]
        )
        self.pin.armature[self.v_index] = np.asarray(self.model.armature)
        self.data = self.pin.createData()

    def q(self, q):
        out = np.zeros(self.pin.nq)
        tree = self.model.topology
        for i, joint in enumerate(tree.joints):
            part = peer(joint).numbers(np.asarray(q[tree.q_slice(i)]))
            at = self.pin.joints[self.ids[i]].idx_q
            out[at : at + len(part)] = part
        return out

    def v(self, v):
        out = np.zeros(self.pin.nv)
        out[self.v_index] = np.asarray(v)
        return out

    def back(self, v):
        return np.asarray(v)[..., self.v_index]

    def matrix(self, M):
        return np.asarray(M)[np.ix_(self.v_index, self.v_index)]

    def forces(self, wrenches):
        out = pin.StdVec_Force()
        out.append(pin.Force.Zero())
        for wrench in np.asarray(wrenches):
            out.append(pin.Force(wrench))
        return out


class Peer(NamedTuple):
    """What a type of joint is in Pinocchio: its model, from (joint, axes, pitches), and its configuration."""

    model: Callable
    numbers: Callable = np.asarray


def peer(joint) -> Peer:
    """The peer of a joint, by its very type."""
    if type(joint) not in PEERS:
        raise NotImplementedError(
            f"{type(joint).__name__}: no joint of Pinocchio is known for it; add it to PEERS of tests/multibody/twin.py"
        )
    return PEERS[type(joint)]


def _screws(joint, axes, pitches):
    """The rows one after another; of one row that row alone."""
    singles = [_screw(*row) for row in zip(joint.rows, axes, pitches, strict=True)]
    if len(singles) == 1:
        return singles[0]
    composite = pin.JointModelComposite()
    for single in singles:
        composite.addJoint(single, pin.SE3.Identity())
    return composite


def _screw(row, axis, pitch):
    if pitch:
        return pin.JointModelHelicalUnaligned(axis, float(pitch))
    return (pin.JointModelRevoluteUnaligned if row.turns else pin.JointModelPrismaticUnaligned)(axis)


def _about_its_own_axes(kind):
    """A joint of Pinocchio that knows no others."""

    def model(joint, axes, pitches):
        if not np.array_equal(axes, np.eye(3)[[row.axis for row in joint.rows]]):
            raise NotImplementedError(f"{type(joint).__name__}: Pinocchio has it about its own axes alone, not {axes}")
        return kind()

    return model


def _quaternion_last(part):
    """The scalar of a quaternion behind its vector."""
    return np.concatenate([part[:-4], part[-3:], part[-4:-3]])


def _quaternion_of_angles(part):
    """Of Rz Ry Rx, the scalar last."""
    return pin.Quaternion(pin.rpy.rpyToMatrix(*part)).coeffs()


def _cosine_and_sine(part):
    """An angle of the plane by its cosine and sine."""
    return np.array([part[0], part[1], np.cos(part[2]), np.sin(part[2])])


PEERS = {
    joints.Revolute: Peer(_screws),
    joints.Continuous: Peer(_screws),
    joints.Prismatic: Peer(_screws),
    joints.Helical: Peer(_screws),
    joints.Cylindrical: Peer(_screws),
    joints.Universal: Peer(_screws),
    joints.Compound: Peer(_screws),
    joints.Translational: Peer(_about_its_own_axes(pin.JointModelTranslation)),
    joints.Spherical: Peer(_about_its_own_axes(pin.JointModelSpherical), _quaternion_last),
    joints.SphericalAngles: Peer(_about_its_own_axes(pin.JointModelSpherical), _quaternion_of_angles),
    joints.Planar: Peer(_about_its_own_axes(pin.JointModelPlanar), _cosine_and_sine),
    joints.Free: Peer(_about_its_own_axes(pin.JointModelFreeFlyer), _quaternion_last),
}
