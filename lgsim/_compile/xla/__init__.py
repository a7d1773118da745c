"""XLA attributes and JAX interpreters: compiler hints, batches, loops, tiles, closures.

This package changes the speed of programs and the memory of reverse mode, but not results.
"""

from lgsim._compile.xla.batch_primitive import batch_last as batch_last
from lgsim._compile.xla.batch_primitive import change_along as change_along
from lgsim._compile.xla.batch_primitive import is_zero_tangent as is_zero_tangent
from lgsim._compile.xla.batch_primitive import linear_last as linear_last
from lgsim._compile.xla.batch_primitive import native_derivative as native_derivative
from lgsim._compile.xla.batch_primitive import native_with_derivatives as native_with_derivatives
from lgsim._compile.xla.closures import closure_to_pytree as closure_to_pytree
from lgsim._compile.xla.compilation import compiled as compiled
from lgsim._compile.xla.compilation import compiled_fast as compiled_fast
from lgsim._compile.xla.compilation import number_field as number_field
from lgsim._compile.xla.compilation import strongly_typed as strongly_typed
from lgsim._compile.xla.compilation import traced_once as traced_once
from lgsim._compile.xla.compilation import with_arrays as with_arrays
from lgsim._compile.xla.compilers import CUDA_SWITCH as CUDA_SWITCH
from lgsim._compile.xla.compilers import SWITCHES as SWITCHES
from lgsim._compile.xla.compilers import CompiledBatch as CompiledBatch
from lgsim._compile.xla.compilers import ReadProgram as ReadProgram
from lgsim._compile.xla.compilers import cuda_kernels as cuda_kernels
from lgsim._compile.xla.compilers import llvm_lowering as llvm_lowering
from lgsim._compile.xla.expansion import expansion as expansion
from lgsim._compile.xla.exported_nodes import export_codes as export_codes
from lgsim._compile.xla.exported_nodes import export_module as export_module
from lgsim._compile.xla.exported_nodes import export_node as export_node
from lgsim._compile.xla.exported_nodes import export_tuple as export_tuple
from lgsim._compile.xla.fallback import LoweringWarning as LoweringWarning
from lgsim._compile.xla.foreign import KERNEL_LAUNCH as KERNEL_LAUNCH
from lgsim._compile.xla.foreign import cuda_kernel_call as cuda_kernel_call
from lgsim._compile.xla.foreign import ffi_version as ffi_version
from lgsim._compile.xla.foreign import handler_call as handler_call
from lgsim._compile.xla.foreign import launches_kernels as launches_kernels
from lgsim._compile.xla.foreign import register_handler as register_handler
from lgsim._compile.xla.hints import compiling_for as compiling_for
from lgsim._compile.xla.hints import fusion_barrier as fusion_barrier
from lgsim._compile.xla.hints import native_call as native_call
from lgsim._compile.xla.hints import save_in_checkpoint as save_in_checkpoint
from lgsim._compile.xla.hints import save_marked_values as save_marked_values
from lgsim._compile.xla.hints import traced_platform as traced_platform
from lgsim._compile.xla.hints import xla_options as xla_options
from lgsim._compile.xla.host_calls import warn_where as warn_where
from lgsim._compile.xla.jax_internals import zeros_beside as zeros_beside
from lgsim._compile.xla.loops import scan_last as scan_last
from lgsim._compile.xla.loops import where_last as where_last
from lgsim._compile.xla.loops import while_last as while_last
from lgsim._compile.xla.straight_line import straight_line as straight_line
from lgsim._compile.xla.straight_line import straight_line_loop as straight_line_loop
from lgsim._compile.xla.tiling import tiled_vmap as tiled_vmap
from lgsim.support.batch_compiler import register_batch_compiler as register_batch_compiler
from lgsim.support.batch_compiler import register_loop_compiler as register_loop_compiler
