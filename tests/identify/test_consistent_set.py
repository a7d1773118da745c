"""Numbers of drives that trade with bodies: ends of their intervals, against closed forms and independent solvers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.identify.consistent_set import HALF_CHI_SQUARE, ConsistentSet, profile
from lgsim.identify.estimators.samples import TorqueSamples
from lgsim.identify.estimators.torque_fit import TorqueFit
from lgsim.identify.fit import Fit
from lgsim.identify.unknowns.body_blocks import Inertias
from lgsim.identify.unknowns.frame_blocks import SharedBlock
from lgsim.identify.unknowns.joint_blocks import JointParameter
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.multibody import inertia
from tests.identify import arms


def one_body(information, center, lower=0.0, unit=1.0):
    """Coordinates: the ten of a body, then a number of a drive with a lower bound."""
    y = np.zeros(11)
    bounds = np.full(11, -np.inf), np.full(11, np.inf)
    bounds[0][10] = lower
    (B,) = Inertias().pencils(10)
    y[10] = max(lower, 0) + 0.1 * unit
    return ConsistentSet(y, [(np.arange(10), B)], *bounds), information, center


def test_linear_coordinates_are_those_of_the_pseudo_inertia():
    """Back and forth, and the body of coordinates y by the ten parameters themselves."""
    rng = np.random.default_rng(0)
    for block, size in ((Inertias(), 20), (SharedBlock(Inertias(), 2, [[1.0] * 10, [1] * 7 + [-1] * 3]), 10)):
        x = 0.5 * rng.normal(size=size)
        np.testing.assert_allclose(block.from_linear(block.linear(x)), x, atol=1e-12)
    model = arms.planar()
    p = Parameters(model, Inertias())
    x = 0.3 * rng.normal(size=20)
    y = Inertias().linear(x)
    theta = np.asarray(p.plant_at(jnp.asarray(x)).model.inertias)
    half = np.asarray(p.plant_at(jnp.asarray(Inertias().from_linear(y / 2))).model.inertias)
    np.testing.assert_allclose(half, (theta + np.asarray(model.inertias)) / 2, atol=1e-12)
    for k, B in enumerate(Inertias().pencils(20)):
        Q = np.eye(4) + B @ y[10 * k : 10 * k + 10]
        U = np.linalg.cholesky(np.asarray(inertia.pseudo_inertia(model.inertias[k]))[::-1, ::-1])[::-1, ::-1]
        np.testing.assert_allclose(U @ Q @ U.T, inertia.pseudo_inertia(jnp.asarray(theta[k])), atol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e6])
def test_the_sum_of_a_drive_and_a_body_bounds_the_drive(unit):
    """``I + a = 5 +- 0.1`` with ``I = 4 y_0 + 2 y_1 + 2 y_2 + 2 > 0``: a from 0 to 5 + 1.96 times 0.1.

    The diagonal of the relative pseudo-inertia is ``1 + 2 y_0 + 2 y_i``; its first two entries sum up to I.
    """
    row = np.zeros(11)
    row[:3], row[10] = (4, 2, 2), 1 / unit
    center = np.zeros(11)
    center[10] = 3 * unit
    low, high = profile(*one_body(np.outer(row, row) / 0.01, center, 0.0, unit), 10)
    assert low == pytest.approx(0, abs=0.01 * unit) and low >= 0
    assert high == pytest.approx((5 + 0.1 * np.sqrt(2 * HALF_CHI_SQUARE)) * unit, rel=2e-3)


def test_without_a_body_the_interval_is_that_of_least_squares():
    """And cut at the bound, where the minimum is outside."""
    for center, lower in ((2.0, 0.0), (-0.1, 0.0)):
        H = np.zeros((11, 11))
        H[10, 10] = 4.0
        low, high = profile(*one_body(H, np.r_[np.zeros(10), center], lower), 10)
        best = max(center, lower)
        # the cost rises by 1.92 from its minimum in the set
        reach = np.sqrt((best - center) ** 2 + 2 * HALF_CHI_SQUARE / 4)
        assert high == pytest.approx(center + reach, abs=3e-3)
        assert low == pytest.approx(max(lower, center - reach), abs=3e-3)


def test_what_nothing_bounds_is_open():
    """A number that only enters a difference: without an upper end; one that enters nothing, with neither."""
    row = np.zeros(11)
    row[0], row[10] = 2, -1
    low, high = profile(*one_body(np.outer(row, row) / 0.01, np.zeros(11), -np.inf), 10)
    # the mass is not negative: 1 + 2 y_0 > 0
    assert low == pytest.approx(-1 - 0.196, rel=0.01) and high == np.inf


@pytest.mark.parametrize("seed", range(4))
def test_ends_of_random_problems_by_an_interior_point_solver(seed):
    """clarabel: the least cost, and the ends of the last coordinate under a second-order cone and the inequality."""
    clarabel, sparse = pytest.importorskip("clarabel"), pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(5 + seed, 11)) * 10
    center = np.r_[0.5 * rng.normal(size=10), 0.3]
    (B,) = Inertias().pencils(10)
    # the upper triangle by columns, off the diagonal times the root of two
    places = [(i, j) for j in range(4) for i in range(j + 1)]
    rows = np.array([[(1 if i == j else 2**0.5) * x for x in (*B[i, j], 0)] for i, j in places])
    ones = np.array([float(i == j) for i, j in places])
    settings = clarabel.DefaultSettings()
    settings.verbose = False

    def solved(P, q, A, b, cones):
        return clarabel.DefaultSolver(sparse.csc_matrix(P), q, sparse.csc_matrix(A), b, cones, settings).solve()

    A, b = np.vstack([-rows, -np.eye(11)[10:]]), np.r_[ones, 0]
    cones = [clarabel.PSDTriangleConeT(4), clarabel.NonnegativeConeT(1)]
    least = solved(J.T @ J, -J.T @ J @ center, A, b, cones)
    limit = 2 * (least.obj_val + center @ J.T @ J @ center / 2 + HALF_CHI_SQUARE)
    # |J (y - center)|^2 <= limit
    A = np.vstack([A, np.zeros(11), -J])
    b, cones = np.r_[b, limit**0.5, -J @ center], [*cones, clarabel.SecondOrderConeT(len(J) + 1)]
    ends = profile(*one_body(J.T @ J, center), 10)
    for side, end in zip((1, -1), ends, strict=True):
        found = solved(np.zeros((11, 11)), side * np.eye(11)[10], A, b, cones)
        if found.status == clarabel.SolverStatus.DualInfeasible:
            assert end == -side * np.inf
        else:
            assert found.status == clarabel.SolverStatus.Solved
            assert end == pytest.approx(found.x[10], abs=5e-3 * max(1, abs(found.x[10])))


def wheel(moment, armature):
    """A body on a motor about its axis of symmetry."""
    inertia_matrix = np.diag([0.6, 0.6, 1.0]) * moment
    return (
        lgsim.ModelBuilder()
        .add_body("wheel", "world", lgsim.joints.Revolute(), joint_name="motor", axis=[0, 0, 1], mass=2.0,
                  center=np.zeros(3), inertia=inertia_matrix, armature=armature)
        .build()
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("deviation", [1.0, None])
def test_an_armature_against_the_inertia_of_its_body(deviation):
    """Torques show the sum of the armature, 4.02, and of the body's moment, 0.6, of which the file has 4.6.

    Any armature fits, from 0 to the sum and its 1.96 standard errors by linear regression; with a prior of the body as
    without. Twenty records.
    """
    true, drive = wheel(0.6, 4.02), "armature of motor, kg m^2"
    p = Parameters(wheel(4.6, 0.0), [Inertias(prior_deviation=deviation), JointParameter("armature")])
    records = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q, v, a = rng.normal(size=(3, 100, 1))
        tau = 4.62 * a + 0.5 * rng.normal(size=a.shape)
        records.append(TorqueSamples(*map(jnp.asarray, (q, v, a, tau))))
    together = jax.tree.map(lambda *x: jnp.stack(x), *records)
    estimates = eqx.filter_jit(eqx.filter_vmap(lambda s: TorqueFit(lags=0).run(p, s)))(together)
    for k, samples in enumerate(records):
        found = Fit(p, jax.tree.map(lambda x, k=k: x[k], estimates), samples)
        low, high = found.intervals[drive]
        a, tau = (np.asarray(x)[:, 0] for x in (samples.a, samples.signals))
        error = np.sqrt(np.sum((tau - a * (a @ tau) / (a @ a)) ** 2) / 99 / (a @ a))
        assert low == 0 and high == pytest.approx((a @ tau) / (a @ a) + 1.96 * error, rel=2e-3)
        assert low <= float(true.armature[0]) <= high
        assert found.deviations[drive] == pytest.approx(high / 2 / 1.96, rel=1e-3)
        assert "only the prior separates from bodies: armature of motor from 0 to 4." in str(found.verdict)
