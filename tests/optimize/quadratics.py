"""Linear-quadratic problems step by step, and as one dense quadratic: oracles for solvers."""

import jax
import jax.numpy as jnp
import numpy as np

from lgsim._compile.xla import control_flow, scan_last
from lgsim.optimize.linear_quadratic import CostToGo, Policy, backward_step, bounded_backward_step, nodes_of


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


def riccati(lq, bounds=None):
    """The solution of a linear-quadratic problem, one step after the other from the end.

    Between bounds, a pair (lower, upper) of (H, m), zero lies.
    """

    def back(ahead, x):
        node, bounds = x
        zero = jnp.zeros_like(lq.p[0])
        now, step = (
            backward_step(ahead, node, zero) if bounds is None else bounded_backward_step(ahead, node, zero, *bounds)
        )
        return now, Policy(step.K, step.k, now.Vxx[0][0], now.Vx, step.definite)

    _, out = scan_last(back, CostToGo.at_end(lq.P, lq.p), (nodes_of(lq), bounds), reverse=True)
    Vxx, Vx = jnp.concatenate([out.Vxx, lq.P[None]]), jnp.concatenate([out.Vx, lq.p[None]])
    return Policy(out.K, out.k, Vxx, Vx, jnp.all(out.definite))


def rollout_policy(lq, K, k):
    """(x, u) of the linear system from x = 0 under ``u = K x + k``."""

    def step(x, node):
        A, B, c, K, k = node
        u = K @ x + k
        after = A @ x + B @ u + c
        return after, (after, u)

    x0 = jnp.zeros_like(lq.p)
    _, (xs, us) = control_flow.scan(step, x0, (lq.A, lq.B, lq.c, K, k))
    return jnp.concatenate([x0[None], xs]), us
