"""lgsim: articulated rigid bodies simulated on their Lie groups, exactly differentiable, batched on CPU and GPU.

Importing it changes no JAX setting. float64 is recommended: ``jax.config.update("jax_enable_x64", True)``.

- groups: ``so2 se2 so3 se3 quaternion`` (functions on arrays), ``SO2 SE2 SO3 SE3 SE23 UnitQuaternion Euclidean
  Product Tangent Cotangent`` (structure objects), ``conversions``, ``actions``;
- integration: ``integrate``, ``Solution`` and the methods ``MK4 CF4 CG4 ...`` (all of them: ``METHODS``; others:
  ``SYMPLECTIC_METHODS IMPLICIT_METHODS COORDINATE_METHODS``), ``HamiltonianField`` and other fields from an energy;
- machines: ``load_urdf``, ``ModelBuilder`` with ``joints``, ``Model``;
- their dynamics: ``forward_dynamics``, ``inverse_dynamics``, ``mass_matrix`` ... (all of them: ``dynamics``);
  derivatives by configuration: ``tangent_grad tangent_jacobian tangent_hessian``; large batches: ``tiled_vmap``,
  ``xla_options``;
- motion: ``simulate`` gives a ``Trajectory``, ``rollout`` is the pure function under it, ``controls`` drive a machine,
  ``sensors`` read it; ``simulate_adaptive`` with ``events``, and on any manifold ``lgsim.integrators.adaptive``
  (extra ``adaptive``);
- trajectory optimization, inverse kinematics, model predictive control: ``optimize`` (extra ``optimize`` for the
  minimizers of optimistix);
- identification from recorded motion: ``identify`` (extra ``identify``);
- dispersions: ``montecarlo`` samples states, parameters and disturbances, on groups (extra ``montecarlo``);
- pictures: ``view`` (extras ``plot`` and ``view``); an arm to try things on: ``data.arm7()``;
- problems, studies and maps of recordings from TOML files: ``scenarios.load_scenario`` and others;
- reports of fits, studies and trajectories as one HTML page: ``reports.report_fit`` and others (extra ``plot``);
- ready problems: ``systems``.
"""

from lgsim import (
    actions,
    data,
    dynamics,
    identify,
    montecarlo,
    optimize,
    programs,
    reports,
    scenarios,
    systems,
    view,
)
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
from lgsim.integrators import (
    COORDINATE_METHODS,
    IMPLICIT_METHODS,
    METHODS,
    RESULTS,
    SYMPLECTIC_METHODS,
    BodyMomentumHamiltonian,
    HamiltonianField,
    LiePoissonField,
    Method,
    Newton,
    Solution,
    SymplecticTheta,
    integrate,
    methods,
)
from lgsim.integrators.methods import *  # noqa: F403
from lgsim.lie import conversions, quaternion, se2, se3, so2, so3
from lgsim.lie.extended_pose import SE23
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
from lgsim.simulation import StateHistory, Trajectory, controls, events, rollout, sensors, simulate, simulate_adaptive
from lgsim.support.packages import own_version
from lgsim.xla import llvm_lowering, tiled_vmap, xla_options

__version__ = own_version()

__all__ = [
    "COORDINATE_METHODS",
    "IMPLICIT_METHODS",
    "METHODS",
    "RESULTS",
    "SE2",
    "SE3",
    "SE23",
    "SO2",
    "SO3",
    "SYMPLECTIC_METHODS",
    "BodyMomentumHamiltonian",
    "Cotangent",
    "Euclidean",
    "HamiltonianField",
    "LieGroup",
    "LiePoissonField",
    "Method",
    "Model",
    "ModelBuilder",
    "ModelError",
    "Newton",
    "Product",
    "Solution",
    "StateHistory",
    "SymplecticTheta",
    "Tangent",
    "Trajectory",
    "UnitQuaternion",
    "__version__",
    "actions",
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
    "identify",
    "integrate",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "joints",
    "kinetic_energy",
    "llvm_lowering",
    "load_mjcf",
    "load_urdf",
    "mass_matrix",
    "montecarlo",
    "optimize",
    "passive_forces",
    "potential_energy",
    "programs",
    "quaternion",
    "reports",
    "rollout",
    "scenarios",
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
    "tiled_vmap",
    "torque_regressor",
    "view",
    "xla_options",
]
__all__ += methods.__all__
