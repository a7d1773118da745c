"""Handlers: compiled programs under the names by which XLA programs call them, in this and other processes.

The functions called by an exported or serialized function are named by a hash of the program of one state, which is
the same on every computer. So programs are transferred as data, and each computer compiles them for its own processor.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from lgsim._compile.programs import store
from lgsim._compile.programs.compiler import Compiler, compiler
from lgsim._compile.programs.program import Program
from lgsim._compile.programs.program_bytes import ProgramFormatError
from lgsim._compile.programs.targets.llvm import llvm_text
from lgsim._compile.xla import register_handler
from lgsim.support.files import write_whole
from lgsim.support.packages import package

# if there is no such handler, XLA's error shows the name, which therefore says what to do
_REMEDY = "_run_lgsim.load_programs_first"
_NAME = re.compile(rb"lgsim_([0-9a-f]{40})" + re.escape(_REMEDY).encode())
_ENTRY = "handler_"
_HEAD = b"lgsim handler 1\n"


class Handler(NamedTuple):
    """The content of a handler.

    Attributes:
        program: The program of one state; all inputs and outputs have entries.
        shared: Flags of the inputs that all states of a batch share.
    """

    program: Program
    shared: tuple[bool, ...]

    @property
    def key(self) -> str:
        """A hash, equal for equal handlers in every process."""
        return hashlib.sha256(f"{self.program.digest()} {self.shared}".encode()).hexdigest()[:40]

    def to_bytes(self) -> bytes:
        """The handler as bytes, which ``from_bytes`` reads."""
        flags = "".join("01"[each] for each in self.shared)
        return _HEAD + flags.encode() + b"\n" + self.program.to_bytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> Handler:
        """The handler from the bytes of ``to_bytes``.

        Raises:
            ProgramFormatError: the bytes are truncated, changed, or in another format.
        """
        flags, end, rest = content.removeprefix(_HEAD).partition(b"\n")
        if not content.startswith(_HEAD) or not end or set(flags) - set(b"01"):
            raise ProgramFormatError(f"expected the line {_HEAD.decode().strip()!r}, got {content[:20]!r}")
        program = Program.from_bytes(rest)
        if len(flags) != len(program.inputs) or not all(port.values for port in (*program.inputs, *program.outputs)):
            raise ProgramFormatError(f"expected a flag for each of {len(program.inputs)} inputs, got {len(flags)}")
        return cls(program, tuple(flag == ord("1") for flag in flags))


_registered: dict[str, Handler] = {}
_lock = Lock()


def registered_name(handler: Handler, llvm: Compiler) -> str:
    """The name by which XLA programs call a handler; compiles and registers it if needed.

    Args:
        llvm: The compiler.

    Raises:
        RuntimeError: LLVM rejects the text.
        NotImplementedError: an operation is not supported.
    """
    key = handler.key
    name = f"lgsim_{key}{_REMEDY}"
    with _lock:
        if name not in _registered:
            program, shared = handler
            lanes = max(llvm.vector_bytes // _width(program), 2)
            fresh = []

            def text() -> str:
                fresh.append(key)
                return llvm_text(program, shared, lanes, llvm.api)

            register_handler(name, llvm.function(llvm.name(f"{key} {lanes}"), text))
            _registered[name] = handler
            if fresh:
                store.write_entry(_ENTRY + key, handler.to_bytes())
    return name


def registered_names() -> frozenset[str]:
    """The names of all handlers in this process."""
    return frozenset(_registered)


def named_handlers(source: Any) -> frozenset[str]:
    """The names of the handlers that a program calls.

    Args:
        source: A ``jax.export.Exported``, or the result of ``jax.jit(f).lower(...)``, compiled or not.

    Raises:
        TypeError: it is something else.
    """
    text = getattr(source, "mlir_module_serialized", None)
    if text is None and callable(getattr(source, "as_text", None)):
        text = (source.as_text() or "").encode()
    if not isinstance(text, bytes):
        raise TypeError(
            "of: expected a jax.export.Exported, or the result of jax.jit(f).lower(...) or .compile(), got"
            f" {type(source).__name__}"
        )
    return frozenset(f"lgsim_{key.decode()}{_REMEDY}" for key in _NAME.findall(text))


def save_programs(folder: str | Path, of: Any = None) -> int:
    """Save compiled functions' programs to a folder, for ``lgsim.load_programs`` in another process or computer.

    A function exported or serialized by JAX only names the programs that lgsim compiles. They are saved as data, not as
    machine code: the other computer compiles them for its own processor.

    Args:
        folder: The folder; it is created if needed, and other files in it are kept.
        of: The function whose programs are saved: a ``jax.export.Exported``, or the result of
            ``jax.jit(f).lower(...)``, compiled or not. None: the programs of all functions compiled in this process.

    Returns:
        The number of programs.

    Raises:
        TypeError: ``of`` has another type.
        ValueError: this process lacks a program that ``of`` calls.
        OSError: the folder or a file cannot be written.
    """
    names = registered_names() if of is None else named_handlers(of)
    if missing := sorted(names - registered_names()):
        raise ValueError(
            f"of: expected a function whose programs this process has, got one that calls {missing[0]} of another"
            " process; save its programs there, or load them before"
        )
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    for name in names:
        handler = _registered[name]
        entry = _ENTRY + handler.key
        write_whole(place / entry, store.entry_bytes(entry, handler.to_bytes()))
    return len(names)


def load_programs(folder: str | Path | None = None, of: Any = None) -> int:
    """Load saved programs, so that exported and serialized functions that call them can run in this process.

    Call it before ``jax.export.deserialize(...).call`` and before
    ``jax.experimental.serialize_executable.deserialize_and_load``. LLVM compiles each program for the processor of this
    computer, or takes it from the user's cache (``LGSIM_CACHE_DIR``) if it was compiled before.

    A program is pure computation: it is checked when it is read, and cannot access files. An exported or serialized
    function itself is code: run only functions that you trust.

    Args:
        folder: A folder written by ``lgsim.save_programs``, or a copy of a cache, whose machine code is ignored. None:
            the user's cache, which has the programs of all functions compiled on this computer.
        of: The function whose programs are loaded, such as a ``jax.export.Exported``; None: all programs in the folder.

    Returns:
        The number of loaded programs, those that were known before included.

    Raises:
        FileNotFoundError: the folder does not exist.
        TypeError: ``of`` is neither a ``jax.export.Exported`` nor a result of ``jax.jit(f).lower(...)``.
        ValueError: the folder has no program, a file in it is damaged, or a program that ``of`` calls is missing.
        ModuleNotFoundError: llvmlite is missing (extra ``fast``).
        RuntimeError: llvmlite is unusable.
    """
    package("llvmlite", "fast", "lgsim.load_programs")
    llvm = compiler()
    if llvm is None:
        raise RuntimeError(
            "lgsim.load_programs: expected a usable llvmlite, got one that does not compile programs (see the warning"
            " before); update it, or export the function with lgsim.export(f, portable=True)"
        )
    wanted = None if of is None else named_handlers(of)
    found = set()
    for path, handler in _cached(wanted) if folder is None else _kept(Path(folder), wanted):
        try:
            found.add(registered_name(handler, llvm))
        except (RuntimeError, NotImplementedError) as error:
            if folder is not None:
                raise ValueError(f"{path}: expected a program written by lgsim.save_programs, got {error}") from error
    missing = sorted((wanted or set()) - found - registered_names())
    place = store.folder() if folder is None else folder
    if missing:
        raise ValueError(
            f"{place}: expected the programs that the function calls, got none with the name {missing[0]}; copy what"
            " lgsim.save_programs(folder, of=exported) writes where the function is exported"
        )
    if folder is not None and not found and not wanted:
        raise ValueError(f"{place}: expected programs written by lgsim.save_programs, got none")
    return len(found if wanted is None else wanted)


def _cached(wanted: frozenset[str] | None) -> Iterator[tuple[Path, Handler]]:
    """The handlers in the user's cache; damaged entries are skipped."""
    place = store.folder()
    with suppress(OSError):
        for path in _files(place, wanted):
            content = store.read_entry(path.name)
            with suppress(ProgramFormatError):
                if content is not None and path.name == _ENTRY + (handler := Handler.from_bytes(content)).key:
                    yield path, handler


