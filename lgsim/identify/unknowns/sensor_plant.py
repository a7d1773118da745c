"""A plant with sensor biases and delays and an input delay, and the blocks of these unknowns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from jaxtyping import Float

from lgsim.identify.unknowns.block import NumberBlock
from lgsim.identify.unknowns.plant import NumbersLike, Plant
from lgsim.multibody.model import Model

MAX_DELAY_STEPS = 8
"""The largest input delay, in steps."""


class InstrumentedPlant(Plant):
    """A plant with imperfect sensors and delayed inputs.

    Attributes:
        biases: Constant bias of the sensor of each channel (size,), in its unit.
        delays: Delay of the sensor of each channel, s: the reading is the state at the earlier time, by a parabola in
            time. It is accurate for delays of about one step; for larger ones use ``estimate_delay`` and
            ``shift_signal``.
        input_delay: Delay of the signals that drive the joints, s, at most ``MAX_DELAY_STEPS`` steps.

    Raises:
        ValueError: the biases of a channel are not a vector.
    """

    biases: dict[str, Float[Array, " _"]]
    delays: dict[str, Float[Array, ""]]
    input_delay: Float[Array, ""]

    def __init__(
        self,
        plant: Plant | Model,
        biases: Mapping[str, NumbersLike] | None = None,
        delays: Mapping[str, ArrayLike] | None = None,
        input_delay: ArrayLike = 0.0,
    ) -> None:
        given = plant if isinstance(plant, Plant) else Plant(plant)
        super().__init__(given.model, given.scale, given.offset, actuators=given.actuators)
        dtype = given.model.dtype
        self.biases = {name: jnp.asarray(value, dtype) for name, value in (biases or {}).items()}
        self.delays = {name: jnp.asarray(value, dtype) for name, value in (delays or {}).items()}
        self.input_delay = jnp.asarray(input_delay, dtype)
        for name, bias in self.biases.items():
            if bias.ndim != 1:
                raise ValueError(f"biases: expected a vector for {name!r}, got shape {bias.shape}")


def with_instruments(plant: Plant) -> InstrumentedPlant:
    """The plant as an ``InstrumentedPlant``; a plain plant gets ideal sensors."""
    return plant if isinstance(plant, InstrumentedPlant) else InstrumentedPlant(plant)


class ChannelBlock(NumberBlock):
    """Unknown parameters of the sensor of one channel."""

    channel: str = eqx.field(static=True)
    prior_deviation: NumbersLike | None

    def __init__(self, channel: str, prior_deviation: NumbersLike | None = None) -> None:
        self.channel, self.prior_deviation = channel, prior_deviation

    def read(self, plant: Plant) -> Float[Array, " size"]:
        """The plant's values for the channel.

        Raises:
            ValueError: the plant has no value for this channel.
        """
        known = self.read_all(with_instruments(plant))
        if self.channel not in known:
            raise ValueError(
                f"channel: the plant has no {type(self).__name__} of {self.channel!r}; it has {sorted(known)}; define"
                " it in InstrumentedPlant"
            )
        return jnp.atleast_1d(known[self.channel])

    def write(self, plant: Plant, numbers: Float[Array, " size"]) -> Plant:
        own = with_instruments(plant)
        new = numbers.reshape(self.read_all(own)[self.channel].shape)
        return eqx.tree_at(lambda p: self.read_all(p)[self.channel], own, new)

    @abstractmethod
    def read_all(self, plant: InstrumentedPlant) -> dict[str, Float[Array, " ..."]]:
        """The plant's values for all channels."""


class SensorBias(ChannelBlock):
    """Constant bias of a channel's sensor, in its unit."""

    def read_all(self, plant: InstrumentedPlant) -> dict[str, Float[Array, " ..."]]:
        return plant.biases

    def labels(self, plant: Plant) -> list[str]:
        return [f"bias {i} of {self.channel}" for i in range(self.read(plant).size)]


class SensorDelay(ChannelBlock):
    """The delay of a channel's sensor, s."""

    unit = "s"

    def read_all(self, plant: InstrumentedPlant) -> dict[str, Float[Array, " ..."]]:
        return plant.delays

    def labels(self, plant: Plant) -> list[str]:
        return [f"delay of {self.channel}"] * self.read(plant).size


class InputDelay(NumberBlock):
    """The input delay of signals or commands, s: between zero and ``MAX_DELAY_STEPS`` steps.

    A fraction of a step enters by the mean over the step, which is exact for whole steps only. Choose steps over which
    the commands change little.

    Attributes:
        max_delay: Upper bound of the delay, s.
    """

    prior_deviation: NumbersLike | None = None
    max_delay: ArrayLike = np.inf

    lower = 0.0
    unit = "s"

    @property
    def upper(self) -> ArrayLike:
        """Upper bound of the delay, s."""
        return self.max_delay

    def labels(self, plant: Plant) -> list[str]:
        return ["delay of the drives"]

    def read(self, plant: Plant) -> Float[Array, " 1"]:
        return with_instruments(plant).input_delay[None]

    def write(self, plant: Plant, numbers: Float[Array, " 1"]) -> Plant:
        return eqx.tree_at(lambda p: p.input_delay, with_instruments(plant), numbers[0])
