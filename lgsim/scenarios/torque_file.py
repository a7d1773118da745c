"""Joint forces over time from a csv file, for the table `[control]`."""

from __future__ import annotations

import csv
import io

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from lgsim.multibody import Model
from lgsim.support.messages import unknown_name
from lgsim.support.reading.size_limits import FileSizeError, read_bytes
from lgsim.support.toml_table import Table

_MISSED = 0.01
"""The largest distance of a row from the line between steps, relative to the largest force of the joint."""
TIME = "time"
"""Column of the times, s."""


def read_torques(table: Table, key: str, model: Model, times: Float[np.ndarray, " nodes"]) -> Float[Array, "nodes nv"]:
    """Interpolate joint forces linearly between the rows of a csv file, whose name is the value of a key.

    The header has the names "time", s, and joints, N m or N; "ball[0]", "ball[1]", ... for a joint with several degrees
    of freedom. A unit in brackets after a space, as ``Trajectory.save`` writes it, and the prefix "tau " are ignored.
    Joints without a column have no force. The first and last rows extend to earlier and later times.

    Raises:
        ScenarioError: the file cannot be read, a column or a number is invalid, or the steps miss what the rows between
            them say.
    """
    path = table.document.file.parent / table.text(key, "")
    try:
        text = io.StringIO(read_bytes(path).decode(), newline="")
        header, *rows = [row for row in csv.reader(text) if row]
        values = np.array([[float(x) for x in row] for row in rows], float).reshape(len(rows), -1)
    except OSError as error:
        raise table.fault(key, f"{path}: the file cannot be read: {error.strerror}") from error
    except FileSizeError as error:
        raise table.fault(key, str(error)) from error
    except (ValueError, csv.Error) as error:
        raise table.fault(key, f"{path}: expected a header and rows of the same length: {error}") from error
    if not len(rows) or values.shape[1] != len(header) or not np.all(np.isfinite(values)):
        raise table.fault(key, f"{path}: expected a header and rows of as many finite numbers")
    columns = _columns(model)
    plain = [name.strip().partition(" [")[0].removeprefix("tau ") for name in header]
    forces = dict(zip(plain, values.T, strict=True))
    at = forces.pop(TIME, None)
    for name in forces:
        if name not in columns:
            raise table.fault(key, f"{path}: {unknown_name('expected time and names of joints', name, list(columns))}")
    if at is None or np.any(np.diff(at) <= 0):
        raise table.fault(key, f"{path}: expected a column {TIME!r} of increasing times, s")
    out = np.zeros((len(times), model.nv))
    for name, column in forces.items():
        out[:, columns[name]] = np.interp(times, at, column)
        _check_steps(table, key, times, out[:, columns[name]], at, column, f"{path}: {name}")
    return jnp.asarray(out, model.dtype)


def _check_steps(
    table: Table,
    key: str,
    times: Float[np.ndarray, " nodes"],
    force: Float[np.ndarray, " nodes"],
    at: Float[np.ndarray, " rows"],
    column: Float[np.ndarray, " rows"],
    what: str,
) -> None:
    """Raise an error if a joint force that is linear between the steps misses rows of its file.

    Args:
        force: The joint force at the times of the steps.
        at: The times of the rows, s.
        column: The joint force of the rows.
    """
    inside = (at > times[0]) & (at < times[-1])
    off = np.abs(np.interp(at[inside], times, force) - column[inside])
    most = _MISSED * np.abs(column).max()
    if not off.size or off.max() <= most:
        return
    row, dt = at[inside][off.argmax()], times[1] - times[0]
    raise table.fault(
        key,
        f"{what} at {row:g} s is {off.max():.3g} from the line between two steps of dt = {dt:g} s: expected at most"
        f" {100 * _MISSED:g} % of its largest value ({most:.3g}); use a dt of {np.diff(at).min():g} s, the smallest"
        " time between rows, or give the file fewer rows",
    )


def _columns(model: Model) -> dict[str, int]:
    """Indices of joint forces by the names of their columns."""
    found = {}
    for name, part in model.v_slices.items():
        count = part.stop - part.start
        found |= {name if count == 1 else f"{name}[{i}]": part.start + i for i in range(count)}
    return found
