"""Crocoddyl in a process and an environment of its own, which benchmarks/peers/optimizers.py starts and talks to.

    <environment>/bin/python benchmarks/peers/worker_crocoddyl.py crocoddyl

Reads one JSON object a line and answers each with one line. What a request asks is its "do":

    about   -> {"versions": [Crocoddyl's, Pinocchio's]}
    load    problem (a JSON file of cases/trajectories/problems.py) -> {"compile": seconds of building it}
    cost    xs, us -> {"cost": ..., "gap": largest entry of what the steps miss the next states by}
    solve   start, iterations -> {"costs": before each iteration and at the end, "xs": ..., "us": ..., "stop": ...}
    turn    seconds, start, count, iterations -> {"seconds": of one iteration, "share": of the core}

or {"error": message}. States are in lgsim's numbers: quaternions (w, x, y, z). Everything is float64 on one core.
"""

import json
import os
import sys
import time

# Libraries print; only answers may go where answers are read.
ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
os.dup2(2, 1)
# The harness has pinned the parent; alone, the worker keeps to the same rule.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import crocoddyl  # noqa: E402
import numpy as np  # noqa: E402
import pinocchio  # noqa: E402


class Costs(crocoddyl.CallbackAbstract):
    """The cost after each iteration."""

    def __init__(self):
        super().__init__()
        self.found = []

    def __call__(self, solver):
        self.found.append(solver.cost)


class Worker:
    """The problem that was loaded last, and its solver."""

    def __init__(self):
        self.problem = self.solver = None

    def about(self):
        return {"versions": [crocoddyl.__version__, pinocchio.__version__]}

    def load(self, problem):
        start = time.perf_counter()
        with open(problem, encoding="utf-8") as file:
            given = json.load(file)
        self.floats = given["bodies"][0]["axis"] is None
        self.state = crocoddyl.StateMultibody(machine(given["bodies"]))
        self.nq = self.state.nq
        actuation = DRIVES[given["drives"]["kind"]](self.state, given["drives"])
        running, end = (self._model(given[name], actuation) for name in ("running", "terminal"))
        step = crocoddyl.IntegratedActionModelEuler(running, given["dt"])
        last = crocoddyl.IntegratedActionModelEuler(end, 0.0)
        if given["lower"] is not None:
            step.u_lb, step.u_ub = (np.array(given[name], float) for name in ("lower", "upper"))
        self.starts = [self._theirs(x) for x in given["starts"]]
        self.us = [np.array(u, float) for u in given["us"]]
        self.problem = crocoddyl.ShootingProblem(self.starts[0], [step] * len(self.us), last)
        self.problem.nthreads = 1
        kind = crocoddyl.SolverFDDP if given["lower"] is None else crocoddyl.SolverBoxFDDP
        self.solver = kind(self.problem)
        # it stops at the number of iterations that is asked for
        self.solver.th_stop = 1e-16
        return {"compile": time.perf_counter() - start}

    def cost(self, xs, us):
        xs, us = [self._theirs(x) for x in xs], [np.array(u, float) for u in us]
        cost = self.problem.calc(xs, us)
        steps = zip(self.problem.runningDatas, xs[1:], strict=True)
        return {"cost": cost, "gap": max(float(np.abs(self.state.diff(d.xnext, x)).max()) for d, x in steps)}

    def solve(self, start, iterations):
        self._place(start)
        costs = Costs()
        self.solver.setCallbacks([costs])
        first = self.problem.calc(self.guess, self.us)
        self.solver.solve(self.guess, self.us, iterations, True)
        self.solver.setCallbacks([])
        xs, us = [self._ours(x) for x in self.solver.xs], [u.tolist() for u in self.solver.us]
        return {"costs": [first, *costs.found], "xs": xs, "us": us, "stop": self.solver.stop}

    def turn(self, seconds, start, count, iterations):
        """Solve ``count`` problems from index ``start``, one after another, repeatedly for about ``seconds``."""
        spent, done, worked = 0.0, 0, time.process_time()
        began = time.perf_counter()
        while spent < seconds:
            for i in range(start, start + count):
                self._place(i)
                before = time.perf_counter()
                self.solver.solve(self.guess, self.us, iterations, True)
                spent += time.perf_counter() - before
                done += min(self.solver.iter + 1, iterations)
        share = (time.process_time() - worked) / (time.perf_counter() - began)
        return {"seconds": spent / done, "share": share}

    def _place(self, start):
        self.problem.x0 = self.starts[start]
        self.guess = self.problem.rollout(self.us)

    def _model(self, terms, actuation):
        sum_of_costs = crocoddyl.CostModelSum(self.state, actuation.nu)
        for i, term in enumerate(terms):
            residual = RESIDUALS[term["kind"]](self, actuation.nu, term)
            weights = crocoddyl.ActivationModelWeightedQuad(np.array(term["weights"], float))
            sum_of_costs.addCost(str(i), crocoddyl.CostModelResidual(self.state, weights, residual), 1.0)
        return crocoddyl.DifferentialActionModelFreeFwdDynamics(self.state, actuation, sum_of_costs)

    def _theirs(self, x):
        return _reordered(x, (4, 5, 6, 3)) if self.floats else np.array(x, float)

    def _ours(self, x):
        return (_reordered(x, (6, 3, 4, 5)) if self.floats else x).tolist()

    def of_state(self, nu, term):
        return crocoddyl.ResidualModelState(self.state, self._theirs(term["target"]), nu)

    def of_control(self, nu, term):
        return crocoddyl.ResidualModelControl(self.state, np.array(term["target"], float))

    def of_pose(self, nu, term):
        frame = self.state.pinocchio.getFrameId(f"frame{term['body']}")
        return crocoddyl.ResidualModelFramePlacement(self.state, frame, pose(term["target"]), nu)


