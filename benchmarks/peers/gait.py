"""A trot gait for lgsim and its peers; imported by workers, so without lgsim."""

import numpy as np

SPRING = 200.0
"""Of each joint of a leg, N m/rad."""
TURNS = np.repeat([0.0, np.pi, np.pi, 0.0], 3)
SIGNS = np.array([1, 1, 1] * 2 + [1, 1, -1] * 2)
"""Of a joint in its leg (hip, thigh, shank): thighs swing alike, knees bend to the middle."""


def torques(gait, t, xp=np):
    """Torques of the twelve joints in addition to the springs of the standing posture, N m.

    Args:
        gait: Amplitudes of thighs and shanks, rad; phase lag of the shanks, rad; offsets of thighs and shanks from the
            posture, rad; frequency, Hz.
        t: Time, s.
        xp: numpy or jax.numpy.
    """
    still, one = xp.zeros(()), xp.ones(())
    swing, later = xp.stack([still, gait[0], gait[1]]), xp.stack([still, still, one]) * gait[2]
    leg = xp.stack([still, gait[3], gait[4]])
    turn = 2 * np.pi * gait[5] * t + TURNS + xp.tile(later, 4)
    return SPRING * SIGNS * (xp.tile(leg, 4) + xp.minimum(4 * t, 1.0) * xp.tile(swing, 4) * xp.sin(turn))
