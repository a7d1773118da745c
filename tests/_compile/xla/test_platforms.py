"""The program that is lowered for a platform is that platform's, whatever machine lowers it; none needs float64."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import lgsim
from lgsim import optimize
from lgsim._compile.xla import batch_last, fusion_barrier, hints, scan_last, tiled_vmap, traced_platform
from lgsim.integrators.adaptive import solve as solve_adaptive
from lgsim.optimize.solve import _run as run_solver
from tests.multibody import trees
from tests.optimize import problems

WORDS_OF_CPU = ("inlineable", "xla_cpu", 'custom_call @"lgsim', "custom_call @lgsim")
MODEL = (["free", "revolute", "spherical"], [-1, 0, 1])


def exported(f, *args, platform="cuda"):
    """The program for a platform, which may run on another one where it holds nothing that is the platform's own."""
    return export.export(jax.jit(f), platforms=[platform], disabled_checks=[export.DisabledSafetyCheck.platform()])(
        *args
    )


def forward(model, q, v, tau):
    return lgsim.forward_dynamics(model, q, v, tau)


def products(model, q, v, tau):
    return jax.vjp(lambda *x: lgsim.forward_dynamics(model, *x), q, v, tau)[1](v)


def motion(model, q, v, tau):
    return lgsim.rollout(model, q, v, dt=jnp.asarray(0.01, q.dtype), steps=3, torques=tau).q


@pytest.mark.slow
@pytest.mark.parametrize(
    "f", [forward, pytest.param(products, marks=pytest.mark.slow), pytest.param(motion, marks=pytest.mark.slow)]
)
def test_what_is_lowered_for_cuda_is_of_cuda(f):
    """It is XLA's own operations alone, and gives what the CPU's program gives."""
    model = trees.build(*MODEL)
    state = trees.state(model, batch=(5,))
    with lgsim.compiling_for("cuda"):
        program = exported(jax.vmap(lambda *x: f(model, *x)), *state)
    text = program.mlir_module()
    assert not [word for word in WORDS_OF_CPU if word in text]
    assert "stablehlo.case" not in text and "custom_call" not in text
    for a, b in zip(
        jax.tree.leaves(program.call(*state)), jax.tree.leaves(jax.vmap(lambda *x: f(model, *x))(*state)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * np.max(np.abs(b)))


def test_recursions_find_their_platform_alone():
    model = trees.build(["revolute"], [-1])
    state = trees.state(model, batch=(4,))
    f = jax.vmap(lambda *x: forward(model, *x))
    with lgsim.llvm_lowering(False):
        on_cpu, on_gpu = (exported(f, *state, platform=each).mlir_module() for each in ("cpu", "cuda"))
    assert "xla_cpu_small_call" in on_cpu or not hints._HINTS
    assert not [word for word in WORDS_OF_CPU if word in on_gpu]


def behind(x, y):
    return fusion_barrier(jnp.sin(x) * y) + fusion_barrier({"a": y, "b": 2.0})["a"]


def plain(x, y):
    return jnp.sin(x) * y + y


def derivatives(f):
    def found(x, y):
        value, back = jax.vjp(f, x, y)
        return value, jax.jvp(f, (x, y), (y, x)), back(x), jax.hessian(lambda x: f(x, y).sum())(x)

    return found


BATCHES = {"one": lambda f: f, "batch": jax.vmap, "batch last": lambda f: jax.vmap(batch_last(f))}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("platform", ("cpu", "cuda"))
def test_barriers_and_their_derivatives(platform, batch):
    """Values, products and Hessians are those without barriers, of which there are some on CPU alone."""
    x, y = jnp.arange(1.0, 4.0), jnp.array([0.3, -2.0, 0.7])
    program = exported(derivatives(batch(behind)), x, y, platform=platform)
    assert ("inlineable" in program.mlir_module()) == (platform == "cpu" and hints._HINTS)
    chex.assert_trees_all_close(program.call(x, y), derivatives(plain)(x, y), rtol=1e-14)


def test_reverse_mode_keeps_what_is_behind_a_barrier_out_of_what_is_computed_later():
    """A barrier of a known and an unknown number: the known one's does not wait for the second pass."""
    x, y = jnp.arange(3.0), jnp.ones(3)
    _, back = jax.vjp(lambda y: fusion_barrier((jnp.sin(x), y))[0] * y, y)
    assert "sin" not in str(jax.make_jaxpr(back)(y))
    unused = jax.jit(lambda x, y: fusion_barrier((jnp.exp(x), y))[1])
    assert "exponential" not in unused.lower(x, y).as_text()


def prepared(rows, x):
    """Of each row its sine, which the loop needs and which does not need the loop."""
    return scan_last(lambda carry, row: (carry + row, carry), x, rows, prepare=jnp.sin)


@pytest.mark.parametrize("platform", ("cpu", "cuda"))
def test_what_precedes_a_loop_is_before_it_off_the_cpu(platform):
    rows, x = jnp.linspace(0, 3, 32 * 5).reshape(32, 5, 1), jnp.ones((32, 1))
    program = exported(jax.vmap(prepared), rows, x, platform=platform)
    text = program.mlir_module()
    inside = text.index("stablehlo.while") < text.index("stablehlo.sine")
    called = "func.func private" in text[: text.index("stablehlo.sine")]
    assert (inside or called) == (platform == "cpu"), text
    last, _ = program.call(rows, x)
    np.testing.assert_allclose(last, 1 + np.sin(rows).sum(1), rtol=1e-14)


def test_choices_in_the_traced_program():
    assert traced_platform() == jax.default_backend()
    x = jnp.zeros((1000, 3))
    f = lambda x: tiled_vmap(lambda x: 2 * x)(x)  # noqa: E731
    cpu = str(jax.make_jaxpr(f)(x))
    with lgsim.compiling_for("cuda"):
        assert traced_platform() == "cuda" and lgsim.xla_options() == {}
        other = str(jax.make_jaxpr(f)(x))
    assert traced_platform() == jax.default_backend()
    assert "scan" not in other and ("scan" in cpu) == (jax.default_backend() == "cpu")


def test_a_stage_branches_on_cpu_alone():
    def turned(y):
        field = lambda t, R, args: jnp.array([jnp.cos(t), jnp.sin(t), 0.5], y.dtype)  # noqa: E731
        return lgsim.integrate(lgsim.MK4, lgsim.actions.RightTranslation(lgsim.SO3), field, y, dt=0.1, steps=2).ys[-1]

    texts, found = [], []
    for platform in ("cpu", "cuda"):
        with lgsim.compiling_for(platform), lgsim.llvm_lowering(False):
            program = exported(turned, jnp.eye(3), platform=platform)
        texts.append("stablehlo.case" in program.mlir_module())
        found.append(program.call(jnp.eye(3)))
    assert texts == [True, False]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-15)


