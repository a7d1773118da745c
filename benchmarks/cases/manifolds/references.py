"""States at given times against values of extended precision without lgsim, from tests/data."""

import harness

import json

import jax.numpy as jnp
import numpy as np
from cases.manifolds.study import DATA, end
from systems.heavy_top_quadratic import heavy_top_quadratic
from systems.quadrotor_control import GivenForces, given_forces

import lgsim
from lgsim.systems import (
    euler_poisson,
    free_rigid_body,
    free_rigid_body_cotangent,
    free_rigid_body_momentum,
    heavy_top,
    heavy_top_cotangent,
    spherical_pendulum,
    spherical_pendulum_hamiltonian,
)
from lgsim.systems.quadrotors import QuadrotorParameters, two_quadrotors

LIMIT = 1e-9


def numbers(name: str) -> dict:
    """A file of tests/data."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def floats(strings) -> np.ndarray:
    """Decimal strings of 17 digits as floats."""
    return np.array(strings, dtype=np.float64)


def relative(found, expected) -> float:
    """The largest difference relative to the largest expected value, or to one if that is larger."""
    return float(np.abs(np.asarray(found) - expected).max() / max(1.0, np.abs(expected).max()))


def free_bodies():
    """(name, error) of the free rigid body."""
    for k, case in enumerate(numbers("rigid_body.json")["free"]):
        start = {"inertia": case["inertia"], "angular_velocity": case["angular_velocity_0"]}
        moments, omega, R = np.array(case["inertia"]), floats(case["angular_velocity"]), floats(case["attitude"])
        for make in (free_rigid_body, free_rigid_body_cotangent, free_rigid_body_momentum):
            y = end(lgsim.MK8, make(**start), case["t"], round(100 * case["t"]))
            if make is free_rigid_body_momentum:
                error = relative(y, moments * omega)
            else:
                velocity = y[1] if make is free_rigid_body else (y[0].T @ y[1]) / moments
                error = max(relative(y[0], R), relative(velocity, omega))
            yield f"free body {k + 1}, {make.__name__}", case["t"], error


def tops(quick: bool):
    """(name, error) of the heavy tops."""
    for name, case in numbers("rigid_body.json")["tops"].items():
        arguments = {key: case[key] for key in ("inertia", "weight_moment", "up", "arm")}
        up, moments = np.array(case["up"]), np.array(case["inertia"])
        gamma, momentum = floats(case["up_in_body"]), floats(case["momentum"])
        for make in (
            (heavy_top, euler_poisson)
            if quick
            else (heavy_top, heavy_top_cotangent, euler_poisson, heavy_top_quadratic)
        ):
            y = end(lgsim.MK8, make(**arguments, angular_velocity=case["angular_velocity_0"]), case["t"], 4000)
            if make is euler_poisson:
                found = y[:3], y[3:]
            elif make is heavy_top:
                found = y[0].T @ up, moments * y[1]
            else:
                R = y[0] if make is heavy_top_cotangent else y[0][0]
                found = R.T @ up, R.T @ y[1][:3]
            yield (
                f"top {name}, {make.__name__}",
                case["t"],
                max(relative(found[0], gamma), relative(found[1], momentum)),
            )


def pendulums(quick: bool):
    """(name, error) of the chains."""
    for name, case in numbers("spherical_pendulum.json")["cases"].items():
        if quick and len(case["masses"]) != 2:
            continue
        arguments = {key: case[key] for key in ("masses", "lengths", "gravity")}
        arguments |= {
            "directions": floats(case["directions_0"]),
            "angular_velocities": floats(case["angular_velocities_0"]),
        }
        for make in (spherical_pendulum,) if quick else (spherical_pendulum, spherical_pendulum_hamiltonian):
            y = end(lgsim.MK8, make(**arguments), case["t"], 1000)
            parts = [(y[:, :3], floats(case["directions"]))]
            if make is spherical_pendulum:
                parts.append((y[:, 3:], floats(case["angular_velocities"])))
            yield f"pendulum {name}, {make.__name__}", case["t"], max(relative(*part) for part in parts)


def quadrotors(quick: bool):
    """(name, error) of the quadrotors."""
    data = numbers("quadrotors.json")
    start = {key: floats(value) for key, value in data["initial"].items()}
    made = {
        "none": {},
        "forces": {
            "control": given_forces,
            "parameters": GivenForces(**{key: jnp.array(value) for key, value in data["inputs"].items()}),
        },
    }
    for name in ("forces",) if quick else data["cases"]:
        problem = two_quadrotors(
            vehicles=QuadrotorParameters(**data["parameters"]),
            position=start["load"][:3],
            velocity=start["load"][3:],
            attitudes=start["attitudes"],
            angular_velocities=start["angular_velocities"],
            directions=start["links"][:, :3],
            link_velocities=start["links"][:, 3:],
            **made[name],
        )
        y = end(lgsim.MK8, problem, data["t"], 200)
        expected = data["cases"][name]["state"]
        parts = zip(("load", "attitudes", "angular_velocities", "links"), y, strict=True)
        yield f"quadrotors, {name}", data["t"], max(relative(found, floats(expected[part])) for part, found in parts)


def states(report: harness.Report) -> None:
    """All systems by MK8."""
    found = [*free_bodies(), *tops(report.quick), *pendulums(report.quick), *quadrotors(report.quick)]
    for name, _, error in found:
        report.bound(f"{name}: difference to the reference", error, at_most=LIMIT)
    rows = [[name, time, f"{error:.1e}"] for name, time, error in found]
    report.table("States by MK8 against values of extended precision", ["system", "t, s", "relative error"], rows)
    report.figure("states differ from the reference by at most", max(error for *_, error in found))
