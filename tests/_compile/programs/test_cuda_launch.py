"""What jaxlib's custom call asks of CUDA's driver to launch a kernel: a driver that only writes it down stands in."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cases.gpu import deviceless
from lgsim._compile.programs import cuda_call, read
from lgsim._compile.programs.nvrtc import nvrtc

ROOT = Path(__file__).parents[3]
CC = shutil.which(os.environ.get("CC") or "cc")

pytestmark = pytest.mark.skipif(
    nvrtc() is None or deviceless.tool("ptxas") is None or not deviceless.is_there() or CC is None,
    reason=f"{deviceless.MISSING}; needs a C compiler as well",
)

DRIVER = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void written(const unsigned *blocks, const unsigned *threads, unsigned shared, void **params) {
    int arrays = atoi(getenv("ARRAYS"));
    printf("{\\"blocks\\": [%u, %u, %u], ", blocks[0], blocks[1], blocks[2]);
    printf("\\"threads\\": [%u, %u, %u], ", threads[0], threads[1], threads[2]);
    printf("\\"shared\\": %u, \\"arrays\\": [", shared);
    for (int i = 0; i < arrays; ++i) printf("%s%llu", i ? ", " : "", *(unsigned long long *) params[i]);
    printf("], \\"numbers\\": [");
    for (int i = 0, n = atoi(getenv("NUMBERS")); i < n; ++i) printf("%s%d", i ? ", " : "", *(int *) params[arrays + i]);
    printf("], ");
}
int cuStreamGetCtx(void *s, void **c) { *c = (void *) 1; return 0; }
int cuStreamGetCtx_v2(void *s, void **c, void **g) { *c = (void *) 1; return 0; }
int cuStreamIsCapturing(void *s, int *status) { *status = 0; return 0; }
int cuCtxPushCurrent_v2(void *c) { return 0; }
int cuCtxPopCurrent_v2(void **c) { return 0; }
int cuDriverGetVersion(int *v) { *v = 13000; return 0; }
int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : 0; return 0; }
static char magic[5], function[64];
int cuModuleLoadData(void **m, const void *image) { *m = (void *) 2; memcpy(magic, image, 4); return 0; }
int cuModuleLoadDataEx(void **m, const void *x, unsigned n, void *o, void **v) { return cuModuleLoadData(m, x); }
int cuModuleGetFunction(void **f, void *m, const char *name) { *f = (void *) 3; strncpy(function, name, 63); return 0; }
int cuFuncSetCacheConfig(void *f, int c) { return 0; }
int cuFuncSetAttribute(void *f, int c, int v) { return 0; }
int cuFuncGetAttribute(int *v, int c, void *f) { *v = 0; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "none"; return 0; }
static int launched(const unsigned *blocks, const unsigned *threads, unsigned shared, void **params) {
    written(blocks, threads, shared, params);
    printf("\\"elf\\": %s, \\"function\\": \\"%s\\"}\\n", strcmp(magic + 1, "ELF") ? "false" : "true", function);
    fflush(stdout);
    return 0;
}
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra) {
    unsigned blocks[3] = {gx, gy, gz}, threads[3] = {bx, by, bz};
    return launched(blocks, threads, shared, params);
}
struct Config { unsigned blocks[3], threads[3], shared; };
int cuLaunchKernelEx(const struct Config *c, void *f, void **params, void **extra) {
    return launched(c->blocks, c->threads, c->shared, params);
}
"""

# a process of its own: NVRTC may not find this driver
CALL = """
import ctypes, sys
from jaxlib import gpu_triton
opaque, arrays = open(sys.argv[1], "rb").read(), int(sys.argv[2])
capsule, api = gpu_triton.get_custom_call(), ctypes.pythonapi
api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
pointer = api.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
address = pointer(capsule, api.PyCapsule_GetName(capsule))
pointers = ctypes.POINTER(ctypes.c_void_p)
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, pointers, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)(address)
buffers = (ctypes.c_void_p * arrays)(*(4096 * (i + 1) for i in range(arrays)))
status = ctypes.create_string_buffer(64)
call(9, buffers, opaque, len(opaque), ctypes.addressof(status))
text, length = (int.from_bytes(status.raw[at : at + 8], "little") for at in (0, 8))
sys.exit(ctypes.string_at(text, length).decode() if status.raw[32] else 0)
"""


def launch(opaque, arrays, numbers, folder):
    (folder / "driver.c").write_text(DRIVER)
    library = folder / "libcuda.so.1"
    command = [
        CC,
        "-shared",
        "-fPIC",
        "-w",
        f"-Wl,-soname,{library.name}",
        str(folder / "driver.c"),
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    (folder / "opaque").write_bytes(opaque)
    env = {
        **os.environ, "ARRAYS": str(arrays), "NUMBERS": str(numbers), "LD_LIBRARY_PATH": str(folder),
        "JAX_PLATFORMS": "cpu",
        "PATH": os.pathsep.join([str(Path(deviceless.tool("ptxas")).parent), os.environ["PATH"]]),
    }  # fmt: skip
    command = [sys.executable, "-c", CALL, str(folder / "opaque"), str(arrays)]
    run = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("steps", (False, True))
@pytest.mark.parametrize("states, blocks", [(1000, 8), (1024, 8), (1025, 9), (1, 1), (2**31 - 1, 2**24)])
def test_the_driver_is_asked_to_launch_the_kernel(states, blocks, steps, tmp_path):
    """An ELF of the assembler, a block for each 128 states, the arrays in order, the steps and the states."""
    from jaxlib import gpu_triton

    from lgsim._compile.xla import foreign

    program = read(lambda x, y: (x * y, np.float32(2) * x), np.zeros(3, np.float32), np.zeros((), np.float32))
    made = cuda_call.compiled_kernel(program, (False, True), 90)
    opaque = foreign._launch(gpu_triton, cuda_call.NAME, made.ptx, 128, 90, states, 4, (7,) if steps else ())
    assert launch(opaque, 4, 1 + steps, tmp_path) == {
        "blocks": [blocks, 1, 1], "threads": [128, 1, 1], "shared": 0, "arrays": [4096, 8192, 12288, 16384],
        "numbers": [7, states] if steps else [states], "elf": True, "function": "lgsim_kernel",
    }  # fmt: skip


@pytest.mark.parametrize("capability", (75, 80, 86, 89, 90, 100, 120))
def test_an_assembler_takes_the_ptx(capability, tmp_path):
    """The system's one as well, which may be older than NVRTC."""
    program = read(lambda x: (np.sin(1.0) * x, x / x[0]), np.zeros(3))
    made = cuda_call.compiled_kernel(program, (False,), capability)
    assert float(re.search(r"^\.version (.*)$", made.ptx, re.M)[1]) < 9
    (tmp_path / "kernel.ptx").write_text(made.ptx)
    for assembler in {deviceless.tool("ptxas"), shutil.which("ptxas") or deviceless.tool("ptxas")}:
        command = [assembler, f"-arch=sm_{capability}", str(tmp_path / "kernel.ptx"), "-o", str(tmp_path / "cubin")]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, (assembler, run.stderr)
