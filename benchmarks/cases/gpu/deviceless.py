"""Programs compiled by XLA for an H200 on a computer without one, and CUDA sources by CUDA's assembler.

The extra ``cuda-aot`` brings XLA's compiler for CUDA and CUDA's own; neither needs a driver or a device.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import jax

import lgsim

DESCRIPTION = Path(__file__).parent / "h200.txtpb"
MISSING = "the extra cuda-aot is not there (pip install 'lgsim[cuda-aot]'): nothing is compiled for a GPU"


def is_there():
    """True if XLA's compiler for CUDA is installed."""
    return importlib.util.find_spec("jax_cuda13_plugin") is not None


@cache
def placed():
    """Sharding on the single device of the description."""
    from jax.experimental import topologies
    from jax.sharding import NamedSharding, PartitionSpec

    described = topologies.get_topology_desc(
        platform="cuda", topology_name="", target_config=DESCRIPTION.read_text(encoding="utf-8"), topology="1x1x1"
    )
    return NamedSharding(topologies.make_mesh(described, (1,), ("d",)), PartitionSpec())


def compiled(f, *args):
    """(the program for the H200, seconds of tracing and compiling); arguments may be shapes."""
    there = placed()
    kinds = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=there), args)
    start = time.perf_counter()
    with lgsim.compiling_for("cuda"):
        program = jax.jit(f, out_shardings=there).lower(*kinds).compile()
    return program, time.perf_counter() - start


def tool(name):
    """The path of a CUDA program, from a wheel or from the system, or None."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else [Path(each) / "cu13" / "bin" for each in spec.submodule_search_locations or ()]
    given = os.pathsep.join([*map(str, folders), os.environ.get("PATH", "")])
    return shutil.which(name, path=given)


def registers(source, architecture="sm_90"):
    """(registers of a thread, bytes spilled, seconds) of the kernel of a CUDA source, by nvcc and ptxas.

    Raises:
        RuntimeError: the compiler rejects the source; the message has its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.cu"
        path.write_text(source, encoding="utf-8")
        start = time.perf_counter()
        command = [tool("nvcc"), f"-arch={architecture}", "-cubin", "-Xptxas", "-v", str(path), "-o", f"{path}.cubin"]
        run = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - start
    if run.returncode:
        raise RuntimeError(f"nvcc: {run.stderr.strip()[:2000]}")
    used = re.search(r"Used (\d+) registers", run.stderr)
    spilled = re.search(r"(\d+) bytes spill stores", run.stderr)
    return int(used[1]), int(spilled[1]) if spilled else 0, seconds
