"""Launches and bytes are counted as a program of known ones says; XLA's program for a GPU keeps its bounds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cases.gpu import deviceless, hlo

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}

# By hand: a fusion that reads 8 of 80 numbers and writes 8, in a loop of 5; one that updates 8 of 80 in place, in a
# loop of unknown length; a copy of 80 numbers; a call of a library of 8 and 8.
PROGRAM = """
%sliced (p0: f32[80], p1: s32[]) -> f32[8] {
  %p0 = f32[80]{0} parameter(0)
  %p1 = s32[] parameter(1)
  %part = f32[8]{0} dynamic-slice(%p0, %p1), dynamic_slice_sizes={8}
  ROOT %twice = f32[8]{0} add(%part, %part)
}

%placed (p0.1: f32[80], p1.1: f32[8], p2.1: s32[]) -> f32[80] {
  %p0.1 = f32[80]{0} parameter(0)
  %p1.1 = f32[8]{0} parameter(1)
  %p2.1 = s32[] parameter(2)
  ROOT %new = f32[80]{0} dynamic-update-slice(%p0.1, %p1.1, %p2.1)
}

%body (arg: (f32[80], s32[])) -> (f32[80], s32[]) {
  %arg = (f32[80]{0}, s32[]) parameter(0)
  %x = f32[80]{0} get-tuple-element(%arg), index=0
  %i = s32[] get-tuple-element(%arg), index=1
  %f1 = f32[8]{0} fusion(%x, %i), kind=kLoop, calls=%sliced
  ROOT %out = (f32[80]{0}, s32[]) tuple(%x, %i)
}

%other (arg.1: (f32[80], s32[])) -> (f32[80], s32[]) {
  %arg.1 = (f32[80]{0}, s32[]) parameter(0)
  %x.1 = f32[80]{0} get-tuple-element(%arg.1), index=0
  %i.1 = s32[] get-tuple-element(%arg.1), index=1
  %y.1 = f32[8]{0} constant({...})
  %f2 = f32[80]{0} fusion(%x.1, %y.1, %i.1), kind=kLoop, calls=%placed
  ROOT %out.1 = (f32[80]{0}, s32[]) tuple(%f2, %i.1)
}

ENTRY %main (a: f32[80], b: f32[8]) -> f32[80] {
  %a = f32[80]{0} parameter(0)
  %b = f32[8]{0} parameter(1)
  %start = (f32[80]{0}, s32[]) tuple(%a, %zero)
  %w1 = (f32[80]{0}, s32[]) while(%start), condition=%c, body=%body, backend_config={"known_trip_count":{"n":"5"}}
  %w2 = (f32[80]{0}, s32[]) while(%w1), condition=%c, body=%other
  %g = f32[8]{0} custom-call(%b), custom_call_target="__cublas$gemm"
  ROOT %end = f32[80]{0} copy(%a)
}
"""


def test_a_program_of_known_launches_and_bytes():
    found = hlo.count(PROGRAM)
    assert found.launches == 5 * 1 + 1 + 1 + 1
    sliced, placed = 4 * (8 + 1 + 8), 4 * (8 + 1 + 8)
    assert found.bytes == 5 * sliced + placed + 4 * (8 + 8) + 4 * (80 + 80)
    assert found.trips == (5, None) and found.targets == ("__cublas$gemm",)


SMALL = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"
import jax, lgsim
from benchmarks.cases.gpu import deviceless, hlo
arm = lgsim.load_urdf(lgsim.data.arm7(), dtype="float32")
kinds = [jax.ShapeDtypeStruct((4096, 7), "float32")] * 3
program, _ = deviceless.compiled(jax.vmap(lambda q, v, tau: lgsim.forward_dynamics(arm, q, v, tau)), *kinds)
found = hlo.count(program.as_text())
assert found.launches <= 370 and found.bytes <= 11_600 * 4096, found
assert None not in found.trips and not found.targets and "f64[" not in program.as_text(), found
"""


@pytest.mark.skipif(not deviceless.is_there(), reason=deviceless.MISSING)
def test_forward_dynamics_for_a_gpu():
    run = subprocess.run([sys.executable, "-c", SMALL], cwd=ROOT, capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.slow
def test_the_benchmark_runs_without_the_extra():
    pytest.importorskip("pinocchio")  # of the extra that brings the robots
    command = [sys.executable, str(ROOT / "benchmarks" / "gpu_compiled.py"), "--quick"]
    run = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stdout + run.stderr
    assert ("extra cuda-aot is not there" in run.stdout) != deviceless.is_there()
    assert "gpu_compiled: statements" in run.stdout.splitlines()[-1]
