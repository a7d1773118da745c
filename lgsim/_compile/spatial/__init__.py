"""Component algebra: vectors, matrices, twists and transforms whose components are scalars or arrays of one shape.

XLA is fast on many independent scalars; ``R @ (v + w.cross(r))`` is readable. These types give both: every formula is
written once, for one state, and ``jax.vmap`` (or components with a batch) makes each component an array of its own.
This package is independent of groups, bodies and time.
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
