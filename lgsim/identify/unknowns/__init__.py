"""Unknowns of instruments, and of bodies or joints that are alike.

An ``InstrumentedPlant`` has instruments between motion and records: ``SensorBias``, ``SensorDelay``, ``InputDelay``.
``SharedBlock`` is for bodies or joints that are alike.
"""

from lgsim.identify.unknowns.frame_blocks import SharedBlock as SharedBlock
from lgsim.identify.unknowns.sensor_plant import InputDelay as InputDelay
from lgsim.identify.unknowns.sensor_plant import InstrumentedPlant as InstrumentedPlant
from lgsim.identify.unknowns.sensor_plant import SensorBias as SensorBias
from lgsim.identify.unknowns.sensor_plant import SensorDelay as SensorDelay
