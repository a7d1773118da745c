"""Unknowns: a plant, blocks of its unknown numbers as coordinates, priors, base parameters."""

from lgsim.identify.unknowns.actuator_blocks import ActuatorParameter as ActuatorParameter
from lgsim.identify.unknowns.actuator_blocks import actuator_parameters as actuator_parameters
from lgsim.identify.unknowns.base_parameters import BaseParameters as BaseParameters
from lgsim.identify.unknowns.base_parameters import base_parameters as base_parameters
from lgsim.identify.unknowns.body_blocks import Block as Block
from lgsim.identify.unknowns.body_blocks import CentersOfMass as CentersOfMass
from lgsim.identify.unknowns.body_blocks import Inertias as Inertias
from lgsim.identify.unknowns.body_blocks import Masses as Masses
from lgsim.identify.unknowns.body_blocks import StandardParameters as StandardParameters
from lgsim.identify.unknowns.contact_blocks import ContactParameter as ContactParameter
from lgsim.identify.unknowns.frame_blocks import GravityDirection as GravityDirection
from lgsim.identify.unknowns.frame_blocks import Placements as Placements
from lgsim.identify.unknowns.frame_blocks import SharedBlock as SharedBlock
from lgsim.identify.unknowns.joint_blocks import JointParameter as JointParameter
from lgsim.identify.unknowns.joint_blocks import SignalScale as SignalScale
from lgsim.identify.unknowns.joint_blocks import Stribeck as Stribeck
from lgsim.identify.unknowns.joint_blocks import StribeckSpeed as StribeckSpeed
from lgsim.identify.unknowns.joint_blocks import TorqueOffset as TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters as Parameters
from lgsim.identify.unknowns.parameters import Prior as Prior
from lgsim.identify.unknowns.parameters import TotalMass as TotalMass
from lgsim.identify.unknowns.plant import Plant as Plant
from lgsim.identify.unknowns.sensor_plant import InputDelay as InputDelay
from lgsim.identify.unknowns.sensor_plant import InstrumentedPlant as InstrumentedPlant
from lgsim.identify.unknowns.sensor_plant import SensorBias as SensorBias
from lgsim.identify.unknowns.sensor_plant import SensorDelay as SensorDelay
