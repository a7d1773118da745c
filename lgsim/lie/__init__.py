"""Lie groups and their actions: pure functions on arrays, group objects, and the scalar series that they need."""

from lgsim.lie import action as action
from lgsim.lie import ad_functions as ad_functions
from lgsim.lie import conversions as conversions
from lgsim.lie import extended_pose as extended_pose
from lgsim.lie import group as group
from lgsim.lie import product as product
from lgsim.lie import quaternion as quaternion
from lgsim.lie import se2 as se2
from lgsim.lie import se3 as se3
from lgsim.lie import series as series
from lgsim.lie import so2 as so2
from lgsim.lie import so3 as so3
