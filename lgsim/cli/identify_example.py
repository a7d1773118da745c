"""A map file to start from."""

EXAMPLE = """\
# A map for: lgsim identify robot.urdf motion.csv --map map.toml
# Columns with clear names, such as "q elbow [deg]" or "elbow_torque", need no line here.

# Columns first, by the names that the file gives them. A column is the name that it should have had,
# "ignore", or a table of
#   joint     whose it is; of an IMU frame; none for the time
#   quantity  time, q (position), v, a, tau (force of the drive), current; accelerometer, gyroscope
#   index     which number of a joint with several, from 0
#   unit      s ms us; rad deg rev; m mm; Nm N A and the like; SI if there is none
#   sign      1 or -1
#   scale     number = sign scale cell, in the unit
"t"        = { quantity = "time", unit = "ms" }
"enc_1"    = { joint = "shoulder", quantity = "q", unit = "deg" }
"enc_2"    = { joint = "elbow", quantity = "q", unit = "deg", sign = -1 }
"drive_1"  = { joint = "shoulder", quantity = "tau" }
"drive_2"  = { joint = "elbow", quantity = "tau" }
"comment"  = "ignore"

[options]
automatic  = true         # false: only the columns above
# quaternion = "wxyz"     # order of a quaternion's numbers without letters, or "xyzw"
# twist = "body"          # axes of a floating base's velocity: "body", "world" or "mixed"
# constants = { "q gripper" = 0.0 }   # of joints without a column

[delays]                  # by how much a channel comes late: s, or "estimate"
# tau = 0.004

[smoothing]               # velocities and accelerations are derivatives of a smooth curve through the positions
method = "spline"         # or "butterworth"
# spacing = 0.05          # of the spline's knots, s; without it cross-validation decides
# cutoff = 10.0           # of the Butterworth filter, Hz
# rate = 200.0            # new samples, Hz; without it the old times
# slowest = 0.02          # rad/s or m/s: where a joint is slower nothing is fitted, for dry friction is unclear there

[sensors]                 # first guesses of standard deviations, for --method simulation
# position = 1e-3         # rad or m
# velocity = 1e-2         # rad/s or m/s

[drives]
# scale = { shoulder = 8.2 }   # N m for each A, where currents were recorded

[known]
# total_mass = 12.3            # kg, from a scale
# total_mass_deviation = 0.01  # kg

[unknowns]                # what --fit names, or all of these without --fit
# bodies = {}             # all ten parameters of bodies, always of bodies that can exist
# masses = { bodies = ["fore"], prior = 0.5 }   # only of some bodies; prior: standard deviation about the file's
# friction = { joints = ["elbow"] }
"""
