"""Every algorithm at many states: what the tests of identities and of real robots compile once for each tree."""

from functools import partial

import jax

from lgsim import dynamics as d


def motion(model, q, v, x, wrenches, frame):
    """Poses, velocities and accelerations of frames and of the whole."""
    del wrenches
    return {
        "poses": d.forward_kinematics(model, q),
        "twists": d.frame_twists(model, q, v),
        "accelerations": d.frame_accelerations(model, q, v, x),
        "jacobian": d.frame_jacobian(model, q, frame),
        "jacobian rate": d.frame_jacobian_rate(model, q, v, frame),
        "center": d.center_of_mass(model, q),
        "center velocity": d.center_of_mass_velocity(model, q, v),
        "center jacobian": d.center_of_mass_jacobian(model, q),
        "momentum": d.centroidal_momentum(model, q, v),
        "momentum rate": d.centroidal_momentum_rate(model, q, v, x),
        "momentum matrix": d.centroidal_momentum_matrix(model, q),
        "momentum matrix rate": d.centroidal_momentum_matrix_rate(model, q, v),
    }


def forces(model, q, v, x, wrenches, frame):
    """Forces, inertias and energies."""
    del frame
    return {
        "inverse dynamics": d.inverse_dynamics(model, q, v, x, wrenches),
        "mass matrix": d.mass_matrix(model, q),
        "bias": d.bias_forces(model, q, v),
        "gravity": d.gravity_forces(model, q),
        "Coriolis": d.coriolis_matrix(model, q, v),
        "kinetic energy": d.kinetic_energy(model, q, v),
        "potential energy": d.potential_energy(model, q),
        "torque regressor": d.torque_regressor(model, q, v, x),
        **dict(zip(("kinetic regressor", "potential regressor"), d.energy_regressor(model, q, v), strict=True)),
    }


def solutions(model, q, v, x, wrenches, frame):
    """Accelerations, and what else takes the inverse mass matrix."""
    del frame
    return {
        "forward dynamics": d.forward_dynamics(model, q, v, x, wrenches),
        "inverse mass": d.inverse_mass_matrix(model, q),
        "solve": d.solve_mass_matrix(model, q, x),
    }


def derivatives(model, q, v, x, wrenches, frame):
    """Explicit derivatives; the values that come with them have names of their own."""
    del frame
    inverse = d.inverse_dynamics_derivatives(model, q, v, x, wrenches)._asdict()
    forward = d.forward_dynamics_derivatives(model, q, v, x, wrenches)._asdict()
    return {f"inverse dynamics {name}": value for name, value in inverse.items()} | {
        f"forward dynamics {name}": value for name, value in forward.items()
    }


@partial(jax.jit, static_argnums=(0, 6))
def _compiled(part, model, q, v, x, wrenches, frame):
    return jax.vmap(part, in_axes=(None, 0, 0, 0, 0, None))(model, q, v, x, wrenches, frame)


def quantities(model, q, v, x, wrenches, frame):
    """By name what all algorithms give; x is an acceleration where one is wanted, else joint forces.

    All but the model have the batch first. In parts, for one program of everything takes gigabytes to compile.
    """
    out = {}
    for part in (motion, forces, solutions, derivatives):
        out |= _compiled(part, model, q, v, x, wrenches, frame)
    return out
