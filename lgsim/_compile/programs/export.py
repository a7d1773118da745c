"""Export of functions by ``jax.export``, with the programs that lgsim compiles or with XLA operations only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import jax
from jax.export import DisabledSafetyCheck, Exported
from jax.export import export as export_by_jax

from lgsim._compile.programs.handlers import registered_names
from lgsim._compile.xla import KERNEL_LAUNCH, compiling_for, cuda_kernels, llvm_lowering


def export(
    f: Callable[..., Any],
    *,
    portable: bool = False,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
) -> Callable[..., Exported]:
    """Export a function that calls lgsim: ``lgsim.export(f)(*args)`` is its ``jax.export.Exported``.

    By default the exported function calls the programs that lgsim compiles for the CPU, and runs as fast as ``f``. The
    other process needs lgsim and these programs: write them by ``lgsim.save_programs(folder, of=exported)``, and call
    ``lgsim.load_programs(folder)`` there before the exported function. With ``portable`` the function consists only of
    StableHLO operations: it runs without lgsim wherever JAX or XLA does, but slower.

    Args:
        f: The function, jitted or not. Shapes of its arguments may be symbolic, ``jax.export.symbolic_shape("b")``; one
            export then serves batches of any size.
        portable: Export only StableHLO operations.
        platforms: As for ``jax.export.export``, such as ``("cpu", "cuda")``; by default the one that JAX uses.
        disabled_checks: Further safety checks of JAX to disable.

    Returns:
        A function of the arguments of ``f``, arrays or ``jax.ShapeDtypeStruct``; it returns a ``jax.export.Exported``.

    Raises:
        ValueError: as ``jax.export.export``.
    """
    jitted: Any = f if hasattr(f, "trace") else jax.jit(f)

    def exported(names: frozenset[str], args: Any, kwargs: Any) -> Exported:
        checks = [*disabled_checks, *map(DisabledSafetyCheck.custom_call, sorted(names))]
        return export_by_jax(jitted, platforms=platforms, disabled_checks=checks)(*args, **kwargs)

    def allowed() -> frozenset[str]:
        # a CUDA kernel is part of the export, in the custom call of jaxlib that launches it
        return registered_names() | {KERNEL_LAUNCH}

    def call(*args: Any, **kwargs: Any) -> Exported:
        with ExitStack() as settings:
            if platforms is not None and len(platforms) == 1:
                settings.enter_context(compiling_for(platforms[0]))
            if portable:
                settings.enter_context(llvm_lowering(False))
                settings.enter_context(cuda_kernels(0))
                return exported(frozenset(), args, kwargs)
            known = allowed()
            try:
                found = exported(known, args, kwargs)
            except ValueError:
                if allowed() == known:
                    raise
                # repeat with the names of the programs that were compiled in the first attempt
                found = exported(allowed(), args, kwargs)
        called = [name for name in sorted(allowed()) if name.encode() in found.mlir_module_serialized]
        checks = [*disabled_checks, *map(DisabledSafetyCheck.custom_call, called)]
        return replace(found, disabled_safety_checks=tuple(checks))

    return call