def wide(jaxpr, looping=False):
    """(primitive, shape, whether it is in a loop) of each equation that makes a float64."""
    found = []
    for equation in jaxpr.eqns:
        made = [v.aval.shape for v in equation.outvars if getattr(v.aval, "dtype", None) == np.float64]
        found += [(equation.primitive.name, shape, looping) for shape in made]
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    found += wide(inner, looping or equation.primitive.name in ("while", "scan"))
        program = equation.params.get("program")
        if hasattr(program, "traced"):
            kinds = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in equation.invars]
            found += wide(program.traced(equation.params["structure"], *kinds)[0].jaxpr, looping)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("solver", [optimize.ILQR(), optimize.AugmentedLagrangian()], ids=["ilqr", "augmented"])
def test_plans_in_float32_hold_no_float64(solver):
    assert jax.config.jax_enable_x64
    problem = problems.slew(4, dtype=np.float32)
    traced = jax.make_jaxpr(lambda us: run_solver(problem, us, None, solver, False))(jnp.zeros((4, 3), np.float32))
    assert wide(traced.jaxpr) == []


def test_inverse_kinematics_in_float32_holds_no_float64():
    model = trees.build(["revolute", "revolute"], [-1, 0], dtype=np.float32)
    q, target = jnp.zeros(2, np.float32), jnp.eye(4, dtype=np.float32)
    traced = jax.make_jaxpr(lambda q: optimize.inverse_kinematics(model, "body1", target, q0=q))(q)
    assert wide(traced.jaxpr) == []


def test_adaptive_steps_in_float32_hold_no_float64():
    """But a scalar of diffrax's own before the steps."""
    field, y = lambda t, y, args: jnp.stack([y[1], -y[0]]), jnp.ones(2, np.float32)
    traced = jax.make_jaxpr(
        lambda y: solve_adaptive(lgsim.MK54, lgsim.actions.Translation(2), field, y, t1=1.0, rtol=1e-4)
    )(y)
    assert [each for each in wide(traced.jaxpr) if each[1] != () or each[2]] == []
    assert wide(jax.make_jaxpr(lambda x: jnp.where(x > 0, 1.0, 2.0))(y).jaxpr)  # what it looks for
