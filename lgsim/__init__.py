"""lgsim: articulated rigid bodies simulated on their Lie groups, exactly differentiable, batched on CPU.

Programs compile for GPUs too, and have not been measured on one.

Importing it changes no JAX setting and loads no JAX: a part is imported when it is used first. float64 is recommended:
``jax.config.update("jax_enable_x64", True)``.

- groups: ``so2 se2 so3 se3 quaternion`` (functions on arrays), ``SO2 SE2 SO3 SE3 SE23 UnitQuaternion Euclidean
  Product Tangent Cotangent`` (structure objects), ``conversions``, ``actions``;
- integration: ``integrate``, ``Solution`` and the methods ``MK4 CF4 CG4 ...`` (all of them: ``METHODS``; others:
  ``SYMPLECTIC_METHODS VARIATIONAL_METHODS IMPLICIT_METHODS LINEARLY_IMPLICIT_METHODS COORDINATE_METHODS``),
  ``HamiltonianField`` and other fields from an energy, ``DiscreteMechanics`` from a Lagrangian (``Variational``,
  ``MoserVeselov``, ``EnergyMomentum``, ``discrete_momentum_map``);
- machines: ``load_urdf``, ``ModelBuilder`` with ``joints``, ``contacts`` and ``geometry``, ``Model``;
- their dynamics: ``forward_dynamics``, ``inverse_dynamics``, ``mass_matrix`` ... (all of them: ``dynamics``);
  distances of solids: ``distance``, ``closest_points``, ``distance_jacobian``;
  derivatives by configuration: ``tangent_grad tangent_jacobian tangent_hessian``; a mask for optimizers: ``trainable``;
  large batches: ``tiled_vmap``, ``xla_options``;
- motion: ``simulate`` gives a ``Trajectory``, ``rollout`` is the pure function under it, ``controls`` drive a machine,
  ``actuators`` make joint forces of commands, ``sensors`` read it; ``simulate_adaptive`` with ``events``, and on any
  manifold ``lgsim.integrators.adaptive`` (extra ``adaptive``);
- trajectory optimization, inverse kinematics, model predictive control: ``optimize`` (extra ``optimize`` for the
  minimizers of optimistix);
- identification from recorded motion: ``identify`` (extra ``identify``);
- variational motion of machines without drift of momentum or energy: ``VariationalTree``, ``discrete_momenta``;
- dispersions: ``montecarlo`` samples states, parameters and disturbances, on groups (extra ``montecarlo``);
- pictures: ``view`` (extras ``plot`` and ``view``); an arm to try things on: ``data.arm7()``;
- problems, studies and maps of recordings from TOML files: ``scenarios.load_scenario`` and others;
- reports of fits, studies and trajectories as one HTML page: ``reports.report_fit`` and others (extra ``plot``);
- formulas of machines, by sympy and others: ``symbolic`` (extra ``symbolic``);
- ready problems: ``systems``.
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
    """What LLVM makes of a program of one state, see ``lgsim._compile.programs.call``."""
    from lgsim._compile.programs.call import compile_batch

    return compile_batch(program)


def _compile_cuda_batch(program: Any) -> Any:
    """One kernel of a program of one state, see ``lgsim._compile.programs.cuda_call``."""
    from lgsim._compile.programs.cuda_call import compile_cuda_batch

    return compile_cuda_batch(program)


def _compile_cuda_loop(program: Any, carried: int, steps: int) -> Any:
    """One kernel of a loop of a step, see ``lgsim._compile.programs.cuda_call``."""
    from lgsim._compile.programs.cuda_call import compile_cuda_loop

    return compile_cuda_loop(program, carried, steps)


# this file runs before any part of lgsim, whichever is imported first
register_batch_compiler(_compile_batch)
register_batch_compiler(_compile_cuda_batch, "cuda")
register_loop_compiler(_compile_cuda_loop, "cuda")
