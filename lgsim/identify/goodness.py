"""Goodness of fit: the share of each signal that a fit explains, and its residuals against stated deviations."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim._compile.xla import compiled_fast
from lgsim.identify.estimators.loss import Loss
from lgsim.identify.estimators.records import SensorRecords
from lgsim.identify.estimators.sensors import PositionSensor, VelocitySensor
from lgsim.multibody.model import Model
from lgsim.simulation.trajectory import tau_names
from lgsim.support.verdict import first_names

EXPLAINED = 0.5
"""The smallest explained share of the variance of a signal that passes."""
STATED = 3.0
"""The largest deviation of residuals that passes, in stated standard deviations."""
SMALL = 0.01
"""A signal whose residuals are below this share of the largest signal of its unit is too small to fail a fit."""
SILENT = 1e-6
"""A signal below this share of the largest one of its unit is rounding, and gets no remark."""
_BLOCKS, _ROWS = 5, 4000
"""Number of blocks of the cross-validation, and the largest number of rows that it uses."""
_FEWEST = 20
"""The smallest number of rows of a regression: with fewer, noise reaches ``EXPLAINED`` by chance."""
_CERTAIN, _ROWS_OF_MEAN = 10.0, 4
"""A mean of the residuals counts if it is this many times its standard error, of at least so many rows: noise exceeds
it in 2 of 1000 records.
"""


class Signals(NamedTuple):
    """The recorded signals of a fit, to compare residuals with.

    Attributes:
        values: Recorded signals (n, columns), in the units of the residuals; angles and poses as differences from their
            mean.
        motion: Quantities on which the signals may depend (n, k).
        units: Unit of each column, "" if it is unknown.
        stated: Stated standard deviations of the noise (columns,); None if the fit estimates them.
        loss: The loss of the fit, whose weights exclude outliers.
    """

    values: Float[np.ndarray, "n columns"]
    motion: Float[np.ndarray, "n k"]
    units: list[str]
    stated: Float[np.ndarray, " columns"] | None
    loss: Loss


class Goodness(NamedTuple):
    """How well a fit explains its records.

    Attributes:
        columns: Names of the signals.
        units: Their units.
        explained: ``1 - mean(residual^2) / variance(signal)`` (columns,), with the robust weights of the loss; negative
            if the signal's mean is a better prediction, NaN for a constant signal.
        sizes: Standard deviations of the signals (columns,), in their units.
        levels: Root mean squares of the signals (columns,), in their units.
        normalized: Deviations of the residuals in stated standard deviations (columns,); NaN without stated ones.
        misfits: A sentence for each signal that the fit does not explain.
        remarks: A sentence about the signals that carry too little to judge the fit by.
    """

    columns: list[str]
    units: list[str]
    explained: Float[np.ndarray, " columns"]
    sizes: Float[np.ndarray, " columns"]
    levels: Float[np.ndarray, " columns"]
    normalized: Float[np.ndarray, " columns"]
    misfits: list[str]
    remarks: list[str]

    def line(self, i: int) -> str:
        """The explained share of a signal with its size, such as "97 % of elbow (3.1 N m rms)"."""
        unit = f" {self.units[i]}" if self.units[i] else ""
        return f"{_percent(self.explained[i])} of {self.columns[i]} ({self.sizes[i]:.2g}{unit} rms)"

    def summary(self) -> str:
        """The smallest and the largest explained share; empty if no signal varies."""
        order = [int(i) for i in np.argsort(self.explained) if np.isfinite(self.explained[i])]
        if not order:
            return ""
        ends = self.line(order[0]) + (f" to {self.line(order[-1])}" if len(order) > 1 else "")
        return f"explained variance: {ends}"


def goodness(
    signals: Signals,
    columns: list[str],
    residuals: Float[np.ndarray, "n columns"],
    weights: Float[np.ndarray, "n columns"],
    noise: Float[np.ndarray, " columns"],
) -> Goodness:
    """Judge the residuals of a fit against the signals that it was fitted to.

    A fit does not explain its records if the residuals of a signal are beyond ``STATED`` stated standard deviations, or
    if less than ``EXPLAINED`` of its variance and of its mean square are explained although the record holds more: the
    residuals are then to be above ``SMALL`` of the largest signal of that unit, and

    - with stated deviations, beyond ``STATED`` of them, or
    - without, either worse than a constant, or of a signal of which a linear regression explains more than
      ``EXPLAINED``. Its regressors are the predictions of all signals and ``Signals.motion``. Its share is that of
      blocks that were left out, so that noise, also slow noise, has none: a joint at rest does not fail a fit.

    Args:
        noise: Standard deviations of the noise (columns,), by which the loss identifies outliers.
    """
    y, s2 = signals.values, (residuals / noise) ** 2
    w = np.where(weights > 0, weights * _loss_weights(signals.loss, np.where(weights > 0, s2, 0)), 0)
    total = np.sum(w, axis=0)
    total = np.where(total > 0, total, 1)

    def mean(x: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, " columns"]:
        return np.sum(np.where(w > 0, x, 0) * w, axis=0) / total

    variance, level, left = mean((y - mean(y)) ** 2), mean(y**2), mean(residuals**2)
    explained = 1 - left / np.where(variance > 0, variance, np.nan)
    size, rest = np.sqrt(variance), np.sqrt(left)
    units = np.array(signals.units)
    largest = np.array([np.max(np.sqrt(level), where=units == unit, initial=0) for unit in units])
    normalized = np.full(len(columns), np.nan)
    if signals.stated is not None:
        normalized = np.asarray(signals.loss.deviation(jnp.asarray(residuals / signals.stated), jnp.asarray(weights)))
    found = Goodness(columns, signals.units, explained, size, np.sqrt(level), normalized, [], [])
    far = [int(i) for i in np.flatnonzero(normalized > STATED)]
    if far:
        worst = max(far, key=lambda i: normalized[i])
        others = f" ({len(far)} signals)" if len(far) > 1 else ""
        found.misfits.append(
            f"residuals of {columns[worst]} are {normalized[worst]:.3g} times the stated deviations{others}"
        )
    little = []
    for i in np.flatnonzero((left > EXPLAINED * variance) & (rest > SILENT * largest)):
        if left[i] <= EXPLAINED * level[i]:
            # a constant that the fit explains
            continue
        reached = np.nan
        if signals.stated is not None:
            fails = normalized[i] > STATED
        else:
            used = w[:, i] > 0
            reached = reachable(y[used, i], (y + residuals)[used], signals.motion[used])
            # (n - 1) (left / variance - 1) is the square of Student's t if the prediction is zero
            rows = int(np.sum(used))
            worse = rows >= _ROWS_OF_MEAN and left[i] > variance[i] * (1 + max(1, _CERTAIN**2 / (rows - 1)))
            fails = worse or reached > EXPLAINED
        if fails and rest[i] >= SMALL * largest[i]:
            text = f"channel {columns[i]} explains {_percent(explained[i])} of its variance"
            unit = f" {units[i]}" if units[i] else ""
            text += f" ({size[i]:.2g}{unit} rms, residuals {rest[i]:.2g}{unit})"
            better = f"; a regression on the motion explains {_percent(reached)}" if reached > EXPLAINED else ""
            found.misfits.append(text + better)
        else:
            little.append(found.line(int(i)))
    if little:
        found.remarks.append(f"too little signal to judge the fit by: {first_names(little)}")
    return found


def reachable(
    y: Float[np.ndarray, " n"], predictions: Float[np.ndarray, "n columns"], motion: Float[np.ndarray, "n k"]
) -> float:
    """The share of the variance of y that a linear regression explains in blocks that it was not fitted to.

    It is the larger one of two regressions, on the predictions and on the motion as well; NaN if there are fewer than
    three times as many rows as regressors.
    """
    rows = slice(None, None, -(-len(y) // _ROWS))
    y, found = y[rows], float("nan")
    full = np.concatenate([predictions, motion], axis=1)
    for X in (predictions[rows], full[rows]):
        spread = np.std(X, axis=0)
        X = (X - np.mean(X, axis=0))[:, spread > 0] / spread[spread > 0]
        X = np.concatenate([X, np.ones((len(X), 1))], axis=1)
        if len(y) < max(_FEWEST, 3 * X.shape[1]) or not np.ptp(y) or not np.all(np.isfinite(X)):
            continue
        left = 0.0
        for block in np.array_split(np.arange(len(y)), _BLOCKS):
            others = np.setdiff1d(np.arange(len(y)), block)
            b = np.linalg.lstsq(X[others], y[others], rcond=SILENT)[0]
            # outside of the range of the others a line has no support
            left += float(np.sum((np.clip(X[block] @ b, y[others].min(), y[others].max()) - y[block]) ** 2))
        found = float(np.fmax(found, 1 - left / np.sum((y - y.mean()) ** 2)))
    return found


def _loss_weights(loss: Loss, squares: Float[np.ndarray, "n columns"]) -> Float[np.ndarray, "n columns"]:
    """The weights of a loss; rows are padded to a power of two, so that other numbers of them compile nothing."""
    padded = np.zeros((1 << max(len(squares) - 1, 0).bit_length(), squares.shape[1]), squares.dtype)
    padded[: len(squares)] = squares
    return np.asarray(loss.weight(jnp.asarray(padded)))[: len(squares)]


def torque_signals(model: Model, samples: Any, stated: Any, loss: Loss) -> Signals:
    """The signals of ``TorqueSamples``, with functions of the motion on which joint torques depend.

    Args:
        stated: Standard deviations of the signals (nv,), or None.
    """
    q, v, a, values = (np.asarray(x, float) for x in (samples.q, samples.v, samples.a, samples.signals))
    units = [name.rpartition("[")[2].rstrip("]") for name in tau_names(model)]
    stated = None if stated is None else np.broadcast_to(np.asarray(stated, float), values.shape[-1:])
    return Signals(values, np.concatenate([np.sin(q), np.cos(q), v, np.sign(v), a], axis=1), units, stated, loss)


def sensor_signals(model: Model, records: SensorRecords, estimated: bool, loss: Loss) -> Signals:
    """The signals of ``SensorRecords`` about their mean, in the tangent space at the first reading of each data set.

    Args:
        estimated: True if the fit estimates the noise, so that the deviations of the channels are initial guesses.
    """
    records = records.broadcast(model)
    values, units, stated = [], [], []
    joints = ["rad" if name.endswith("[N m]") else "m" for name in tau_names(model)]
    for channel in records.channels.values():
        rows, w = np.asarray(_from_first(model, channel)), np.asarray(channel.weight)
        total = np.sum(w, axis=1)
        mean = np.sum(rows * w, axis=1) / np.where(total > 0, total, 1)
        values.append((rows - mean[:, None]).reshape(-1, w.shape[-1]))
        stated.append(np.asarray(channel.deviation))
        position, velocity = (isinstance(channel.sensor, kind) for kind in (PositionSensor, VelocitySensor))
        units += joints if position else [f"{u}/s" for u in joints] if velocity else [""] * w.shape[-1]
    drives = [np.asarray(x) for x in (records.signals, records.commands) if x is not None]
    # inputs belong to steps, of which there is one less than nodes
    drives = [np.concatenate([x, x[:, -1:]], axis=1).reshape(-1, x.shape[-1]) for x in drives]
    y = np.concatenate(values, axis=1)
    motion = np.concatenate([np.zeros((len(y), 0)), *drives], axis=1)
    return Signals(y, motion, units, None if estimated else np.concatenate(stated), loss)


@compiled_fast
def _from_first(model: Model, channel: Any) -> Float[jax.Array, "sets nodes size"]:
    """Readings minus the first one of their data set, in its tangent space."""

    def one(rows: Float[jax.Array, " nodes *shape"]) -> Float[jax.Array, "nodes size"]:
        return jax.vmap(lambda x: channel.sensor.difference(model, rows[0], x))(rows)

    return jax.vmap(one)(channel.values)


def _percent(share: float) -> str:
    """A share in percent, with more digits close to one; 0 for a negative one."""
    if not share > 0:
        return "0 %"
    if share >= 1 - SILENT:
        return "100 %"
    digits = int(np.clip(np.ceil(-np.log10(1 - share)) - 1, 0, 2))
    return f"{100 * share:.{digits}f} %"
