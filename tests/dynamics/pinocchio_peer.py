"""Every quantity of a robot's file by Pinocchio, under the names of ``tests.dynamics.quantities``."""

import numpy as np
import pinocchio as pin

from tests.formats.robots import Twin


class Pinocchio:
    """Pinocchio's model of the file: every quantity by the name that lgsim's has, in lgsim's coordinates."""

    def __init__(self, model, path, floating, tool):
        self.twin = Twin(model, path, floating)
        self.pin, self.data = self.twin.pin, self.twin.data
        self.joints = [self.pin.getJointId(name) for name in model.joint_names]
        self.frames = [self.pin.getFrameId(name, pin.FrameType.BODY) for name in (*model.body_names, tool)]
        self.G = np.array([self.twin.v(e) for e in np.eye(model.nv)]).T
        self.mimic = self.pin.nv != model.nv

    def forces(self, wrenches):
        out = pin.StdVec_Force()
        out.extend([pin.Force.Zero()] * self.pin.njoints)
        for joint, wrench in zip(self.joints, wrenches, strict=True):
            out[joint] = pin.Force(wrench)
        return out

    def columns(self, Y):
        """A regressor's columns, ten for each joint, in the order of the model's bodies."""
        blocks = np.asarray(Y).reshape(*np.shape(Y)[:-1], -1, 10)
        return blocks[..., [j - 1 for j in self.joints], :].reshape(np.shape(Y))

    def quantities(self, q, v, x, wrenches):
        P, D, G, F = self.pin, self.data, self.G, self.forces(wrenches)
        Q, V, X = self.twin.q(q), G @ v, G @ x
        return (
            self.kinematics(P, D, G, Q, V, X)
            | self.momenta(P, D, G, Q, V, X)
            | self.dynamics(P, D, G, Q, V, X, x, F)
            | self.regressors(P, D, G, Q, V, X)
        )

    def kinematics(self, P, D, G, Q, V, X):
        pin.forwardKinematics(P, D, Q, V, X)
        pin.updateFramePlacements(P, D)
        out = {
            "poses": np.array([D.oMf[i].homogeneous for i in self.frames]),
            "twists": np.array([pin.getFrameVelocity(P, D, i).vector for i in self.frames]),
            "accelerations": np.array([pin.getFrameAcceleration(P, D, i).vector for i in self.frames]),
        }
        pin.computeJointJacobians(P, D, Q)
        pin.computeJointJacobiansTimeVariation(P, D, Q, V)
        pin.updateFramePlacements(P, D)
        local = pin.ReferenceFrame.LOCAL
        out["jacobian"] = pin.getFrameJacobian(P, D, self.frames[-1], local) @ G
        out["jacobian rate"] = pin.getFrameJacobianTimeVariation(P, D, self.frames[-1], local) @ G
        return out

    def momenta(self, P, D, G, Q, V, X):
        pin.centerOfMass(P, D, Q, V)
        out = {"center": D.com[0].copy(), "center velocity": D.vcom[0].copy()}
        # the rate of the map reads the velocity of the center of mass, which the call before leaves
        out["momentum matrix rate"] = pin.computeCentroidalMapTimeVariation(P, D, Q, V) @ G
        out["momentum matrix"] = pin.computeCentroidalMap(P, D, Q) @ G
        out["momentum"] = pin.computeCentroidalMomentum(P, D, Q, V).vector.copy()
        out["momentum rate"] = pin.computeCentroidalMomentumTimeVariation(P, D, Q, V, X).vector.copy()
        out["center jacobian"] = pin.jacobianCenterOfMass(P, D, Q) @ G
        out["kinetic energy"] = np.array(pin.computeKineticEnergy(P, D, Q, V))
        out["potential energy"] = np.array(pin.computePotentialEnergy(P, D, Q))
        return out

    def dynamics(self, P, D, G, Q, V, X, x, F):
        M = pin.crba(P, D, Q)
        M = G.T @ (np.triu(M) + np.triu(M, 1).T) @ G
        tau = G.T @ pin.rnea(P, D, Q, V, X, F)
        out = {
            "inverse dynamics": tau,
            "inverse dynamics tau": tau,
            "mass matrix": M,
            "bias": G.T @ pin.nonLinearEffects(P, D, Q, V),
            "gravity": G.T @ pin.computeGeneralizedGravity(P, D, Q),
        }
        C = G.T @ pin.computeCoriolisMatrix(P, D, Q, V) @ G
        out["Coriolis forces"], out["mass matrix rate"] = C @ np.linalg.lstsq(G, V)[0], C + C.T
        dq, dv, _ = pin.computeRNEADerivatives(P, D, Q, V, X, F)
        out |= {"inverse dynamics dq": G.T @ dq @ G, "inverse dynamics dv": G.T @ dv @ G, "inverse dynamics da": M}
        if self.mimic:
            # its forward dynamics refuses joints that mimic: the reduced equations from the inverse one
            inverse = np.linalg.inv(M)
            a = inverse @ (x - G.T @ pin.rnea(P, D, Q, V, 0 * X, F))
            dq, dv, _ = pin.computeRNEADerivatives(P, D, Q, V, G @ a, F)
            dq, dv = -inverse @ G.T @ dq @ G, -inverse @ G.T @ dv @ G
        else:
            order = np.argmax(G, axis=0)  # G is a permutation
            TAU = G @ x
            a = pin.aba(P, D, Q, V, TAU, F)[order]
            pin.computeMinverse(P, D, Q)
            inverse = np.triu(D.Minv) + np.triu(D.Minv, 1).T
            inverse = inverse[np.ix_(order, order)]
            pin.computeABADerivatives(P, D, Q, V, TAU, F)
            dq, dv = D.ddq_dq[np.ix_(order, order)], D.ddq_dv[np.ix_(order, order)]
        return out | {
            "forward dynamics": a,
            "forward dynamics a": a,
            "inverse mass": inverse,
            "solve": inverse @ x,
            "forward dynamics dq": dq,
            "forward dynamics dv": dv,
            "forward dynamics dtau": inverse,
        }

    def regressors(self, P, D, G, Q, V, X):
        return {
            "torque regressor": self.columns(G.T @ pin.computeJointTorqueRegressor(P, D, Q, V, X)),
            "kinetic regressor": self.columns(pin.computeKineticEnergyRegressor(P, D, Q, V)),
            "potential regressor": self.columns(pin.computePotentialEnergyRegressor(P, D, Q)),
        }
