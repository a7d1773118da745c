"""CUDA C++ compiled for this machine: every operation against numpy, whole recursions against Pinocchio and XLA."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim._compile.programs import read
from lgsim._compile.programs.operations import OPS
from lgsim._compile.programs.program import Builder, fold
from lgsim._compile.programs.targets import Cuda, Described, Interface, cuda
from tests._compile.programs.cuda_on_host import Kernels, needs_compiler
from tests._compile.programs.test_text_targets import OPERATIONS, single_operation
from tests.multibody import trees

pytestmark = needs_compiler

STATES = 130  # two blocks, of which the second one is cut
BOUND = {"float64": 1e-12, "float32": 1e-4}


def kernel_of(f, kinds, name="k", **options):
    program = read(f, *kinds)
    given = tuple(Described(f"x{i}") for i in range(len(program.inputs)))
    made = tuple(Described(f"r{i}") for i in range(len(program.outputs)))
    return Cuda(**options)(Interface(name, program, given, made))


def far(got, want):
    return np.max(np.abs(got - np.asarray(want, np.float64))) / np.max(np.abs(want))


def repeated(x):
    """The last axis to the number of states, again from its start where it ends."""
    return np.moveaxis(np.resize(np.moveaxis(np.asarray(x), -1, 0), (STATES, *np.shape(x)[:-1])), 0, -1)


@pytest.mark.parametrize("kind", ("float64", "float32"))
def test_every_operation(kind, tmp_path):
    made = [single_operation(op, kind) for op in OPERATIONS]
    kernels = Kernels([Cuda()(interface) for interface, _, _ in made], tmp_path)
    for interface, args, want in made:
        (got,) = kernels(interface.name, *(np.broadcast_to(x[:, None], (4, STATES)) for x in args))
        want = np.broadcast_to(want[:, None], got.shape)
        np.testing.assert_allclose(got, want, rtol=4 * np.finfo(kind).eps, atol=0, err_msg=interface.name)


def test_every_operation_has_a_text():
    assert set(OPS) == set(cuda.OPERATORS)


@pytest.mark.parametrize(
    "given, made, numbers",
    [("float32", "int32", [-1.5, 2.0]), ("int64", "float64", [2**62, -(2**61)]), ("float64", "uint64", [-0.0, 3.0])],
)
def test_bits(given, made, numbers, tmp_path):
    x = np.array(numbers, given)
    code = kernel_of(lambda x: jax.lax.bitcast_convert_type(x, made), [jax.ShapeDtypeStruct((2,), given)])
    (got,) = Kernels([code], tmp_path)("k", np.broadcast_to(x[:, None], (2, STATES)))
    np.testing.assert_array_equal(got, np.broadcast_to(x.view(made)[:, None], got.shape))


@pytest.mark.parametrize("kind", ("int32", "uint32", "int64"))
def test_shifts(kind, tmp_path):
    x, operations = np.array([-7, 1 << 20, 12345], "int64").astype(kind), OPS[OPS.index("shift_left") :][:3]
    builder = Builder()
    given = builder.input(kind, (3,))
    by = builder.constant(kind, 3)
    program = builder.program([(kind, np.array([builder(op, int(v), by) for v in given])) for op in operations])
    names = tuple(Described(f"r{i}") for i in range(3))
    code = Cuda()(Interface("k", program, (Described("x"),), names))
    for op, got in zip(operations, Kernels([code], tmp_path)("k", np.tile(x[:, None], 2)), strict=True):
        assert got[:, 1].tolist() == [fold(op, kind, [(kind, v), (kind, 3)]) for v in x], op


@pytest.mark.parametrize("kind", ("float64", "float32"))
def test_constants_read_back(kind, tmp_path):
    with np.errstate(all="ignore"):
        numbers = np.array([0.1, -1e-300, 1e22, 3.0, -0.0, np.inf, -np.inf, np.nan, 5e-324]).astype(kind)
    code = kernel_of(lambda x: (x, numbers), [jax.ShapeDtypeStruct((), kind)])
    _, got = Kernels([code], tmp_path)("k", np.zeros(3, kind))
    np.testing.assert_array_equal(got, np.tile(numbers[:, None], 3))
    np.testing.assert_array_equal(np.signbit(got)[:7, 0], np.signbit(numbers)[:7])
    assert "INFINITY" not in code.source and "NAN" not in code.source and "#include" not in code.source


@pytest.mark.parametrize("rows", (1, 3, 6))
def test_arrays_with_the_states_first(rows, tmp_path):
    """Of a matrix of six entries, a vector of three and a number: those of at most so many entries are rows."""
    rng = np.random.default_rng(1)
    given = [rng.normal(size=(*shape, STATES)) for shape in ((2, 3), (3,), ())]
    f = lambda a, x, s: (a @ x * s, a + s, s * s)  # noqa: E731
    code = kernel_of(f, [jax.ShapeDtypeStruct(x.shape[:-1], "float64") for x in given], rows=rows)
    for name, size, first in (("x0", "[2][3]", rows >= 6), ("x1", "[3]", rows >= 3)):
        assert f"double {name}{f'[n]{size}' if first else f'{size}[n]'}\n" in code.source
    assert ("x0[5 + 6 * (long long) i]" in code.source) == (rows >= 6)
    for got, want in zip(
        Kernels([code], tmp_path, rows=rows)("k", *given), jax.vmap(f, -1, -1)(*map(jnp.asarray, given)), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-14)


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("kind", ("float64", "float32"))
@pytest.mark.parametrize("seed", (0, 2))
def test_forward_dynamics_of_every_joint(seed, kind, tmp_path):
    """Of random trees with a joint of each type, against Pinocchio's articulated bodies."""
    pin = pytest.importorskip("pinocchio")
    from tests.multibody.twin import Twin

    model = trees.build(*trees.scattered(seed), seed=seed, armature=True, dtype=np.dtype(kind))
    states = trees.state(model, seed, batch=(3,))
    code = kernel_of(lambda q, v, tau: lgsim.forward_dynamics(model, q, v, tau), [x[0] for x in states])
    (got,) = Kernels([code], tmp_path)("k", *(repeated(x.T) for x in states))
    twin = Twin(jax.tree.map(lambda x: x.astype(float), model))
    want = [
        twin.back(pin.aba(twin.pin, twin.data, twin.q(q), twin.v(v), twin.v(tau)))
        for q, v, tau in zip(*(np.asarray(x, float) for x in states), strict=True)
    ]
    assert got.shape == (model.nv, STATES) and far(got, repeated(np.transpose(want))) < BOUND[kind]


