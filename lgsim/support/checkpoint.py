"""Checkpoint files of long computations, from which they resume after an interruption."""

from __future__ import annotations

import io
import tempfile
import time
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from lgsim.support.files import write_whole
from lgsim.support.messages import one_line
from lgsim.support.packages import own_version
from lgsim.support.reading.npz import open_npz

State = TypeVar("State")

FORMAT = "lgsim checkpoint 1"
EVERY = 5.0
"""Seconds between two writes."""


class CheckpointError(ValueError):
    """A file that is not a checkpoint of this computation, or cannot be one."""


class Checkpoint:
    """A file that stores the state of a computation: a pytree of arrays.

    Args:
        path: The file; it need not exist, but its folder must.
        mark: The ``fingerprint`` of all that a state belongs to.
        owner: A description of it for messages: "problem, guess or solver".
        every: Time between two writes during the computation, s.

    Raises:
        CheckpointError: the path is a folder, or no file can be written in its folder.
    """

    def __init__(self, path: str | Path, mark: str, *, owner: str = "problem", every: float = EVERY) -> None:
        self.path = Path(path)
        self._mark, self._owner, self._every = mark, owner, every
        self._written = time.perf_counter()
        if self.path.exists() and not self.path.is_file():
            kind = "a folder" if self.path.is_dir() else "a pipe or a device"
            raise CheckpointError(f"{path}: expected a file for the checkpoint, got {kind}")
        if not self.path.absolute().parent.is_dir():
            raise CheckpointError(f"{path}: there is no such folder for the checkpoint")
        try:
            with tempfile.TemporaryFile(dir=self.path.absolute().parent):
                pass
        except OSError as error:
            raise CheckpointError(f"{path}: the checkpoint's folder cannot be written ({_reason(error)})") from error

    def read(self, like: State) -> State:
        """The state in the file, or ``like`` itself if there is no file.

        Args:
            like: Any state of this computation; it gives the structure, shapes and dtypes.

        Raises:
            CheckpointError: the file belongs to another computation or version of lgsim, or is not a checkpoint.
        """
        if not self.path.exists():
            return like
        wanted, structure = jax.tree.flatten(like)
        try:
            with open_npz(self.path, "a checkpoint that lgsim wrote", CheckpointError) as file:
                self._check(*(str(text) for text in file["about"]))
                leaves = [file[f"leaf{i}"] for i in range(len(wanted))]
                fits = len(file.names) == len(wanted) + 1
        except CheckpointError:
            raise
        except ValueError as error:
            raise CheckpointError(one_line(error)) from error
        if not fits or any(
            came.shape != np.shape(like) or came.dtype.kind not in "biufc"
            for came, like in zip(leaves, wanted, strict=True)
        ):
            raise CheckpointError(f"{self.path}: the checkpoint's arrays are not those of this work's state")
        return jax.tree.unflatten(
            structure, [jnp.asarray(x, jnp.result_type(like)) for x, like in zip(leaves, wanted, strict=True)]
        )

    def write(self, state: PyTree) -> None:
        """Write a state atomically.

        Raises:
            OSError: it cannot be written, for example because the disk is full; the file is unchanged.
        """
        leaves: dict[str, Any] = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
        content = io.BytesIO()
        np.savez(content, about=np.array([FORMAT, self._mark, own_version()]), **leaves)
        try:
            write_whole(self.path, content.getvalue())
        except OSError as error:
            raise OSError(
                error.errno,
                f"the checkpoint cannot be written ({_reason(error)}); the one written before is intact: fix this and"
                " repeat the call to resume from there",
                str(self.path),
            ) from error
        self._written = time.perf_counter()

    def write_if_due(self, state: PyTree) -> None:
        """Write a state if the last write was long enough ago.

        Raises:
            OSError: see ``write``.
        """
        if time.perf_counter() - self._written > self._every:
            self.write(state)

    def _check(self, kind: str, mark: str, version: str = "") -> None:
        """Raise unless a file with this heading is a checkpoint of this computation."""
        if kind != FORMAT:
            raise KeyError(kind)
        if version != own_version():
            raise CheckpointError(
                f"{self.path}: this checkpoint is of another version of lgsim ({version}, not {own_version()}); take "
                "another name, or remove the file to restart"
            )
        if mark != self._mark:
            raise CheckpointError(
                f"{self.path}: this checkpoint is of another {self._owner} (fingerprint {mark}, expected "
                f"{self._mark}); take another name, or remove the file to restart"
            )


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
