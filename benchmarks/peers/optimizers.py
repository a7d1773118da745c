"""The caller's side of Crocoddyl: a worker process, asked as the JAX peers are."""

import numpy as np
from peers import client

ENVIRONMENTS = {"crocoddyl": "crocoddyl"}
"""The environment, after requirements-crocoddyl.txt."""

SOLVING = 300.0
"""Seconds for one answer."""


def available():
    """The Python of Crocoddyl's environment by name, if it is built from the requirements that lie here."""
    return client.available(ENVIRONMENTS)


class Optimizer(client.Peer):
    """Crocoddyl; states are in lgsim's numbers."""

    script = "worker_crocoddyl.py"
    work = (0, 1, 1)
    """For each turn: the first start, how many of them one after the other, and iterations of each."""

    def load(self, problem):
        """Take a problem from a JSON file; the seconds of building it."""
        return self._ask({"do": "load", "problem": str(problem)}, SOLVING)["compile"]

    def cost(self, xs, us):
        """(cost, largest gap) of a trajectory."""
        answer = self._ask({"do": "cost", "xs": np.asarray(xs).tolist(), "us": np.asarray(us).tolist()}, SOLVING)
        return answer["cost"], answer["gap"]

    def solve(self, start, iterations):
        """(costs before each iteration and at the end, xs, us) from one of the starts."""
        answer = self._ask({"do": "solve", "start": start, "iterations": iterations}, SOLVING)
        return tuple(np.array(answer[key]) for key in ("costs", "xs", "us"))

    def turn(self, seconds):
        """Work for about that long; the seconds of an iteration of one problem."""
        start, count, iterations = self.work
        request = {"do": "turn", "seconds": seconds, "start": start, "count": count, "iterations": iterations}
        answer = self._ask(request, SOLVING)
        self.shares.append(answer["share"])
        return answer["seconds"]

    def flags(self):
        return ""
