"""A simulated motion with its model, method and result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim._compile.xla import tiled_vmap
from lgsim.dynamics.contacts.contact_forces import contact_energy
from lgsim.dynamics.energy import kinetic_energy, potential_energy, spring_energy
from lgsim.dynamics.momentum import center_of_mass, centroidal_momentum
from lgsim.multibody.joint import Joint
from lgsim.multibody.joints import Free, Spherical
from lgsim.multibody.model import Model
from lgsim.multibody.serialization import fingerprint
from lgsim.simulation import trajectory_files
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.simulation.between_states import Quantity, States, extreme, first_crossing, interpolate_state
from lgsim.simulation.limits import LimitUse, limit_rows, limit_uses, limit_warnings
from lgsim.support.padded_batches import in_padded_batches
from lgsim.support.printable import printable
from lgsim.support.reading.file_faults import file_faults


@dataclass(frozen=True)
class TrajectorySummary:
    """A summary of a motion; ``print`` shows it as a table.

    Attributes:
        rows: (name, text) of each fact.
        warnings: Possible problems of the motion; empty if there are none.
    """

    rows: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        rows = [f"{name:<{width}}  {text}" for name, text in self.rows]
        return "\n".join(map(printable, [*rows, *map("warning: {}".format, self.warnings)]))


@dataclass(frozen=True)
class Trajectory:
    """A simulated motion of one model at the saved times, in numpy arrays.

    Attributes:
        time: Times of the saved states, s, (n,).
        q: Configurations (n, nq).
        v: Velocities (n, nv), rad/s or m/s; of groups and a floating base in the child's frame.
        tau: Joint forces of the drives (n, nv), N m or N.
        dt: Step, s; NaN for adaptive steps.
        result: The reason and the time of an early end; empty otherwise.
        version: Version of lgsim that computed the motion.
        step_error: The estimated integration error at the saved states; None if it was not requested.
        remark: The reason why ``Automatic`` chose the stiff method; empty otherwise.

    Raises:
        ValueError: the shape of an array does not fit the model and the times.
    """

    model: Model
    time: Float[np.ndarray, " times"]
    q: Float[np.ndarray, "times nq"]
    v: Float[np.ndarray, "times nv"]
    tau: Float[np.ndarray, "times nv"]
    method: str = ""
    dt: float = float("nan")
    result: str = ""
    version: str = ""
    step_error: StepError | None = None
    remark: str = ""

    def __post_init__(self) -> None:
        if self.time.ndim != 1:
            raise ValueError(f"time: expected shape (n,), got {self.time.shape}")
        n, widths = len(self.time), {"q": self.model.nq, "v": self.model.nv, "tau": self.model.nv}
        for name, width in widths.items():
            if getattr(self, name).shape != (n, width):
                raise ValueError(f"{name}: expected shape ({n}, {width}), got {getattr(self, name).shape}")

    def __len__(self) -> int:
        """The number of saved states."""
        return len(self.time)

    def __getitem__(self, part: slice) -> Trajectory:
        """A part of the motion, selected by a slice of the saved states.

        Raises:
            TypeError: the part is not a slice.
        """
        if not isinstance(part, slice):
            raise TypeError(f"trajectory: expected a slice such as [10:20], got {part!r}; use .q[i] for one state")
        error = None if self.step_error is None else self.step_error[part]
        return replace(
            self, step_error=error, **{name: getattr(self, name)[part] for name in ("time", "q", "v", "tau")}
        )

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the model; equal models have equal fingerprints."""
        return fingerprint(self.model)

    @property
    def kinetic_energy(self) -> Float[np.ndarray, " times"]:
        """The kinetic energy of each saved state, J, (n,)."""
        return self._energies[0]

    @property
    def potential_energy(self) -> Float[np.ndarray, " times"]:
        """The potential energy of gravity and of joint springs, J, (n,)."""
        return self._energies[1]

    @property
    def energy(self) -> Float[np.ndarray, " times"]:
        """The sum of kinetic and potential energy, J, (n,)."""
        return self.kinetic_energy + self.potential_energy

    @cached_property
    def momentum(self) -> Float[np.ndarray, "times 6"]:
        """The linear and angular momentum about the world's origin, in world axes, kg m/s and kg m^2/s, (n, 6)."""
        return in_padded_batches(partial(momenta, self.model), self.q, self.v)

    @cached_property
    def constraint_error(self) -> Float[np.ndarray, " times"]:
        """The largest deviation of a quaternion's norm from 1, (n,)."""
        worst = np.zeros(len(self))
        for i, joint in enumerate(self.model.topology.joints):
            if isinstance(joint, Free | Spherical) and self.model.topology.mimics[i] is None:
                part = self.q[:, self.model.topology.q_slice(i)][:, -4:]
                worst = np.maximum(worst, np.abs(np.linalg.norm(part, axis=1) - 1))
        return worst

    def resample(self, time: ArrayLike | Sequence[float]) -> Trajectory:
        """The motion at other times, between the first and the last one.

        q is interpolated by a cubic in the algebra that matches the saved velocities at both ends (error O(h^4)). v is
        the velocity of that cubic (O(h^3)), and tau is linear. A rotation between two saved states must not exceed half
        a turn. ``step_error`` includes the estimated error of the interpolation.

        Args:
            time: The times, s, (m,), in any order.

        Raises:
            ValueError: a time is outside the range, or there are fewer than two states.
        """
        time = np.atleast_1d(np.asarray(time, self.time.dtype))
        if len(self) < 2 or not np.all((time >= self.time[0]) & (time <= self.time[-1])):
            raise ValueError(f"time: expected times from {self.time[0]:g} to {self.time[-1]:g} s, got {time}")
        i = np.clip(np.searchsorted(self.time, time, side="right") - 1, 0, len(self) - 2)
        h = self.time[i + 1] - self.time[i]
        s = (time - self.time[i]) / h
        ends = (jnp.asarray(x[j]) for j in (i, i + 1) for x in (self.q, self.v))
        q, v = _interpolate(self.model, *ends, jnp.asarray(h), jnp.asarray(s))
        tau = self.tau[i] + s[:, None] * (self.tau[i + 1] - self.tau[i])
        error = None if self.step_error is None else self._interpolation_error(self.step_error, i, s)
        return replace(self, time=time, q=np.asarray(q), v=np.asarray(v), tau=tau, step_error=error)

    def _interpolation_error(self, error: StepError, i: Int[np.ndarray, " m"], s: Float[np.ndarray, " m"]) -> StepError:
        """The integration error at the fractions s of the intervals i, with the error of the interpolation.

        That is estimated from the interpolation of each saved state between both neighbors, infinite without any.
        """
        nv, value = self.model.nv, error.value[i + (s > 0)].copy()
        off = np.full((len(self), 2, nv), np.inf if len(self) < 3 else 0.0)
        if len(self) > 2:
            before, after = self.time[1:-1] - self.time[:-2], self.time[2:] - self.time[1:-1]
            whole = before + after
            ends = (jnp.asarray(x[j]) for j in (slice(None, -2), slice(2, None)) for x in (self.q, self.v))
            q, v = _interpolate(self.model, *ends, jnp.asarray(whole), jnp.asarray(before / whole))
            place = np.asarray(self.model.difference(jnp.asarray(self.q[1:-1]), q))
            ratio = (np.maximum(before, after) / whole)[:, None]
            # one order less than those of a smooth motion, which may have impacts
            part = 4 * (before * after / whole**2)[:, None]
            off[1:-1] = np.stack(
                [np.abs(place) / part**2 * ratio**3, np.abs(np.asarray(v) - self.v[1:-1]) / part * ratio**2], axis=1
            )
            off[0], off[-1] = off[1], off[-2]
        own = np.maximum(off[i], off[i + 1])
        inner = 4 * s * (1 - s)
        for k, weight in enumerate((inner**2, inner)):
            own[:, k] = np.multiply(own[:, k], weight[:, None], out=np.zeros((len(i), nv)), where=weight[:, None] > 0)
        value[:, : 2 * nv] += own.reshape(len(i), 2 * nv)
        far = error.resolved and not (value[:, :nv] <= error.tolerance[:nv]).all()
        reason = "the error of the interpolation between the saved states is large; save more of them"
        return replace(error, value=value, reason=reason if far else error.reason)

    def maximum(self, quantity: Quantity) -> tuple[float, float]:
        """The largest value of a quantity over the motion, between saved states too, and its time, s.

        The motion is interpolated as in ``resample``, in each interval with an error O(h^4) for a function of q, and
        O(h^3) for one of v, with the time h between saved states.

        Args:
            quantity: ``quantity(t, q, v, model)``, a scalar that JAX can trace, such as
                ``lambda t, q, v, model: q[0]``.

        Raises:
            ValueError: there are fewer than two states.
        """
        return self._extreme(quantity, 1)

    def minimum(self, quantity: Quantity) -> tuple[float, float]:
        """The smallest value of a quantity over the motion, and its time, s; see ``maximum``.

        Raises:
            ValueError: there are fewer than two states.
        """
        return self._extreme(quantity, -1)

    def time_of(self, quantity: Quantity, value: float = 0.0, *, rising: bool | None = None) -> float:
        """The first time at which a quantity crosses a value, s; infinite if it does not. See ``maximum``.

        A motion that starts at the value crosses it when it returns.

        Args:
            rising: True for upward crossings only, False for downward ones only, None for both.

        Raises:
            ValueError: there are fewer than two states.
        """
        return float(_first_crossing(quantity, jnp.asarray(value, self.q.dtype), rising, self.model, self._states()))

    def _extreme(self, quantity: Quantity, sign: int) -> tuple[float, float]:
        value, time = _extreme(quantity, jnp.asarray(sign, self.q.dtype), self.model, self._states())
        return float(value), float(time)

    def _states(self) -> States:
        if len(self) < 2:
            raise ValueError(f"trajectory: expected at least 2 states, got {len(self)}")
        return States(*(jnp.asarray(x) for x in (self.time, self.q, self.v)))

    @cached_property
    def limit_uses(self) -> tuple[LimitUse, ...]:
        """The largest use of each position, speed and torque limit; see ``limits.limit_uses``."""
        return limit_uses(self.model, self.q, self.v, self.tau, self.time)

    def summary(self) -> TrajectorySummary:
        """A summary of the motion: final time, integration error, energy drift, use of limits, and warnings.

        ``print(trajectory.summary())`` shows it.

        Raises:
            ValueError: there is no state.
        """
        if not len(self):
            raise ValueError("trajectory: expected at least one state, got none")
        rows = [
            ("final time", f"{self.time[-1]:g} s"),
            *([("method", self.remark)] if self.remark else []),
            *([] if self.step_error is None else [("integration error", str(self.step_error))]),
            ("energy drift", energy_drift(self)),
            *([("constraint error", f"{self.constraint_error.max():.2g}")] if self._has_quaternions else []),
            *limit_rows(self.limit_uses),
        ]
        return TrajectorySummary(tuple(rows), tuple(limit_warnings(self.limit_uses)))

    @property
    def _has_quaternions(self) -> bool:
        """True if a configuration can leave its manifold."""
        return self.model.nq != self.model.nv

    @cached_property
    def _energies(self) -> tuple[Float[np.ndarray, " times"], Float[np.ndarray, " times"]]:
        kinetic, potential = in_padded_batches(partial(energies, self.model), self.q, self.v)
        return np.asarray(kinetic), np.asarray(potential)

    def save(self, path: str | Path, description: str | Path | None = None) -> Path:
        """Write the motion atomically: ``.npz`` or ``.parquet`` with the model in it, ``.csv``, or ``.mcap``.

        An MCAP file has the layout of a ROS 2 recording, for Foxglove, Rerun and PlotJuggler: /joint_states, /tf,
        /tf_static, and the odometry of free joints.

        Args:
            path: The file; its extension selects the format.
            description: The robot's URDF file, which is stored in an ``.mcap`` file as /robot_description.

        Raises:
            ValueError: the extension is not one of these.
            ModuleNotFoundError: a package is missing; the message names the extra.
            OSError: the file cannot be written; the error names it.
        """
        return trajectory_files.save(self, Path(path), description)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read a motion from a file that ``save`` wrote, ``.npz`` or ``.parquet``.

        Raises:
            FileNotFoundError: there is no such file.
            ValueError: the file was not written by ``save``.
        """
        fields = trajectory_files.load(Path(path))
        with file_faults(path, trajectory_files.EXPECTED):
            return cls(**fields)

    @cached_property
    def columns(self) -> dict[str, Float[np.ndarray, " times"]]:
        """The columns (n,) of tables and ``.csv`` files: times, states, forces and energies, by name with unit."""
        named = {"time [s]": self.time}
        for prefix, array, names in (("q", self.q, q_names(self.model)), ("v", self.v, v_names(self.model)),
                                     ("tau", self.tau, tau_names(self.model))):  # fmt: skip
            named |= {f"{prefix} {name}": array[:, i] for i, name in enumerate(names)}
        named |= {"kinetic energy [J]": self.kinetic_energy, "potential energy [J]": self.potential_energy}
        return named if self.step_error is None else named | self.step_error.columns


def energy_drift(trajectory: Trajectory) -> str:
    """The largest change of the energy relative to the largest kinetic energy, with other causes of change, as text."""
    energy, largest = trajectory.energy, float(trajectory.kinetic_energy.max())
    # just before a motion diverges its velocities may be finite and their squares infinite
    if not (np.isfinite(energy).all() and np.isfinite(largest)):
        return "the energy is too large for floats"
    change = float(np.abs(energy - energy[0]).max())
    if largest == 0:
        return "none: nothing moved"
    names = {"damping": "dampers", "friction": "dry friction", "limit_stiffness": "stops"}
    causes = ["the joint forces"] if np.any(trajectory.tau) else []
    causes += [text for name, text in names.items() if np.asarray(getattr(trajectory.model, name)).any()]
    why = f"; {' and '.join(causes)} change it too" if causes else ""
    return f"{change / largest:.2g} of the largest kinetic energy, {largest:.4g} J{why}"


_interpolate = jax.jit(jax.vmap(interpolate_state, in_axes=(None, 0, 0, 0, 0, 0, 0)))
_extreme = jax.jit(extreme, static_argnums=0)
_first_crossing = jax.jit(first_crossing, static_argnums=(0, 2))


# compiled once for each topology and batch size, not for each trajectory


@jax.jit
def energies(
    model: Model, q: Float[Array, "n nq"], v: Float[Array, "n nv"]
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """The kinetic and potential energy of n states, including springs in joints and contacts, J, each (n,)."""

    def energies_of_state(
        model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        potential = potential_energy(model, q) + spring_energy(model, q)
        return kinetic_energy(model, q, v), potential + contact_energy(model, q) if model.contact_names else potential

    return tiled_vmap(energies_of_state, in_axes=(None, 0, 0))(model, q, v)


@jax.jit
def momenta(model: Model, q: Float[Array, "n nq"], v: Float[Array, "n nv"]) -> Float[Array, "n 6"]:
    """The linear and the angular momentum of n states about the world's origin, in world axes, (n, 6), kg m/s and
    kg m^2/s.
    """

    def momentum_of_state(model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> Float[Array, " 6"]:
        h = centroidal_momentum(model, q, v)
        return h.at[3:].add(jnp.cross(center_of_mass(model, q), h[:3]))

    return tiled_vmap(momentum_of_state, in_axes=(None, 0, 0))(model, q, v)


def q_names(model: Model) -> list[str]:
    """The names of the coordinates (nq), each with its unit."""
    return _names(model, lambda joint: joint.nq, "rad", "m")


def v_names(model: Model) -> list[str]:
    """The names of the velocities (nv), each with its unit."""
    return _names(model, lambda joint: joint.nv, "rad/s", "m/s")


def tau_names(model: Model) -> list[str]:
    """The names of the joint forces (nv), each with its unit."""
    return _names(model, lambda joint: joint.nv, "N m", "N")


def _names(model: Model, count: Callable[[Joint], int], turning: str, sliding: str) -> list[str]:
    """The names of the components of all joints, ``count(joint)`` each, with rotational and translational units."""
    names = []
    for name, joint, mimic in zip(model.joint_names, model.topology.joints, model.topology.mimics, strict=True):
        if mimic is not None:
            continue
        n = count(joint)
        units = [turning if row.turns else sliding for row in joint.rows]
        if n != joint.nv:  # a quaternion instead of three rotational velocities
            units = [sliding] * (n - 4) + ["-"] * 4
        names += [f"{name}[{i}] [{unit}]" if n > 1 else f"{name} [{unit}]" for i, unit in enumerate(units)]
    return names
