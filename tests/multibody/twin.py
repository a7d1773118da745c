"""A model of lgsim as a model of Pinocchio, with the maps between their coordinates."""

import numpy as np
import pinocchio as pin

from lgsim.multibody import joints
from lgsim.multibody.inertia import mass_center_inertia


class Twin:
    def __init__(self, model):
        self.model = model
        tree = model.topology
        self.pin = pin.Model()
        self.pin.gravity.linear = np.asarray(model.gravity)
        self.ids = []
        for i, joint in enumerate(tree.joints):
            parent = 0 if tree.parents[i] < 0 else self.ids[tree.parents[i]]
            rows = slice(tree.row_starts[i], tree.row_starts[i + 1])
            kind = _joint(joint, np.asarray(model.axes[rows]), np.asarray(model.pitches[rows]))
            T = np.asarray(model.placements[i])
            new = self.pin.addJoint(parent, kind, pin.SE3(T[:3, :3], T[:3, 3]), tree.joint_names[i])
            mass, center, inertia = (np.asarray(x) for x in mass_center_inertia(model.inertias[i]))
            self.pin.appendBodyToJoint(new, pin.Inertia(float(mass), center, inertia), pin.SE3.Identity())
            self.ids.append(new)
        self.pin.armature = np.zeros(self.pin.nv)
        self.v_index = np.concatenate(
            [np.arange(self.pin.joints[j].idx_v, self.pin.joints[j].idx_v + self.pin.joints[j].nv) for j in self.ids]
        )
        self.pin.armature[self.v_index] = np.asarray(model.armature)
        self.data = self.pin.createData()

    def q(self, q):
        out = np.zeros(self.pin.nq)
        tree = self.model.topology
        for i, joint in enumerate(tree.joints):
            part = np.asarray(q[tree.q_slice(i)])
            if isinstance(joint, joints.Spherical | joints.Free):
                part = np.concatenate([part[:-4], part[-3:], part[-4:-3]])
            elif isinstance(joint, joints.Planar):
                part = np.array([part[0], part[1], np.cos(part[2]), np.sin(part[2])])
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


def _joint(joint, axes, pitches):
    if isinstance(joint, joints.Revolute):
        return pin.JointModelRevoluteUnaligned(axes[0])
    if isinstance(joint, joints.Prismatic):
        return pin.JointModelPrismaticUnaligned(axes[0])
    if isinstance(joint, joints.Helical):
        return pin.JointModelHelicalUnaligned(axes[0], float(pitches[0]))
    if isinstance(joint, joints.Spherical):
        return pin.JointModelSpherical()
    if isinstance(joint, joints.Planar):
        return pin.JointModelPlanar()
    if isinstance(joint, joints.Translational):
        return pin.JointModelTranslation()
    if isinstance(joint, joints.Free):
        return pin.JointModelFreeFlyer()
    composite = pin.JointModelComposite()
    for row, axis in zip(joint.rows, axes, strict=True):
        single = pin.JointModelRevoluteUnaligned if row.turns else pin.JointModelPrismaticUnaligned
        composite.addJoint(single(axis), pin.SE3.Identity())
    return composite
