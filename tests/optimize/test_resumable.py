"""Solutions in pieces: the same numbers however they are cut, interrupted runs that go on, checkpoints that refuse."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints import StateBounds
from lgsim.optimize.direct_shooting import DirectShooting
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS, Solver
from lgsim.support import checkpoint
from lgsim.support.checkpoint import CheckpointError
from tests.optimize.problems import swing

LIMITS = StateBounds(jnp.array([-9.0, -2.0]), jnp.array([9.0, 2.0]))
# made once: another optimiser compiles again
SOLVERS = {
    "ilqr": ILQR(max_iterations=60),
    "shooting": DirectShooting(optax.adam(0.1), max_iterations=25),
    "augmented": AugmentedLagrangian(ILQR(max_iterations=40), max_iterations=4),
}


def problem_of(name):
    return swing(20).replace(constraints=[LIMITS] if name == "augmented" else [])


def equal(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


class Stop:
    """Ctrl-C after some iterations."""

    def __init__(self, after):
        self.after = after

    def __call__(self, row):
        if row.number == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("name", SOLVERS)
def test_interrupted_and_resumed_is_the_run_without_a_break(name, tmp_path):
    """Bit for bit, with the history; the rows that are shown are those of the history, each one once."""
    problem, solver, path = problem_of(name), SOLVERS[name], tmp_path / "state.npz"
    whole = []
    direct = solve(problem, solver=solver, progress=whole.append)
    part = solve(problem, solver=solver, progress=Stop(1), checkpoint=path)
    assert part.message.startswith("The solver was interrupted")
    assert 1 <= int(part.iterations) < int(direct.iterations)
    rest = []
    resumed = solve(problem, solver=solver, progress=rest.append, checkpoint=path)
    equal(resumed, direct)
    n = int(direct.iterations)
    assert [row.number for row in whole] == list(range(1, n + 1))
    assert [row.cost for row in whole] == np.asarray(direct.history.cost[:n]).tolist()
    assert whole[int(part.iterations) :] == rest
    # what is finished stays as it is
    equal(solve(problem, solver=solver, checkpoint=path), direct)


def test_one_piece_and_many_agree():
    """The front door without progress compiles another program; numbers agree to rounding."""
    problem, few = problem_of("ilqr"), ILQR(max_iterations=3)
    one, many = solve(problem, solver=few), solve(problem, solver=few, progress=id)
    assert one.message == many.message != ""
    assert int(one.iterations) == int(many.iterations) == 3
    np.testing.assert_allclose(one.us, many.us, rtol=1e-8, atol=1e-8)


def test_interrupted_before_the_first_iteration_gives_the_guess(tmp_path, monkeypatch):
    """Ctrl-C while the solver compiles: the guess, its cost, times and a file to go on from."""
    from lgsim.optimize import resumable

    def pressed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(resumable, "_advance", pressed)
    for name in ("ilqr", "augmented"):
        problem = problem_of(name)
        us = jnp.full((20, 1), 0.25)
        found = solve(problem, us, solver=SOLVERS[name], checkpoint=tmp_path / f"{name}.npz")
        assert bool(found.result == RESULTS.interrupted) and found.message.startswith("The solver was interrupted")
        np.testing.assert_array_equal(found.us, us)
        np.testing.assert_allclose(found.ts, 0.15 * np.arange(21), rtol=1e-14)
        np.testing.assert_allclose(found.cost, problem.cost(problem.rollout(us), us), rtol=1e-12)
        assert (tmp_path / f"{name}.npz").exists()


def test_other_problems_guesses_and_solvers_do_not_go_on(tmp_path):
    problem, solver, path = problem_of("ilqr"), SOLVERS["ilqr"], tmp_path / "state.npz"
    solve(problem, solver=solver, progress=Stop(1), checkpoint=path)
    kept = path.read_bytes()
    others = {
        "problem": (problem.replace(y0=jnp.array([0.1, 0.0])), None, solver),
        "guess": (problem, jnp.ones((20, 1)), solver),
        "solver": (problem, None, ILQR(max_iterations=60, gradient_tolerance=1e-3)),
    }
    for other, us, method in others.values():
        with pytest.raises(CheckpointError, match="this checkpoint is of another problem, guess or solver"):
            solve(other, us, solver=method, checkpoint=path)
    assert path.read_bytes() == kept


@pytest.mark.parametrize("content", [b"", b"hello", None], ids=["empty", "text", "other archive"])
def test_what_is_no_checkpoint(content, tmp_path):
    path = tmp_path / "odd.npz"
    if content is None:
        np.savez(path, a=np.zeros(2))
    else:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"odd\.npz: expected a checkpoint that lgsim wrote"):
        solve(problem_of("ilqr"), solver=SOLVERS["ilqr"], checkpoint=path)


def test_refused():
    problem = problem_of("ilqr")

    class Plain(Solver):
        def run(self, problem, us, ys):
            return None

    with pytest.raises(TypeError, match="solver: Plain runs in one piece"):
        solve(problem, solver=Plain(), progress=print)
    with pytest.raises(CheckpointError, match="there is no such folder"):
        solve(problem, solver=SOLVERS["ilqr"], checkpoint="nowhere/state.npz")
    with pytest.raises(TypeError, match="progress, checkpoint: expected a problem of numbers"):
        jax.eval_shape(lambda y0: solve(problem.replace(y0=y0), progress=print), problem.y0)


MARK = """
import jax
jax.config.update("jax_enable_x64", True)
from lgsim.support import checkpoint
from tests.optimize.test_pieces import SOLVERS, problem_of
print(*(checkpoint.fingerprint(problem_of(name), SOLVERS[name]) for name in SOLVERS))
"""


def test_fingerprints_are_equal_in_all_processes():
    root = Path(__file__).parents[2]
    made = subprocess.run([sys.executable, "-c", MARK], cwd=root, capture_output=True, text=True, check=True)
    here = [checkpoint.fingerprint(problem_of(name), SOLVERS[name]) for name in SOLVERS]
    assert made.stdout.split() == here


def test_fingerprints_tell_closures_apart():
    def weighted(weight):
        return lambda t, y, u, args: weight * u[0] ** 2

    one, two, same = (checkpoint.fingerprint(swing(20).replace(running=weighted(w))) for w in (1.0, 2.0, 1.0))
    assert one == same != two
