"""Linear-quadratic problems as one dense quadratic, an oracle for what works step by step."""

import jax
import numpy as np


def dense(lq):
    """(Hessian, gradient, minimum (H, M)) of a linear-quadratic problem in all its controls at once, in numpy."""
    lq = jax.tree.map(np.asarray, lq)
    H, N, M = lq.B.shape
    G, f = np.zeros((H + 1, N, H * M)), np.zeros((H + 1, N))
    for k in range(H):
        G[k + 1] = lq.A[k] @ G[k]
        G[k + 1][:, k * M : (k + 1) * M] += lq.B[k]
        f[k + 1] = lq.A[k] @ f[k] + lq.c[k]
    hessian, gradient = G[H].T @ lq.P @ G[H], G[H].T @ (lq.P @ f[H] + lq.p)
    for k in range(H):
        E = np.zeros((M, H * M))
        E[:, k * M : (k + 1) * M] = np.eye(M)
        hessian += G[k].T @ lq.Q[k] @ G[k] + E.T @ lq.R[k] @ E + G[k].T @ lq.N[k] @ E + E.T @ lq.N[k].T @ G[k]
        gradient += G[k].T @ (lq.Q[k] @ f[k] + lq.q[k]) + E.T @ (lq.N[k].T @ f[k] + lq.r[k])
    return hessian, gradient, np.linalg.solve(hessian, -gradient).reshape(H, M)
