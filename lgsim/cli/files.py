"""Files that the commands read and write: machines, runs and the places for results."""

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
from lgsim.scenarios.machine import ONLY_URDF, TRAJECTORIES, first_tag
from lgsim.scenarios.trajectory_file import read_trajectory
from lgsim.simulation import Trajectory
from lgsim.support.messages import counted, one_line

CACHES = (0, 8, 0)
"""The jaxlib from which on programs that were kept compute what they did."""


def configure_jax() -> None:
    """Let JAX make arrays of float64, where the dtype of a machine decides, and run programs in the calling thread.

    To be called before anything is computed: JAX reads the second setting when its backend starts.
    """
    jax.config.update("jax_enable_x64", True)
    # a program with a loop would be handed to a thread at each call, which costs more than a short one takes
    jax.config.update("jax_cpu_enable_async_dispatch", False)


def keep_compiled() -> None:
    """Let JAX keep all that it compiles in the user's cache, unless a place is set already.

    Before jaxlib 0.8.0 programs that come from there may compute something else on a CPU (0.6.0 does): none are kept.
    """
    if tuple(map(int, version("jaxlib").split(".")[:3])) < CACHES:
        jax.config.update("jax_enable_compilation_cache", False)
    elif getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        place = Path(home) / "lgsim" / "jax"
        try:
            if not private_folder(place, "XDG_CACHE_HOME"):
                return
        except OSError:  # a home that cannot be written: JAX keeps nothing then
            return
        jax.config.update("jax_compilation_cache_dir", str(place))
        # a command runs dozens of small programs, which together take seconds
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
    """Read a machine, see ``lgsim.scenarios.machine.read_machine``; float64 from here on.

    Raises:
        FileError: the file describes no machine, or the file of loops none of its loops.
        BadInput: a floating base is asked of an MJCF or SDF file.
        ModuleNotFoundError: the package mujoco is missing.
    """
    configure_jax()
    if floating_base and first_tag(path) in ("mujoco", "sdf"):
        raise BadInput(f"--floating-base: {ONLY_URDF}")
    dtype = jnp.float32 if float32 else jnp.float64
    return machine.read_machine(
        path, floating_base=floating_base, gravity=gravity, dtype=dtype, ignore_equalities=ignore_equalities,
        loops=loops,
    )  # fmt: skip


def remark(report: Report | None, floating_base: bool) -> None:
    """Write one line to a user who does not look at the report, where the motion itself may be wrong."""
    if report is None:
        return
    odd = {"with an inertia that no body has": report.inertias, "that moves without mass of its own": report.massless}
    found = [f"{counted(len(findings), 'link')} {text}" for text, findings in odd.items() if findings]
    if report.units:
        first, more = report.units[0], len(report.units) - 1
        found.append(f"line {first}{f' and {more} more that may be in other units' if more else ''}")
    if report.dropped:
        note(f"{report.dropped}; shown by: lgsim info {report.file}")
    if found:
        option = " --floating-base" if floating_base else ""
        note(f"{' and '.join(found)}; shown by: lgsim info {report.file}{option}")


def load(path: Path) -> Trajectory:
    """Read a run.

    Raises:
        BadInput: the file holds none.
        ModuleNotFoundError: the package pyarrow is missing.
    """
    configure_jax()
    with bad_input():
        return read_trajectory(path)


def checkpoint(out: Path) -> Path:
    """The place of the checkpoint of a search, beside its output."""
    return out.with_suffix(".checkpoint.npz")


def begin_search(kept: Path, restart: bool) -> None:
    """Remove the checkpoint of an earlier search, or say that the search goes on from there."""
    if restart:
        kept.unlink(missing_ok=True)
    elif kept.exists():
        note(f"going on from {kept}; --restart begins anew")


def joint_list(model: Model) -> str:
    """The names of a machine's joints, by which results of another machine are known."""
    return "\n".join(model.joint_names)


def check_out(option: str, path: Path) -> Path:
    """Return a path that a run can be written to.

    Raises:
        BadInput: its ending is unknown, or its folder is missing or cannot be written.
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
    """Return a path that a file can be written to, or a device or a pipe that can be written into.

    Raises:
        BadInput: it is a folder, or it or its folder cannot be written, or its folder is missing.
    """
    if path.is_dir():
        raise BadInput(f"{option}: expected a file, got the folder {str(path)!r}")
    if path.exists() and not os.access(path, os.W_OK):
        raise BadInput(f"{option}: the file {str(path)!r} cannot be written: {os.strerror(errno.EACCES)}")
    if path.is_file() or not path.exists():
        # where a link leads to
        check_folder(option, path.resolve().parent if path.is_symlink() else path.parent)
    return path


def check_folder(option: str, folder: Path) -> Path:
    """Return a folder that files can be written to.

    Raises:
        BadInput: it is missing or cannot be written.
    """
    if not folder.is_dir():
        raise BadInput(f"{option}: there is no folder {str(folder)!r}")
    try:
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BadInput(f"{option}: the folder {str(folder)!r} cannot be written: {error.strerror}") from error


def save_run(motion: Trajectory, path: Path, machine: Path | None = None) -> Path:
    """Save a run; where that fails, keep it in another place as ``.npz``, whose name the error has.

    Args:
        path: Where it should go.
        machine: The file of its machine, which goes into an ``.mcap`` file where it is a URDF.

    Raises:
        Stop: the file cannot be written, and the run is kept elsewhere.
        OSError: it cannot be written anywhere.
    """
    urdf = machine if machine is not None and path.suffix == ".mcap" and first_tag(machine) == "robot" else None
    try:
        # runs of other endings hold the machine themselves
        return motion.save(path) if urdf is None else motion.save(path, urdf)
    except OSError as error:
        why = error.strerror or one_line(error)
        for place in _other_places(path):
            try:
                kept = motion.save(place)
            except OSError:
                continue
            raise Stop(
                f"{path}: {why}; the run is kept in {kept}, and `lgsim convert {kept} OUT` writes it to another place"
            ) from error
        raise


def _other_places(path: Path) -> Iterator[Path]:
    """Files in other folders that a run can be kept in for now."""
    folders = [Path(tempfile.gettempdir()), Path.home(), Path("/dev/shm"), Path.cwd()]
    for folder in dict.fromkeys(folders):
        if folder.is_dir() and folder.resolve() != path.parent.resolve():
            # a name that nobody can have made a link of before
            yield folder / f"lgsim-{path.stem}-{secrets.token_hex(4)}.npz"
