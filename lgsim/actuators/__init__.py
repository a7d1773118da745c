"""Actuators: gears, motors, servos, friction and play between a command and a joint, each number a leaf."""

from lgsim.actuators.activation import Activation, Lag
from lgsim.actuators.actuators import Actuators, ActuatorSum
from lgsim.actuators.affine_force import AffineForce, PositionServo
from lgsim.actuators.backlash import Backlash
from lgsim.actuators.bristle_friction import LuGreFriction
from lgsim.actuators.current_loop import CurrentLoop
from lgsim.actuators.dc_motor import DCMotor
from lgsim.actuators.gear import Gear
from lgsim.actuators.sampled_servo import SampledServo
from lgsim.actuators.saturation import Saturation
from lgsim.actuators.stage import Shaft, Stage
from lgsim.actuators.torque_speed_limit import TorqueSpeedLimit
from lgsim.actuators.transmission import Transmission

__all__ = [
    "Activation",
    "ActuatorSum",
    "Actuators",
    "AffineForce",
    "Backlash",
    "CurrentLoop",
    "DCMotor",
    "Gear",
    "Lag",
    "LuGreFriction",
    "PositionServo",
    "SampledServo",
    "Saturation",
    "Shaft",
    "Stage",
    "TorqueSpeedLimit",
    "Transmission",
]
