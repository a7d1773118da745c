"""Component algebra: vectors, matrices, motions and transforms whose fields are scalars or arrays of any one shape.

What is fast on XLA is made of many independent scalars; what is readable is ``R @ (v + w.cross(r))``. These types give
both: every formula is written once, for one state, and ``jax.vmap`` (or fields that carry a batch) lays it out so that
each component is its own array. Nothing here knows about groups, bodies or time.
"""

from lgsim._compile.spatial.algebra import Mat as Mat
from lgsim._compile.spatial.algebra import Motion as Motion
from lgsim._compile.spatial.algebra import Transform as Transform
from lgsim._compile.spatial.algebra import Vec as Vec
from lgsim._compile.spatial.algebra import sincos as sincos
from lgsim._compile.spatial.algebra import sincos_of_twice as sincos_of_twice
from lgsim._compile.spatial.inertia import Articulated as Articulated
from lgsim._compile.spatial.inertia import Force as Force
from lgsim._compile.spatial.inertia import Inertia as Inertia
from lgsim._compile.spatial.inertia import Sym as Sym
from lgsim._compile.spatial.inertia import cross_dual as cross_dual
from lgsim._compile.spatial.inertia import to_child as to_child
from lgsim._compile.spatial.inertia import to_parent as to_parent
from lgsim._compile.spatial.packing import components as components
from lgsim._compile.spatial.packing import pack as pack
from lgsim._compile.spatial.packing import rows as rows
from lgsim._compile.spatial.packing import unpack as unpack
from lgsim._compile.spatial.packing import unpack_matrix as unpack_matrix
from lgsim._compile.spatial.packing import unpack_transform as unpack_transform
