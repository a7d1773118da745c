"""The split of a wrench within cones against Clarabel, an independent solver of convex programs."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lgsim.lie import se3
from lgsim.simulation import controls
from lgsim.systems.biped import biped, biped_feet, biped_gains, biped_stance
from tests.dynamics.machines import close

clarabel = pytest.importorskip("clarabel")
sparse = pytest.importorskip("scipy.sparse")

WRENCHES = {
    "standing": (0.0, 0.0, 640.0, 0.0, 0.0, 0.0),
    "at the toes": (40.0, 0.0, 640.0, 10.0, -5.0, 3.0),
    "on one foot": (5.0, 60.0, 640.0, -55.0, -30.0, 5.0),
    "too far forward": (200.0, 0.0, 640.0, 0.0, 300.0, 0.0),
    "slides": (800.0, 100.0, 640.0, 0.0, -700.0, 60.0),
    "lifted": (10.0, 0.0, -150.0, 3.0, 0.0, 0.0),
    "nothing": (0.0,) * 6,
}


def on_body(feet, seed=0):
    """Maps from wrenches in the frames of feet that stand askew to wrenches on the body."""
    rng = np.random.default_rng(seed)
    maps = []
    for i, foot in enumerate(feet):
        turn = 0.2 * rng.normal(size=3)
        place = np.array([0.05 * (-1) ** (i // 2), 0.1 * (-1) ** i, -0.8]) + 0.02 * rng.normal(size=3)
        T = se3.exp(jnp.concatenate([jnp.asarray(place), jnp.asarray(turn)]))
        maps.append(jnp.where(np.array(foot.held)[None], se3.Ad_dual(se3.inverse(T)), 0.0))
    return jnp.stack(maps)


def peer(feet, maps, total, split, barrier=False):
    """Wrenches (feet, 6) by Clarabel: the limit of no rounding, or the central path by exponential cones."""
    n = 6 * len(feet)
    B = np.hstack([np.asarray(m) for m in maps])
    weights = np.ones((len(feet), 6)) * np.broadcast_to(np.asarray(split.shares), len(feet))[:, None]
    weights[:, 3:] *= float(split.arm) ** 2
    scale = np.array([1.0] * 3 + [1 / float(split.arm)] * 3)
    B, b = B * scale[:, None], np.asarray(total) * scale
    C = [np.asarray(foot.cone()) for foot in feet]
    rows = sum(map(len, C))
    full = np.zeros((rows, n))
    at = 0
    for i, cone in enumerate(C):
        full[at : at + len(cone), 6 * i : 6 * i + 6] = cone
        at += len(cone)
    extra = rows if barrier else 0
    # unknowns: wrenches, what is missing, logarithms
    P = np.diag([*(1 / weights.ravel()), *(np.ones(6) / float(split.give)), *np.zeros(extra)])
    c = np.concatenate([np.zeros(n + 6), -(float(split.rounding) ** 2) * np.ones(extra)])
    A = [np.hstack([B, np.eye(6), np.zeros((6, extra))])]
    right, cones = [b], [clarabel.ZeroConeT(6)]
    if barrier:
        for r in range(rows):
            block = np.zeros((3, n + 6 + rows))
            block[0, n + 6 + r] = -1
            block[2, :n] = -full[r]
            A.append(block)
            right.append(np.array([0.0, 1.0, 0.0]))
            cones.append(clarabel.ExponentialConeT())
    else:
        A.append(np.hstack([-full, np.zeros((rows, 6))]))
        right.append(np.zeros(rows))
        cones.append(clarabel.NonnegativeConeT(rows))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solver = clarabel.DefaultSolver(
        sparse.csc_matrix(P), c, sparse.csc_matrix(np.vstack(A)), np.concatenate(right), cones, settings
    )
    found = solver.solve()
    return np.array(found.x[:n]).reshape(-1, 6)


FEET = {
    "two soles": biped_feet(),
    "sole and points": (
        controls.FlatFoot("a", front=0.1, back=0.05, side=0.04),
        controls.PointFoot("b", friction=0.5),
        controls.PointFoot("c"),
    ),
}


@pytest.fixture(scope="module")
def shared():
    """Compiled once for all wrenches."""
    return eqx.filter_jit(lambda split, feet, maps, total: split(feet, maps, total))


@pytest.mark.repeats("sole and points")
@pytest.mark.parametrize("feet", FEET)
def test_is_the_minimum_of_an_independent_solver(feet, shared):
    feet = FEET[feet]
    maps = on_body(feet)
    sharp = controls.ConeSplit(arm=0.3, shares=jnp.arange(1.0, 1 + len(feet)), give=1e-2, rounding=1e-2)
    for name, total in WRENCHES.items():
        found = shared(sharp, feet, maps, jnp.array(total))
        expected = peer(feet, maps, total, sharp)
        np.testing.assert_allclose(found, expected, atol=2e-2, err_msg=name)
        for foot, wrench in zip(feet, found, strict=True):
            assert np.all(foot.cone() @ wrench > 0), name
            assert np.all(np.asarray(wrench)[~np.array(foot.held)] == 0), name


def test_is_the_stated_point_of_the_central_path(shared):
    feet = FEET["sole and points"]
    maps, split = on_body(feet), controls.ConeSplit(arm=0.5, give=1e-2, rounding=3.0)
    for name, total in WRENCHES.items():
        found = shared(split, feet, maps, jnp.array(total))
        np.testing.assert_allclose(found, peer(feet, maps, total, split, barrier=True), atol=2e-5, err_msg=name)


@pytest.mark.slow
def test_far_from_the_faces_it_is_the_least_norm_split(shared):
    feet = biped_feet()
    maps, inside = on_body(feet), jnp.array([2.0, 1.0, 320.0, 3.0, -8.0, 0.5])
    total = jnp.sum(maps @ inside, axis=0)
    cones = controls.ConeSplit(arm=0.1, give=1e-9, rounding=1e-6)
    close(shared(cones, feet, maps, total), controls.LeastNorm(arm=0.1)(feet, maps, total), 1e-8)


@pytest.mark.slow
@pytest.mark.typed
def test_what_cannot_be_met_is_told():
    """In the law: little is missing where the feet can give the wrench, and what they cannot give is named."""
    model = biped(ground=False)
    q = biped_stance(model)
    gains = biped_gains()._asdict()
    v = jnp.zeros(model.nv)

    def forces(speed):
        law = controls.Workspace.from_model(model, q, biped_feet(), split=controls.ConeSplit(), **gains)
        return law.forces(0.0, q, v.at[0].set(speed), model)

    found = jax.jit(jax.vmap(forces))(jnp.array([0.0, 0.05, 3.0]))
    weight = 9.81 * float(jnp.sum(model.inertias[:, 0]))
    cone = FEET["two soles"][0].cone()
    assert np.all(np.einsum("rk,bfk->bfr", cone, found.feet) > 0)
    assert np.abs(found.missing[:2]).max() < 3e-4 * weight
    assert np.abs(found.missing[2]).max() > 0.1 * weight
    law = controls.Workspace.from_model(model, q, biped_feet(), **gains)
    free = law.forces(0.0, q, v.at[0].set(3.0), model)
    # the least-norm split gives the whole wrench, outside of the cones
    assert np.abs(free.missing).max() < 1e-9 * weight and np.min(free.feet @ cone.T) < 0


@pytest.mark.slow
def test_derivatives_of_first_and_second_order_are_those_of_the_minimum():
    feet = FEET["sole and points"]
    maps, rng = on_body(feet), np.random.default_rng(3)
    weights = jnp.asarray(rng.normal(size=(3, 6)))

    def value(x):
        split = controls.ConeSplit(arm=0.3, give=1e-2, rounding=2.0 + x[6])
        near = (eqx.tree_at(lambda foot: foot.friction, feet[0], 0.7 + x[7]), *feet[1:])
        return jnp.sum(weights * split(near, maps, x[:6] + 10 * x[6] ** 2))

    gradient = jax.jit(jax.grad(value))
    hessian = jax.jit(jax.hessian(value))
    x = jnp.array([40.0, 20.0, 640.0, 10.0, -60.0, 3.0, 0.1, 0.05])
    move, h = jnp.asarray(rng.normal(size=8)), 1e-3
    value = jax.jit(value)
    near, far = (value(x + k * h * move) - value(x - k * h * move) for k in (1, 2))
    close(gradient(x) @ move, (8 * near - far) / (12 * h), 1e-7)
    close(hessian(x) @ move, (gradient(x + h * move) - gradient(x - h * move)) / (2 * h), 1e-4)


@pytest.mark.slow
@pytest.mark.float32
def test_float32():
    feet = biped_feet(np.float32)
    maps = on_body(feet).astype(np.float32)
    split = eqx.filter_jit(controls.ConeSplit(give=1e-2))
    for name in ("standing", "at the toes", "on one foot", "nothing"):
        found = split(feet, maps, jnp.array(WRENCHES[name], np.float32))
        assert found.dtype == np.float32 and np.all(np.isfinite(found)), name
        assert np.all(found @ feet[0].cone().T >= 0), name


def test_bad_numbers_are_named():
    feet = biped_feet()
    for name in ("arm", "shares", "give", "rounding"):
        with pytest.raises(ValueError, match=f"{name}: expected a positive number, got 0.0"):
            controls.ConeSplit(**{name: 0.0})(feet, on_body(feet), jnp.zeros(6))
