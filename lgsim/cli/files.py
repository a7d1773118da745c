"""Files that the commands read and write: robots, runs and results."""

from __future__ import annotations

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import jax
import jax.numpy as jnp
from jaxtyping import Float
from numpy import ndarray

from lgsim._compile.programs.store import private_folder
from lgsim.cli.errors import BadInput, Stop, bad_input, needs
from lgsim.cli.terminal import note
from lgsim.formats import Report
from lgsim.multibody import Model
from lgsim.scenarios import machine
from lgsim.scenarios.machine import NOT_IN_SDF, TRAJECTORIES, first_tag
from lgsim.scenarios.trajectory_file import read_trajectory
from lgsim.simulation import Trajectory
from lgsim.support.messages import counted, one_line

CACHES = (0, 8, 0)
"""First jaxlib version whose cached programs give the same results as freshly compiled ones."""


def configure_jax() -> None:
    """Enable float64 arrays in JAX, where the dtype follows the model, and run programs in the calling thread.

    Call it before any computation: JAX reads the second setting when its backend starts.
    """
    jax.config.update("jax_enable_x64", True)
    # handing a program with a loop to another thread costs more than a short program takes
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def keep_compiled() -> None:
    """Cache all programs that JAX compiles in the user's cache directory, unless another one is configured.

    Nothing is cached before jaxlib 0.8.0, where cached CPU programs may give other results (0.6.0 does).
    """
    if tuple(map(int, version("jaxlib").split(".")[:3])) < CACHES:
        jax.config.update("jax_enable_compilation_cache", False)
    elif getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        place = Path(home) / "lgsim" / "jax"
        try:
            if not private_folder(place, "XDG_CACHE_HOME"):
                return
        except OSError:  # read-only home directory: no cache
            return
        jax.config.update("jax_compilation_cache_dir", str(place))
        # a command runs dozens of small programs, which take seconds together
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def read_machine(
    path: Path,
    *,
    floating_base: bool = False,
    gravity: Float[ndarray, " 3"] | None = None,
    float32: bool = False,
    ignore_equalities: bool = False,
    loops: Path | None = None,
) -> tuple[Model, Report]:
    """Read a robot, see `lgsim.scenarios.machine.read_machine`; enables float64.

    Raises:
        FileError: the file describes no valid model, or the loop file names unknown joints or frames.
        BadInput: a floating base is requested for an SDF file.
        ModuleNotFoundError: the package mujoco is missing.
    """
    configure_jax()
    if floating_base and first_tag(path) == "sdf":
        raise BadInput(f"--floating-base: {NOT_IN_SDF}")
    dtype = jnp.float32 if float32 else jnp.float64
    return machine.read_machine(
        path, floating_base=floating_base, gravity=gravity, dtype=dtype, ignore_equalities=ignore_equalities,
        loops=loops,
    )  # fmt: skip


def remark(report: Report | None, floating_base: bool) -> None:
    """Write a note about findings in the robot's file that may make the motion wrong."""
    if report is None:
        return
    odd = {"with an invalid inertia": report.inertias, "that moves without mass of its own": report.massless}
    found = [f"{counted(len(findings), 'link')} {text}" for text, findings in odd.items() if findings]
    if report.units:
        first, more = report.units[0], len(report.units) - 1
        found.append(f"line {first}{f' and {more} more values that may be in other units' if more else ''}")
    if report.dropped:
        note(f"{report.dropped}; details: lgsim info {report.file}")
    if found:
        option = " --floating-base" if floating_base else ""
        note(f"{' and '.join(found)}; details: lgsim info {report.file}{option}")


def load(path: Path) -> Trajectory:
    """Read a run.

    Raises:
        BadInput: the file holds no run.
        ModuleNotFoundError: the package pyarrow is missing.
    """
    configure_jax()
    with bad_input():
        return read_trajectory(path)


