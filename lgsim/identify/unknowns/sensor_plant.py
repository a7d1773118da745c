"""Biases and delays of sensors, and the delay of the drives, as numbers of a plant."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from lgsim.identify.unknowns.body_blocks import Block
from lgsim.identify.unknowns.plant import Plant
from lgsim.multibody.model import Model

HALO = 8
"""Steps by which a drive may be late at most."""


class InstrumentedPlant(Plant):
    """A plant with what its instruments do to signals and measurements.

    Attributes:
        biases: By channel of the records: what its sensor shows too much, one number for each degree of freedom.
        delays: By channel, s: the sensor shows the state that was so long before, by a parabola in time; for delays of
            a step or so. Larger ones are for ``estimate_delay`` and ``shift``.
        input_delay: Time after which signals drive the joints, s, at most ``HALO`` steps.
    """

    biases: dict[str, Array]
    delays: dict[str, Array]
    input_delay: Array

    def __init__(
        self,
        plant: Plant | Model,
        biases: Mapping[str, Any] | None = None,
        delays: Mapping[str, Any] | None = None,
        input_delay: Any = 0.0,
    ):
        given = plant if isinstance(plant, Plant) else Plant(plant)
        super().__init__(given.model, given.scale, given.offset, given.stribeck, given.stribeck_speed)
        dtype = given.model.dtype
        self.biases = {name: jnp.asarray(value, dtype) for name, value in (biases or {}).items()}
        self.delays = {name: jnp.asarray(value, dtype) for name, value in (delays or {}).items()}
        self.input_delay = jnp.asarray(input_delay, dtype)
        for name, bias in self.biases.items():
            if bias.ndim != 1:
                raise ValueError(f"biases: expected one row of numbers for {name!r}, got shape {bias.shape}")


def instruments(plant: Plant) -> InstrumentedPlant:
    """The plant's instruments; those of a plain plant are perfect."""
    return plant if isinstance(plant, InstrumentedPlant) else InstrumentedPlant(plant)


class _OfChannel(Block):
    """Numbers of one channel.

    Attributes:
        channel: Its name in the records.
    """

    channel: str = eqx.field(static=True)
    prior: Any

    def __init__(self, channel: str, prior: Any = None):
        self.channel, self.prior = channel, prior

    def part(self, plant: Plant) -> Array:
        """Those numbers of the plant.

        Raises:
            ValueError: the plant has none for this channel.
        """
        known = self.among(plant)
        if self.channel not in known:
            raise ValueError(
                f"channel: the plant has no {type(self).__name__} of {self.channel!r}; there are {sorted(known)};"
                " InstrumentedPlant takes them by channel"
            )
        return known[self.channel]

    @abstractmethod
    def among(self, plant: Plant) -> dict[str, Array]:
        """Those numbers of all channels."""


class SensorBias(_OfChannel):
    """What a channel's sensor shows too much."""

    def among(self, plant: Plant) -> dict[str, Array]:
        return instruments(plant).biases

    def labels(self, plant: Plant) -> list[str]:
        return [f"bias {i} of {self.channel}" for i in range(self.part(plant).size)]

    def put(self, plant: Plant, x: Array) -> Plant:
        own = instruments(plant)
        return eqx.tree_at(lambda p: p.biases[self.channel], own, self.part(plant) + x)

    def values(self, plant: Plant) -> dict[str, Array]:
        return dict(zip(self.labels(plant), self.part(plant), strict=True))


class SensorDelay(_OfChannel):
    """How late a channel's sensor is, s."""

    def among(self, plant: Plant) -> dict[str, Array]:
        return instruments(plant).delays

    def labels(self, plant: Plant) -> list[str]:
        return [f"delay of {self.channel}" for _ in [self.part(plant)]]

    def put(self, plant: Plant, x: Array) -> Plant:
        own = instruments(plant)
        return eqx.tree_at(lambda p: p.delays[self.channel], own, self.part(plant) + x[0])

    def values(self, plant: Plant) -> dict[str, Array]:
        return {f"delay of {self.channel}, s": self.part(plant)}


class InputDelay(Block):
    """How late the drives follow their signals, s: between zero and ``HALO`` steps.

    Attributes:
        longest: Upper bound, s.
    """

    prior: Any = None
    longest: Any = np.inf

    def labels(self, plant: Plant) -> list[str]:
        return ["delay of the drives"]

    def put(self, plant: Plant, x: Array) -> Plant:
        own = instruments(plant)
        return eqx.tree_at(lambda p: p.input_delay, own, own.input_delay + x[0])

    def values(self, plant: Plant) -> dict[str, Array]:
        return {"delay of the drives, s": instruments(plant).input_delay}

    def bounds(self, plant: Plant) -> tuple[Any, Any]:
        start = instruments(plant).input_delay
        return -start, self.longest - start
