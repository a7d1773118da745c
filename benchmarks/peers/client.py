"""Client of the JAX peers: the built environments, a worker process each, and turns with lgsim's functions."""

import hashlib
import json
import os
import select
import statistics
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent
ENVIRONMENTS = {"mjx": "jax-0.6", "brax": "jax-0.6", "jaxsim": "jax-0.6", "adam": "jax-0.6", "frax": "jax-0.10"}
"""The environment of each peer, after requirements-<environment>.txt."""

PREPARING = 180.0
"""Seconds for one preparation: some peers compile without end on long chains."""

ANSWERING = 60.0
"""Seconds for any other answer beyond what was asked for."""

# One thread each, and the flags that frax recommends for a CPU.
ALONE = {
    "JAX_ENABLE_X64": "1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
}
FLAGS = {
    "jax-0.6": "--xla_cpu_multi_thread_eigen=false",
    "jax-0.10": "--xla_cpu_multi_thread_eigen=false --xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED",
}


class PeerError(RuntimeError):
    """A peer without a result."""

    def __init__(self, peer, message):
        super().__init__(message)
        self.peer = peer


class TimedOut(PeerError):
    """A peer that was killed because it did not answer in time; the message fits a table."""


def available(environments=ENVIRONMENTS):
    """The Python of each peer whose environment is built from the requirements in this folder."""
    found = {}
    for name, environment in environments.items():
        folder = FOLDER / ".environments" / environment
        wanted = hashlib.sha256((FOLDER / f"requirements-{environment}.txt").read_bytes()).hexdigest()
        stamp = folder / ".built"
        if stamp.exists() and stamp.read_text(encoding="utf-8").strip() == wanted:
            found[name] = folder / "bin" / "python"
    return found


class Peer:
    """A worker process, started when it is first needed and again after it was killed."""

    script = "worker.py"

    def __init__(self, name, python, limit=PREPARING, label=None):
        self.name, self.python, self.limit, self.label = name, python, limit, label or name
        self.process = self.log = None
        self.shares = []

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.kill()

    def about(self):
        """The versions of the peer and of its JAX."""
        return self._ask({"do": "about"}, ANSWERING)["versions"]

    def prepare(self, task, robot, states, batch, options=None):
        """Load and compile, with options of the compiler; the seconds of both."""
        request = {"task": task, "robot": str(robot), "states": str(states), "batch": batch, "options": options}
        self.shares = []
        return self._ask({"do": "prepare", **request}, self.limit)["compile"]

    def scene(self, name, file, numbers):
        """Load a robot and compile the functions of the peer, with data from an .npz; returns the seconds of both."""
        self.shares = []
        request = {"name": name, "file": str(file), "numbers": str(numbers)}
        return self._ask({"do": "scene", **request}, self.limit)["compile"]

    def turn(self, seconds):
        """Work for about that long; the seconds of a call. `shares` keeps how much of the core it had."""
        answer = self._ask({"do": "turn", "seconds": seconds}, ANSWERING + seconds)
        self.shares.append(answer["share"])
        return answer["seconds_per_call"]

    def value(self):
        """The value for the first states, in lgsim's coordinates."""
        return np.array(self._ask({"do": "value"}, ANSWERING)["value"])

    def load(self, xml, gravity, steps, every):
        """Load a robot for `move`, in calls of `steps` steps of which one in `every` is saved."""
        self._ask({"do": "load", "xml": xml, "gravity": gravity, "steps": steps, "every": every}, ANSWERING)

    def move(self, q, v, dt, steps):
        """Saved states (q, v) of a motion, from lists, all in the peer's coordinates."""
        answer = self._ask({"do": "move", "q": q, "v": v, "dt": dt, "steps": steps}, self.limit)
        return tuple(np.array(x) for x in answer["states"])

    def kill(self):
        """End the worker, busy or not."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.log.close()
        self.process = self.log = None

    def flags(self):
        """XLA flags in addition to those of the caller."""
        return FLAGS[ENVIRONMENTS[self.name]]

    def _start(self):
        flags = f"{os.environ.get('XLA_FLAGS', '')} {self.flags()}".strip()
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [self.python, FOLDER / self.script, self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, **ALONE, "XLA_FLAGS": flags},
        )

    def _ask(self, request, limit):
        if self.process is None:
            self._start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line = self._line(limit)
        except BrokenPipeError:
            line = b""
        if not line.endswith(b"\n"):
            raise PeerError(self, self._ended())
        answer = json.loads(line)
        if "error" in answer:
            raise PeerError(self, answer["error"])
        return answer

    def _line(self, limit):
        """One line of the answer; a long one arrives in parts."""
        end, line = time.monotonic() + limit, b""
        output = self.process.stdout
        while not line.endswith(b"\n"):
            if not select.select([output], [], [], max(0.0, end - time.monotonic()))[0]:
                self.kill()
                raise TimedOut(self, f"no result in {limit:g} s")
            part = os.read(output.fileno(), 1 << 20)
            if not part:
                break
            line += part
        return line

    def _ended(self):
        """Reason why the worker ended."""
        status = self.process.wait()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        self.kill()
        return f"worker ended with status {status}: {lines[-1] if lines else 'no message'}"


def interleave(ours, peers, repeats, least=2e-3):
    """Median seconds of a call by name, in turns of about `least` seconds: one works, the others wait.

    Args:
        ours: Functions of this process by name; what they return is waited for.
        peers: Prepared peers.
        repeats: Turns of each.
        least: Seconds of a turn.

    Raises:
        PeerError: a peer ended between its turns.
    """
    turns = {name: partial(_turn, function, least) for name, function in ours.items()}
    turns.update({peer.label: partial(peer.turn, least) for peer in peers})
    samples, names = {name: [] for name in turns}, list(turns)
    for repeat in range(repeats + 1):
        for name in names[repeat % len(names) :] + names[: repeat % len(names)]:
            samples[name].append(turns[name]())
    return {name: statistics.median(values[1:]) for name, values in samples.items()}


def _turn(function, least):
    first = _seconds(function, 1)
    calls = max(1, round(least / max(first, 1e-9)))
    return _seconds(function, calls) / calls


def _seconds(function, calls):
    import jax

    start = time.perf_counter()
    for _ in range(calls):
        jax.block_until_ready(function())
    return time.perf_counter() - start
