"""``solve`` with progress and checkpoints: the same numbers however it is cut, runs that go on, files that refuse."""

import itertools
import subprocess
import sys
from functools import partial
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lgsim.optimize.augmented_lagrangian import AugmentedLagrangian
from lgsim.optimize.constraints.state_bounds import StateBounds
from lgsim.optimize.direct_shooting import DirectShooting
from lgsim.optimize.ilqr import ILQR
from lgsim.optimize.solve import solve
from lgsim.optimize.solver import RESULTS, IterativeSolver, Solver
from lgsim.support.checkpoint import CheckpointError
from lgsim.support.fingerprint import fingerprint
from tests.optimize.problems import swing

# the module, which its function of the same name hides
SOLVE = sys.modules["lgsim.optimize.solve"]
LIMITS = StateBounds(jnp.array([-9.0, -2.0]), jnp.array([9.0, 2.0]))
# made once: another optimiser compiles again
SOLVERS = {
    "ilqr": ILQR(max_iterations=60),
    "shooting": DirectShooting(optax.adam(0.1), max_iterations=25),
    "augmented": AugmentedLagrangian(ILQR(max_iterations=40), max_iterations=4),
}


def problem_of(name):
    return swing(20).replace(constraints=[LIMITS] if name == "augmented" else [])


# shapes and dtypes as well
equal = partial(chex.assert_trees_all_equal, strict=True)


class Stop:
    """An error, by default Ctrl-C, after some iterations."""

    def __init__(self, after, error=KeyboardInterrupt):
        self.after, self.error = after, error

    def __call__(self, row):
        if row.number == self.after:
            raise self.error


@pytest.mark.slow
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


@pytest.mark.slow
def test_interrupted_in_every_iteration(tmp_path, monkeypatch):
    """Each chunk one iteration, Ctrl-C within the one that follows: the trajectory before it, and a file to go on."""
    problem, solver = problem_of("ilqr"), SOLVERS["ilqr"]
    direct = solve(problem, solver=solver, progress=id)
    monkeypatch.setattr(SOLVE, "paced", lambda advance: lambda state: advance(state, 1))
    advance = SOLVE._advance
    for after in range(int(direct.iterations)):
        calls, path = itertools.count(), tmp_path / f"{after}.npz"

        def pressed(*args, calls=calls, after=after):
            if next(calls) == after:
                raise KeyboardInterrupt
            return advance(*args)

        with monkeypatch.context() as patch:
            patch.setattr(SOLVE, "_advance", pressed)
            part = solve(problem, solver=solver, checkpoint=path)
        assert bool(part.result == RESULTS.interrupted) and int(part.iterations) == after
        np.testing.assert_array_equal(part.history.cost[:after], direct.history.cost[:after])
        equal(solve(problem, solver=solver, checkpoint=path), direct)


@pytest.mark.slow
def test_what_progress_raises_goes_through(tmp_path):
    """What was done before it is kept."""
    problem, solver, path = problem_of("ilqr"), SOLVERS["ilqr"], tmp_path / "state.npz"
    with pytest.raises(ZeroDivisionError):
        solve(problem, solver=solver, progress=Stop(3, ZeroDivisionError), checkpoint=path)
    rest = []
    resumed = solve(problem, solver=solver, progress=rest.append, checkpoint=path)
    equal(resumed, solve(problem, solver=solver, progress=id))
    assert rest[0].number > 3


@pytest.mark.slow
def test_float32(tmp_path):
    problem, solver = swing(8, dtype=np.float32), ILQR(max_iterations=20)
    direct = solve(problem, solver=solver, progress=id)
    solve(problem, solver=solver, progress=Stop(1), checkpoint=tmp_path / "state.npz")
    resumed = solve(problem, solver=solver, checkpoint=tmp_path / "state.npz")
    assert resumed.us.dtype == np.float32
    equal(resumed, direct)


@pytest.mark.slow
def test_one_piece_and_many_agree():
    """The front door without progress compiles another program; numbers agree to rounding."""
    problem, few = problem_of("ilqr"), ILQR(max_iterations=3)
    one, many = solve(problem, solver=few), solve(problem, solver=few, progress=id)
    assert one.message == many.message != ""
    assert int(one.iterations) == int(many.iterations) == 3
    np.testing.assert_allclose(one.us, many.us, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", [pytest.param("ilqr", marks=pytest.mark.exhaustive), "shooting"])
def test_iterations_are_compiled_once(name, monkeypatch):
    """The first state has the types of those that follow."""
    traced, advance = [], IterativeSolver.advance
    monkeypatch.setattr(IterativeSolver, "advance", lambda *args: traced.append(1) or advance(*args))
    # a horizon that no other test has compiled
    solve(swing(7), solver=SOLVERS[name], progress=id)
    assert len(traced) == 1


def test_interrupted_before_the_first_iteration_gives_the_guess(tmp_path, monkeypatch):
    """Ctrl-C while the solver compiles: the guess, its cost, times and a file to go on from."""

    def pressed(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(SOLVE, "_advance", pressed)
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


def test_refused(tmp_path):
    problem = problem_of("ilqr")

    class Plain(Solver):
        def run(self, problem, us, ys):
            return None

    with pytest.raises(TypeError, match="solver: Plain runs in one piece"):
        solve(problem, solver=Plain(), progress=print)
    with pytest.raises(CheckpointError, match="there is no such folder"):
        solve(problem, solver=SOLVERS["ilqr"], checkpoint="nowhere/state.npz")
    (tmp_path / "odd.npz").write_bytes(b"hello")
    with pytest.raises(CheckpointError, match=r"odd\.npz: expected a checkpoint that lgsim wrote"):
        solve(problem, solver=SOLVERS["ilqr"], checkpoint=tmp_path / "odd.npz")
    with pytest.raises(TypeError, match="progress, checkpoint: expected a problem of numbers"):
        jax.eval_shape(lambda y0: solve(problem.replace(y0=y0), progress=print), problem.y0)


MARK = """
import jax
jax.config.update("jax_enable_x64", True)
from lgsim.support.fingerprint import fingerprint
from tests.optimize.test_checkpoints import SOLVERS, problem_of
print(*(fingerprint(problem_of(name), SOLVERS[name]) for name in SOLVERS))
"""


def test_fingerprints_are_equal_in_all_processes():
    root = Path(__file__).parents[2]
    made = subprocess.run([sys.executable, "-c", MARK], cwd=root, capture_output=True, text=True, check=True)
    here = [fingerprint(problem_of(name), SOLVERS[name]) for name in SOLVERS]
    assert made.stdout.split() == here
