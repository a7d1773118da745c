"""Files that keep the state of a solver, so that it goes on where it was interrupted."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from lgsim.support.files import write_whole

_FORMAT = "lgsim solver 1"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class CheckpointError(ValueError):
    """A file that keeps no state of this solver on this problem."""


def fingerprint(*trees: Any) -> str:
    """Sixteen hexadecimal digits that differ between pytrees of other structure or numbers, equal in all processes.

    Of functions the code counts and what they close over, not what else they read.
    """
    digest = hashlib.sha256()
    _feed(digest, trees)
    return digest.hexdigest()[:16]


def write(path: Path, mark: str, state: Any) -> None:
    """Keep a state, whole or not at all.

    Args:
        path: Where.
        mark: The ``fingerprint`` of all that the state belongs to.
        state: A pytree of arrays.
    """
    leaves = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    file = io.BytesIO()
    named: dict[str, Any] = {"about": np.array([_FORMAT, mark]), **leaves}
    np.savez(file, **named)
    write_whole(path, file.getvalue())


def read(path: Path, mark: str, like: Any) -> Any:
    """The state that a file keeps.

    Args:
        path: The file.
        mark: The ``fingerprint`` of all that the state must belong to.
        like: Any state of this solver on this problem.

    Raises:
        CheckpointError: it belongs to another problem, guess or solver, or is no such file.
    """
    shapes, structure = jax.tree.flatten(like)
    try:
        with np.load(path, allow_pickle=False) as file:
            kind, came = (str(text) for text in file["about"])
            if kind != _FORMAT:
                raise KeyError(kind)
            if came != mark:
                raise CheckpointError(
                    f"{path}: this checkpoint is of another problem, guess or solver (fingerprint {came}, expected "
                    f"{mark}); take another name, or remove the file to start anew"
                )
            leaves = [file[f"leaf{i}"] for i in range(len(shapes))]
    except (KeyError, TypeError, EOFError, zipfile.BadZipFile):
        raise CheckpointError(f"{path}: expected a checkpoint that lgsim wrote, got something else") from None
    except ValueError as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"{path}: expected a checkpoint that lgsim wrote, got something else") from None
    return jax.tree.unflatten(structure, [jax.numpy.asarray(x, s.dtype) for x, s in zip(leaves, shapes, strict=True)])


def _feed(digest: Any, tree: Any) -> None:
    leaves, structure = jax.tree.flatten(tree)
    digest.update(_ADDRESS.sub("", str(structure)).encode())
    for leaf in leaves:
        if eqx.is_array_like(leaf):
            array = np.asarray(leaf)
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        else:
            _feed_other(digest, leaf)


def _feed_other(digest: Any, leaf: Any) -> None:
    """A function by its code and what it closes over, all else by its text."""
    digest.update(f"{getattr(leaf, '__module__', '')}.{getattr(leaf, '__qualname__', '')}".encode())
    code = getattr(leaf, "__code__", None)
    if code is None:
        digest.update(_ADDRESS.sub("", repr(leaf)).encode())
        return
    digest.update(code.co_code)
    digest.update(_ADDRESS.sub("", repr(code.co_consts)).encode())
    inside = tuple(cell.cell_contents for cell in leaf.__closure__ or ())
    if inside or leaf.__defaults__:
        _feed(digest, (inside, leaf.__defaults__))
