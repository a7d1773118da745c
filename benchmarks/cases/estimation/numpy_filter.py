"""An extended Kalman filter of inertial navigation in plain NumPy, one run at a time, as navlie writes it.

State: rotation, velocity, position, biases of accelerometer and gyroscope. Errors are those of ``lgsim.estimate`` with
``RightTranslation``: in the axes of the body, in the order velocity, position, rotation, biases. The covariance is a
matrix, as in navlie.

Source: Cossette, Cohen, Korotkine and others 2023, navlie: a Python package for state estimation on Lie groups.
"""

import numpy as np

NODES = np.array([(1 + 1 / np.sqrt(3)) / 2, (1 - 1 / np.sqrt(3)) / 2])


def hat(w):
    """The matrix of the cross product."""
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def left_jacobian(w):
    """The derivative of the exponential."""
    t = np.sqrt(w @ w)
    W = hat(w)
    if t < 1e-4:
        return np.eye(3) + W / 2 + W @ W / 6
    return np.eye(3) + (1 - np.cos(t)) / t**2 * W + (t - np.sin(t)) / t**3 * W @ W


def exp(w):
    """The rotation of a vector."""
    t = np.sqrt(w @ w)
    W = hat(w)
    if t < 1e-4:
        return np.eye(3) + W + W @ W / 2 + W @ W @ W / 6
    return np.eye(3) + np.sin(t) / t * W + (1 - np.cos(t)) / t**2 * W @ W


def log(R):
    """The vector of a rotation of less than half a turn."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    sine = np.sqrt(axis @ axis)
    angle = np.arctan2(sine, (np.trace(R) - 1) / 2)
    return axis if sine < 1e-8 else angle / sine * axis


def integrals(w, f):
    """Velocity and position by a held force and rate over the time one, with derivatives by f and w."""
    t2 = w @ w
    t = np.sqrt(t2)
    if t < 0.1:
        # c_k = sum (-t^2)^j / (2 j + k)! and their derivatives by t^2
        c2, c3, c4 = (
            1 / a - t2 / b + t2**2 / c - t2**3 / d
            for a, b, c, d in ((2, 24, 720, 40320), (6, 120, 5040, 362880), (24, 720, 40320, 3628800))
        )
        d2, d3, d4 = (
            -1 / b + 2 * t2 / c - 3 * t2**2 / d
            for b, c, d in ((24, 720, 40320), (120, 5040, 362880), (720, 40320, 3628800))
        )
    else:
        c0, c1 = np.cos(t), np.sin(t) / t
        c2, c3 = (1 - c0) / t2, (1 - c1) / t2
        c4 = (1 / 2 - c2) / t2
        # 2 t^2 c_k' = c_{k-1} - k c_k
        d2, d3, d4 = (c1 - 2 * c2) / (2 * t2), (c2 - 3 * c3) / (2 * t2), (c3 - 4 * c4) / (2 * t2)
    W, F, across = hat(w), hat(f), np.cross(w, f)
    twice, both = np.cross(w, across), hat(across) + W @ F
    found = []
    for one, a, b, da, db in ((1, c2, c3, d2, d3), (1 / 2, c3, c4, d3, d4)):
        by_f = one * np.eye(3) + a * W + b * W @ W
        found.append((by_f @ f, by_f, 2 * np.outer(da * across + db * twice, w) - a * F - b * both))
    return found


def transition(f, w, dt):
    """The derivative of the error after dt by that before."""
    (v, v_f, v_w), (p, p_f, p_w) = integrals(w * dt, f)
    back = exp(-w * dt)
    A = np.eye(15)
    A[:9, :9] = np.kron(np.eye(3), back)
    A[3:6, :3] = back * dt
    A[:3, 6:9], A[3:6, 6:9] = -back @ hat(v) * dt, -back @ hat(p) * dt**2
    A[:3, 9:12], A[3:6, 9:12] = -back @ v_f * dt, -back @ p_f * dt**2
    A[:3, 12:], A[3:6, 12:] = -back @ v_w * dt**2, -back @ p_w * dt**3
    A[6:9, 12:] = -back @ v_f * dt
    return A, v * dt, p * dt**2


class Filter:
    """The filter of one run."""

    def __init__(self, R, v, p, bias, P, densities, gravity):
        self.R, self.v, self.p, self.bias, self.P = R, v, p, bias, P
        self.G, self.gravity = np.zeros((15, 12)), gravity
        for i, (row, density) in enumerate(zip((0, 6, 9, 12), densities, strict=True)):
            self.G[row : row + 3, 3 * i : 3 * i + 3] = density * np.eye(3)

    def predict(self, u, dt):
        """A step with the readings u of the IMU."""
        f, w = u[:3] - self.bias[:3], u[3:] - self.bias[3:]
        A, dv, dp = transition(f, w, dt)
        parts = [transition(f, w, node * dt)[0] @ self.G for node in NODES]
        Q = dt / 2 * sum(part @ part.T for part in parts)
        self.p = self.p + self.v * dt + self.gravity * dt**2 / 2 + self.R @ dp
        self.v = self.v + self.gravity * dt + self.R @ dv
        self.R = self.R @ exp(w * dt)
        self.P = A @ self.P @ A.T + Q

    def correct(self, R, p, deviations):
        """A reading of the pose with errors in the axes of the body, position first."""
        turn = log(self.R.T @ R)
        r = np.concatenate([np.linalg.solve(left_jacobian(turn), self.R.T @ (p - self.p)), turn])
        H = np.zeros((6, 15))
        H[:3, 3:6] = H[3:, 6:9] = np.eye(3)
        S = H @ self.P @ H.T + np.diag(deviations**2)
        K = np.linalg.solve(S, H @ self.P).T
        e = K @ r
        J = left_jacobian(e[6:9])
        self.v, self.p = self.v + self.R @ J @ e[:3], self.p + self.R @ J @ e[3:6]
        self.R, self.bias = self.R @ exp(e[6:9]), self.bias + e[9:]
        self.P = (np.eye(15) - K @ H) @ self.P
        self.P = (self.P + self.P.T) / 2