def machine(kind):
    """A free base, a ball and two turning joints, of which one follows the other."""
    rng = np.random.default_rng(4)
    builder = lgsim.ModelBuilder(dtype=np.dtype(kind))
    for name, parent, joint, more in (
        ("base", "world", lgsim.joints.Free(), {}),
        ("arm", "base", lgsim.joints.Revolute(), {"axis": trees.unit(rng), "armature": 0.1}),
        ("hand", "arm", lgsim.joints.Spherical(), {}),
        ("finger", "hand", lgsim.joints.Revolute(), {"axis": trees.unit(rng), "mimic": ("arm", -0.7, 0.2)}),
    ):
        builder.add_body(name, parent, joint, joint_name=name, placement=trees.pose(rng), **more, **trees.body(rng))
    return builder.build()


def values(model, q, v, tau):
    return lgsim.forward_dynamics(model, q, v, tau)


def products(model, q, v, tau):
    """Cotangents of all numbers of the model and of the state."""
    return jax.vjp(values, model, q, v, tau)[1](v)


def step(model, q, v, tau):
    run = lgsim.rollout(model, q, v, dt=jnp.asarray(1e-2, q.dtype), steps=1, torques=tau, checkpoint=None)
    return run.q[-1], run.v[-1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ("float64", "float32"))
@pytest.mark.parametrize("f", (values, products, step))
def test_whole_functions_with_the_numbers_shared(f, kind, tmp_path):
    """A joint that follows another one, derivatives and a step of MK4, against XLA; the model is an argument."""
    model = machine(kind)
    states = trees.state(model, batch=(3,))
    leaves, structure = jax.tree.flatten(model)
    count = len(leaves)

    def flat(*args):
        return jax.tree.leaves(f(jax.tree.unflatten(structure, args[:count]), *args[count:]))

    shared = tuple(i < count for i in range(count + 3))
    code = kernel_of(flat, [*leaves, *(x[0] for x in states)], shared=shared)
    got = Kernels([code], tmp_path, shared)("k", *map(np.asarray, leaves), *(repeated(x.T) for x in states))
    with lgsim.llvm_lowering(False):
        want = jax.jit(jax.vmap(lambda *x: jax.tree.leaves(f(model, *x))))(*states)
    assert len(got) == len(want)
    size = max(np.max(np.abs(x), initial=0) for x in want)
    for x, right in zip(got, want, strict=True):
        right = repeated(np.moveaxis(right, 0, -1))
        assert x.shape == right.shape
        # products with numbers of a model differ in size by orders, and each is a sum of terms of the largest
        np.testing.assert_allclose(x, right, rtol=0, atol=BOUND[kind] * size)


def test_steps_with_the_state_in_registers(tmp_path):
    """Steps of a rotation, so many a kernel, against the rotation by their sum."""

    def rotation(angle):
        return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    turn = rotation(0.1)
    code = kernel_of(lambda x, turn: turn @ x, [np.zeros(2), turn], carried=1, shared=(False, True))
    start = np.random.default_rng(0).normal(size=(2, STATES))
    kernels = Kernels([code], tmp_path, shared=(False, True))
    for steps in (0, 1, 25):
        (got,) = kernels("k", start, turn, steps=steps)
        np.testing.assert_allclose(got, rotation(0.1 * steps) @ start, rtol=0, atol=1e-14)


def test_a_wrong_statement_is_caught(tmp_path, monkeypatch):
    monkeypatch.setitem(cuda.OPERATORS, "sub", "{1} - {0}")
    code = kernel_of(lambda x, y: x - y, [np.zeros(()), np.zeros(())])
    (got,) = Kernels([code], tmp_path)("k", np.full(3, 2.0), np.full(3, 5.0))
    assert got.tolist() == [3, 3, 3]


def test_what_does_not_fit_is_told():
    kinds = [np.zeros(2), np.zeros(2)]
    with pytest.raises(ValueError, match="shared: expected 2 entries, one for each argument, got 1"):
        kernel_of(lambda x, y: x + y, kinds, shared=(True,))
    with pytest.raises(ValueError, match="carried: expected results like the first 1 arguments"):
        kernel_of(lambda x, y: x[:1] + y[:1], kinds, carried=1)
    with pytest.raises(ValueError, match="each state has its own"):
        kernel_of(lambda x, y: x + y, kinds, carried=1, shared=(True, False))
    program = read(lambda x: 2 * x, np.zeros(()))
    with pytest.raises(ValueError, match="name 'threadIdx'"):
        Cuda()(Interface("f", program, (Described("threadIdx"),), (Described("y"),)))
    odd = read(lambda x: jax.lax.bitcast_convert_type(x.astype(np.uint8), np.int8), np.zeros(()))
    with pytest.raises(NotImplementedError, match="the target CUDA has no operation bitcast of uint8"):
        Cuda()(Interface("f", odd, (Described("x"),), (Described("y"),)))
