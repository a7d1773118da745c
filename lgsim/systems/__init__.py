"""Ready problems: the systems of the papers that lgsim follows, each as a function that returns a `Problem`."""

from lgsim.systems.problem import Problem
from lgsim.systems.rigid_body import euler_poisson, free_rigid_body, heavy_top
from lgsim.systems.three_body import three_body

__all__ = ["Problem", "euler_poisson", "free_rigid_body", "heavy_top", "three_body"]
