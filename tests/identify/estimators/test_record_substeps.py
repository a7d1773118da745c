"""Records that are slower than the motion: integration steps within each step of the record."""

import equinox as eqx
import numpy as np
import pytest

from lgsim import identify
from tests.identify import machines

DT, STEPS = 0.1, 5


def records(substeps=None):
    """Angles of a double pendulum by DOP853, at times that are far apart."""
    q = machines.pendulum_angles(STEPS, DT)
    rates = machines.pendulum_angles(STEPS * 1000, DT / 1000)
    v = np.gradient(rates, DT / 1000, axis=0)[::1000]
    v[0] = 0
    channel = identify.Channel(identify.PositionSensor(), q, 1e-3)
    return identify.SensorRecords(DT, {"q": channel}, states=np.concatenate([q, v], axis=1), substeps=substeps)


@pytest.mark.slow
def test_substeps_follow_the_motion():
    """The error of a method of order four falls by the fourth power; another number compiles nothing."""
    unknowns = identify.Parameters(machines.pendulum(), identify.Masses())
    estimator = identify.SimulationFit(known_start=True)
    compiled = []

    @eqx.filter_jit
    def residuals(samples):
        compiled.append(1)
        return estimator.residuals(unknowns, np.zeros(2), samples)[0]

    errors = [np.max(np.abs(np.asarray(residuals(records(k))))) for k in (None, 1, 16, 32)]
    assert errors[1] == pytest.approx(errors[0], rel=1e-9) and len(compiled) == 2
    assert errors[2] / errors[3] == pytest.approx(16, rel=0.3) and errors[3] < errors[0] / 1e4
    assert records(4).step == DT / 4 and records().step == DT


def test_a_count_of_substeps_is_checked():
    with pytest.raises(ValueError, match="substeps: expected at least 1, got 0"):
        records(0)
