"""Rates of a motion: eigenvalues of its Jacobian, their physical cause, and the steps for which a method is stable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Complex, Float, Inexact, Int, Shaped

from lgsim._compile.xla import compiled
from lgsim.integrators.method import Method
from lgsim.integrators.methods import MK4, Rodas4
from lgsim.integrators.rosenbrock_tableau import RosenbrockTableau
from lgsim.integrators.stability import largest_step, unstable
from lgsim.multibody.model import Model
from lgsim.simulation.equations_of_motion import State, TorqueSegment, Wrenches
from lgsim.simulation.fixed_steps import Steps
from lgsim.simulation.motion_field import motion_jacobian
from lgsim.simulation.rollout import Drive
from lgsim.support.printable import printable

SINGULAR = 1e-6
"""The smallest eigenvalue magnitude of a step's linear system for which the step is meaningful."""

STATES = 8
"""The number of states in each piece of a motion at which the rates are computed."""


@dataclass(frozen=True)
class Automatic:
    """Automatic choice of the method by ``simulate``: explicit steps until a rate is too fast for them.

    The eigenvalues of the Jacobian are computed at the start and at states of each piece of the motion. Where one lies
    outside the stability region of the explicit method, the stiff method computes the whole motion.

    Attributes:
        explicit: The method for rates that the step resolves.
        stiff: The method for rates outside the stability region of the explicit one.
    """

    explicit: Method = MK4
    stiff: Method = Rodas4


class UnstableMode(NamedTuple):
    """A mode for which a method is unstable at the given step.

    Attributes:
        time: The time of the state, s.
        rate: The magnitude of the eigenvalue, 1/s.
        joint: The name of the joint that moves most in this mode.
        cause: The physical cause of the rate, as text.
        largest_step: The largest step for which the method is stable at that state, s.
    """

    time: float
    rate: float
    joint: str
    cause: str
    largest_step: float

    def __str__(self) -> str:
        """The rate, the joint and the cause, such as "rates up to 4200 1/s at joint tip (damping 3 on 1e-5 kg m^2)"."""
        return printable(f"rates up to {self.rate:.2g} 1/s at joint {self.joint} ({self.cause})")


class _Modes(NamedTuple):
    """Jacobians, inverse inertias seen by each joint, and (stiffness, damping) of each kind of force, for n states."""

    jacobian: Shaped[Array, "n algebra algebra"]
    inverse_inertia: Shaped[Array, "n nv"]
    control: tuple[Shaped[Array, "n nv"], Shaped[Array, "n nv"]]
    passive: tuple[Shaped[Array, "n nv"], Shaped[Array, "n nv"]]
    wrenches: tuple[Shaped[Array, "n nv"], Shaped[Array, "n nv"]]


def unstable_mode(
    steps: Steps,
    times: Sequence[float] | Float[np.ndarray, " n"],
    states: Shaped[np.ndarray, "n state"] | Shaped[Array, "n state"],
) -> UnstableMode | None:
    """The fastest mode that a method amplifies although the motion does not, at the first state that has one.

    None if no state has one, or if the control or the wrenches have no forward-mode derivative. Each state is also
    evaluated with zero velocities, where dry friction is steepest.

    Args:
        steps: The simulated system and its steps; joint forces that change over time are left out.
        times: The times of the states, s.
        states: States (q, v, w), of which at most about ``STATES`` are used.
    """
    model = steps.model
    found = np.flatnonzero(np.isfinite(np.asarray(states)).all(axis=1))
    if not found.size:
        return None
    chosen = found[_telling(model, np.asarray(states)[found])]
    # in numpy, which compiles nothing
    at, y = np.asarray(times)[chosen].astype(model.dtype), np.asarray(states)[chosen]
    rest = y.copy()
    rest[:, model.nq : model.nq + model.nv] = 0
    # each state twice, the second time at rest, where dry friction is steepest
    twice = np.concatenate([at, at]), np.concatenate([y, rest])
    try:
        data = _modes(*_driven(steps), *twice)
    except (TypeError, ValueError, NotImplementedError):
        return None  # the control has no forward-mode derivative
    jacobians = np.asarray(data.jacobian, np.float64)
    worst: tuple[int, complex] | None = None
    # states far from the initial one may result from the unstable steps before
    for k in range(STATES):
        for i in (k, k + STATES):
            modes = np.linalg.eigvals(jacobians[i]) if np.isfinite(jacobians[i]).all() else np.zeros(0)
            bad = modes[unstable(steps.method.tableau, modes.astype(complex), steps.dt)]
            if bad.size and (worst is None or np.abs(bad).max() > np.abs(worst[1])):
                worst = i, complex(bad[np.argmax(np.abs(bad))])
        if worst is not None:
            break
    else:
        return None
    i, mode = worst
    joint, cause = _cause(model, jax.tree.map(lambda x: np.asarray(x[i], np.float64), data), mode)
    step = largest_step(steps.method.tableau, np.linalg.eigvals(jacobians[i]).astype(complex), steps.dt)
    return UnstableMode(float(at[i % STATES]), abs(mode), joint, cause, step)


