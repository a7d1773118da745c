"""Motors that turn with several joints, as in a coupled wrist: their rotor inertia and friction as unknowns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float, Int

from lgsim.identify.recording.coordinates import dof_names
from lgsim.identify.unknowns.block import NumberBlock, select_names
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.multibody.model import Model
from lgsim.support.check import unknown_name

MOTOR_UNITS = {
    "motor_inertia": "kg m^2", "motor_damping": "N m s/rad", "motor_friction": "N m", "motor_friction_speed": "rad/s",
}  # fmt: skip
"""The parameters of motors with their units."""


class CoupledPlant(Plant):
    """A plant with motors whose speeds are combinations of those of the joints: ``w = C v``.

    By virtual power they add ``C^T (motor_inertia C a + motor_damping w + motor_friction tanh(w /
    motor_friction_speed))`` to the joint torques of the drives; joints keep their own armature, damping and friction.
    Scaled signals are joint torques: ``C^T`` converts torques of motors. Estimators that simulate do not support it.

    Attributes:
        motors: Names of the m motors; static.
        coupling: The matrix C (m, nv).
        motor_inertia: Rotor inertias (m,), kg m^2, at the speeds w.
        motor_damping: Damping (m,), N m s/rad.
        motor_friction: Dry friction (m,), N m.
        motor_friction_speed: Changeover speeds of dry friction (m,), rad/s; positive.
    """

    motors: tuple[str, ...] = eqx.field(static=True)
    coupling: Float[Array, "m nv"]
    motor_inertia: Float[Array, " m"]
    motor_damping: Float[Array, " m"]
    motor_friction: Float[Array, " m"]
    motor_friction_speed: Float[Array, " m"]

    def __init__(
        self,
        model: Model,
        coupling: Mapping[str, Mapping[str, float]],
        scale: NumbersLike = 1.0,
        offset: NumbersLike = 0.0,
        motor_friction_speed: ArrayLike = 0.1,
    ) -> None:
        """Build a plant whose motors have no inertia and friction yet.

        Args:
            coupling: The rows of C: the speed of each motor, by name, as factors by degree of freedom, such as
                ``{"motor6": {"joint5": 1.0, "joint6": 1.0}}``.

        Raises:
            ValueError: a degree of freedom does not exist; see also ``Plant``.
        """
        super().__init__(model, scale, offset)
        names = dof_names(model)
        C = np.zeros((len(coupling), model.nv))
        for row, factors in zip(C, coupling.values(), strict=True):
            for name, factor in factors.items():
                if name not in names:
                    raise unknown_name("coupling: expected names of degrees of freedom", name, names)
                row[names.index(name)] = factor
        self.motors, self.coupling = tuple(coupling), jnp.asarray(C, model.dtype)
        zero = jnp.zeros(len(C), model.dtype)
        self.motor_inertia = self.motor_damping = self.motor_friction = zero
        self.motor_friction_speed = zero + jnp.asarray(motor_friction_speed, model.dtype)

    def joint_forces(
        self,
        q: Float[Array, "*batch nq"],
        v: Float[Array, "*batch nv"],
        a: Float[Array, "*batch nv"],
        wrenches: Float[Array, "*batch bodies 6"] | None = None,
    ) -> Float[Array, "*batch nv"]:
        w, dw = v @ self.coupling.T, a @ self.coupling.T
        numbers = (getattr(self, name) for name in MOTOR_UNITS)
        inertia, damping, friction, speed = (x.reshape((1,) * (w.ndim - 1) + x.shape) for x in numbers)
        motors = inertia * dw + damping * w + friction * jnp.tanh(w / speed)
        return super().joint_forces(q, v, a, wrenches) + motors @ self.coupling


class MotorParameter(NumberBlock):
    """One parameter of the motors of a ``CoupledPlant``, such as ``MotorParameter("motor_friction")``.

    Attributes:
        parameter: A name of ``MOTOR_UNITS``; static.
        motors: Names of the motors, by default all; static.
        lower: Lower bounds of the parameters themselves, one value or one for each; zero by default.
        upper: Upper bounds of the parameters themselves, one value or one for each.

    Raises:
        ValueError: the parameter does not exist, the plant has no motors, or no such motor.
    """

    parameter: str = eqx.field(static=True)
    motors: Sequence[str] | None = eqx.field(static=True, default=None)
    prior_deviation: NumbersLike | None = None
    lower: ArrayLike = 0.0
    upper: ArrayLike = np.inf

    def __check_init__(self) -> None:
        if self.parameter not in MOTOR_UNITS:
            raise unknown_name("parameter: expected a parameter of a motor", self.parameter, list(MOTOR_UNITS))

    @property
    def relative(self) -> bool:
        """True for speeds, which stay positive: their coordinates are logarithms of ratios to the prior values."""
        return self.parameter == "motor_friction_speed"

    @property
    def unit(self) -> str:
        """The unit of the parameter."""
        return MOTOR_UNITS[self.parameter]

    def labels(self, plant: Plant) -> list[str]:
        if not isinstance(plant, CoupledPlant):
            raise ValueError(
                f"expected a plant with coupled motors, got {type(plant).__name__}; use a CoupledPlant, or the table"
                " [coupling] of a map"
            )
        what = self.parameter.removeprefix("motor_").replace("_", " ")
        return [f"{what} of motor {name}" for name in select_names("motors", self.motors, plant.motors)]

    def read(self, plant: Plant) -> Float[Array, " size"]:
        return getattr(plant, self.parameter)[self._places(plant)]

    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        every = getattr(plant, self.parameter).at[self._places(plant)].set(numbers)
        return eqx.tree_at(lambda p: getattr(p, self.parameter), plant, every)

    def _places(self, plant: Plant) -> Int[np.ndarray, " size"]:
        known = plant.motors if isinstance(plant, CoupledPlant) else ()
        return np.array([known.index(name) for name in select_names("motors", self.motors, known)], int)


def refuse_couplings(plant: Plant) -> None:
    """Check that a plant can be simulated.

    Raises:
        ValueError: it has coupled motors, which its model does not contain.
    """
    if isinstance(plant, CoupledPlant):
        raise ValueError(
            "plant: expected a plant without coupled motors for an estimator that simulates, got a CoupledPlant; use"
            " TorqueFit"
        )
