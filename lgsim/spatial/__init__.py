"""Component algebra: vectors, matrices, motions and transforms whose fields are scalars or arrays of any one shape.

What is fast on XLA is made of many independent scalars; what is readable is ``R @ (v + w.cross(r))``. These types give
both: every formula is written once, for one state, and ``jax.vmap`` (or fields that carry a batch) lays it out so that
each component is its own array. Nothing here knows about groups, bodies or time.
"""

from lgsim.spatial import check
from lgsim.spatial.algebra import Mat, Motion, Transform, Vec
from lgsim.spatial.batching import batch_last, linear_last
from lgsim.spatial.inertia import Articulated, Force, Inertia, Sym, cross_dual, to_child, to_parent
from lgsim.spatial.keep import keep, kept
from lgsim.spatial.lowering import compiler_options, cut, kernel, sincos
from lgsim.spatial.native import native
from lgsim.spatial.packing import components, pack, rows, unpack, unpack_matrix, unpack_transform
from lgsim.spatial.repeating import where_last, while_last
from lgsim.spatial.scanning import scan_last
from lgsim.spatial.tiles import batched

__all__ = [
    "Articulated",
    "Force",
    "Inertia",
    "Mat",
    "Motion",
    "Sym",
    "Transform",
    "Vec",
    "batch_last",
    "batched",
    "check",
    "compiler_options",
    "components",
    "cross_dual",
    "cut",
    "keep",
    "kept",
    "kernel",
    "linear_last",
    "native",
    "pack",
    "rows",
    "scan_last",
    "sincos",
    "to_child",
    "to_parent",
    "unpack",
    "unpack_matrix",
    "unpack_transform",
    "where_last",
    "while_last",
]
