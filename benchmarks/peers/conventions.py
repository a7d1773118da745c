"""Conversion of states to the peers' conventions and back; imported by workers, so without lgsim.

lgsim: q = (position, quaternion (w, x, y, z), joints), v = (body twist: linear, angular; joints), forces alike. The
joints are in lgsim's order there and in the peer's order here; a robot with a fixed base has only the joints.
"""

import json
from pathlib import Path

import numpy as np

STEPS, DT = 50, 1e-3
"""Of the task `rollout`: how many steps, s each."""


class Robot:
    """The exported robot: its folder, and the names of its joints in lgsim's order."""

    def __init__(self, folder):
        self.folder = Path(folder)
        about = json.loads((self.folder / "robot.json").read_text(encoding="utf-8"))
        self.name, self.floats, self.joints = about["name"], about["floats"], tuple(about["joints"])
        self.base_q, self.base_v = (7, 6) if self.floats else (0, 0)
        self.nv = self.base_v + len(self.joints)

    def file(self, suffix):
        """The path of the robot's file in a format."""
        return str(self.folder / f"robot.{suffix}")

    def order(self, names):
        """The index in lgsim of each of the peer's joints."""
        if sorted(names) != sorted(self.joints):
            raise ValueError(f"{self.name}: expected the joints {sorted(self.joints)}, the peer has {sorted(names)}")
        return np.array([self.joints.index(name) for name in names], int)


class Body:
    """Peers whose base has lgsim's coordinates and no forces."""

    def __init__(self, robot, names):
        self.robot = robot
        self.order = robot.order(names)
        self.back = np.argsort(self.order)

    def states(self, q, v, x):
        """(q, v, forces or accelerations) of a batch in the peer's order; x of the joints only."""
        nq, nv = self.robot.base_q, self.robot.base_v
        return self._ordered(q, nq), self._ordered(v, nv), self._ordered(x, nv)[:, nv:]

    def accelerations(self, a, q, v):
        """The peer's accelerations as lgsim's; q and v are lgsim's."""
        del q, v
        base = self.robot.base_v
        return np.concatenate([a[:, :base], self.joint_vectors(a)], axis=1)

    def joint_vectors(self, x):
        """The joint components of vectors (..., nv), in lgsim's order."""
        return x[..., self.robot.base_v :][..., self.back]

    def joint_matrices(self, matrices):
        """The joint block of matrices (..., nv, nv or nq), which does not depend on the coordinates of the base."""
        n = len(self.order)
        return matrices[..., -n:, -n:][..., self.back, :][..., self.back]

    def _ordered(self, x, base):
        return np.concatenate([x[:, :base], x[:, base:][:, self.order]], axis=1)


class World(Body):
    """Peers with MuJoCo's convention: linear velocity and force of the base in the world, angular ones in the body."""

    def states(self, q, v, x):
        """The same as in ``Body``, with the forces of the base."""
        nq, nv = self.robot.base_q, self.robot.base_v
        q, v, x = self._ordered(q, nq), self._ordered(v, nv), self._ordered(x, nv)
        if self.robot.floats:
            R = rotations(q[:, 3:7])
            v, x = (np.concatenate([_turned(R, part[:, :3]), part[:, 3:]], axis=1) for part in (v, x))
        return q, v, x

    def accelerations(self, a, q, v):
        """Acceleration of the base from (R v)' = R (v' + w x v)."""
        a = super().accelerations(a, q, v)
        if self.robot.floats:
            inverse = np.swapaxes(rotations(q[:, 3:7]), 1, 2)
            linear = _turned(inverse, a[:, :3]) - np.cross(v[:, 3:6], v[:, :3])
            a = np.concatenate([linear, a[:, 3:]], axis=1)
        return a


def rotations(quaternions):
    """Matrices of unit quaternions (n, 4)."""
    w, u = quaternions[:, 0], quaternions[:, 1:]
    hat = np.zeros((len(w), 3, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        hat[:, k, j], hat[:, j, k] = u[:, i], -u[:, i]
    return np.eye(3) + 2 * w[:, None, None] * hat + 2 * hat @ hat


def _turned(matrices, vectors):
    return np.einsum("nij,nj->ni", matrices, vectors)
