"""One JAX peer in a process and an environment of its own, which benchmarks/peers/client.py starts and talks to.

    <environment>/bin/python benchmarks/peers/worker.py <peer>

Reads one JSON object a line and answers each with one line. What a request asks is its "do":

    about    -> {"versions": [the peer's, JAX's]}
    prepare  task, robot (an exported folder), states (an .npz of q, v, x), batch, options (of the compiler, or null)
             -> {"compile": seconds}
    turn     seconds -> {"seconds_per_call": ..., "share": of the core}; calls for about that long
    value    -> {"value": ...}, of the first states; accelerations for forward dynamics, else what belongs to joints;
             of a rollout (q, v) at its end
    scene    name (of the peer's SCENES), file (a robot), numbers (an .npz) -> {"compile": seconds}; then as prepare
    load     xml, gravity, steps (of one call), every -> {}: the robot of `move`; only mjx
    move     q, v, dt, steps -> {"states": [q, v]}: one in `every` along a motion, all in the peer's coordinates

or {"error": message}. Everything is float64 on one core.
"""

import importlib
import json
import math
import os
import sys
import time
from importlib import metadata

# Libraries print; only answers may go where answers are read.
ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
os.dup2(2, 1)
# The harness has pinned the parent; alone, the worker keeps to the same rule. Before JAX makes its threads.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import conventions  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

jax.config.update("jax_enable_x64", True)

# The distribution of each peer.
PEERS = {"mjx": "mujoco-mjx", "brax": "brax", "jaxsim": "jaxsim", "adam": "adam-robotics", "frax": "frax"}
SHOWN = 4


def jacobians(peer):
    """All Jacobians of forward dynamics as the peer's user gets them."""
    return jax.jacfwd(peer.forward_dynamics, argnums=(0, 1, 2))


def rollout(peer):
    """Runge-Kutta 4 with forward dynamics of a robot with a fixed base, where q' = v; returns the final (q, v)."""

    def field(q, v, tau):
        return v, peer.forward_dynamics(q, v, tau)

    def run(q, v, tau):
        def step(x, _):
            h, slopes = conventions.DT, []
            for part in (0.0, h / 2, h / 2, h):
                at = x if not slopes else tuple(a + part * k for a, k in zip(x, slopes[-1], strict=True))
                slopes.append(field(*at, tau))
            return tuple(a + h / 6 * (k + 2 * m + 2 * n + o) for a, k, m, n, o in zip(x, *slopes, strict=True)), None

        return jax.numpy.stack(jax.lax.scan(step, (q, v), length=conventions.STEPS)[0])

    return run


# Of each task: the function of a peer, how many of (q, v, x) it takes, and what of its value can be compared.
TASKS = {
    "forward_dynamics": (lambda peer: peer.forward_dynamics, 3, lambda peer, a, q, v: peer.accelerations(a, q, v)),
    "inverse_dynamics": (lambda peer: peer.inverse_dynamics, 3, lambda peer, tau, q, v: peer.joint_vectors(tau)),
    "mass_matrix": (lambda peer: peer.mass_matrix, 1, lambda peer, M, q, v: peer.joint_matrices(M)),
    "rollout": (rollout, 3, lambda peer, x, q, v: peer.joint_vectors(x)),
    "jacobians": (jacobians, 3, lambda peer, J, q, v: np.stack([peer.joint_matrices(part) for part in J], axis=1)),
}


class Worker:
    """A peer and the program it was last asked for."""

    def __init__(self, name):
        self.name = name
        self.module = importlib.import_module(f"peer_{name}")
        self.peer = None
        self.run = self.seen = None
        self.motion = None

    def about(self):
        return {"versions": [metadata.version(PEERS[self.name]), jax.__version__]}

    def prepare(self, task, robot, states, batch, options=None):
        self.run = self.seen = None
        start = time.perf_counter()
        if self.peer is None or str(self.peer.robot.folder) != robot:
            self.peer = self.module.Peer(conventions.Robot(robot))
        if task == "inverse_dynamics" and self.peer.robot.floats:
            raise ValueError(f"{self.peer.robot.name}: expected a fixed base; not all peers take a base's acceleration")
        if task == "rollout" and self.peer.robot.floats:
            raise ValueError(f"{self.peer.robot.name}: expected a fixed base; the rate of a base's pose is not v")
        make, count, seen = TASKS[task]
        with np.load(states) as stored:
            q, v, x = (stored[key][:batch] for key in ("q", "v", "x"))
        function = make(self.peer)
        arguments = [jax.numpy.asarray(part) for part in self.peer.states(q, v, x)[:count]]
        if batch == 1:
            arguments = [part[0] for part in arguments]
        else:
            function = jax.vmap(function)
        program = jax.jit(function).lower(*arguments).compile(compiler_options=options)
        self.run = lambda: jax.block_until_ready(program(*arguments))
        self.run()
        self.seen = lambda: seen(self.peer, *self._first(batch), q[:SHOWN], v[:SHOWN])
        return {"compile": time.perf_counter() - start}

    def scene(self, name, file, numbers):
        self.run = self.seen = None
        start = time.perf_counter()
        with np.load(numbers) as stored:
            function, arguments = self.module.SCENES[name](file, **stored)
        arguments = [jax.numpy.asarray(part) for part in arguments]
        program = jax.jit(function).lower(*arguments).compile()
        self.run = lambda: jax.block_until_ready(program(*arguments))
        self.run()
        self.seen = lambda: np.asarray(self.run())
        return {"compile": time.perf_counter() - start}

    def turn(self, seconds):
        calls = max(1, math.ceil(seconds / max(self._seconds(1), 1e-9)))
        worked = time.process_time()
        passed = self._seconds(calls)
        return {"seconds_per_call": passed / calls, "share": (time.process_time() - worked) / passed}

    def value(self):
        return {"value": self.seen().tolist()}

    def load(self, xml, gravity, steps, every):
        self.motion = self.module.Motion(xml, gravity, steps, every)
        return {}

    def move(self, q, v, dt, steps):
        return {"states": [x.tolist() for x in self.motion.run(q, v, dt, steps)]}

    def _first(self, batch):
        """The value of the first states, as one argument."""
        value = jax.tree.map(np.asarray, self.run())
        return (jax.tree.map(lambda part: part[None] if batch == 1 else part[:SHOWN], value),)

    def _seconds(self, calls):
        start = time.perf_counter()
        for _ in range(calls):
            self.run()
        return time.perf_counter() - start


def main(name):
    """Answer until the input ends."""
    if name not in PEERS:
        sys.exit(f"worker.py: expected one of {', '.join(PEERS)}, got {name!r}")
    worker = Worker(name)
    requests = {name: getattr(worker, name) for name in ("about", "prepare", "scene", "turn", "value", "load", "move")}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = requests[request.pop("do")](**request)
        except Exception as failure:  # whatever a peer fails with is its result
            answer = {"error": f"{type(failure).__name__}: {failure}"[:500]}
        print(json.dumps(answer), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
