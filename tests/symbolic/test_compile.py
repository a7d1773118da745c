"""Functions of machines as C: against lgsim and Pinocchio, in double and single precision, and what is refused."""

import re
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs.targets import c
from lgsim.simulation import rollout
from lgsim.symbolic import compile, shared_library, targets
from lgsim.symbolic.compile import model_numbers
from lgsim.symbolic.descriptions import parameters
from tests.symbolic.code_machines import MACHINES, states

FUNCTIONS = (lgsim.inverse_dynamics, lgsim.forward_dynamics)


def distance(got, want):
    """The largest difference, relative to the largest number."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    return np.abs(got - want).max() / np.abs(want).max()


def columns(library, code, rows):
    """The results of a function of C at states, as arrays (n, ...)."""
    found = [getattr(library, code.name)(*row) for row in zip(*rows, strict=True)]
    found = [x if isinstance(x, tuple) else (x,) for x in found]
    return [np.stack(each) for each in zip(*found, strict=True)]


def numbers(f, model, rows):
    """The same by lgsim."""
    found = jax.jit(jax.vmap(lambda *x: f(model, *x)))(*map(jnp.asarray, rows))
    return found if isinstance(found, tuple) else (found,)


def numeric(f, name, count):
    """A function of lgsim at the states of a machine of the list."""
    model = MACHINES[name]()
    return numbers(f, model, states(model, count)[: len(parameters(f))])


@pytest.mark.repeats
@pytest.mark.parametrize("name", MACHINES)
def test_c_is_lgsim_at_random_states(name, tmp_path):
    model = MACHINES[name]()
    rows = states(model, 1000)
    for dtype, limit in ((jnp.float64, 1e-14), (jnp.float32, 1e-5)):
        codes = [compile(f, model, name=f"{f.__name__}_{dtype.__name__}", dtype=dtype) for f in FUNCTIONS]
        assert dtype == jnp.float64 or all("double" not in code.source for code in codes)
        library = shared_library(codes, tmp_path)
        for f, code in zip(FUNCTIONS, codes, strict=True):
            (got,) = columns(library, code, rows)
            assert got.dtype == dtype
            assert distance(got, numeric(f, name, 1000)[0]) <= limit, code.name


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("f", (lgsim.mass_matrix, lgsim.forward_kinematics, lgsim.forward_dynamics_derivatives))
def test_more_functions_in_c(f, name, tmp_path):
    model = MACHINES[name]()
    code = compile(f, model)
    got = columns(shared_library(code, tmp_path), code, states(model, 1000)[: len(code.program.inputs)])
    for x, y in zip(got, numeric(f, name, 1000), strict=True):
        assert distance(x, y) <= (1e-12 if f is lgsim.forward_dynamics_derivatives else 1e-14)


@pytest.mark.slow
def test_derivatives_and_a_step(tmp_path):
    def step(model, q, v, tau, dt):
        motion = rollout(model, q, v, dt=dt, steps=1, torques=tau)
        return motion.q[-1], motion.v[-1]

    model = MACHINES["cart-pole"]()
    derivatives = compile(lgsim.forward_dynamics_derivatives, model)
    stepped = compile(step, model, results=("q_next", "v_next"), about="The next state.")
    library = shared_library([derivatives, stepped], tmp_path)
    rows = states(model, 50)
    want = numbers(lgsim.forward_dynamics_derivatives, model, rows)
    for x, y in zip(columns(library, derivatives, rows), want, strict=True):
        assert distance(x, y) <= 1e-12
    # differences of the compiled accelerations are an oracle that knows no derivative
    forward = shared_library(compile(lgsim.forward_dynamics, model), tmp_path).forward_dynamics
    q, v, tau = (x[0] for x in rows)
    for i in range(model.nq):
        e = np.eye(model.nq)[i] * 1e-6
        slope = (forward(q + e, v, tau) - forward(q - e, v, tau)) / 2e-6
        np.testing.assert_allclose(
            library.forward_dynamics_derivatives(q, v, tau)[1][:, i], slope, rtol=1e-6, atol=1e-7
        )
    got = columns(library, stepped, (*rows, np.full(50, 1e-2)))
    want = numbers(step, model, (*rows, np.full(50, 1e-2)))
    assert max(distance(x, y) for x, y in zip(got, want, strict=True)) <= 1e-14


def test_arm_is_pinocchio(tmp_path):
    pin = pytest.importorskip("pinocchio")
    model = lgsim.load_urdf(lgsim.data.arm7())
    twin = pin.buildModelFromUrdf(str(lgsim.data.arm7()))
    data = twin.createData()
    codes = [compile(f, model) for f in (lgsim.inverse_dynamics, lgsim.forward_dynamics, lgsim.mass_matrix)]
    library = shared_library(codes, tmp_path)
    for q, v, x in zip(*states(model, 1000), strict=True):
        assert distance([library.inverse_dynamics(q, v, x)], [pin.rnea(twin, data, q, v, x)]) <= 1e-13
        M = pin.crba(twin, data, q)
        assert distance([library.mass_matrix(q)], [np.triu(M) + np.triu(M, 1).T]) <= 1e-13
        got = library.forward_dynamics(q, v, x)
        np.testing.assert_allclose(np.asarray(pin.rnea(twin, data, q, v, got)), x, atol=1e-12 * np.abs(got).max())


def test_arm_has_few_operations():
    model = lgsim.load_urdf(lgsim.data.arm7())
    bounds = {lgsim.inverse_dynamics: 1169, lgsim.forward_dynamics: 2676, lgsim.mass_matrix: 1465}
    for f, bound in bounds.items():
        exact, rounded = compile(f, model, right_angles=False), compile(f, model)
        assert exact.operations <= bound
        assert rounded.operations <= 0.91 * exact.operations


@pytest.mark.slow
def test_jacobians_of_the_arm(tmp_path):
    pin = pytest.importorskip("pinocchio")
    model = lgsim.load_urdf(lgsim.data.arm7())
    twin = pin.buildModelFromUrdf(str(lgsim.data.arm7()))
    data = twin.createData()
    code = compile(lgsim.forward_dynamics_derivatives, model, right_angles=False)
    assert code.operations <= 7735
    library = shared_library(code, tmp_path)
    rows = states(model, 1000)
    for x, y in zip(
        columns(library, code, rows), numbers(lgsim.forward_dynamics_derivatives, model, rows), strict=True
    ):
        assert distance(x, y) <= 1e-12
    for row in zip(*rows, strict=True):
        pin.computeABADerivatives(twin, data, *row)
        _, dq, dv, dtau = library.forward_dynamics_derivatives(*row)
        M = np.triu(data.Minv) + np.triu(data.Minv, 1).T
        for got, want in ((dq, data.ddq_dq), (dv, data.ddq_dv), (dtau, M)):
            assert distance([got], [want]) <= 1e-10


@pytest.mark.parametrize("op", ("add", "sub", "mul", "neg"))
def test_wrong_operator_is_caught(op, tmp_path, monkeypatch):
    wrong = {"add": "{0} - {1}", "sub": "{0} + {1}", "mul": "-{0} * {1}", "neg": "{0}"}
    model = lgsim.load_urdf(lgsim.data.arm7())
    rows = states(model, 5)
    monkeypatch.setitem(c.OPERATORS, op, wrong[op])
    code = compile(lgsim.inverse_dynamics, model)
    (got,) = columns(shared_library(code, tmp_path), code, rows)
    assert distance(got, numbers(lgsim.inverse_dynamics, model, rows)[0]) > 1e-3


def test_numbers_as_an_argument(tmp_path):
    model = MACHINES["2R"]()
    code = compile(lgsim.inverse_dynamics, model, numbers_as_argument=True)
    library = shared_library(code, tmp_path)
    heavy = model.replace(inertias=2 * model.inertias, gravity=jnp.array([0.0, 1.0, -3.0]))
    assert re.search(r"numbers\[0..31\]  placements \(2, 4, 4\)", code.header)
    for machine in (model, heavy):
        (q,), (v,), (a,) = states(machine, 1)
        want = lgsim.inverse_dynamics(machine, *map(jnp.asarray, (q, v, a)))
        np.testing.assert_allclose(library.inverse_dynamics(model_numbers(machine), q, v, a), want, rtol=1e-13)


def test_header_says_what_the_numbers_are():
    code = compile(lgsim.forward_dynamics, MACHINES["mimic"]())
    for text in (code.header, code.source):
        assert "q[0]  b0 (Rotation about an axis: q in rad, not wrapped)" in text
        assert "(none)  b2 mimics b0: -1.7 q + 0.3" in text
        assert "joint forces, N m or N, in the order of v" in text
        assert re.search(r"Generated by lgsim \d", text)
        assert re.search(r"Operations: \d+ add, \d+ sub, \d+ mul", text)
    floating = compile(lgsim.inverse_dynamics, MACHINES["floating base"]()).header
    assert "q[0..6]  b0 (Any displacement: q = (p, quaternion wxyz)" in floating


def test_header_serves_c_and_cplusplus(tmp_path):
    code = compile(lgsim.inverse_dynamics, MACHINES["2R"]())
    for name, content in code.files().items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "use.c").write_text('#include "inverse_dynamics.h"\n#include "inverse_dynamics.h"\n')
    for words in (["-xc", "-std=c99"], ["-xc++", "-std=c++11"]):
        command = ["cc", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", *words, "use.c"]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert not run.returncode or "cannot execute" in run.stderr, run.stderr


def test_bad_input(monkeypatch):
    model = MACHINES["2R"]()
    with pytest.raises(ValueError, match="inverse_dynamics: expected at most 20 operations, got more"):
        compile(lgsim.inverse_dynamics, model, limit=20)
    with pytest.raises(ValueError, match="shapes: expected the shape of the argument 'push'"):
        compile(lambda model, push: push, model, name="f")
    with pytest.raises(ValueError, match="name: expected a name"):
        compile(lambda model, q: q, model)
    with pytest.raises(ValueError, match="name 'double': it is reserved"):
        compile(lambda model, q: 2 * q, model, name="double")
    with pytest.raises(ValueError, match="results: expected 1 names, one for each array, got 2"):
        compile(lambda model, q: 2 * q, model, name="f", results=("a", "b"))
    with pytest.raises(ValueError, match="f: no straight-line code: a loop whose end depends on the state"):
        compile(lambda model, q: jax.lax.while_loop(lambda x: x[0] < 3, lambda x: x + 1, q), model, name="f")
    code = compile(lambda model, q: 2 * q, model, name="twice")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(FileNotFoundError, match="expected a C compiler, got 'no-such-compiler'"):
        shared_library(code)


def test_library_checks_its_arguments(tmp_path):
    library = shared_library(compile(lambda model, q: 2 * q, MACHINES["2R"](), name="twice"), tmp_path)
    np.testing.assert_array_equal(library.twice([1.0, 2.0]), [2.0, 4.0])
    with pytest.raises(ValueError, match=r"q: expected the shape \(2,\), got \(3,\)"):
        library.twice(np.zeros(3))
    with pytest.raises(ValueError, match="twice: expected 1 arguments, got 0"):
        library.twice()
    with pytest.raises(AttributeError, match="no function thrice"):
        library.thrice(np.zeros(2))


@pytest.mark.repeats
@pytest.mark.parametrize("name", ("cart-pole", "free body"))
def test_casadi_and_its_jacobian(name):
    pytest.importorskip("casadi")
    model = MACHINES[name]()
    f = compile(lgsim.forward_dynamics, model, targets.Casadi())
    state = tuple(x[0] for x in states(model, 1))
    q, v, tau = map(jnp.asarray, state)
    want = lgsim.forward_dynamics(model, q, v, tau)
    np.testing.assert_allclose(np.asarray(f(*state)).ravel(), want, rtol=1e-11, atol=1e-12)
    slope = jax.jacfwd(lambda v: lgsim.forward_dynamics(model, q, v, tau))(v)
    jacobian = f.jacobian()(*state, np.zeros(model.nv))
    np.testing.assert_allclose(np.asarray(jacobian[1]), slope, rtol=1e-10, atol=1e-12)


def test_mass_matrix_without_the_first_coordinate():
    """M of an arm on a fixed base does not depend on it."""
    arm = lgsim.load_urdf(lgsim.data.arm7())
    code = compile(lambda model, q: lgsim.mass_matrix(model, q.at[0].set(0)), arm, name="mass_matrix")
    assert code.operations <= 1140


def test_page_runs():
    page = (Path(__file__).parents[2] / "docs" / "code_generation.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    space = {}
    exec("\n".join(blocks), space)
    assert space["law"].name == "computed_torque" and space["law"].operations > space["code"].operations
