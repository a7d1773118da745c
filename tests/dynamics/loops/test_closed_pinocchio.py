"""Closed machines beside Pinocchio's ``constraintDynamics`` and its derivatives: a weld, balls, and Cassie's legs.

Pinocchio's machine is built from the numbers of the model (that of Cassie from its file), each loop a contact between
two joints, in the axes of the end b: a weld is one of six rows, a ball one of three. Derivatives are compared along the
closed set, where alone they mean the same.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.formats import read_sdf
from tests.dynamics import closed_machines as machines

pin = pytest.importorskip("pinocchio")

from tests.formats.cassie import CASSIE, pinocchio_of_cassie  # noqa: E402
from tests.multibody.twin import Twin  # noqa: E402

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

STATES = 2
KINDS = {"Fixed": pin.ContactType.CONTACT_6D, "Spherical": pin.ContactType.CONTACT_3D}
PROXIMAL = {"ring_weld": (1e-9, 10), "delta": (1e-9, 10), "Cassie": (1e-4, 12)}
"""mu and the number of steps. Two of Cassie's rows depend on others but for the file's digits, eigenvalues of 1e-15
beside 1e-3: mu between them lets the steps reach the latter and not the former, as lgsim does."""


class Peer:
    """Pinocchio's machine with its contacts."""

    def __init__(self, model, twin, ends, proximal):
        self.twin, self.model = twin, twin.pin
        self.settings = pin.ProximalSettings(1e-30, *proximal)
        self.contacts, self.data = pin.StdVec_RigidConstraintModel(), self.model.createData()
        self.datas = pin.StdVec_RigidConstraintData()
        for loop in model.topology.loops:
            (a, A), (b, B) = ends(loop)
            kind = KINDS[type(loop.kind.joint).__name__]
            contact = pin.RigidConstraintModel(kind, self.model, b, B, a, A, pin.ReferenceFrame.LOCAL)
            self.contacts.append(contact)
            self.datas.append(contact.createData())
        pin.initConstraintDynamics(self.model, self.data, self.contacts, self.datas)

    def accelerations(self, q, v, tau):
        twin = self.twin
        a = pin.constraintDynamics(
            self.model, self.data, q, twin.v(v), twin.v(tau), self.contacts, self.datas, self.settings
        )
        return twin.back(a)

    def __call__(self, q, v, tau):
        """(accelerations, forces on the ends b, derivatives by q, v and tau) in lgsim's order."""
        a, f = self.accelerations(self.twin.q(q), v, tau), self.data.lambda_c.copy()
        pin.computeConstraintDynamicsDerivatives(self.model, self.data, self.contacts, self.datas, self.settings)
        slopes = (self.data.ddq_dq, self.data.ddq_dv, self.data.ddq_dtau)
        return a, f, *(self.twin.matrix(x) for x in slopes)

    def along(self, q, v, tau, dx, dv, dtau, step=1e-3):
        """The derivative of the accelerations along a direction, by differences of fourth order."""

        def moved(s):
            here = pin.integrate(self.model, self.twin.q(q), s * self.twin.v(dx))
            return self.accelerations(here, v + s * dv, tau + s * dtau)

        a = [moved(s * step) for s in (-2, -1, 1, 2)]
        return (a[0] - 8 * a[1] + 8 * a[2] - a[3]) / (12 * step)


@cache
def case(name):
    """(the machine, its peer, states (q, v, tau))."""
    if name == "Cassie":
        model, _ = read_sdf(CASSIE)
        built, balls = pinocchio_of_cassie(model)
        twin = Twin(model, built)
        peer = Peer(model, twin, lambda loop: balls[loop.name], PROXIMAL[name])
        q, v = machines.closed_states(model, STATES)
        tau = jnp.asarray(np.random.default_rng(2).normal(size=v.shape))
        return model, peer, (q, v, tau)
    model = machines.machine(name)
    twin = Twin(model)

    def ends(loop):
        for frame in (loop.a, loop.b):
            body, place = model.topology.frame_place(frame)
            T = np.eye(4) if place is None else np.asarray(model.frames[place])
            yield 0 if body < 0 else twin.ids[body], pin.SE3(T[:3, :3], T[:3, 3])

    states = [state[:3] for state in machines.states(name)][:STATES]
    return model, Peer(model, twin, ends, PROXIMAL[name]), tuple(jnp.stack(x) for x in zip(*states, strict=True))


@cache
def solved(name):
    """(accelerations, forces, derivatives, J, a direction (dx, dv) along the closed set) at the states."""
    model, _, states = case(name)
    rng = np.random.default_rng(3)

    @jax.jit
    @jax.vmap
    def every(q, v, tau):
        D = lgsim.forward_dynamics_derivatives(model, q, v, tau)
        return D.a, lgsim.loop_forces(model, q, v, tau), (D.dq, D.dv, D.dtau), lgsim.loop_jacobian(model, q)

    @jax.jit
    @jax.vmap
    def turned(q, v, dx):
        """How ``J v`` changes with q."""
        return jax.jvp(lambda q: lgsim.loop_jacobian(model, q) @ v, (q,), (model.rate(q, dx),))[1]

    a, f, D, J = jax.tree.map(np.asarray, every(*states))
    dx, dv = rng.normal(size=(2, *a.shape))
    inverse = np.linalg.pinv(J, rcond=1e-6)
    dx = dx - np.einsum("sij,sj->si", inverse @ J, dx)
    leaves = np.einsum("sij,sj->si", J, dv) + np.asarray(turned(*states[:2], jnp.asarray(dx)))
    return a, f, D, J, dx, dv - np.einsum("sij,sj->si", inverse, leaves)


def off(ours, theirs):
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


@pytest.mark.parametrize("name", ["ring_weld", "delta"])
def test_accelerations_forces_and_derivatives(name):
    _, peer, states = case(name)
    a, f, D, _, dx, dv = solved(name)
    for i in range(STATES):
        theirs = peer(*(np.asarray(x[i]) for x in states))
        assert off(a[i], theirs[0]) < 1e-12
        assert off(f[i], theirs[1]) < 1e-12
        along = [x[0] @ dx[i] + x[1] @ dv[i] for x in ([y[i] for y in D], theirs[2:])]
        assert off(*along) < 1e-10
        assert off(D[2][i], theirs[4]) < 1e-10


def test_cassie():
    """Twelve rows, two of which depend on the others: accelerations and derivatives are unique all the same."""
    model, peer, states = case("Cassie")
    assert (model.nv, model.topology.loop_rows) == (28, 12)
    a, _, D, J, dx, dv = solved("Cassie")
    dtau = np.random.default_rng(4).normal(size=dx.shape)
    for i in range(STATES):
        assert np.sum(np.linalg.svd(J[i], compute_uv=False) > 1e-6) == 10
        here = [np.asarray(x[i]) for x in states]
        assert off(a[i], peer.accelerations(peer.twin.q(here[0]), *here[1:])) < 1e-9
        along = D[0][i] @ dx[i] + D[1][i] @ dv[i] + D[2][i] @ dtau[i]
        assert off(along, peer.along(*here, dx[i], dv[i], dtau[i])) < 1e-7
