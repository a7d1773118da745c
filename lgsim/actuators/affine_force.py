"""Forces that are affine in the motion of the shaft: MuJoCo's gain and bias, and the continuous PD servo."""

from __future__ import annotations

from lgsim.actuators.stage import Numbers, Rows, Shaft, Signal, Stage, number


class AffineForce(Stage):
    """``force = (a0 + a1 x + a2 x') signal + b0 + b1 x + b2 x'`` at the shaft's x, as MuJoCo's affine gain and bias.

    Attributes:
        gain: (a0, a1, a2) of each actuator (n, 3): N m, N m/rad and N m s/rad per unit of the signal.
        bias: (b0, b1, b2) of each actuator (n, 3): N m, N m/rad and N m s/rad.
    """

    gain: Numbers = number()
    bias: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the force, no rates)."""
        a, b = self.gain, self.bias
        gain = a[:, 0] + a[:, 1] * shaft.angle + a[:, 2] * shaft.speed
        return gain * signal + (b[:, 0] + b[:, 1] * shaft.angle + b[:, 2] * shaft.speed), states


class PositionServo(Stage):
    """A continuous PD servo: ``stiffness (command - x) - damping x'``, in the unit of the next stage.

    Attributes:
        stiffness: N m/rad or N/m where the output is a force, V/rad or A/rad where a motor follows.
        damping: N m s/rad or N s/m, or V s/rad or A s/rad.
    """

    stiffness: Numbers = number()
    damping: Numbers = number()

    def respond(self, signal: Signal, shaft: Shaft, states: Rows) -> tuple[Signal, Rows]:
        """(the servo's output, no rates)."""
        return self.stiffness * (signal - shaft.angle) - self.damping * shaft.speed, states
