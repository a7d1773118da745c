"""Component algebra: vectors, matrices, motions and transforms whose fields are scalars or arrays of any one shape.

What is fast on XLA is made of many independent scalars; what is readable is ``R @ (v + w.cross(r))``. These types give
both: every formula is written once, for one state, and ``jax.vmap`` (or fields that carry a batch) lays it out so that
each component is its own array. Nothing here knows about groups, bodies or time.
"""

from lgsim.spatial.algebra import Mat, Motion, Transform, Vec, sincos, sincos_of_twice
from lgsim.spatial.inertia import Articulated, Force, Inertia, Sym, cross_dual, to_child, to_parent
from lgsim.spatial.packing import components, pack, rows, unpack, unpack_matrix, unpack_transform

__all__ = [
    "Articulated",
    "Force",
    "Inertia",
    "Mat",
    "Motion",
    "Sym",
    "Transform",
    "Vec",
    "components",
    "cross_dual",
    "pack",
    "rows",
    "sincos",
    "sincos_of_twice",
    "to_child",
    "to_parent",
    "unpack",
    "unpack_matrix",
    "unpack_transform",
]
