"""The robots of the package example-robot-data, and their twins that Pinocchio reads from the same files."""

from importlib.metadata import distribution
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from lgsim.multibody.joint import GroupJoint
from tests.multibody.twin import peer

FOLDER = Path(str(distribution("example-robot-data").locate_file("cmeel.prefix/share/example-robot-data/robots")))

# what no reader can take: a joint that mimics one that is not there, and a file without links
BROKEN = {"alex_description/urdf/alex_psyonic_hands.urdf", "ur_description/urdf/ur3.urdf"}
# one rigid body: nothing moves unless the base does
RIGID = {"hector_description/robots/quadrotor_base.urdf", "iris_description/robots/iris_simple.urdf"}
FILES = sorted({path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.urdf")} - BROKEN)


def file(robot):
    """The path in which all of the name's parts occur, of several the shortest."""
    return min((name for name in FILES if robot in name), key=len)


class Twin:
    """Pinocchio's model of the same file; its joints are sorted by name, its continuous angles are (cos, sin).

    Pinocchio reads <mimic> only where the order of the names lets it, so that here all joints are free, and those that
    mimic are driven by the numbers in the file.
    """

    def __init__(self, model, path, floating):
        root = (pin.JointModelFreeFlyer(),) if floating else ()
        self.model, self.pin = model, pin.buildModelFromUrdf(str(path), *root)
        self.pin.gravity.linear = np.asarray(model.gravity)
        self.data = self.pin.createData()
        self.tied = {}
        for joint in ElementTree.parse(path).getroot().iterfind("joint"):
            mimic = joint.find("mimic")
            if mimic is not None and joint.get("type") != "fixed":
                ratio = float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
                self.tied[joint.get("name")] = (mimic.get("joint"), *ratio)
        # of each joint: (its type, our q and v, Pinocchio's q and v, ratio, offset)
        self.places = []
        for name in self.pin.names[1:]:
            source, ratio, offset = self.tied.get(name, (name, 1.0, 0.0))
            i, joint = model.joint_names.index(source), self.pin.joints[self.pin.getJointId(name)]
            there = [slice(at, at + size) for at, size in ((joint.idx_q, joint.nq), (joint.idx_v, joint.nv))]
            tree = model.topology
            self.places.append((tree.joints[i], tree.q_slice(i), tree.v_slice(i), *there, ratio, offset))

    def q(self, q):
        out = np.zeros(self.pin.nq)
        for joint, here, _, there, _, ratio, offset in self.places:
            part = np.asarray(q[here])
            if isinstance(joint, GroupJoint):
                part = peer(joint).numbers(part)
            else:
                part = ratio * part + offset
                part = np.array([np.cos(part[0]), np.sin(part[0])]) if there.stop - there.start == 2 else part
            out[there] = part
        return out

    def v(self, v):
        out = np.zeros(self.pin.nv)
        for _, _, here, _, there, ratio, _ in self.places:
            out[there] = ratio * np.asarray(v[here])
        return out

    def back(self, tau):
        out = np.zeros(self.model.nv)
        for _, _, here, _, there, ratio, _ in self.places:
            out[here] += ratio * tau[there]
        return out

    def inverse_dynamics(self, q, v, a):
        return self.back(pin.rnea(self.pin, self.data, self.q(q), self.v(v), self.v(a)))
