"""The checker of ``--typed``: beartype, which notes what was called, so that no public function is left unchecked."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import beartype

CALLED: set[str] = set()
"""What was called in this process, by module and qualified name."""


ELSEWHERE = {
    "lgsim.montecarlo.multihost.run": "in processes of its own",
    "lgsim.montecarlo.ray_cluster.fill": "in processes of Ray",
    "lgsim._compile.xla.foreign.cuda_kernel_call": "with the compilers of the extra cuda-aot",
    "lgsim._compile.xla.foreign.launches_kernels": "with the compilers of the extra cuda-aot",
}
"""Public functions that are called in no process of these tests, and where they are."""


def check(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its arguments and results checked, and its first call noted."""
    checked, name = beartype.beartype(f), f"{f.__module__}.{f.__qualname__}"

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLED.add(name)
        return checked(*args, **kwargs)

    return call


def uncalled(called: Iterable[str]) -> list[str]:
    """The public functions of lgsim that are not among those that were called."""
    from tests.public_record import modules, names

    public = [getattr(module, name) for module in modules().values() for name in names(module)]
    functions = [inspect.unwrap(value) for value in public if callable(value) and not inspect.isclass(value)]
    own = {f"{f.__module__}.{f.__qualname__}" for f in functions if inspect.isfunction(f) and f.__annotations__}
    return sorted(name for name in own - set(called) - set(ELSEWHERE) if name.startswith("lgsim."))
