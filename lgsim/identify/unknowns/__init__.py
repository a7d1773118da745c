"""Unknowns of sensors, actuator delays, friction and coupled motors, and blocks with shared coordinates.

An ``InstrumentedPlant`` models sensors and delays between motion and records: ``SensorBias``, ``SensorDelay``,
``InputDelay``. ``SharedBlock`` is for identical or mirrored bodies and joints. A ``CoupledPlant`` has motors that turn
with several joints, as in wrists; ``MotorParameter`` is one of their parameters. ``DirectionalParameter`` is friction
or damping that differs by direction, ``LoadFriction`` the part that grows with the load of a gear.
"""

from lgsim.identify.unknowns.coupled_plant import CoupledPlant as CoupledPlant
from lgsim.identify.unknowns.coupled_plant import MotorParameter as MotorParameter
from lgsim.identify.unknowns.frame_blocks import SharedBlock as SharedBlock
from lgsim.identify.unknowns.joint_blocks import DirectionalParameter as DirectionalParameter
from lgsim.identify.unknowns.joint_blocks import LoadFriction as LoadFriction
from lgsim.identify.unknowns.sensor_plant import InputDelay as InputDelay
from lgsim.identify.unknowns.sensor_plant import InstrumentedPlant as InstrumentedPlant
from lgsim.identify.unknowns.sensor_plant import SensorBias as SensorBias
from lgsim.identify.unknowns.sensor_plant import SensorDelay as SensorDelay
