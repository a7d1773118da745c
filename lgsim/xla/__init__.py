"""All that touches XLA's attributes and JAX's interpreters: hints, batches, loops, tiles, closures.

What is written here changes how fast a program runs and what reverse mode keeps, never a result.
"""

from lgsim.support.batch_compiler import register_batch_compiler, register_loop_compiler
from lgsim.xla.batching import (
    batch_last,
    change_along,
    linear_last,
    native_derivative,
    native_with_derivatives,
    still,
)
from lgsim.xla.closures import opened
from lgsim.xla.compilation import compiled, compiled_fast, number_field, strongly_typed, with_arrays
from lgsim.xla.compilers import CUDA_SWITCH, SWITCHES, CompiledBatch, ReadProgram, cuda_kernels, llvm_lowering
from lgsim.xla.expansion import expansion
from lgsim.xla.exported_nodes import export_codes, export_module, export_node, export_tuple
from lgsim.xla.fallback import LoweringWarning
from lgsim.xla.foreign import (
    KERNEL_LAUNCH,
    cuda_kernel_call,
    ffi_headers,
    handler_call,
    launches_kernels,
    register_handler,
)
from lgsim.xla.hints import (
    compiling_for,
    fusion_barrier,
    native_call,
    save_in_checkpoint,
    save_marked_values,
    traced_platform,
    xla_options,
)
from lgsim.xla.loops import scan_last, where_last, while_last
from lgsim.xla.straight_line import straight_line, straight_line_loop
from lgsim.xla.tiling import tiled_vmap

__all__ = [
    "CUDA_SWITCH",
    "KERNEL_LAUNCH",
    "SWITCHES",
    "CompiledBatch",
    "LoweringWarning",
    "ReadProgram",
    "batch_last",
    "change_along",
    "compiled",
    "compiled_fast",
    "compiling_for",
    "cuda_kernel_call",
    "cuda_kernels",
    "expansion",
    "export_codes",
    "export_module",
    "export_node",
    "export_tuple",
    "ffi_headers",
    "fusion_barrier",
    "handler_call",
    "launches_kernels",
    "linear_last",
    "llvm_lowering",
    "native_call",
    "native_derivative",
    "native_with_derivatives",
    "number_field",
    "opened",
    "register_batch_compiler",
    "register_handler",
    "register_loop_compiler",
    "save_in_checkpoint",
    "save_marked_values",
    "scan_last",
    "still",
    "straight_line",
    "straight_line_loop",
    "strongly_typed",
    "tiled_vmap",
    "traced_platform",
    "where_last",
    "while_last",
    "with_arrays",
    "xla_options",
]
