"""Geometry of models and scenes: for distances, contacts and visualization, one kind per file."""

from lgsim.multibody.geometry.boxes import Box as Box
from lgsim.multibody.geometry.capsules import Capsule as Capsule
from lgsim.multibody.geometry.capsules import fit_capsules as fit_capsules
from lgsim.multibody.geometry.convex_hulls import convex_hull as convex_hull
from lgsim.multibody.geometry.cylinders import Cylinder as Cylinder
from lgsim.multibody.geometry.distance_grids import distance_grid as distance_grid
from lgsim.multibody.geometry.ellipsoids import Ellipsoid as Ellipsoid
from lgsim.multibody.geometry.geometry import Geometry as Geometry
from lgsim.multibody.geometry.half_spaces import HalfSpace as HalfSpace
from lgsim.multibody.geometry.spheres import Sphere as Sphere
from lgsim.multibody.geometry.triangles import Mesh as Mesh
