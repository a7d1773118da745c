"""adam's CasADi functions as C that CasADi generates, with the same compiler and options."""

import ctypes
import re
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from cases.symbolic.timed_code import FLAGS, STATES


def functions(path, joints, gravity):
    """CasADi functions of bias forces and of inverse dynamics, which adam computes from bias forces and mass matrix.

    Raises:
        ImportError: adam or one of its packages is missing.
    """
    import casadi as cs
    from adam.casadi import KinDynComputations

    text = re.sub(r"<(visual|collision)\b.*?</\1>", "", Path(path).read_text(), flags=re.S)
    machine = KinDynComputations(text, list(joints), gravity=np.array([*gravity, 0, 0, 0], float))
    n = len(joints)
    q, v, a = (cs.SX.sym(x, n) for x in "qva")
    h = machine.bias_force(cs.SX.eye(4), q, cs.SX.zeros(6), v)
    M = machine.mass_matrix(cs.SX.eye(4), q)
    whole = (h + M @ cs.vertcat(cs.SX.zeros(6), a))[6:]
    return cs.Function("adam_bias", [q, v], [h[6:]]), cs.Function("adam_inverse", [q, v, a], [whole])


class TimedFunctions:
    """CasADi functions as C in a loop of C over states."""

    def __init__(self, made, rows):
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        self.calls = {}
        for f in made:
            self.calls[f.name()] = self._loop(f, rows, folder)

    def _loop(self, f, rows, folder):
        name, count = f.name(), f.n_in()
        (folder / f"{name}.c").write_text(_generated(f, folder))
        at = "; ".join(f"arg[{k}] = x{k} + {f.size1_in(k)} * i" for k in range(count))
        (folder / f"loop_{name}.c").write_text(
            f"int {name}(const double **arg, double **res, long long int *iw, double *w, int mem);\n"
            f"void loop_{name}(int turns, {', '.join(f'const double *x{k}' for k in range(count))}, double *out)\n"
            f"{{\n    const double *arg[{f.sz_arg() + 1}];\n    double *res[{f.sz_res() + 1}];\n"
            f"    long long int iw[{f.sz_iw() + 1}];\n    static double w[{f.sz_w() + 1}];\n"
            f"    for (int t = 0; t < turns; t++)\n        for (int i = 0; i < {STATES}; i++) {{\n"
            f"            {at}; res[0] = out;\n            {name}(arg, res, iw, w, 0);\n        }}\n}}\n"
        )
        command = ["gcc", *FLAGS, "-fPIC", "-shared", f"{name}.c", f"loop_{name}.c", "-o", f"{name}.so", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        library = ctypes.CDLL(str(folder / f"{name}.so"))
        given = [np.ascontiguousarray(x[:STATES], float) for x in rows[:count]]
        out = np.zeros(f.size1_out(0))
        return library[f"loop_{name}"], [x.ctypes.data_as(ctypes.c_void_p) for x in (*given, out)], (given, out)

    def seconds(self, name, repeats, least=2e-3):
        """Median seconds of one state."""
        loop, pointers, _ = self.calls[name]
        turns, times = 1, []
        while True:
            start = time.perf_counter()
            loop(turns, *pointers)
            if time.perf_counter() - start >= least:
                break
            turns *= 2
        for _ in range(repeats):
            start = time.perf_counter()
            loop(turns, *pointers)
            times.append((time.perf_counter() - start) / (turns * STATES))
        return float(np.median(times))

    def last(self, name):
        """The result at the last state."""
        return self.calls[name][2][1].copy()


def _generated(f, folder):
    import os

    here = os.getcwd()
    os.chdir(folder)  # CasADi writes into the working directory
    try:
        return Path(f.generate(f"{f.name()}.c")).read_text()
    finally:
        os.chdir(here)
