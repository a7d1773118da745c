"""The text of a CUDA kernel compiled by the system's C++ compiler: the words of CUDA defined, a loop over threads."""

import ctypes
import os
import shutil
import subprocess

import numpy as np
import pytest

from lgsim._compile.programs.targets.cuda import TYPES

WORDS = """
#include <math.h>
#include <string.h>
#define __global__
#define __launch_bounds__(n)
struct Place { unsigned x; };
static Place blockIdx, threadIdx, blockDim;
template <class To, class From> static To bits_as(From x) { To y; memcpy(&y, &x, sizeof y); return y; }
#define __int_as_float bits_as<float, int>
#define __uint_as_float bits_as<float, unsigned>
#define __float_as_int bits_as<int, float>
#define __float_as_uint bits_as<unsigned, float>
#define __longlong_as_double bits_as<double, long long>
#define __double_as_longlong bits_as<long long, double>
"""

needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX") or "c++") is None, reason="needs a C++ compiler, $CXX or c++"
)


class Kernels:
    """Kernels of ``Code``, called as ``kernels.name(*arrays)`` on arrays with the states last, in one library."""

    def __init__(self, codes, folder, shared=(), block=128, rows=1):
        self.shared, self.block, self.rows = shared, block, rows
        text = WORDS
        for code in codes:
            ports = zip(
                (*code.interface.arguments, *code.interface.results), (*code.program.inputs, *code.program.outputs),
                strict=True,
            )  # fmt: skip
            arguments = ", ".join(f"{TYPES[port.kind]} *{each.name}" for each, port in ports)
            names = ", ".join(each.name for each in (*code.interface.arguments, *code.interface.results))
            steps, more = ("int steps, ", "steps, ") if "const int steps" in code.source else ("", "")
            text += f"""
{code.source}
extern "C" void {code.name}_on_host({arguments}, {steps}int n) {{
    blockDim.x = {block};
    for (blockIdx.x = 0; blockIdx.x * blockDim.x < (unsigned) n; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < blockDim.x; ++threadIdx.x) {code.name}({names}, {more}n);
}}
"""
        source, library = folder / "kernels.cpp", folder / "kernels.so"
        source.write_text(text)
        command = [os.environ.get("CXX") or "c++", "-O0", "-ffp-contract=off", "-fPIC", "-shared", "-Wno-overflow"]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        self.library = ctypes.CDLL(str(library))
        self.codes = {code.name: code for code in codes}

    def __call__(self, name, *arrays, steps=None, states=None):
        """The results (*own, states) of arrays (*own, states), or (*own) where all states share them."""
        program = self.codes[name].program
        shared = self.shared or (False,) * len(arrays)
        if states is None:
            (states,) = {x.shape[-1] for x, once in zip(arrays, shared, strict=True) if not once}
        given = [
            np.ascontiguousarray(x if once else self._turned(x, port), port.kind)
            for x, port, once in zip(arrays, program.inputs, shared, strict=True)
        ]
        # what no thread writes is none of the right numbers
        made = [np.full_like(self._turned(np.empty((*port.shape, states)), port), 77, port.kind, "C")
                for port in program.outputs]  # fmt: skip
        pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, *made)]
        numbers = [] if steps is None else [ctypes.c_int(steps)]
        self.library[f"{name}_on_host"](*pointers, *numbers, ctypes.c_int(states))
        return [
            np.moveaxis(x, 0, -1) if self._is_row(port) else x for x, port in zip(made, program.outputs, strict=True)
        ]

    def _is_row(self, port):
        return 1 < np.prod(port.shape) <= self.rows

    def _turned(self, x, port):
        return np.moveaxis(x, -1, 0) if self._is_row(port) else x
