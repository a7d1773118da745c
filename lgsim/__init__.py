"""lgsim: articulated rigid bodies simulated on their Lie groups, exactly differentiable, batched on CPU and GPU.

Importing it changes no JAX setting. float64 is recommended: ``jax.config.update("jax_enable_x64", True)``.

- groups: ``so2 se2 so3 se3 quaternion`` (functions on arrays), ``SO2 SE2 SO3 SE3 UnitQuaternion Euclidean Product
  Tangent Cotangent`` (structure objects), ``conversions``, ``actions``;
- integration: ``integrate``, ``Solution`` and the methods ``MK4 CF4 CG4 ...`` (all of them: ``METHODS``);
- machines: ``load_urdf``, ``ModelBuilder`` with ``joints``, ``Model``;
- their dynamics: ``forward_dynamics``, ``inverse_dynamics``, ``mass_matrix`` ... (all of them: ``dynamics``);
  derivatives by configuration: ``tangent_grad tangent_jacobian tangent_hessian``; large batches: ``batched``;
- motion: ``simulate`` gives a ``Trajectory``, ``rollout`` is the pure function under it, ``controls`` drive a machine,
  ``sensors`` read it; ``simulate_adaptive`` with ``events``, and on any manifold ``lgsim.integrators.adaptive``
  (extra ``adaptive``);
- pictures: ``view`` (extras ``plot`` and ``view``); an arm to try things on: ``data.arm7()``;
- ready problems: ``systems``.
"""

from lgsim import actions, data, dynamics, systems, view
from lgsim.dynamics import (
    bias_forces,
    center_of_mass,
    centroidal_momentum,
    centroidal_momentum_matrix,
    forward_dynamics,
    forward_dynamics_derivatives,
    forward_kinematics,
    frame_jacobian,
    gravity_forces,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    kinetic_energy,
    mass_matrix,
    passive_forces,
    potential_energy,
    torque_regressor,
)
from lgsim.formats import load_mjcf, load_urdf
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
from lgsim.multibody import (
    Model,
    ModelBuilder,
    ModelError,
    joints,
    tangent_grad,
    tangent_hessian,
    tangent_jacobian,
)
from lgsim.simulation import Motion, Trajectory, controls, events, rollout, sensors, simulate, simulate_adaptive
from lgsim.simulation.trajectory import own_version
from lgsim.spatial import batched

__version__ = own_version()

__all__ = [
    "CF2",
    "CF3",
    "CF4",
    "CF43",
    "CG2",
    "CG3",
    "CG4",
    "CG5",
    "METHODS",
    "MK2",
    "MK3",
    "MK4",
    "MK5",
    "MK6",
    "MK8",
    "MK54",
    "RESULTS",
    "SE2",
    "SE3",
    "SO2",
    "SO3",
    "CF32a",
    "CF32b",
    "Cotangent",
    "Euclidean",
    "LieEuler",
    "LieGroup",
    "MK2Midpoint",
    "MK4TwoCommutators",
    "Method",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Motion",
    "Product",
    "Solution",
    "Tangent",
    "Trajectory",
    "UnitQuaternion",
    "__version__",
    "actions",
    "batched",
    "bias_forces",
    "center_of_mass",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "controls",
    "conversions",
    "data",
    "dynamics",
    "events",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "frame_jacobian",
    "gravity_forces",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "joints",
    "kinetic_energy",
    "load_mjcf",
    "load_urdf",
    "mass_matrix",
    "passive_forces",
    "potential_energy",
    "quaternion",
    "rollout",
    "se2",
    "se3",
    "sensors",
    "simulate",
    "simulate_adaptive",
    "so2",
    "so3",
    "systems",
    "tangent_grad",
    "tangent_hessian",
    "tangent_jacobian",
    "torque_regressor",
    "view",
]  # fmt: skip
