"""Unknowns of sensors and actuator delays, and blocks with shared coordinates.

An ``InstrumentedPlant`` models sensors and delays between motion and records: ``SensorBias``, ``SensorDelay``,
``InputDelay``. ``SharedBlock`` is for identical or mirrored bodies and joints.
"""

from lgsim.identify.unknowns.frame_blocks import SharedBlock as SharedBlock
from lgsim.identify.unknowns.sensor_plant import InputDelay as InputDelay
from lgsim.identify.unknowns.sensor_plant import InstrumentedPlant as InstrumentedPlant
from lgsim.identify.unknowns.sensor_plant import SensorBias as SensorBias
from lgsim.identify.unknowns.sensor_plant import SensorDelay as SensorDelay
