"""lgsim: articulated rigid bodies simulated on their Lie groups, exactly differentiable, batched on CPU.

Programs compile for GPUs too, and have not been measured on one.

The import changes no JAX setting and does not load JAX: parts are imported on first use. float64 is recommended:
``jax.config.update("jax_enable_x64", True)``.

- groups: ``so2 se2 so3 se3 quaternion`` (functions on arrays), ``SO2 SE2 SO3 SE3 SE23 UnitQuaternion Euclidean
  Product Tangent Cotangent`` (structure objects), ``conversions``, ``actions``;
- integration: ``integrate``, ``Solution`` and the methods ``MK4 CF4 CG4 ...`` (all of them: ``METHODS``; others:
  ``SYMPLECTIC_METHODS VARIATIONAL_METHODS IMPLICIT_METHODS LINEARLY_IMPLICIT_METHODS COORDINATE_METHODS``),
  ``HamiltonianField`` and other fields from an energy, ``DiscreteMechanics`` from a Lagrangian (``Variational``,
  ``MoserVeselov``, ``EnergyMomentum``, ``discrete_momentum_map``);
- models: ``load_urdf``, ``ModelBuilder`` with ``joints``, ``contacts`` and ``geometry``, ``Model``;
- dynamics: ``forward_dynamics``, ``inverse_dynamics``, ``mass_matrix`` ... (all of them: ``dynamics``);
  distances between shapes: ``distance``, ``closest_points``, ``distance_jacobian``;
  derivatives with respect to configurations: ``tangent_grad tangent_jacobian tangent_hessian``; a mask for optimizers:
  ``trainable``; large batches: ``tiled_vmap``, ``xla_options``;
- simulation: ``simulate`` returns a ``Trajectory``, ``rollout`` is the pure function, with ``controls``, ``actuators``
  and ``sensors``; ``simulate_adaptive`` with ``events``, and on any manifold ``lgsim.integrators.adaptive`` (extra
  ``adaptive``);
- trajectory optimization, inverse kinematics, model predictive control: ``optimize`` (extra ``optimize`` for the
  minimizers of optimistix);
- system identification from recorded motion: ``identify`` (extra ``identify``);
- estimation by filters and smoothers on groups: ``estimate``;
- variational integrators without drift of momentum or energy: ``VariationalTree``, ``discrete_momenta``;
- Monte Carlo studies: ``montecarlo`` samples states, parameters and disturbances, on groups (extra ``montecarlo``);
- visualization: ``view`` (extras ``plot`` and ``view``); an example arm: ``data.arm7()``;
- problems, studies and maps of recordings from TOML files: ``scenarios.load_scenario`` and others;
- reports of fits, studies and trajectories as one HTML page: ``reports.report_fit`` and others (extra ``plot``);
- symbolic equations of motion, by sympy and others: ``symbolic`` (extra ``symbolic``);
- example systems: ``systems``.
"""

from __future__ import annotations

from typing import Any

from lgsim.support.batch_compiler import register_batch_compiler, register_loop_compiler
from lgsim.support.packages import own_version
from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
__version__ = own_version()
"""Version of the installed package."""


def _compile_batch(program: Any) -> Any:
    """The LLVM compiler for a program of one state, see ``lgsim._compile.programs.call``."""
    from lgsim._compile.programs.call import compile_batch

    return compile_batch(program)


def _compile_cuda_batch(program: Any) -> Any:
    """The CUDA kernel for a program of one state, see ``lgsim._compile.programs.cuda_call``."""
    from lgsim._compile.programs.cuda_call import compile_cuda_batch

    return compile_cuda_batch(program)


def _compile_cuda_loop(program: Any, carried: int, steps: int) -> Any:
    """The CUDA kernel for a loop over one step, see ``lgsim._compile.programs.cuda_call``."""
    from lgsim._compile.programs.cuda_call import compile_cuda_loop

    return compile_cuda_loop(program, carried, steps)


# this file runs before any part of lgsim, whichever is imported first
register_batch_compiler(_compile_batch)
register_batch_compiler(_compile_cuda_batch, "cuda")
register_loop_compiler(_compile_cuda_loop, "cuda")
