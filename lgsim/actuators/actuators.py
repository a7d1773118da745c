"""Actuators of a model: a chain of stages from commands to joint forces."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from lgsim.actuators.stage import Rows, Shaft, Signal, Stage
from lgsim.actuators.transmission import Transmission
from lgsim.multibody.model import Model

States = Float[Array, " states"]


class Actuators(eqx.Module):
    """The n actuators of a model: stages map commands to shaft forces, and a transmission couples shafts to joints.

    ``a + b`` has the actuators of both, with the commands of a first. Actuators with equal stages and different
    parameters are one object; different kinds of actuators are several.

    Attributes:
        transmission: The map from shafts to joints.
        stages: The stages in order, starting at the command; the output of the last is the shaft force, N m or N.
        names: Names of the actuators, or of their commands; static. By default indices from 0.

    Raises:
        TypeError: a stage is not a ``Stage``.
        ValueError: the number of names is not that of the commands.
    """

    transmission: Transmission
    stages: tuple[Stage, ...]
    names: tuple[str, ...] = eqx.field(static=True)

    def __init__(self, transmission: Transmission, *stages: Stage, names: Any = None) -> None:
        for i, stage in enumerate(stages):
            if not isinstance(stage, Stage):
                raise TypeError(f"stages[{i}]: expected a stage such as actuators.Gear, got {type(stage).__name__}")
        self.transmission, self.stages = transmission, stages
        self.names = tuple(map(str, range(self.commands))) if names is None else tuple(names)
        if len(self.names) != self.commands:
            raise ValueError(f"names: expected {self.commands}, one for each actuator, got {len(self.names)}")

    @property
    def commands(self) -> int:
        """Number of commands: n, unless the first stage takes another number."""
        n = self.transmission.count
        return self.stages[0].commands(n) if self.stages else n

    @property
    def states(self) -> int:
        """Number of states."""
        return self.transmission.count * sum(stage.rows for stage in self.stages)

    @property
    def is_sampled(self) -> bool:
        """True if states jump at the start of steps, which requires fixed steps."""
        return any(stage.is_sampled for stage in self.stages)

    def __add__(self, other: Actuators) -> ActuatorSum:
        return ActuatorSum((self, other))

    def start(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> States:
        """The rest states of the actuators at a configuration q and a velocity v."""
        shaft, found = self.transmission.shaft(model, q, v), []
        for stage in reversed(self.stages):
            z = stage.start(shaft)
            found.insert(0, z.reshape(-1))
            shaft = stage.inner_shaft(shaft, z)
        return jnp.concatenate([jnp.zeros(0, model.dtype), *found])

    def respond(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], states: States, command: Signal
    ) -> tuple[Float[Array, " nv"], States]:
        """(joint forces (nv,) N m or N, rates of the states).

        Args:
            q: Configuration (nq,).
            v: Velocity (nv,), rad/s or m/s.
            command: Commands (commands,), in the unit of the first stage.
        """
        parts, shafts = self._shafts(model, q, v, states)
        signal, rates = command, []
        for stage, shaft, z in zip(self.stages, shafts, parts, strict=True):
            signal, rate = stage.respond(signal, shaft, z)
            rates.append(rate.reshape(-1))
        rate = jnp.concatenate([jnp.zeros(0, states.dtype), *rates])
        return self.transmission.joint_forces(model, q, signal), rate

    def sample(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        states: States,
        command: Signal,
        dt: Float[Array, ""],
    ) -> States:
        """The states at the start of a step dt (s), after jumps; other arguments as for ``respond``."""
        parts, shafts = self._shafts(model, q, v, states)
        signal, found = command, []
        for stage, shaft, z in zip(self.stages, shafts, parts, strict=True):
            now = stage.sample(signal, shaft, z, dt) if stage.is_sampled else z
            signal, _ = stage.respond(signal, shaft, now)
            found.append(now.reshape(-1))
        return jnp.concatenate([jnp.zeros(0, states.dtype), *found])

    def settle(self, states: States) -> States:
        """The states at the end of a step, after their bounds are applied."""
        parts = zip(self.stages, self._split(states), strict=True)
        found = [(stage.settle(z) if stage.is_sampled else z).reshape(-1) for stage, z in parts]
        return jnp.concatenate([jnp.zeros(0, states.dtype), *found])

    def _split(self, states: States) -> list[Rows]:
        """The states of each stage."""
        parts, n, at = [], self.transmission.count, 0
        for stage in self.stages:
            parts.append(states[at : at + stage.rows * n].reshape(stage.rows, n))
            at += stage.rows * n
        return parts

    def _shafts(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], states: States
    ) -> tuple[list[Rows], list[Shaft]]:
        """(the states of each stage, the shaft of each stage)."""
        parts = self._split(states)
        shaft, shafts = self.transmission.shaft(model, q, v), []
        for stage, z in zip(reversed(self.stages), reversed(parts), strict=True):
            shafts.insert(0, shaft)
            shaft = stage.inner_shaft(shaft, z)
        return parts, shafts


class ActuatorSum(eqx.Module):
    """Several groups of actuators of one model: joint forces add up, commands and states are concatenated."""

    terms: tuple[Actuators, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all actuators."""
        return tuple(name for term in self.terms for name in term.names)

    @property
    def commands(self) -> int:
        """Number of all commands."""
        return sum(term.commands for term in self.terms)

    @property
    def states(self) -> int:
        """Number of all states."""
        return sum(term.states for term in self.terms)

    @property
    def is_sampled(self) -> bool:
        """True if any states jump at the start of steps."""
        return any(term.is_sampled for term in self.terms)

    def __add__(self, other: Actuators) -> ActuatorSum:
        return ActuatorSum((*self.terms, other))

    def start(self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"]) -> States:
        """See ``Actuators.start``."""
        return jnp.concatenate([term.start(model, q, v) for term in self.terms])

    def respond(
        self, model: Model, q: Float[Array, " nq"], v: Float[Array, " nv"], states: States, command: Signal
    ) -> tuple[Float[Array, " nv"], States]:
        """See ``Actuators.respond``."""
        found = [term.respond(model, q, v, z, u) for term, z, u in self._parts(states, command)]
        return sum((tau for tau, _ in found), jnp.zeros_like(v)), jnp.concatenate([rate for _, rate in found])

    def sample(
        self,
        model: Model,
        q: Float[Array, " nq"],
        v: Float[Array, " nv"],
        states: States,
        command: Signal,
        dt: Float[Array, ""],
    ) -> States:
        """See ``Actuators.sample``."""
        return jnp.concatenate([t.sample(model, q, v, z, u, dt) for t, z, u in self._parts(states, command)])

    def settle(self, states: States) -> States:
        """See ``Actuators.settle``."""
        nothing = jnp.zeros(self.commands, states.dtype)
        return jnp.concatenate([term.settle(z) for term, z, _ in self._parts(states, nothing)])

    def _parts(self, states: States, command: Signal) -> list[tuple[Actuators, Any, Any]]:
        out, z, u = [], 0, 0
        for term in self.terms:
            out.append((term, states[z : z + term.states], command[u : u + term.commands]))
            z, u = z + term.states, u + term.commands
        return out


def check(actuators: Actuators | ActuatorSum, model: Model) -> None:
    """Raise unless the actuators fit a model.

    Raises:
        TypeError: they are not actuators, or the dtype of a parameter is not the model's.
        ValueError: the shape of a parameter is not one value for each actuator.
    """
    if not isinstance(actuators, Actuators | ActuatorSum):
        raise TypeError(f"actuators: expected lgsim.actuators.Actuators, got {type(actuators).__name__}")
    for term in actuators.terms if isinstance(actuators, ActuatorSum) else (actuators,):
        n, nv = term.transmission.coupling.shape
        if nv != model.nv:
            raise ValueError(f"transmission: expected shape (actuators, {model.nv}), that is nv, got ({n}, {nv})")
        for path, leaf in jax.tree_util.tree_leaves_with_path(term):
            name = jax.tree_util.keystr(path).lstrip(".")
            if jnp.result_type(leaf) != model.dtype and not getattr(leaf, "weak_type", False):
                raise TypeError(f"{name}: expected {model.dtype}, the dtype of the model, got {jnp.result_type(leaf)}")
            if name.startswith("stages") and jnp.shape(leaf)[:1] not in ((), (n,)):
                raise ValueError(
                    f"{name}: expected a number or shape ({n},), one for each actuator, got {jnp.shape(leaf)}"
                )
