"""What MuJoCo has of a robot's quantities, under the names of ``tests.dynamics.quantities``, in lgsim's coordinates."""

import jax.numpy as jnp
import mujoco
import numpy as np

from benchmarks.peers.mujoco_model import mujoco_model
from lgsim.formats.interop import mujoco as tool


class MuJoCo:
    """A model with the same numbers: hinges, slides and a free base."""

    def __init__(self, model):
        self.ours, self.model = model, mujoco_model(model)
        self.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
        self.data = mujoco.MjData(self.model)
        mujoco.mj_setConst(self.model, self.data)

    def quantities(self, q, v, x, wrenches):
        m, d = self.model, self.data
        q, v, x = (jnp.asarray(y) for y in (q, v, x))
        nv = m.nv
        # qvel = B v; forces are B^T of theirs, and of the acceleration B v' + drift
        B = np.array([tool.v_to(self.ours, q, e) for e in jnp.eye(self.ours.nv)]).T
        drift = np.asarray(tool.a_to(self.ours, q, v, 0 * v))
        d.qpos[:], d.qvel[:], d.qacc[:] = tool.q_to(self.ours, q), B @ v, B @ x + drift
        d.qfrc_applied[:] = np.linalg.lstsq(B.T, x)[0]
        d.xfrc_applied[:] = 0
        mujoco.mj_kinematics(m, d)
        d.xfrc_applied[1:] = [self.about_center(i + 1, wrench) for i, wrench in enumerate(wrenches)]
        mujoco.mj_forward(m, d)
        inverse_drift = np.linalg.lstsq(B, d.qacc - drift)[0]
        M = np.zeros((nv, nv))
        for column, e in zip(M, np.eye(nv), strict=True):
            mujoco.mj_mulM(m, d, column, e)
        mujoco.mj_subtreeVel(m, d)
        out = {
            "poses": self.poses(),
            "twists": self.twists(),
            "mass matrix": B.T @ M @ B,
            "bias": B.T @ (d.qfrc_bias + M @ drift),
            "forward dynamics": inverse_drift,
            "center": d.subtree_com[0].copy(),
            "center velocity": d.subtree_linvel[0].copy(),
            "momentum": np.concatenate([m.body_subtreemass[0] * d.subtree_linvel[0], d.subtree_angmom[0]]),
            "kinetic energy": np.array(d.energy[1]),
            "potential energy": np.array(d.energy[0]),
        }
        out |= self.jacobians(B) | {"inverse dynamics": self.inverse(B, B @ np.asarray(x) + drift)}
        solved = np.zeros((1, nv))
        mujoco.mj_solveM(m, d, solved, np.linalg.lstsq(B.T, x)[0][None])
        out["solve"] = np.linalg.lstsq(B, solved[0])[0]
        d.qvel[:] = 0
        mujoco.mj_forward(m, d)
        return out | {"gravity": B.T @ d.qfrc_bias}

    def inverse(self, B, a):
        d = self.data
        d.qacc[:] = a
        mujoco.mj_inverse(self.model, d)
        applied = np.zeros(self.model.nv)  # what the inverse gives is without the wrenches
        for i in range(1, self.model.nbody):
            wrench = d.xfrc_applied[i]
            mujoco.mj_applyFT(self.model, d, wrench[:3], wrench[3:], d.xipos[i], i, applied)
        return B.T @ (d.qfrc_inverse - applied)

    def about_center(self, body, wrench):
        """A wrench in the body's frame as force and torque in world axes at its center of mass."""
        R, p = self.data.xmat[body].reshape(3, 3), self.data.xpos[body]
        force = R @ wrench[:3]
        return np.concatenate([force, R @ wrench[3:] + np.cross(p - self.data.xipos[body], force)])

    def poses(self):
        d, out = self.data, np.tile(np.eye(4), (self.model.nbody - 1, 1, 1))
        out[:, :3, :3], out[:, :3, 3] = d.xmat[1:].reshape(-1, 3, 3), d.xpos[1:]
        return out

    def twists(self):
        out = np.zeros((self.model.nbody - 1, 6))
        for i, twist in enumerate(out):
            mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_XBODY, i + 1, twist, 1)
        return out[:, [3, 4, 5, 0, 1, 2]]

    def jacobians(self, B):
        m, d = self.model, self.data
        last, R = m.nbody - 1, d.xmat[m.nbody - 1].reshape(3, 3)
        linear, angular, center, turning = np.zeros((4, 3, m.nv))
        mujoco.mj_jacBody(m, d, linear, angular, last)
        mujoco.mj_jacSubtreeCom(m, d, center, 0)
        mujoco.mj_angmomMat(m, d, turning, 0)
        return {
            "body jacobian": np.concatenate([R.T @ linear, R.T @ angular]) @ B,
            "center jacobian": center @ B,
            "momentum matrix": np.concatenate([m.body_subtreemass[0] * center, turning]) @ B,
        }
