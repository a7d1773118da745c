"""The motion of a sample: a machine, what drives it, and where samples put their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4
from lgsim.multibody.model import DRIVES, Model
from lgsim.simulation import Trajectory, rollout
from lgsim.simulation.rollout import initial_state
from lgsim.simulation.simulate import drives, method_name
from lgsim.support.check import unknown_name
from lgsim.support.version import own_version

_ROOTS = ("q0", "v0", "tau0", "torques", "control", "wrenches", "t0", "dt")
_NUMBERS = ("placements", "screws", "axes", "pitches", "inertias", *DRIVES, "mimic", "frames", "gravity")


class SampledMotion(NamedTuple):
    """The motion of one sample, what outputs are functions of.

    Attributes:
        model: The machine with the sample's numbers.
        time: s, (saved,).
        q: Configurations (saved, nq).
        v: Velocities (saved, nv).
        tau: Joint forces of the drives (saved, nv), N m or N; computed only if an output uses them.
    """

    model: Model
    time: Array
    q: Array
    v: Array
    tau: Array


class Rollout(eqx.Module):
    """A machine from a start for a number of steps, as ``lgsim.rollout``; any of its numbers can be a sample's.

    A distribution's name is the path of what it replaces: ``q0``, ``v0``, ``tau0``, ``torques``, ``t0``, ``dt``; of the
    model ``model.inertias``, ``model.damping``, ``model.gravity`` and all that ``Model.replace`` takes; of controls and
    wrenches that are modules ``control.stiffness``, ``wrenches.gusts`` and so on.

    Attributes:
        model: The machine.
        q0: Configuration at the start, by default neutral.
        v0: Velocity at the start, by default zero.
        dt: Step, s.
        steps: How many.
        torques, control, wrenches, tau0, method, t0, save_every: See ``lgsim.rollout``.
    """

    model: Model
    q0: Array
    v0: Array
    dt: Any
    steps: int = eqx.field(static=True)
    torques: Any
    control: Any
    wrenches: Any
    tau0: Any
    t0: Any
    method: Method = eqx.field(static=True)
    save_every: int = eqx.field(static=True)

    def __init__(
        self, model: Model, q0: Any = None, v0: Any = None, *, dt: float, steps: int, torques: Any = None,
        control: Any = None, wrenches: Any = None, tau0: Any = None, method: Method = MK4, t0: float = 0.0,
        save_every: int = 1,
    ) -> None:  # fmt: skip
        q0, v0, tau0 = (None if x is None else jnp.asarray(x) for x in (q0, v0, tau0))
        initial_state(model, q0, v0, tau0)
        self.model, self.steps, self.method, self.save_every = model, steps, method, save_every
        self.q0 = model.neutral() if q0 is None else q0
        self.v0 = jnp.zeros(model.nv, model.dtype) if v0 is None else v0
        self.torques = None if torques is None else jnp.asarray(torques)
        self.dt, self.t0 = jnp.asarray(dt, model.dtype), jnp.asarray(t0, model.dtype)
        self.control, self.wrenches, self.tau0 = control, wrenches, tau0

    def names(self) -> list[str]:
        """The names that distributions can have."""
        found = [name for name in _ROOTS if getattr(self, name) is not None] + [f"model.{name}" for name in _NUMBERS]
        for root in ("control", "wrenches"):
            found += [f"{root}.{path}" for path in _paths(getattr(self, root))]
        return found

    def check(self, values: Mapping[str, Any]) -> None:
        """Whether samples fit.

        Args:
            values: Arrays or their shapes and dtypes, by name.

        Raises:
            ValueError: there is no such number, or a value has another shape.
            TypeError: the dtype is another one.
        """
        for name, value in values.items():
            if name not in self.names():
                raise unknown_name("distributions: expected names of what a rollout has", name, self.names())
            own = _at(self, name.split("."))
            if own is None or not hasattr(own, "shape"):
                continue
            if jnp.shape(value) != own.shape:
                raise ValueError(f"{name}: expected values of shape {own.shape}, got {jnp.shape(value)}")
            if jnp.result_type(value) != own.dtype:
                raise TypeError(f"{name}: expected values of {own.dtype}, got {jnp.result_type(value)}")

    def with_values(self, values: Mapping[str, Any]) -> Rollout:
        """The rollout of a sample."""
        numbers = {name.partition(".")[2]: x for name, x in values.items() if name.startswith("model.")}
        moved = self
        if numbers:
            moved = eqx.tree_at(lambda run: run.model, moved, self.model.replace(**numbers))
        for name, value in values.items():
            if not name.startswith("model."):
                path = name.split(".")
                moved = eqx.tree_at(lambda run, path=path: _at(run, path), moved, value, is_leaf=lambda x: x is None)
        return moved

    def __call__(self, values: Mapping[str, Any]) -> SampledMotion:
        """The motion of a sample."""
        run = self.with_values(values)
        motion = rollout(
            run.model, run.q0, run.v0, dt=run.dt, steps=run.steps, torques=run.torques, control=run.control,
            wrenches=run.wrenches, tau0=run.tau0, method=run.method, t0=run.t0, save_every=run.save_every,
            checkpoint=None,
        )  # fmt: skip
        tau = drives(run.model, run.control, run.torques_at(), *motion)
        return SampledMotion(run.model, motion.time, motion.q, motion.v, tau)

    def end(self, flight: SampledMotion) -> Array:
        """What is not finite where the motion diverged: the state at the end."""
        return jnp.concatenate([flight.q[-1], flight.v[-1]])

    def torques_at(self) -> Array | None:
        """The given torques at the saved states (saved, nv); of a row held for a step what acts just after."""
        if self.torques is None:
            return None
        saved = self.steps // self.save_every + 1
        if self.torques.ndim == 1:
            return jnp.broadcast_to(self.torques, (saved, *self.torques.shape))
        return self.torques[np.minimum(self.save_every * np.arange(saved), len(self.torques) - 1)]

    def trajectory(self, values: Mapping[str, Any]) -> Trajectory:
        """The motion of a sample with its model, for pictures and files."""
        flight = _played(self, dict(values))
        time, q, v, tau = (np.asarray(x) for x in flight[1:])
        return Trajectory(
            flight.model, time, q, v, tau, method_name(self.method), float(self.dt), _how(flight), own_version()
        )


@eqx.filter_jit  # compiled once for all samples
def _played(rollout: Rollout, values: dict[str, Any]) -> SampledMotion:
    return rollout(values)


def _how(flight: SampledMotion) -> str:
    bad = ~(np.isfinite(flight.q).all(axis=1) & np.isfinite(flight.v).all(axis=1))
    return f"diverged: the state is not finite at {float(flight.time[np.argmax(bad)]):g} s" if bad.any() else ""


def _at(tree: Any, path: list[str]) -> Any:
    for name in path:
        tree = getattr(tree, name)
    return tree


def _paths(tree: Any) -> list[str]:
    """The paths of what is an array or a number in a module, through its fields."""
    if not isinstance(tree, eqx.Module):
        return []
    found = []
    for name in tree.__dataclass_fields__:
        value = getattr(tree, name)
        if isinstance(value, eqx.Module):
            found += [f"{name}.{path}" for path in _paths(value)]
        elif hasattr(value, "shape") or isinstance(value, float):
            found.append(name)
    return found
