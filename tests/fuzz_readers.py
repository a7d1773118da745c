"""Every reader of files, fed with damaged and hostile variants of small valid files.

A reader may return, or end in an error of its own: a ``ValueError`` or ``OSError`` of Python itself or one of lgsim's
subclasses, whose text begins with the file or its folder. `tests/test_fuzz_readers.py` runs a few variants of each;
`python -m tests.fuzz_readers --count 20000` runs many, each reader in a process of its own, and prints what was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import lgsim
from lgsim import identify
from lgsim.simulation import trajectory
from tests import file_variants
from tests.valid_files import READERS, Reader

SECONDS = 2.0
"""Time of the processor that a reader may take for a file."""


class Fault(NamedTuple):
    """What a reader did and should not have done.

    Attributes:
        reader: Its name.
        number: That of the variant.
        kind: The class of the error, or "slow".
        text: The error, and where it was raised.
    """

    reader: str
    number: int
    kind: str
    text: str


def is_own(error: BaseException, folder: Path) -> bool:
    """Whether an error is one that a reader may end in."""
    kind = type(error)
    own = kind in (ValueError, OSError, FileNotFoundError, IsADirectoryError, PermissionError)
    own = own or (kind.__module__.startswith("lgsim.") and isinstance(error, ValueError))
    if isinstance(error, OSError) and error.filename is not None:
        return own and str(error.filename).startswith(str(folder))
    return own and str(error).startswith(str(folder)) and "\n" not in str(error)


def attempt(name: str, reader: Reader, number: int, folder: Path) -> Fault | None:
    """Read one variant; what was wrong with that."""
    shutil.rmtree(folder, ignore_errors=True)
    target = reader.mutated[number % len(reader.mutated)]
    for file, content in reader.files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file_variants.mutate(file, content, f"{name} {number}") if file == target else content)
    took = np.inf
    for _ in range(2):
        start = time.process_time()
        error = _error_of(reader, folder)
        took = min(took, time.process_time() - start)
        if error is not None and not is_own(error, folder):
            place = traceback.extract_tb(error.__traceback__)
            where = next((f for f in reversed(place) if "/lgsim/" in f.filename), place[-1])
            text = f"{str(error)[:200]!r} at {where.filename.rpartition('/lgsim/')[2]}:{where.lineno}"
            return Fault(name, number, type(error).__name__, f"{target}: {text}")
        if took <= SECONDS:
            return None
        # a file may ask for a program that no other one needed yet: what is compiled once does not count
    return Fault(name, number, "slow", f"{target}: {took:.1f} s")


def _error_of(reader: Reader, folder: Path) -> Exception | None:
    """What reading a folder raised."""
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            touch(reader.read(folder))
        except Exception as error:
            return error
    return None


def touch(found: object) -> None:
    """Look at what was read as whatever comes next would: a model's places and names, the columns of a recording."""
    for part in found if isinstance(found, tuple) else (found,):
        model = part if isinstance(part, lgsim.Model) else getattr(part, "model", None)
        if isinstance(model, lgsim.Model):
            tree = model.topology
            _ = tree.row_parent, tree.row_source, tree.row_q, tree.row_carried, tree.groups, tree.loop_row_starts
            _ = tree.carried, trajectory.q_names(model), trajectory.v_names(model), model.frame_names, model.neutral()
            for loop in tree.loops:
                tree.loop_joints(loop)
            for array in (model.axes, model.damping, model.stribeck_speed, model.gravity):
                np.asarray(array, float)
        if isinstance(part, identify.Recording):
            _ = part.columns, part.segments, part.dt


def faults(
    name: str, numbers: range, folder: Path, report: Callable[[int, Fault | None], object] | None = None
) -> list[Fault]:
    """The faults of a reader with some variants of its input.

    Args:
        name: The reader.
        numbers: The numbers of the variants.
        folder: Where files may be written.
        report: Called after each variant with what was wrong with it.
    """
    reader, valid, found = READERS[name](), folder / "valid", []
    for file, content in reader.files.items():
        (valid / file).parent.mkdir(parents=True, exist_ok=True)
        (valid / file).write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        touch(reader.read(valid))  # what is compiled once does not count as time of a variant
    for number in numbers:
        fault = attempt(name, reader, number, folder / "variant")
        found += [] if fault is None else [fault]
        if report is not None:
            report(number, fault)
    return found


def _many(names: list[str], count: int, first: int) -> int:
    """Run variants of each reader in a process of its own, print the faults, and return how many there were."""
    each, total = -(-count // len(names)), 0
    for name in names:
        numbers, found, ended = range(first, first + each), [], []
        while numbers:
            done = subprocess.run(
                [sys.executable, "-m", "tests.fuzz_readers", "--reader", name, "--range", str(numbers.start),
                 str(numbers.stop)], capture_output=True, text=True, check=False,
            )  # fmt: skip
            lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            found += [line for line in lines if "kind" in line]
            if done.returncode == 0:
                break
            # a crash of native code: the variant after the last one that was reported
            last = numbers.start + len(lines)
            ended.append(f"{last}: exit status {done.returncode}: {done.stderr[-300:]}")
            numbers = range(last + 1, numbers.stop) if lines else range(0)
        total += len(found) + len(ended)
        kinds = Counter((line["kind"], line["text"].rpartition(" at ")[2]) for line in found)
        print(f"{name}: {each} variants from {first}: {dict(kinds) or 'no fault'}", flush=True)
        for line in (*found, *ended):
            print("   ", line, flush=True)
    return total


def _one(name: str, numbers: range) -> None:
    """Run variants of one reader here; a line of JSON for each."""
    # readers may write to standard output
    out = os.fdopen(os.dup(1), "w")

    def report(number: int, fault: Fault | None) -> None:
        out.write(json.dumps({"done": number} if fault is None else fault._asdict()) + "\n")
        out.flush()

    with tempfile.TemporaryDirectory() as folder:
        faults(name, numbers, Path(folder), report)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="variants of all readers together")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--reader", action="append", help="only this reader")
    parser.add_argument("--range", type=int, nargs=2, help="these variants of the reader, in this process")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if asked.range:
        _one(asked.reader[0], range(*asked.range))
    else:
        sys.exit(bool(_many(asked.reader or list(READERS), asked.count, asked.first)))
