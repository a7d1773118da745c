"""Actuator models: gears, motors, servos, friction and backlash between a command and a joint, all differentiable."""

from lgsim.actuators.activation import Lag as Lag
from lgsim.actuators.actuators import Actuators as Actuators
from lgsim.actuators.affine_force import AffineForce as AffineForce
from lgsim.actuators.affine_force import PositionServo as PositionServo
from lgsim.actuators.backlash import Backlash as Backlash
from lgsim.actuators.bristle_friction import LuGreFriction as LuGreFriction
from lgsim.actuators.current_loop import CurrentLoop as CurrentLoop
from lgsim.actuators.dc_motor import Cogging as Cogging
from lgsim.actuators.dc_motor import DCMotor as DCMotor
from lgsim.actuators.gear import Gear as Gear
from lgsim.actuators.motor_controller import MotorController as MotorController
from lgsim.actuators.muscle import Muscle as Muscle
from lgsim.actuators.orientation_servo import OrientationServo as OrientationServo
from lgsim.actuators.passive_springs import PassiveSprings as PassiveSprings
from lgsim.actuators.passive_springs import PolynomialSpring as PolynomialSpring
from lgsim.actuators.sampled_servo import SampledServo as SampledServo
from lgsim.actuators.saturation import Saturation as Saturation
from lgsim.actuators.stage import Stage as Stage
from lgsim.actuators.tendon_paths import TendonPaths as TendonPaths
from lgsim.actuators.torque_speed_limit import TorqueSpeedLimit as TorqueSpeedLimit
from lgsim.actuators.transmission import Transmission as Transmission
