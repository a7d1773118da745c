"""Estimation of states on Lie groups: filters and smoothers of recorded motion and online, with a verdict.

A ``Gaussian`` is a mean and a triangular factor of the covariance of its error, whose action says in which axes the
error is. A process moves it: ``RobotProcess`` of a model with unknown parameters, ``FieldProcess`` of any field of
lgsim, ``LinearProcess``, ``DiscreteProcess``, and ``ImuNavigation`` of inertial navigation. A ``Measurement`` is a
function of the state with values in R^n or in a group, and a ``Stream`` holds its readings at their own times.

``run`` filters a record by ``EKF``, ``InvariantEKF``, ``IteratedEKF`` or ``UKF``, and returns an ``Estimate`` with its
``verdict``; ``step`` is one step online; ``smooth`` and ``maximum_a_posteriori`` use the later readings too. ``record``
draws recordings and ``nees`` compares estimates with the truth. ``RobotRecord`` filters a recording of
``identify.read_recording``, and its result is a ``RobotEstimate``. All are pure, differentiable and can be mapped by
``jax.vmap``. All covariances are factors, so that none ceases to be positive by rounding.
"""

from lgsim.estimate.consistency import Verdict as Verdict
from lgsim.estimate.consistency import nees as nees
from lgsim.estimate.gaussian import Gaussian as Gaussian
from lgsim.estimate.imu_navigation import ImuNavigation as ImuNavigation
from lgsim.estimate.measurement import Inputs as Inputs
from lgsim.estimate.measurement import Measurement as Measurement
from lgsim.estimate.measurement import Stream as Stream
from lgsim.estimate.methods import EKF as EKF
from lgsim.estimate.methods import InvariantEKF as InvariantEKF
from lgsim.estimate.methods import IteratedEKF as IteratedEKF
from lgsim.estimate.preintegration import preintegrate as preintegrate
from lgsim.estimate.processes import DiscreteProcess as DiscreteProcess
from lgsim.estimate.processes import FieldProcess as FieldProcess
from lgsim.estimate.processes import LinearProcess as LinearProcess
from lgsim.estimate.processes import Process as Process
from lgsim.estimate.record_filter import Estimate as Estimate
from lgsim.estimate.record_filter import run as run
from lgsim.estimate.record_filter import step as step
from lgsim.estimate.recording import Recording as Recording
from lgsim.estimate.recording import record as record
from lgsim.estimate.robot_process import RobotProcess as RobotProcess
from lgsim.estimate.robot_record import RobotEstimate as RobotEstimate
from lgsim.estimate.robot_record import RobotRecord as RobotRecord
from lgsim.estimate.smoothing import Smoothed as Smoothed
from lgsim.estimate.smoothing import maximum_a_posteriori as maximum_a_posteriori
from lgsim.estimate.smoothing import smooth as smooth
from lgsim.estimate.unscented_filter import UKF as UKF
from lgsim.estimate.unscented_filter import Cubature as Cubature
from lgsim.estimate.unscented_filter import Julier as Julier
from lgsim.estimate.unscented_filter import Scaled as Scaled