def _kept(place: Path, wanted: frozenset[str] | None) -> Iterator[tuple[Path, Handler]]:
    """The handlers in a folder given by the user.

    Raises:
        FileNotFoundError: the folder does not exist.
        ValueError: a file is damaged.
    """
    for path in _files(place, wanted):
        content = store.read_file(path)
        try:
            if content is None:
                raise ProgramFormatError("expected a complete file, got a damaged one")
            handler = Handler.from_bytes(content)
            if path.name != _ENTRY + handler.key:
                raise ProgramFormatError("expected the program of the file's name, got another one")
        except ProgramFormatError as error:
            raise ValueError(
                f"{path}: {error}; copy the folder again from where lgsim.save_programs wrote it"
            ) from error
        yield path, handler


def _files(place: Path, wanted: frozenset[str] | None) -> list[Path]:
    """The files of the wanted handlers in a folder."""
    names = None if wanted is None else {_ENTRY + name[len("lgsim_") : -len(_REMEDY)] for name in wanted}
    paths = sorted(place.iterdir())
    return [path for path in paths if path.name.startswith(_ENTRY) and (names is None or path.name in names)]


def _width(program: Program) -> int:
    """Bytes of the widest number in a program."""
    kinds = {s.kind for s in program.statements} | {port.kind for port in program.inputs}
    return max((np.dtype(kind).itemsize for kind in kinds if kind.startswith("float")), default=8)
