"""Fits of bodies at the edge of what can exist, against a solver of linear matrix inequalities."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import Fit
from lgsim.identify.unknowns.body_blocks import Inertias
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody import inertia
from tests.identify import arms

clarabel = pytest.importorskip("clarabel")
sparse = pytest.importorskip("scipy.sparse")

NOISE = 0.2


def squashed(rng, lost):
    """Ten numbers of a body, the mass of which lies near a plane (lost = 1), a line (2) or a point (3)."""
    axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    sigma = axes @ np.diag([0.03, 0.02, 0.01] * np.where(np.arange(3) < 3 - lost, 1, 1e-6)) @ axes.T
    center = np.array([0.02, -0.03, 0.15]) + 0.03 * rng.normal(size=3)
    about_center = np.trace(sigma) * np.eye(3) - sigma
    return inertia.parameters(jnp.asarray(rng.uniform(0.7, 2.0)), jnp.asarray(center), jnp.asarray(about_center))


def arm(seed):
    """(an arm of three axes with squashed bodies, the same with others)."""
    rng, builder = np.random.default_rng(seed), lgsim.ModelBuilder()
    for i, axis in enumerate(np.eye(3)[::-1]):
        placement = np.eye(4)
        placement[:3, 3] = [0.05, 0.02, 0.3 * (i > 0)]
        builder.add_body(
            f"link{i}", f"link{i - 1}" if i else "world", lgsim.joints.Revolute(), placement=placement, axis=axis,
            mass=1.5, center=[0.0, 0.0, 0.1], inertia=np.eye(3) / 30, damping=0.1, lower=-2.0, upper=2.0,
        )  # fmt: skip
    prior = builder.build()
    bodies = jnp.stack([squashed(rng, lost) for lost in (1, 2, 1)])
    return prior.replace(inertias=bodies), prior


def half_vector(matrices):
    """The upper triangles of symmetric matrices, column by column, whose length is that of the matrix."""
    j, i = np.tril_indices(matrices.shape[-1])
    return matrices[..., i, j] * np.where(i == j, 1, np.sqrt(2))


def best_cost(parameters, samples):
    """Half the sum of squares in standard deviations of the best numbers that exist, by an interior-point method."""
    plant, indices = parameters.plant, parameters.affine_indices

    @jax.jit
    def signals(theta):
        moved = plant.with_dynamic_parameters(plant.dynamic_parameters.at[indices].set(theta))
        return moved.signals(samples.q, samples.v, samples.a).reshape(-1)

    k = len(indices)
    # the signals are affine, and have no constant part
    Y = np.stack([signals(row) for row in jnp.eye(k)], axis=1) / NOISE
    y = np.asarray(samples.signals).reshape(-1) / NOISE
    bodies = len(plant.model.body_names)
    pseudo = half_vector(np.asarray(inertia.pseudo_inertia(jnp.eye(10))))
    cone = sparse.block_diag([*[-pseudo.T] * bodies, -np.eye(k - 10 * bodies)], format="csc")
    cones = [clarabel.PSDTriangleConeT(4)] * bodies + [clarabel.NonnegativeConeT(k - 10 * bodies)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic = sparse.csc_matrix(np.triu(Y.T @ Y))
    found = clarabel.DefaultSolver(quadratic, -Y.T @ y, cone, np.zeros(cone.shape[0]), cones, settings).solve()
    assert found.status == clarabel.SolverStatus.Solved
    return np.sum((Y @ np.array(found.x) - y) ** 2) / 2


@pytest.mark.slow
@pytest.mark.oracle
def test_bodies_without_a_prior_end_at_the_best_ones_that_exist():
    """The optimum under linear matrix inequalities, but for the barrier's small part, in few steps."""
    run = eqx.filter_jit(lambda parameters, samples: TorqueFit(noise=NOISE).run(parameters, samples))
    edges = 0
    for seed in (0, 3, 6, 9):
        true, prior = arm(seed)
        samples = arms.samples(Plant(true), 400, seed=seed, noise=NOISE)
        blocks = [Inertias(prior_deviation=None), JointParameter("damping")]
        parameters = Parameters(prior, blocks)
        estimate = run(parameters, samples)
        found = Fit(parameters, estimate, samples, estimator=TorqueFit(noise=NOISE))
        assert found.verdict.converged, found.verdict
        assert int(estimate.iterations) < 50
        edges += bool(found.verdict.bounds)
        cost, best = np.sum((np.asarray(found.residuals()) / NOISE) ** 2) / 2, best_cost(parameters, samples)
        assert -1e-5 * best < cost - best < 0.05
    assert edges == 3