def fastest_rate(steps: Steps, t: float, y: Shaped[np.ndarray, " state"]) -> float:
    """The magnitude of the largest eigenvalue of the Jacobian at a state, 1/s; ``steps`` as for ``unstable_mode``."""
    data = _modes(*_driven(steps), np.full(1, t, steps.model.dtype), np.asarray(y)[None])
    return float(np.abs(np.linalg.eigvals(np.asarray(data.jacobian[0], np.float64))).max(initial=0.0))


def singular_joint(steps: Steps, t: float, y: Shaped[np.ndarray, " state"]) -> str:
    """The joint at which the linear system ``1 - gamma dt J`` of a linearly implicit step is singular, or empty.

    There a mode grows at the rate 1/(gamma dt), which the step is too long to follow; ``steps`` as for
    ``unstable_mode``.
    """
    model, tableau = steps.model, steps.method.tableau
    if not isinstance(tableau, RosenbrockTableau):
        return ""
    data = _modes(*_driven(steps), np.full(1, t, model.dtype), np.asarray(y)[None])
    jacobian = np.asarray(data.jacobian[0], np.float64)
    if not np.isfinite(jacobian).all():
        return ""
    values, vectors = np.linalg.eig(jacobian)
    gaps = np.abs(1 - tableau.gamma * steps.dt * values)
    worst = int(np.argmin(gaps))
    if gaps[worst] > SINGULAR:
        return ""
    nv = model.nv
    moves = _moves(vectors[nv : 2 * nv, worst], np.asarray(data.inverse_inertia[0], np.float64))
    return _joint_of(model, int(np.argmax(moves)))


def _moves(vector: Inexact[np.ndarray, " nv"], inverse_inertia: Float[np.ndarray, " nv"]) -> Float[np.ndarray, " nv"]:
    """The energy of each joint in a mode, as a measure of its motion; zero for a joint of infinite inertia."""
    moves = np.zeros_like(inverse_inertia)
    return np.divide(np.abs(vector), np.sqrt(inverse_inertia), out=moves, where=inverse_inertia > 0)


def _driven(steps: Steps) -> tuple[Model, Drive, Wrenches | None, TorqueSegment | None]:
    steady = steps.rows is None or steps.rows.steady
    return steps.model, steps.control, steps.wrenches, steps.rows if steady else None


@compiled  # not jax.jit: a control may be any function
def _modes(
    model: Model,
    control: Drive,
    wrenches: Wrenches | None,
    segment: TorqueSegment | None,
    t: Shaped[Array, " n"] | Shaped[np.ndarray, " n"],
    y: Shaped[Array, "n state"] | Shaped[np.ndarray, "n state"],
) -> _Modes:
    args = (model, control, wrenches), segment

    def at(t: Float[Array, ""], y: State) -> _Modes:
        jacobian, inverse_mass, forces = motion_jacobian(t, y, args)
        control_slopes, passive_slopes = forces.drive_slopes[:2], forces.passive_slopes
        return _Modes(
            jacobian,
            jnp.abs(jnp.diag(inverse_mass)),  # at a singularity rounding may flip the sign of nearly infinite entries
            (-jnp.diag(control_slopes[0]), -jnp.diag(control_slopes[1])),
            (-jnp.diag(passive_slopes[0]), -jnp.diag(passive_slopes[1])),
            (-jnp.diag(forces.wrench_slopes[0]), -jnp.diag(forces.wrench_slopes[1])),
        )

    return jax.vmap(at)(jnp.asarray(t), jnp.asarray(y))


