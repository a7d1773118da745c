"""In-process compilation of LLVM text by llvmlite; object code is kept in the user's cache.

A missing or unusable llvmlite raises no error: ``compiler()`` then returns None and warns once.
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
"""The oldest LLVM that reads the text of ``targets/llvm.py``."""

EFFORT = 1
"""LLVM's optimization level for code generation; the program's builder has already simplified the program."""


class Compiler:
    """LLVM for the host processor.

    Attributes:
        api: Version of XLA's foreign function interface.
        vector_bytes: The length of a vector register.
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
        """Versions, processor and its features, on which object code depends."""
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
        """The address of a function in object code, which stays loaded until the process ends.

        Raises:
            RuntimeError: LLVM does not accept the object code.
        """
        with self._lock:
            # its own target object, which the engine takes over
            engine = self._llvm.create_mcjit_compiler(self._llvm.parse_assembly(""), self._machine())
            engine.add_object_file(self._llvm.ObjectFileRef.from_data(code))
            engine.finalize_object()
            address = engine.get_function_address(function)
            engine.detach()  # never freed: a thread of XLA may still use it when the process ends
        if not address:
            raise RuntimeError(f"no function {function} in the object code")
        return address

    def function(self, name: str, text: Callable[[], str]) -> int:
        """The address of the function ``handler`` of a module, from the user's cache if possible.

        Args:
            name: A name that identifies the text and everything that object code depends on.
            text: A function that returns the text of the module.

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
        """The name of the compiled program with this digest."""
        return "lgsim_" + hashlib.sha256(f"{digest} {self.machine}".encode()).hexdigest()[:40]


@cache
def compiler() -> Compiler | None:
    """The compiler, or None if it is missing or unusable; the reason is in a warning, once."""
    try:
        package = importlib.import_module("llvmlite")
        llvm = importlib.import_module("llvmlite.binding")
        if llvm.llvm_version_info[0] < _LEAST_LLVM:
            raise RuntimeError(f"has LLVM {llvm.llvm_version_info[0]}, older than {_LEAST_LLVM}")
        return Compiler(llvm, package.__version__, ffi_version())
    except ImportError:
        return None
    except Exception as error:
        warnings.warn(f"lgsim: only XLA compiles programs: llvmlite {error}", RuntimeWarning, stacklevel=2)
        return None
