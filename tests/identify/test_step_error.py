"""The error of the steps of simulated fits, against DOP853 on hand-written equations and fits by finer steps."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgsim import identify
from lgsim.identify.estimators.records import cut_windows
from lgsim.identify.step_error import FitStepError
from lgsim.integrators.methods import METHODS
from tests.identify import arms
from tests.identify.machines import pendulum, pendulum_angles, pendulum_field

DT, STEPS, NOISE, WINDOW = 0.01, 100, 1e-3, 20


def records(every=1):
    """Angles of the two rods with noise, each ``every``-th of them."""
    q = pendulum_angles(STEPS, DT)
    q = (q + NOISE * np.random.default_rng(1).standard_normal(q.shape))[::every]
    return identify.SensorRecords(every * DT, {"q": identify.Channel(identify.PositionSensor(), q, NOISE)})


def unknowns():
    return identify.Parameters(pendulum(second=1.9), [identify.Masses(bodies=("lower",))])


def found(method, every=1):
    estimator = identify.SimulationFit(window_steps=WINDOW // every, method=METHODS[method])
    return identify.fit(unknowns(), records(every), estimator)


@pytest.fixture(scope="module")
def fits():
    """The fit by each method."""
    return {method: found(method) for method in ("MK4", "MK2", "LieEuler")}


@pytest.mark.slow
def test_the_error_of_the_motion_holds(fits):
    """Root mean squares of what each method makes of the windows less DOP853 from the same starts, by window."""
    for name, fit in fits.items():
        step_error, mass = fit.step_error, float(fit.plant.model.inertias[1, 0])
        windows = cut_windows(records().broadcast(fit.model), fit.plant, WINDOW, 5)
        method, off = METHODS[name], []
        # the residuals of the motion by the method and of the exact one differ by the error of the steps
        own = np.asarray(fit.estimator.resimulated(fit.parameters, fit.estimate, fit.samples, jnp.asarray(1)).residuals)
        for k, start in enumerate(np.asarray(fit.estimate.starts)):
            times = DT * np.arange(WINDOW + 1)
            exact = solve_ivp(
                lambda t, y, m=mass: pendulum_field(t, y, m2=m), (0, times[-1]), start, "DOP853", times,
                rtol=1e-12, atol=1e-12,
            ).y[:2].T  # fmt: skip
            last = k == len(windows.start) - 1
            rows = slice(0, WINDOW + last)
            recorded = np.asarray(windows.values["q"])[k]
            off.append(own[k * WINDOW :][rows] - (exact - recorded)[rows])
        true = np.sqrt(np.mean(np.concatenate(off) ** 2, axis=0))
        assert np.all(true <= 1.5 * step_error.error) and np.all(step_error.error <= 1.5 * true), name
        np.testing.assert_allclose(step_error.order, method.order, atol=0.3)


@pytest.mark.slow
def test_no_unknown_moves_by_more(fits):
    """The mass found by each method less that found by steps that are converged, in deviations."""
    fine = found("MK8")
    x, deviation = float(fine.estimate.x[0]), float(np.sqrt(fine.estimate.covariance[0, 0]))
    assert fine.step_error.shift < 1e-4
    for name, fit in fits.items():
        moved = abs(float(fit.estimate.x[0]) - x) / deviation
        assert moved <= 2 * fit.step_error.shift + 1e-3 and fit.step_error.shift <= 2 * moved + 1e-2, name
    assert fits["MK4"].step_error.resolved and not fits["LieEuler"].step_error.resolved


@pytest.mark.slow
def test_what_is_said(fits):
    """One line: how much of the noise, or that it is not resolved and what to do; nothing without simulation."""
    good, bad = fits["MK4"].step_error.summary(), fits["LieEuler"].step_error.summary()
    assert good.startswith("integration error: at most ") and "of the noise (position " in good
    assert good in fits["MK4"].summary()
    assert bad.startswith("not resolved: with dt = 0.01 s and LieEuler the integration error is ")
    assert "Resample the records at " in bad and bad.endswith(
        "use another method for SimulationFit: a method of higher order."
    )
    arm = arms.planar()
    fit = identify.fit(identify.Parameters(arm, [identify.Masses()]), arms.samples(arm, noise=0.1))
    assert fit.step_error is None and "integration error" not in fit.summary()
    with pytest.raises(TypeError, match="TorqueFit does not simulate, so that it has no step size"):
        fit.estimator.resimulated(fit.parameters, fit.estimate, fit.samples, jnp.asarray(2))


AGAIN = (
    "The differences do not converge at the expected order: resample the records at 1000 Hz and check again, or use"
    " another method for SimulationFit:"
)


@pytest.mark.parametrize(
    ("method", "shift", "order", "text"),
    [
        ("MK4", 0.3, 3.9, "integration error: at most 5 of the noise (b), which shifts the parameters by at most 0.3"
         " standard errors, order 3.9 of 4"),
        ("MK4", 34.2, 3.9, "34 standard errors, order 3.9 of 4. Resample the records at 300 Hz, or use another"
         " method for SimulationFit: a method of higher order."),
        ("MK4", 34.2, 0.3, f"34 standard errors, order 0.3 of 4. {AGAIN} Rodas4, which is stable for fast rates."),
        ("MK4", 3e14, 4.0, f"3e+14 standard errors, order 4 of 4. {AGAIN} a method of higher order."),
        ("variational", np.inf, np.nan, f"inf standard errors. {AGAIN} a method of higher order."),
    ],
)  # fmt: skip
def test_sentences(method, shift, order, text):
    """The signal with the largest share of its noise, and the step or the method to take."""
    found = FitStepError(
        value=np.array([1e-3, 0.5]), tolerance=np.array([1e-2, 0.1]), order=np.array([4.0, order]), method=method,
        claimed=4, dt=0.01, columns=("a", "b"), shift=shift,
    ).with_reason()  # fmt: skip
    assert found.resolved == (shift <= 1)
    bad = (
        f"not resolved: with dt = 0.01 s and {method} the integration error is 5 times the noise (b), which shifts a"
        " parameter by"
    )
    assert found.summary() == (text if found.resolved else f"{bad} {text}")
    np.testing.assert_array_equal(found.shares, [0.1, 5.0])
