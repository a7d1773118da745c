"""Levenberg-Marquardt against known minima, scipy in a box, and a flat valley."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import least_squares

from lgsim._compile.linalg.levenberg_marquardt import RESULTS, BoxStep, LevenbergMarquardt, NormalEquations

INF = jnp.full(2, jnp.inf)


def solve(residual, x0, lower=-INF, upper=INF, **options):
    def normal(x, _):
        r, J = residual(x), jax.jacfwd(residual)(x)
        return NormalEquations(r @ r / 2, J.T @ r, J.T @ J)

    return jax.jit(
        lambda x: LevenbergMarquardt(normal, lambda x, _: residual(x) @ residual(x) / 2, lower, upper, **options).find(
            x
        )
    )(jnp.asarray(x0))


def rosenbrock(x):
    return jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


@pytest.mark.quick
def test_rosenbrocks_valley_is_followed_to_its_end():
    found = solve(rosenbrock, [-1.2, 1.0])
    np.testing.assert_allclose(found.x, [1, 1], atol=1e-6)
    assert RESULTS[found.result] == "" and not np.any(found.held)
    costs = np.asarray(found.costs[: int(found.iterations)])
    assert np.all(np.diff(costs) <= 0) and np.all(np.isnan(found.costs[int(found.iterations) :]))


def test_bounds_hold_as_scipys_do():
    lower, upper = np.array([-2.0, -2.0]), np.array([0.5, 2.0])
    found = solve(rosenbrock, [-1.2, 1.0], jnp.asarray(lower), jnp.asarray(upper), tolerance=1e-12)
    reference = least_squares(lambda x: np.asarray(rosenbrock(jnp.asarray(x))), [-1.2, 1.0], bounds=(lower, upper))
    np.testing.assert_allclose(found.x, reference.x, atol=1e-4)
    np.testing.assert_array_equal(found.held, [True, False])


@pytest.mark.parametrize(
    ("residual", "message"),
    [(lambda x: jnp.stack([jnp.log(x[0] - 5), x[1]]), "not finite"),
     (lambda x: rosenbrock(x) * 3 + 1, "All iterations were used")],
)  # fmt: skip
def test_what_went_wrong_is_told(residual, message):
    assert message in RESULTS[solve(residual, [-1.2, 1.0], max_iterations=2).result]


def test_an_unknown_that_nothing_depends_on_stays():
    found = solve(lambda x: jnp.stack([x[0] - 3, 2 * x[0] - 5]), [0.0, 0.7])
    np.testing.assert_allclose(found.x, [13 / 5, 0.7], atol=1e-6)
    assert RESULTS[found.result] == ""


class ShortStep(BoxStep):
    """A ten-billionth of the way."""

    def propose(self, normal, D, mu, x, lower, upper):
        whole = super().propose(normal, D, mu, x, lower, upper)
        dx = 1e-10 * (whole.x - x)
        return whole._replace(
            x=x + dx, predicted=-(normal.gradient @ dx + dx @ normal.hessian @ dx / 2), promised=whole.predicted
        )


def test_shortened_steps_are_no_end():
    """What the whole step promises counts, not what the step brings that is left of it."""
    found = solve(lambda x: x - 10.0, [0.0, 0.0], linear_step=ShortStep(), max_iterations=4)
    assert "All iterations were used" in RESULTS[found.result] and int(found.iterations) == 4
    np.testing.assert_allclose(found.x, 4e-9, rtol=1e-3)
