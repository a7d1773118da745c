"""The gain of a second device: this file as a separate process with two virtual CPU devices, on two cores."""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

GAIN = 1.6
SAMPLES = 2048
FLAG = "--xla_force_host_platform_device_count=2"


def run(report):
    """One table."""
    if (os.cpu_count() or 1) < 2:
        print("two devices: not measured, the computer has one core")
        return
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAG}".strip()
    given = [sys.executable, __file__, *(("200", "5") if report.quick else ("500", "11"))]
    folder = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": folder}
    done = subprocess.run(given, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    rows = json.loads(done.stdout.splitlines()[-1])
    report.table(
        f"Arm with random inertias, {SAMPLES} samples: virtual CPU devices in one process",
        ["devices", "steps/s", "busy cores"], rows,
    )  # fmt: skip
    gain = rows[1][1] / rows[0][1]
    report.figure("2 devices", gain, "x one")
    report.bound("2 devices: parts of one device's steps", gain, at_least=GAIN)


def measure(steps, repeats):
    """[devices, steps per second, busy cores], one device and two in turns."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from cases.montecarlo import studies
    from lgsim import montecarlo as mc

    study = studies.of_arm(SAMPLES, steps)
    engines = {count: mc.Engine(study, jax.local_devices()[:count]) for count in (1, 2)}
    seconds, busy = {1: [], 2: []}, {1: [], 2: []}
    for repeat in range(repeats + 1):
        for count, engine in engines.items():
            begin, worked = time.perf_counter(), time.process_time()
            engine.chunk(0, SAMPLES)
            if repeat:  # the first one compiles
                seconds[count].append(time.perf_counter() - begin)
                busy[count].append((time.process_time() - worked) / seconds[count][-1])
    return [[n, SAMPLES * steps / statistics.median(seconds[n]), statistics.median(busy[n])] for n in engines]


if __name__ == "__main__":
    # the parent process has one core; set before JAX starts its threads
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
