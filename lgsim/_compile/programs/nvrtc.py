"""In-process compilation of CUDA C++ to PTX by NVRTC; neither a driver nor a device is needed.

A missing or unusable NVRTC raises no error: ``nvrtc()`` then returns None.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_FIRST_VERSION = {
    75: "6.3", 80: "7.0", 86: "7.1", 87: "7.4", 89: "7.8", 90: "7.8", 100: "8.6", 103: "8.8", 120: "8.7", 121: "8.8",
}  # fmt: skip
"""The first PTX version by ten times the compute capability."""

_NAMES = ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so")


class Compiled(NamedTuple):
    """A compiled kernel.

    Attributes:
        registers: Registers per thread.
        spilled: Bytes per thread that are spilled to memory.
    """

    ptx: str
    registers: int
    spilled: int


class Nvrtc:
    """The NVRTC library.

    Attributes:
        version: The CUDA version (major, minor).
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        numbers = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", *map(ctypes.byref, numbers))
        self.version = numbers[0].value, numbers[1].value

    def compiled(self, source: str, capability: int) -> Compiled:
        """Compile the text of one kernel; registers and spills are those of NVRTC's internal assembler.

        Args:
            capability: Ten times the compute capability of the card.

        Raises:
            RuntimeError: NVRTC rejects the text or the card; the message has its log.
        """
        program = ctypes.c_void_p()
        self._call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"lgsim.cu", 0, None, None)
        try:
            options = [f"--gpu-architecture=sm_{capability}".encode(), b"--ptxas-options=-v"]
            try:
                self._call("nvrtcCompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
            except RuntimeError as error:
                raise RuntimeError(f"{error}: {self._log(program).strip()[:2000]}") from error
            log = self._log(program)
            registers = re.search(r"Used (\d+) registers", log)
            spilled = re.search(r"(\d+) bytes spill stores", log)
            if registers is None or spilled is None:
                raise RuntimeError(f"NVRTC does not report the registers of a kernel: {log.strip()[:2000]}")
            ptx = self._text(program, "nvrtcGetPTXSize", "nvrtcGetPTX")
            if capability in _FIRST_VERSION:
                # older drivers reject NVRTC's current PTX version, which plain text does not need
                ptx = re.sub(r"^\.version .*$", f".version {_FIRST_VERSION[capability]}", ptx, count=1, flags=re.M)
            return Compiled(ptx, int(registers[1]), int(spilled[1]))
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _log(self, program: ctypes.c_void_p) -> str:
        return self._text(program, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog")

    def _text(self, program: ctypes.c_void_p, size: str, get: str) -> str:
        length = ctypes.c_size_t()
        self._call(size, program, ctypes.byref(length))
        text = ctypes.create_string_buffer(length.value)
        self._call(get, program, text)
        return text.value.decode()

    def _call(self, name: str, *args: Any) -> None:
        code = getattr(self._library, name)(*args)
        if code:
            self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise RuntimeError(f"{name}: {self._library.nvrtcGetErrorString(code).decode()}")


@cache
def nvrtc() -> Nvrtc | None:
    """NVRTC from a wheel or the system, or None if it is missing."""
    for path in _places():
        try:
            return Nvrtc(ctypes.CDLL(path))
        except (OSError, AttributeError, RuntimeError):
            continue
    return None


def _places() -> Iterator[str]:
    spec = importlib.util.find_spec("nvidia")
    for folder in () if spec is None else spec.submodule_search_locations or ():
        for name in _NAMES[:2]:
            for part in ("cu13", "cuda_nvrtc"):
                path = Path(folder) / part / "lib" / name
                if path.exists():
                    yield str(path)
    yield from _NAMES
