"""Generated C in a loop of C over states: µs per state, without calls from Python."""

import ctypes
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

FLAGS = ("-O3", "-march=native", "-ffast-math")
STATES = 128


def arrays(code, rows):
    """The arguments of a function, arrays (states, size)."""
    ports = code.program.inputs
    return [np.ascontiguousarray(x[:STATES], p.kind) for x, p in zip(rows[: len(ports)], ports, strict=True)]


def loop_text(code):
    """A loop over states in C; the function is in another file, so that the compiler removes nothing."""
    ports = code.program.inputs
    args = ", ".join(f"const double *x{i}" for i in range(len(ports)))
    given = [f"x{i} + {len(p.values)} * i" for i, p in enumerate(ports)]
    made, start = [], 0
    for port in code.program.outputs:
        made.append(f"out + {start}")
        start += len(port.values)
    return (
        f'#include "{code.name}.h"\n'
        f"void loop_{code.name}(int turns, {args}, double *out)\n{{\n"
        f"    for (int t = 0; t < turns; t++)\n        for (int i = 0; i < {STATES}; i++)\n"
        f"            {code.name}({', '.join([*given, *made])});\n}}\n"
    )


class TimedCode:
    """Codes in one library, with loops.

    `seconds(name, rows, turns)` is the time of one state; `results(name)` is the last result.
    """

    def __init__(self, codes, rows):
        self.folder = tempfile.TemporaryDirectory()
        folder, sources = Path(self.folder.name), []
        for code in codes:
            for name, content in code.files().items():
                (folder / name).write_bytes(content)
            (folder / f"loop_{code.name}.c").write_text(loop_text(code))
            sources += [f"{code.name}.c", f"loop_{code.name}.c"]
        start = time.perf_counter()
        command = ["gcc", "-std=c99", *FLAGS, "-fPIC", "-shared", *sources, "-o", "codes.so", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self.compiling = time.perf_counter() - start
        library = ctypes.CDLL(str(folder / "codes.so"))
        self.calls = {}
        for code in codes:
            given = arrays(code, rows)
            out = np.zeros(sum(len(p.values) for p in code.program.outputs))
            pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, out)]
            self.calls[code.name] = (library[f"loop_{code.name}"], pointers, (given, out))

    def seconds(self, name, repeats, least=2e-3):
        """Median seconds of one state."""
        loop, pointers, _ = self.calls[name]
        turns, samples = 1, []
        while _clock(loop, turns, pointers) < least:
            turns *= 2
        for _ in range(repeats):
            samples.append(_clock(loop, turns, pointers) / (turns * STATES))
        return statistics.median(samples)

    def last(self, name):
        """The results at the last state, one after another."""
        return self.calls[name][2][1].copy()


def _clock(loop, turns, pointers):
    start = time.perf_counter()
    loop(turns, *pointers)
    return time.perf_counter() - start
