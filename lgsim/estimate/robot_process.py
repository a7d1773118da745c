"""The motion of a robot as a process: joint forces are its input, and its unknown parameters are states."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.dynamics.inverse_mass import solve_mass_matrix
from lgsim.estimate.factors import check_deviations
from lgsim.estimate.gaussian import Gaussian
from lgsim.estimate.processes import ContinuousProcess, matrix_of
from lgsim.identify.unknowns.block import Block
from lgsim.identify.unknowns.parameters import Parameters
from lgsim.integrators.method import Method, Number
from lgsim.integrators.methods import MK4
from lgsim.lie.action import Action, Product, Translation
from lgsim.multibody.model import Model
from lgsim.simulation.rollout import rollout
from lgsim.simulation.state_space import StateSpace

State = tuple[Float[Array, " _"], ...]
"""Configuration and velocity in one array, and the coordinates of the unknowns if there are any."""


class RobotProcess(ContinuousProcess):
    """The motion of a model under joint forces, ``M(q) v' + h(q, v) = tau + passive_forces + w``, with white noise w.

    The state is ``((q, v), x)``: q and v in one array, and the coordinates x of unknown parameters as
    ``lgsim.identify`` defines them, zero at the model's own values. The input is tau (nv,), held over a step.

    Attributes:
        model: The model, with its own dampers, springs, friction and contacts.
        force_noise: The density of w, N m or N per sqrt(Hz): a number, (nv,) or (nv, m).
        parameters: The unknowns, as ``lgsim.identify.Parameters``; None for none.
        walk: The density of a random walk of the unknowns, in their units per sqrt(s): a number, (k,) or (k, m).
        method: The method of integration, one step for each half of a step of the process.
    """

    model: Model
    force_noise: Array
    parameters: Parameters | None
    walk: Array
    method: Method

    def __init__(
        self,
        model: Model,
        force_noise: ArrayLike,
        unknown: Sequence[Block] | Block = (),
        *,
        walk: ArrayLike = 0.0,
        method: Method = MK4,
    ) -> None:
        """A process of a model.

        Args:
            unknown: Blocks of unknown parameters, such as ``identify.BodyParameters``.

        Raises:
            TypeError: ``model`` is no model, or ``unknown`` holds something else than blocks.
            ValueError: densities do not fit; a body or joint of a block does not exist; a block changes a sensor or a
                drive, which this process does not have.
        """
        if not isinstance(model, Model):
            raise TypeError(f"model: expected a Model, got {type(model).__name__}")
        blocks = (unknown,) if isinstance(unknown, Block) else tuple(unknown)
        self.model, self.method = model, method
        self.parameters = Parameters(model, blocks) if blocks else None
        self.force_noise = _density("force_noise", force_noise, model.topology.nv, model.dtype)
        self.walk = _density("walk", walk, self.unknowns, model.dtype)
        if self.parameters is not None:
            _check_model_alone(self.parameters)

    @property
    def unknowns(self) -> int:
        """The number of coordinates of the unknowns."""
        return 0 if self.parameters is None else self.parameters.size

    @property
    def space(self) -> Action:
        states = StateSpace(self.model.topology)
        return Product(states, Translation(self.unknowns)) if self.unknowns else Product(states)

    @property
    def names(self) -> tuple[str, ...]:
        tree = self.model.topology
        joints = []
        for i, joint in enumerate(tree.joint_names):
            own = tree.v_slice(i)
            count = own.stop - own.start
            joints += [joint] if count == 1 else [f"{joint}[{k}]" for k in range(count)]
        further = [] if self.parameters is None else self.parameters.names
        return (*(f"q of {name}" for name in joints), *(f"v of {name}" for name in joints), *further)

    def start(
        self,
        q: ArrayLike,
        v: ArrayLike,
        *,
        q_deviations: ArrayLike,
        v_deviations: ArrayLike,
        unknown_deviations: ArrayLike = 1.0,
    ) -> Gaussian:
        """The distribution of a state near (q, v), the unknowns at the model's own values.

        Args:
            q_deviations: Standard deviations of the configuration in the tangent space (nv,), or one number.
            v_deviations: Those of the velocity.
            unknown_deviations: Those of the coordinates of the unknowns that have no prior deviation of their own.
        """
        nv, dtype = self.model.topology.nv, self.model.dtype
        y = jnp.concatenate([jnp.asarray(q, dtype), jnp.asarray(v, dtype)])
        parts = [jnp.broadcast_to(jnp.asarray(d, dtype), (nv,)) for d in (q_deviations, v_deviations)]
        if self.parameters is None:
            return Gaussian.from_deviations((y,), jnp.concatenate(parts), self.space)
        default = np.broadcast_to(np.asarray(unknown_deviations, float), (self.unknowns,))
        parts.append(jnp.asarray(self.parameters.prior_deviations(default), dtype))
        return Gaussian.from_deviations((y, jnp.zeros(self.unknowns, dtype)), jnp.concatenate(parts), self.space)

    def model_at(self, y: State) -> Model:
        """The model with the unknowns of a state."""
        return self.model if self.parameters is None else self.parameters.plant_at(y[1]).model

    def values(self, y: State) -> dict[str, Float[Array, ""]]:
        """The physical values of the unknowns of a state, by name and unit."""
        return {} if self.parameters is None else self.parameters.values(y[1])

    def parts(self, y: State) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
        """The configuration and the velocity of a state, for measurements."""
        nq = self.model.topology.nq
        return y[0][:nq], y[0][nq:]

    def step(self, y: State, u: Float[Array, " nv"] | None, dt: Number) -> State:
        q, v = self.parts(y)
        history = rollout(self.model_at(y), q, v, dt=dt, steps=1, torques=u, method=self.method)
        return jnp.concatenate([history.q[-1], history.v[-1]]), *y[1:]

    def density(self, y: State, u: Float[Array, " nv"] | None) -> Float[Array, "n m"]:
        q, _ = self.parts(y)
        nv, k = self.model.topology.nv, self.unknowns
        force = matrix_of(self.force_noise, nv)
        moved = solve_mass_matrix(self.model_at(y), q, force.T).T
        walk = matrix_of(self.walk, k) if k else jnp.zeros((0, 0), force.dtype)
        still = jnp.zeros((nv, force.shape[1] + walk.shape[1]), force.dtype)
        upper = jnp.concatenate([moved, jnp.zeros((nv, walk.shape[1]), force.dtype)], axis=1)
        lower = jnp.concatenate([jnp.zeros((k, force.shape[1]), force.dtype), walk], axis=1)
        return jnp.concatenate([still, upper, lower])


def _check_model_alone(parameters: Parameters) -> None:
    """Raise ValueError if an unknown changes something else than the model."""
    for block, own in zip(parameters.blocks, parameters.slices, strict=True):
        x = jnp.zeros(parameters.size, parameters.dtype).at[own].set(0.01)
        rest = [eqx.tree_at(lambda plant: plant.model, parameters.plant_at(at), 0) for at in (jnp.zeros_like(x), x)]
        if not eqx.tree_equal(*rest):
            raise ValueError(
                f"unknown: expected parameters of the model, but {type(block).__name__} changes a sensor or a drive; "
                "make it a part of the measurement"
            )


def _density(name: str, value: ArrayLike, n: int, dtype: jnp.dtype) -> Array:
    density = jnp.asarray(value, dtype)
    if density.shape not in ((), (n,)) and (density.ndim != 2 or density.shape[0] != n):
        raise ValueError(f"{name}: expected a number, ({n},) or ({n}, m), got the shape {density.shape}")
    check_deviations(name, density)
    return density