def checkpoint(out: Path) -> Path:
    """Path of the checkpoint of a search, next to its output."""
    return out.with_suffix(".checkpoint.npz")


def begin_search(kept: Path, restart: bool) -> None:
    """Remove the checkpoint of an earlier search, or write a note that the search continues from it."""
    if restart:
        kept.unlink(missing_ok=True)
    elif kept.exists():
        note(f"continuing from {kept}; --restart starts again")


def joint_list(model: Model) -> str:
    """The joint names of a robot, which identify its results."""
    return "\n".join(model.joint_names)


def check_out(option: str, path: Path) -> Path:
    """Check that a run can be written to a path, and return the path.

    Raises:
        BadInput: the suffix is unknown, or the folder is missing or not writable.
        Stop: pyarrow is missing.
    """
    if path.suffix not in TRAJECTORIES:
        raise BadInput(
            f"{option}: expected a name that ends in {' or '.join(TRAJECTORIES)}, got {path.name!r}"
            f" ({f'ending {path.suffix}' if path.suffix else 'no ending'})"
        )
    if path.suffix == ".parquet":
        needs("pyarrow", "data", "a .parquet file")
    if path.suffix == ".mcap":
        needs("mcap_ros2", "logs", "an .mcap file")
    return check_file(option, path)


def check_file(option: str, path: Path) -> Path:
    """Check that a path is a writable file, device or pipe, and return it.

    Raises:
        BadInput: it is a folder, its folder is missing, or one of them is not writable.
    """
    if path.is_dir():
        raise BadInput(f"{option}: expected a file, got the folder {str(path)!r}")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadInput(f"{option}: the file {str(path)!r} cannot be written: {os.strerror(errno.EACCES)}")
    if path.is_file() or not path.exists():
        # the target of a link
        check_folder(option, path.resolve().parent if path.is_symlink() else path.parent)
    return path


def check_results(*outputs: tuple[str, Path | None, str]) -> None:
    """Check options of files of results, (option, path or None, ending), as ``check_file`` does.

    Raises:
        BadInput: a name has another ending, or the file cannot be written.
    """
    for option, path, ending in outputs:
        if path is not None:
            if path.suffix != ending:
                raise BadInput(f"{option}: expected a name that ends in {ending}, got {path.name!r}")
            check_file(option, path)


def check_folder(option: str, folder: Path) -> Path:
    """Check that files can be written to a folder, and return it.

    Raises:
        BadInput: the folder is missing or not writable.
    """
    if not folder.is_dir():
        raise BadInput(f"{option}: there is no folder {str(folder)!r}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BadInput(f"{option}: the folder {str(folder)!r} cannot be written: {error.strerror}") from error


def save_run(motion: Trajectory, path: Path, machine: Path | None = None) -> Path:
    """Save a run. If that fails, save it elsewhere as ``.npz`` and name that file in the error.

    If `machine` is a URDF file, it is embedded in an ``.mcap`` file.

    Raises:
        Stop: the file cannot be written; the run is saved elsewhere.
        OSError: the run cannot be written anywhere.
    """
    urdf = machine if machine is not None and path.suffix == ".mcap" and first_tag(machine) == "robot" else None
    try:
        # files with other suffixes store the model themselves
        return motion.save(path) if urdf is None else motion.save(path, urdf)
    except OSError as error:
        why = error.strerror or one_line(error)
        for place in _other_places(path):
            try:
                kept = motion.save(place)
            except OSError:
                continue
            raise Stop(f"{path}: {why}; the run is saved in {kept}, copy it with `lgsim convert {kept} OUT`") from error
        raise


def _other_places(path: Path) -> Iterator[Path]:
    """Fallback files in other folders."""
    folders = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path.cwd()]
    for folder in dict.fromkeys(folders):
        if folder.is_dir() and folder.resolve() != path.parent.resolve():
            # an unpredictable name, so that nobody can have placed a link there
            yield folder / f"lgsim-{path.stem}-{secrets.token_hex(4)}.npz"
