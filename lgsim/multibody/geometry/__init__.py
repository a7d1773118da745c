"""Solids of machines and scenes: for distances, contacts and pictures, one kind a file."""

from lgsim.multibody.geometry.boxes import Box
from lgsim.multibody.geometry.capsules import Capsule, fit_capsules
from lgsim.multibody.geometry.convex_hulls import ConvexHull, convex_hull, sag
from lgsim.multibody.geometry.cylinders import Cylinder
from lgsim.multibody.geometry.distance_grids import DistanceGrid, distance_grid
from lgsim.multibody.geometry.ellipsoids import Ellipsoid
from lgsim.multibody.geometry.geometry import Geometry
from lgsim.multibody.geometry.half_spaces import HalfSpace
from lgsim.multibody.geometry.solid import Solid
from lgsim.multibody.geometry.spheres import Sphere
from lgsim.multibody.geometry.triangles import Mesh

__all__ = [
    "Box",
    "Capsule",
    "ConvexHull",
    "Cylinder",
    "DistanceGrid",
    "Ellipsoid",
    "Geometry",
    "HalfSpace",
    "Mesh",
    "Solid",
    "Sphere",
    "convex_hull",
    "distance_grid",
    "fit_capsules",
    "sag",
]
