"""Text of LLVM compiled in the process, by llvmlite, and kept as object code in the user's cache.

Nothing here raises where llvmlite is missing or does not serve: ``compiler()`` is None then, and says so once.
"""

from __future__ import annotations

import hashlib
import importlib
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

from lgsim._compile.programs.store import read_entry, write_entry
from lgsim._compile.programs.targets.llvm import VERSION
from lgsim._compile.xla import ffi_version

_LEAST_LLVM = 20
"""The LLVM from which on the text of ``targets/llvm.py`` can be read."""

EFFORT = 1
"""LLVM's level when it makes machine code; what it could find before that the program's builder has found."""


class Compiler:
    """LLVM for the machine that runs.

    Attributes:
        api: Version of XLA's foreign function interface.
        vector_bytes: The length of a vector register.
        machine: What object code depends on: versions, processor and its features.
    """

    def __init__(self, llvm: Any, version: str, api: tuple[int, int]) -> None:
        self._llvm, self.api = llvm, api
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        name, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
        triple = llvm.get_process_triple()
        wide = features.get("avx512f", False)
        self.vector_bytes = 64 if wide else 32 if features.get("avx", False) else 16
        flags = ",".join(filter(None, [features.flatten(), "-prefer-256-bit" if wide else ""]))
        target = llvm.Target.from_triple(triple)
        self._machine = partial(target.create_target_machine, cpu=name, features=flags, opt=EFFORT, jit=True)
        self.machine = f"{VERSION} {version} {llvm.llvm_version_info} {triple} {name} {flags} {EFFORT} {api}"
        self._lock = threading.Lock()

    def object_code(self, text: str) -> bytes:
        """The object code of a module.

        Raises:
            RuntimeError: LLVM does not accept the text.
        """
        with self._lock:
            module = self._llvm.parse_assembly(text)
            module.verify()
            return self._machine().emit_object(module)

    def load(self, code: bytes, function: str) -> int:
        """The address of a function of object code, which stays in the process for good.

        Raises:
            RuntimeError: LLVM does not accept the object code.
        """
        with self._lock:
            # a machine of its own, which the engine takes over
            engine = self._llvm.create_mcjit_compiler(self._llvm.parse_assembly(""), self._machine())
            engine.add_object_file(self._llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(function)
            engine.detach()  # never freed: a thread of XLA may be in it when the process ends
        if not address:
            raise RuntimeError(f"no function {function} in the object code")
        return address

    def function(self, name: str, text: Callable[[], str]) -> int:
        """The address of the function ``handler`` of a module, from the user's cache where it is there.

        Args:
            name: A name that stands for the text and for all that object code depends on.
            text: Gives the module's text.

        Raises:
            RuntimeError: LLVM does not accept the text.
        """
        code = read_entry(name)
        if code is not None:
            with suppress(RuntimeError):
                return self.load(code, "handler")
        code = self.object_code(text())
        write_entry(name, code)
        return self.load(code, "handler")

    def name(self, digest: str) -> str:
        """The name of what is compiled of a program with this digest."""
        return "lgsim_" + hashlib.sha256(f"{digest} {self.machine}".encode()).hexdigest()[:40]


@cache
def compiler() -> Compiler | None:
    """The compiler, or None where there is none that serves; the reason is told once."""
    try:
        package = importlib.import_module("llvmlite")
        llvm = importlib.import_module("llvmlite.binding")
        if llvm.llvm_version_info[0] < _LEAST_LLVM:
            raise RuntimeError(f"its LLVM is {llvm.llvm_version_info[0]}, not at least {_LEAST_LLVM}")
        return Compiler(llvm, package.__version__, ffi_version())
    except ImportError:
        return None
    except Exception as error:
        warnings.warn(f"lgsim: programs are compiled by XLA alone: llvmlite {error}", RuntimeWarning, stacklevel=2)
        return None
