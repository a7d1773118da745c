"""What each degree of freedom of a joint has in numbers, and what they are where none are given."""

import math

USUAL = {
    "armature": 0.0,
    "damping": 0.0,
    "friction": 0.0,
    "stiffness": 0.0,
    "rest": 0.0,
    "lower": -math.inf,
    "upper": math.inf,
    "velocity_limit": math.inf,
    "effort_limit": math.inf,
    "friction_speed": 0.1,
    "limit_stiffness": 0.0,
    "limit_damping": 0.0,
    "actuator_time": 0.0,
    "stribeck": 0.0,
    "stribeck_speed": 0.1,
}
"""The numbers of a degree of freedom for which none are given."""
