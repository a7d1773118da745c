"""lgsim: articulated rigid bodies simulated on their Lie groups, exactly differentiable, batched on CPU and GPU.

Importing it changes no JAX setting. float64 is recommended: ``jax.config.update("jax_enable_x64", True)``.

- groups: ``so2 se2 so3 se3 quaternion`` (functions on arrays), ``SO2 SE2 SO3 SE3 UnitQuaternion Euclidean Product
  Tangent Cotangent`` (structure objects), ``conversions``, ``actions``;
- integration: ``integrate``, ``Solution`` and the methods ``MK4 CF4 CG4 ...`` (all of them: ``METHODS``);
- ready problems: ``systems``.
"""

from importlib.metadata import PackageNotFoundError, version

from lgsim import actions, systems
from lgsim.integrators import METHODS, RESULTS, Method, Solution, integrate
from lgsim.integrators.methods import (
    CF2,
    CF3,
    CF4,
    CF43,
    CG2,
    CG3,
    CG4,
    CG5,
    MK2,
    MK3,
    MK4,
    MK5,
    MK6,
    MK8,
    MK54,
    CF32a,
    CF32b,
    LieEuler,
    MK2Midpoint,
    MK4TwoCommutators,
)
from lgsim.lie import conversions, quaternion, se2, se3, so2, so3
from lgsim.lie.group import SE2, SE3, SO2, SO3, Euclidean, LieGroup, UnitQuaternion
from lgsim.lie.product import Cotangent, Product, Tangent

try:
    __version__ = version("lgsim")
except PackageNotFoundError:  # a source tree on the path that was not installed
    __version__ = "0+unknown"

__all__ = [
    "CF2", "CF3", "CF4", "CF43", "CG2", "CG3", "CG4", "CG5", "METHODS", "MK2", "MK3", "MK4", "MK5", "MK6", "MK8",
    "MK54", "RESULTS", "SE2", "SE3", "SO2", "SO3", "CF32a", "CF32b", "Cotangent", "Euclidean", "LieEuler", "LieGroup",
    "MK2Midpoint", "MK4TwoCommutators", "Method", "Product", "Solution", "Tangent", "UnitQuaternion", "__version__",
    "actions", "conversions", "integrate", "quaternion", "se2", "se3", "so2", "so3", "systems",
]  # fmt: skip
