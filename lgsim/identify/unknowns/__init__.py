"""Unknowns: a plant, blocks of its unknown numbers as coordinates, priors, base parameters."""

from lgsim.identify.unknowns.actuator_blocks import ActuatorParameter, actuator_parameters
from lgsim.identify.unknowns.base_parameters import BaseParameters, base_parameters
from lgsim.identify.unknowns.body_blocks import Block, CentersOfMass, Inertias, Masses, StandardParameters
from lgsim.identify.unknowns.contact_blocks import ContactParameter
from lgsim.identify.unknowns.frame_blocks import GravityDirection, Placements, SharedBlock
from lgsim.identify.unknowns.joint_blocks import JointParameter, SignalScale, Stribeck, StribeckSpeed, TorqueOffset
from lgsim.identify.unknowns.parameters import Parameters, Prior, TotalMass
from lgsim.identify.unknowns.plant import Plant
from lgsim.identify.unknowns.sensor_plant import InputDelay, InstrumentedPlant, SensorBias, SensorDelay

__all__ = [
    "ActuatorParameter",
    "BaseParameters",
    "Block",
    "CentersOfMass",
    "ContactParameter",
    "GravityDirection",
    "Inertias",
    "InputDelay",
    "InstrumentedPlant",
    "JointParameter",
    "Masses",
    "Parameters",
    "Placements",
    "Plant",
    "Prior",
    "SensorBias",
    "SensorDelay",
    "SharedBlock",
    "SignalScale",
    "StandardParameters",
    "Stribeck",
    "StribeckSpeed",
    "TorqueOffset",
    "TotalMass",
    "actuator_parameters",
    "base_parameters",
]
