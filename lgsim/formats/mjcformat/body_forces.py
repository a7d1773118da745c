"""Forces on the bodies of an MJCF file that take no commands: gravity compensation, drag and lift of a fluid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from lgsim.actuators.body_forces import BodyDrag, BodyForces, EllipsoidDrag, Ellipsoids, GravityCompensation
from lgsim.formats.mjcformat.compilation import CompiledFile
from lgsim.formats.mjcformat.joints import pose
from lgsim.multibody.model import Model

BY_ACTUATORS = "which load_actuators represents, not the model"

Values = Float[np.ndarray, "n k"]


def body_forces(file: CompiledFile, model: Model) -> list[BodyForces]:
    """The forces on bodies of a file, for its model."""
    theirs, names = file.model, file.names["body"]

    def numbers(x: object) -> jnp.ndarray:
        return jnp.asarray(np.array(x, float), model.dtype)

    def at(bodies: Sequence[int], places: list[Float[np.ndarray, "4 4"]]) -> tuple[Model, tuple[str, ...], jnp.ndarray]:
        return model, tuple(names[body] for body in bodies), numbers(places)

    def centers(bodies: list[int]) -> list[Float[np.ndarray, "4 4"]]:
        return [pose(theirs.body_ipos[body], theirs.body_iquat[body]) for body in bodies]

    found: list[BodyForces] = []
    if held := _compensated(file):
        masses = theirs.body_mass[held] * theirs.body_gravcomp[held]
        found.append(GravityCompensation(*at(held, centers(held)), numbers(masses)))
    boxes, geoms = _in_fluid(file)
    if boxes:
        drag = map(numbers, (theirs.opt.wind, *_box_drag(file, boxes)))
        found.append(BodyDrag(*at(boxes, centers(boxes)), *drag))
    if geoms:
        bodies = [int(theirs.geom_bodyid[geom]) for geom in geoms]
        places = [pose(theirs.geom_pos[geom], theirs.geom_quat[geom]) for geom in geoms]
        own = theirs.geom_fluid[geoms]
        semiaxes = np.array([_semiaxes(file, geom) for geom in geoms])
        # blunt, slender and angular drag, Kutta and Magnus lift, then virtual mass and inertia
        shapes = Ellipsoids(*map(numbers, (semiaxes, own[:, 1:6], own[:, 6:9], own[:, 9:])))
        wind, density, viscosity = map(numbers, (theirs.opt.wind, theirs.opt.density, theirs.opt.viscosity))
        found.append(EllipsoidDrag(*at(bodies, places), (wind, density, viscosity), shapes))
    return found


def forced_bodies(file: CompiledFile) -> Iterator[tuple[int, str]]:
    """Bodies with such forces, and a text about each kind."""
    for body in _compensated(file):
        yield body, f"has gravity compensation, {BY_ACTUATORS}"
    boxes, geoms = _in_fluid(file)
    for body in sorted({*boxes, *(int(file.model.geom_bodyid[geom]) for geom in geoms)}):
        yield body, f"has forces of a fluid, {BY_ACTUATORS}"


def _moves(file: CompiledFile, body: int) -> bool:
    return bool(file.model.body_weldid[body])


def _acts(file: CompiledFile) -> bool:
    """True unless a file disables all passive forces, that is springs and dampers."""
    return file.enabled("PASSIVE") and (file.enabled("SPRING") or file.enabled("DAMPER"))


def _compensated(file: CompiledFile) -> list[int]:
    """Moving bodies with gravity compensation."""
    bodies = np.flatnonzero(file.model.body_gravcomp).tolist() if file.enabled("GRAVITY") and _acts(file) else []
    return [body for body in bodies if _moves(file, body) and file.model.body_mass[body]]


def _in_fluid(file: CompiledFile) -> tuple[list[int], list[int]]:
    """(moving bodies whose drag is that of their inertia box, geoms of other bodies in the fluid)."""
    model, boxes, geoms = file.model, [], []
    if not (model.opt.density or model.opt.viscosity) or not _acts(file):
        return [], []
    for body in range(1, model.nbody):
        if not _moves(file, body) or not model.body_mass[body]:
            continue
        own = range(model.body_geomadr[body], model.body_geomadr[body] + model.body_geomnum[body])
        ellipsoids = [geom for geom in own if model.geom_fluid[geom, 0]]
        geoms += ellipsoids
        boxes += [] if ellipsoids else [body]
    return boxes, geoms


def _box_drag(file: CompiledFile, bodies: list[int]) -> tuple[Values, Values]:
    """Linear and quadratic coefficients of drag of the boxes with the inertias of bodies, forces first (n, 6).

    Source: MuJoCo's documentation, chapter "Computation", section "Fluid forces", inertia model.
    """
    model = file.model
    rho, eta = float(model.opt.density), float(model.opt.viscosity)
    inertia, mass = model.body_inertia[bodies], model.body_mass[bodies]
    x, y, z = s = np.sqrt(6 * np.maximum(np.sum(inertia, 1)[:, None] - 2 * inertia, 0) / mass[:, None]).T
    diameter = np.mean(s, axis=0)
    linear = np.repeat([3 * np.pi * eta * diameter, np.pi * eta * diameter**3], 3, axis=0).T
    forces = rho / 2 * np.array([y * z, z * x, x * y])
    moments = rho / 64 * np.array([x * (y**4 + z**4), y * (z**4 + x**4), z * (x**4 + y**4)])
    return linear, np.concatenate([forces, moments]).T


def _semiaxes(file: CompiledFile, geom: int) -> Float[np.ndarray, " 3"]:
    """Semiaxes of the ellipsoid of a geom, m."""
    kinds, kind, size = file.mujoco.mjtGeom, int(file.model.geom_type[geom]), np.array(file.model.geom_size[geom])
    if kind == int(kinds.mjGEOM_SPHERE):
        return np.full(3, size[0])
    if kind == int(kinds.mjGEOM_CAPSULE):
        return np.array([size[0], size[0], size[1] + size[0]])
    if kind == int(kinds.mjGEOM_CYLINDER):
        return np.array([size[0], size[0], size[1]])
    return size
