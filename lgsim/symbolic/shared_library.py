"""C code compiled by the system's compiler and called on numpy arrays, for tests or for use from Python."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lgsim._compile.programs.targets import Code

STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")
FAST = ("-std=c99", "-O3", "-march=native", "-ffast-math")


class SharedLibrary:
    """Functions of a shared library; ``library.name(*arguments)`` returns the result or a tuple of results.

    Args:
        codes: The code of the functions.
    """

    def __init__(self, path: Path, codes: Sequence[Code]) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))
        for code in codes:
            setattr(self, code.name, _Function(self.library[code.name], code))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the library has no function {name}")


class _Function:
    """A C function on numpy arrays."""

    def __init__(self, function: Any, code: Code) -> None:
        self._function, self._code = function, code
        function.restype = None

    def __call__(self, *args: Any) -> Any:
        """Call the function.

        Raises:
            ValueError: an argument has another shape than in the code, or the number of arguments is wrong.
        """
        program, interface = self._code.program, self._code.interface
        if len(args) != len(program.inputs):
            raise ValueError(f"{self._code.name}: expected {len(program.inputs)} arguments, got {len(args)}")
        given, kept = [], []
        for described, port, arg in zip(interface.arguments, program.inputs, args, strict=True):
            array = np.ascontiguousarray(arg, port.kind)
            if np.shape(arg) != port.shape:
                raise ValueError(f"{described.name}: expected the shape {port.shape}, got {np.shape(arg)}")
            kept.append(array)
            if port.shape:
                given.append(array.ctypes.data_as(ctypes.c_void_p))
            else:
                given.append(np.ctypeslib.as_ctypes_type(np.dtype(port.kind))(array.item()))
        made = [np.empty(port.shape, port.kind) for port in program.outputs]
        self._function(*given, *(x.ctypes.data_as(ctypes.c_void_p) for x in made))
        return made[0] if len(made) == 1 else tuple(made)


def shared_library(codes: Code | Sequence[Code], folder: Path | None = None, flags: Sequence[str] = STRICT) -> Any:
    """Compile generated C code by the system's compiler, ``$CC`` or ``cc``, and load it.

    Args:
        codes: Generated code of functions.
        folder: Folder of the files, by default a new temporary folder.
        flags: Compiler flags.

    Raises:
        FileNotFoundError: there is no compiler.
        RuntimeError: the compiler rejects the code; the message has its output.
    """
    codes = (codes,) if isinstance(codes, Code) else tuple(codes)
    wanted = os.environ.get("CC") or "cc"
    compiler = shutil.which(wanted.split()[0])
    if compiler is None:
        raise FileNotFoundError(
            f"shared_library: expected a C compiler, got {wanted!r}, which was not found; install gcc or clang, or"
            " set the environment variable CC. Generating code needs no compiler"
        )
    folder = Path(tempfile.mkdtemp(prefix="lgsim_code_")) if folder is None else Path(folder)
    for code in codes:
        for name, content in code.files().items():
            (folder / name).write_bytes(content)
    path = folder / "_".join(["lib", *(code.name for code in codes)][:3])
    path = path.with_name(path.name + ".so")
    sources = [str(folder / (code.name + code.suffix)) for code in codes]
    command = [compiler, *wanted.split()[1:], *flags, "-fPIC", "-shared", *sources, "-o", str(path), "-lm"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{' '.join(command)}: {run.stderr.strip()}")
    return SharedLibrary(path, codes)
