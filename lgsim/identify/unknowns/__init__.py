"""Unknowns of sensors, actuator delays and friction, and blocks with shared coordinates.

An ``InstrumentedPlant`` models sensors and delays between motion and records: ``SensorBias``, ``SensorDelay``,
``InputDelay``. ``SharedBlock`` is for identical or mirrored bodies and joints. ``DirectionalParameter`` is friction or
damping that differs by direction, ``LoadFriction`` the part that grows with the load of a gear.
"""

from lgsim.identify.unknowns.frame_blocks import SharedBlock as SharedBlock
from lgsim.identify.unknowns.joint_blocks import DirectionalParameter as DirectionalParameter
from lgsim.identify.unknowns.joint_blocks import LoadFriction as LoadFriction
from lgsim.identify.unknowns.sensor_plant import InputDelay as InputDelay
from lgsim.identify.unknowns.sensor_plant import InstrumentedPlant as InstrumentedPlant
from lgsim.identify.unknowns.sensor_plant import SensorBias as SensorBias
from lgsim.identify.unknowns.sensor_plant import SensorDelay as SensorDelay