def _telling(model: Model, states: Shaped[np.ndarray, "n state"]) -> Int[np.ndarray, " chosen"]:
    """The indices of ``STATES`` representative states in order; their number is constant, so that one program serves.

    Half of them are evenly spaced. The other half lie before and after the largest changes of velocity, such as at an
    impact on a stop.
    """
    spread = np.round(np.linspace(0, len(states) - 1, STATES // 2)).astype(int)
    v = states[:, model.nq : model.nq + model.nv]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        size = np.abs(v).max(axis=0)
        jumps = (np.abs(np.diff(v, axis=0)) / np.where(size > 0, size, 1)).max(axis=1, initial=0.0)
    last = np.argsort(np.nan_to_num(jumps), kind="stable")[-(STATES // 4) :]
    chosen = np.unique(np.concatenate([spread, last, np.minimum(last + 1, len(states) - 1)]))
    return np.concatenate([chosen, np.full(STATES - len(chosen), chosen[-1])])


def _cause(model: Model, data: _Modes, mode: complex) -> tuple[str, str]:
    """(name of the joint that moves most in a mode, the physical cause of its rate as text)."""
    values, vectors = np.linalg.eig(data.jacobian)
    vector: Complex[np.ndarray, " algebra"] = vectors[:, np.argmin(np.abs(values - mode))]
    nv = model.nv
    moves = _moves(vector[nv : 2 * nv], np.asarray(data.inverse_inertia))
    i = int(np.argmax(moves))
    turns = turning(model)[i]
    inertia = f"{1 / data.inverse_inertia[i]:.2g} {'kg m^2' if turns else 'kg'}"
    friction = float(model.friction[i] / model.friction_speed[i]) if float(model.friction[i]) else 0.0
    own = float(model.damping[i])
    names = {
        f"damping {own:.2g} on {inertia}": own,
        f"dry friction {float(model.friction[i]):.2g} {'N m' if turns else 'N'} at {float(model.friction_speed[i]):.2g}"
        f" {'rad/s' if turns else 'm/s'}, on {inertia}": min(friction, max(data.passive[1][i] - own, 0.0)),
        f"damping {data.control[1][i]:.2g} of the control on {inertia}": float(data.control[1][i]),
    }
    pulls = {
        f"stiffness {data.passive[0][i]:.2g} on {inertia}": float(data.passive[0][i]),
        f"stiffness {data.control[0][i]:.2g} of the control on {inertia}": float(data.control[0][i]),
    }
    if model.topology.contacts:
        names[f"contacts with a damping of {data.wrenches[1][i]:.2g} on {inertia}"] = float(data.wrenches[1][i])
        pulls[f"contacts with a stiffness of {data.wrenches[0][i]:.2g} on {inertia}"] = float(data.wrenches[0][i])
    # rates d/m of dampers and sqrt(k/m) of springs at this joint
    rates = {text: d * data.inverse_inertia[i] for text, d in names.items()}
    rates |= {text: np.sqrt(max(k, 0.0) * data.inverse_inertia[i]) for text, k in pulls.items()}
    text = max(rates, key=lambda text: rates[text])
    return _joint_of(model, i), text if rates[text] > 0.1 * abs(mode) else f"the motion itself, on {inertia}"


def _joint_of(model: Model, dof: int) -> str:
    return next(name for name, part in model.v_slices.items() if part.start <= dof < part.stop)


def turning(model: Model) -> list[bool]:
    """True for each degree of freedom that is rotational."""
    joints = zip(model.topology.joints, model.topology.mimics, strict=True)
    return [row.turns for joint, mimic in joints if mimic is None for row in joint.rows]
