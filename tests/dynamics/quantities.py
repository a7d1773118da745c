"""Every algorithm at many states: what the tests of identities and of real robots compile once for each tree."""

from functools import cache

import jax

from lgsim import dynamics as d


@cache
def algorithms(frame):
    """Functions of (model, q, v, x, wrenches) by name; one that gives several quantities has their names in a tuple."""
    return {
        # poses, velocities and accelerations of frames and of the machine
        "poses": lambda m, q, v, x, w: d.forward_kinematics(m, q),
        "twists": lambda m, q, v, x, w: d.frame_twists(m, q, v),
        "accelerations": lambda m, q, v, x, w: d.frame_accelerations(m, q, v, x),
        "jacobian": lambda m, q, v, x, w: d.frame_jacobian(m, q, frame),
        "jacobian rate": lambda m, q, v, x, w: d.frame_jacobian_rate(m, q, v, frame),
        "center": lambda m, q, v, x, w: d.center_of_mass(m, q),
        "center velocity": lambda m, q, v, x, w: d.center_of_mass_velocity(m, q, v),
        "center jacobian": lambda m, q, v, x, w: d.center_of_mass_jacobian(m, q),
        "momentum": lambda m, q, v, x, w: d.centroidal_momentum(m, q, v),
        "momentum rate": lambda m, q, v, x, w: d.centroidal_momentum_rate(m, q, v, x),
        "momentum matrix": lambda m, q, v, x, w: d.centroidal_momentum_matrix(m, q),
        "momentum matrix rate": lambda m, q, v, x, w: d.centroidal_momentum_matrix_rate(m, q, v),
        # forces, inertias and energies
        "inverse dynamics": lambda m, q, v, x, w: d.inverse_dynamics(m, q, v, x, w),
        "mass matrix": lambda m, q, v, x, w: d.mass_matrix(m, q),
        "bias": lambda m, q, v, x, w: d.bias_forces(m, q, v),
        "gravity": lambda m, q, v, x, w: d.gravity_forces(m, q),
        "Coriolis": lambda m, q, v, x, w: d.coriolis_matrix(m, q, v),
        "kinetic energy": lambda m, q, v, x, w: d.kinetic_energy(m, q, v),
        "potential energy": lambda m, q, v, x, w: d.potential_energy(m, q),
        "torque regressor": lambda m, q, v, x, w: d.torque_regressor(m, q, v, x),
        ("kinetic regressor", "potential regressor"): lambda m, q, v, x, w: d.energy_regressor(m, q, v),
        # accelerations, and what else takes the inverse mass matrix
        "forward dynamics": lambda m, q, v, x, w: d.forward_dynamics(m, q, v, x, w),
        "inverse mass": lambda m, q, v, x, w: d.inverse_mass_matrix(m, q),
        "solve": lambda m, q, v, x, w: d.solve_mass_matrix(m, q, x),
        # explicit derivatives; the values that come with them have names of their own
        tuple(f"inverse dynamics {name}" for name in ("tau", "dq", "dv", "da")): d.inverse_dynamics_derivatives,
        tuple(f"forward dynamics {name}" for name in ("a", "dq", "dv", "dtau")): d.forward_dynamics_derivatives,
    }


@cache
def _compiled(name, frame):
    return jax.jit(jax.vmap(algorithms(frame)[name], in_axes=(None, 0, 0, 0, 0)))


def quantities(model, q, v, x, wrenches, frame):
    """By name what all algorithms give; x is an acceleration where one is wanted, else joint forces.

    All but the model have the batch first. Each algorithm is a program of its own: XLA's time to compile grows faster
    than a program, and one of everything takes gigabytes.
    """
    out = {}
    for name in algorithms(frame):
        found = _compiled(name, frame)(model, q, v, x, wrenches)
        out |= {name: found} if isinstance(name, str) else dict(zip(name, found, strict=True))
    return out