RESIDUALS = {"state": Worker.of_state, "control": Worker.of_control, "pose": Worker.of_pose}


def thrusters(state, drives):
    """Four thrusts along the body's z, whose drag turns it one way or the other."""
    # a rotor that turns clockwise pushes the body the other way
    kinds = {1: crocoddyl.ThrusterType.CW, -1: crocoddyl.ThrusterType.CCW}
    found = crocoddyl.StdVec_Thruster()
    for place, turn in zip(drives["places"], drives["turns"], strict=True):
        M = pinocchio.SE3(np.eye(3), np.array(place, float))
        found.append(crocoddyl.Thruster(M, drives["drag"], kinds[turn]))
    return crocoddyl.ActuationModelFloatingBaseThrusters(state, found)


DRIVES = {
    "all": lambda state, drives: crocoddyl.ActuationModelFull(state),
    "joints": lambda state, drives: crocoddyl.ActuationModelFloatingBase(state),
    "thrusters": thrusters,
}


def machine(bodies):
    """The bodies in Pinocchio, each with a frame at its origin."""
    model = pinocchio.Model()
    model.gravity.linear = np.array([0.0, 0.0, -9.81])
    ids = []
    for i, body in enumerate(bodies):
        kinds = (pinocchio.JointModelPrismaticUnaligned, pinocchio.JointModelRevoluteUnaligned)
        free = body["axis"] is None
        joint = pinocchio.JointModelFreeFlyer() if free else kinds[body["turns"]](np.array(body["axis"], float))
        parent = 0 if body["parent"] < 0 else ids[body["parent"]]
        # crocoddyl finds a free base by this name
        ids.append(model.addJoint(parent, joint, pose(body["pose"]), "root_joint" if free else f"joint{i}"))
        inertia = pinocchio.Inertia(body["mass"], np.array(body["center"]), np.array(body["inertia"]))
        model.appendBodyToJoint(ids[-1], inertia, pinocchio.SE3.Identity())
        frame = pinocchio.Frame(f"frame{i}", ids[-1], 0, pinocchio.SE3.Identity(), pinocchio.FrameType.OP_FRAME)
        model.addFrame(frame)
    return model


def pose(T):
    """From a homogeneous matrix."""
    T = np.array(T, float)
    return pinocchio.SE3(T[:3, :3], T[:3, 3])


def _reordered(x, quaternion):
    x = np.array(x, float)
    x[3:7] = x[list(quaternion)]
    return x


def main(name):
    """Answer until the input ends."""
    del name
    worker = Worker()
    requests = {name: getattr(worker, name) for name in ("about", "load", "cost", "solve", "turn")}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = requests[request.pop("do")](**request)
        except Exception as failure:  # whatever a peer fails with is its result
            answer = {"error": f"{type(failure).__name__}: {failure}"[:500]}
        print(json.dumps(answer), file=ANSWERS, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
