"""The loop: what is saved, when, in which dtype, how often it is compiled, and what it says about bad input."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import lgsim
from lgsim.actions import Action, LeftTranslation, Product, RightTranslation, Translation

SPIN = RightTranslation(lgsim.SO3)
BODY = Product(SPIN, Translation(3))


def euler(t, state, inertia):
    """A torque-free body, driven a little in time."""
    R, w = state
    return jnp.concatenate([w, jnp.cross(inertia * w, w) / inertia + 0.1 * jnp.sin(t) * R[0]])


def start(dtype=jnp.float64):
    return jnp.eye(3, dtype=dtype), jnp.array([0.8, 0.1, 1.1], dtype)


def inertia(dtype=jnp.float64):
    return jnp.array([1.0, 2.0, 3.0], dtype)


def solve(**changes):
    settings = {"dt": 0.1, "steps": 12, "args": inertia()} | changes
    return lgsim.integrate(lgsim.MK4, BODY, euler, start(), **settings)


@pytest.mark.float32
def test_times_carry_no_accumulated_error(dtype):
    solution = lgsim.integrate(
        lgsim.LieEuler, Translation(1), lambda t, y, args: 0 * y, jnp.zeros(1, dtype), t0=3.0, dt=0.1, steps=100_000
    )
    step = np.dtype(dtype).type(0.1)
    right = np.dtype(dtype).type(3.0) + np.arange(100_001).astype(dtype) * step
    assert solution.ts.dtype == dtype
    assert np.max(np.abs(np.asarray(solution.ts) - right) / right) <= np.finfo(dtype).eps


def test_the_field_sees_the_times_of_the_nodes():
    """y' = t^3 is integrated exactly by a fourth-order method if it is asked at the right times."""
    solution = lgsim.integrate(
        lgsim.MK4, Translation(1), lambda t, y, args: jnp.full(1, t**3), jnp.zeros(1), t0=-1.0, dt=0.25, steps=8
    )
    assert jnp.allclose(solution.ys[:, 0], (solution.ts**4 - 1) / 4, rtol=0, atol=1e-15)


def test_saved_states_are_the_same_states():
    every, some, last = solve(), solve(save_every=3), solve(save_every=12)
    for leaf, third, end, first in zip(*(jax.tree.leaves(s.ys) for s in (every, some, last)), start(), strict=True):
        assert leaf.shape[0] == 13 and third.shape[0] == 5 and end.shape[0] == 2
        assert jnp.array_equal(leaf[0], first)
        assert jnp.allclose(leaf[::3], third, rtol=0, atol=1e-15) and jnp.allclose(leaf[::12], end, rtol=0, atol=1e-15)
    assert jnp.array_equal(every.ts[::3], some.ts)


@pytest.mark.slow
def test_error_estimate_is_the_largest_of_each_saved_interval():
    for method in (lgsim.MK54, lgsim.CF43):
        every, some = (
            lgsim.integrate(method, BODY, euler, start(), dt=0.1, steps=12, args=inertia(), save_every=n)
            for n in (1, 4)
        )
        assert every.error_estimate.shape == (12,) and jnp.all(every.error_estimate > 0)
        assert jnp.allclose(every.error_estimate.reshape(3, 4).max(axis=1), some.error_estimate, rtol=1e-6)
    assert solve().error_estimate is None


def test_negative_steps_run_back_to_the_start():
    there = solve(steps=400, dt=0.005)
    end = jax.tree.map(lambda a: a[-1], there.ys)
    back = lgsim.integrate(lgsim.MK4, BODY, euler, end, t0=there.ts[-1], dt=-0.005, steps=400, args=inertia())
    for leaf, first in zip(back.ys, start(), strict=True):
        assert jnp.allclose(leaf[-1], first, rtol=0, atol=1e-11)
    assert abs(float(back.ts[-1])) < 1e-14


def test_result_tells_when_a_state_is_not_finite():
    fine = solve()
    assert bool(fine.result == lgsim.RESULTS.successful)
    burst = lgsim.integrate(lgsim.MK4, Translation(1), lambda t, y, args: y**2, jnp.ones(1), dt=0.5, steps=40)
    assert bool(burst.result == lgsim.RESULTS.nonfinite)
    assert "smaller dt" in lgsim.RESULTS[burst.result]


@pytest.mark.repeats
@pytest.mark.float32
@pytest.mark.parametrize("name", ["MK4", "CF43", "CG3", "MK54", "MK4TwoCommutators"])
def test_dtype_follows_the_state(name, dtype):
    solution = lgsim.integrate(lgsim.METHODS[name], BODY, euler, start(dtype), dt=0.1, steps=3, args=inertia(dtype))
    assert {leaf.dtype for leaf in jax.tree.leaves((solution.ts, solution.ys))} == {np.dtype(dtype)}
    assert solution.error_estimate is None or solution.error_estimate.dtype == dtype


def test_batches_by_vmap_equal_one_by_one():
    rates = jax.random.normal(jax.random.key(3), (5, 3))

    def end(w):
        return lgsim.integrate(lgsim.CF4, BODY, euler, (jnp.eye(3), w), dt=0.1, steps=10, args=inertia()).ys

    one_by_one = jax.tree.map(lambda *x: jnp.stack(x), *map(end, rates))
    chex.assert_trees_all_close(jax.vmap(end)(rates), one_by_one, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_jit_changes_nothing():
    compiled = jax.jit(lambda dt: solve(dt=dt).ys)(0.1)
    with jax.disable_jit():
        step_by_step = solve(steps=2).ys
    for a, b, c in zip(compiled, solve().ys, step_by_step, strict=True):
        assert jnp.allclose(a, b, rtol=0, atol=1e-15) and jnp.allclose(a[:3], c, rtol=0, atol=1e-15)


def test_new_numbers_are_not_traced_again():
    traces = 0

    def field(t, y, args):
        nonlocal traces
        traces += 1
        return args * jnp.ones(3)

    def run(k):
        settings = {"t0": 0.1 * k, "dt": 0.1 + 0.01 * k, "steps": 5, "args": jnp.array(1.0 + k)}
        return lgsim.integrate(lgsim.MK4, SPIN, field, lgsim.so3.exp(jnp.full(3, 0.1 * k)), **settings)

    run(0)
    first = traces
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: compilations.append(name))
    checks = 0
    for k in range(1, 4):
        before = traces
        run(k)
        checks += traces - before
    # the shape of the field is checked in each call, once; the loop itself is not traced again
    assert first >= 2 and checks <= 3
    assert not [name for name in compilations if "backend_compile" in name]


def equations(jaxpr):
    """The names of all primitives, inner programs included."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)


@pytest.mark.repeats("LieEuler", "MK4", "MK54", "CF4", "CF43", "CG3")
@pytest.mark.parametrize("name", lgsim.METHODS)
def test_no_loop_is_closed_to_reverse_mode(name):
    def end(y):
        return lgsim.integrate(lgsim.METHODS[name], BODY, euler, y, dt=0.1, steps=10, args=inertia()).ys

    names = set(equations(jax.make_jaxpr(end)(start()).jaxpr))
    assert "scan" in names and "while" not in names


@pytest.mark.parametrize("checkpoint", [None, "step", 8, "recursive"])
def test_the_program_does_not_grow_with_the_number_of_steps(checkpoint):
    def size(steps, save_every):
        def end(y):
            settings = {"dt": 0.1, "steps": steps, "save_every": save_every, "checkpoint": checkpoint}
            return lgsim.integrate(lgsim.MK4, BODY, euler, y, args=inertia(), **settings).ys

        return len(list(equations(jax.make_jaxpr(end)(start()).jaxpr)))

    assert size(64, 64) == size(262_144, 262_144) if checkpoint in (None, "step", 8) else True
    # recursion adds one scan for each eightfold length, never a copy of the step
    assert abs(size(64, 64) - size(262_144, 262_144)) < 60


class OnlyMove(Action):
    """An action that knows no bracket and no dexpinv."""

    @property
    def dim(self):
        return 3

    def move(self, xi, y):
        return y + xi


def constant(t, y, args):
    return jnp.ones(3)


GOOD = {"method": lgsim.MK4, "action": SPIN, "field": constant, "y0": jnp.eye(3), "dt": 0.1, "steps": 4}
BAD = {
    "method": ({"method": "MK4"}, TypeError, ("method", "lgsim.MK4", "str")),
    "action": ({"action": lgsim.SO3}, TypeError, ("action", "LeftTranslation", "ArrayGroup")),
    "field shape": ({"field": lambda t, y, args: jnp.ones(2)}, ValueError, ("field", "(3,)", "(2,)")),
    "field kind": ({"field": lambda t, y, args: (1.0, 2.0)}, ValueError, ("field", "(3,)", "tuple")),
    "field dtype": ({"field": lambda t, y, args: jnp.ones(3, jnp.float32)}, TypeError, ("field", "float64", "float32")),
    "y0 shape": ({"y0": jnp.eye(4)}, ValueError, ("y", "(..., 3, 3)", "(4, 4)")),
    "y0 batch": (
        {"y0": jnp.ones((5, 3, 3)), "field": lambda t, y, args: jnp.ones((5, 3))},
        ValueError,
        ("field", "(3,)", "(5, 3)", "vmap"),
    ),
    "y0 integer": ({"y0": jnp.eye(3, dtype=int)}, TypeError, ("y0", "float64", "int64")),
    "y0 empty": ({"y0": ()}, TypeError, ("y0", "nothing")),
    "y0 mixed": (
        {"y0": (jnp.eye(3), jnp.ones(3, jnp.float32)), "action": BODY, "field": lambda t, y, args: jnp.ones(6)},
        TypeError,
        ("y0", "float64", "float32"),
    ),
    "steps 0": ({"steps": 0}, ValueError, ("steps", "at least 1", "0")),
    "steps 1.5": ({"steps": 1.5}, TypeError, ("steps", "integer", "float")),
    "dt 0": ({"dt": 0.0}, ValueError, ("dt", "not zero")),
    "dt nan": ({"dt": float("nan")}, ValueError, ("dt", "finite", "nan")),
    "dt inf": ({"dt": float("inf")}, ValueError, ("dt", "finite", "inf")),
    "dt array": ({"dt": jnp.ones(2)}, ValueError, ("dt", "single number", "(2,)")),
    "t0 nan": ({"t0": float("nan")}, ValueError, ("t0", "finite", "nan")),
    "save_every": ({"save_every": 3}, ValueError, ("save_every", "divisor", "4", "3")),
    "save_every 0": ({"save_every": 0}, ValueError, ("save_every", "at least 1", "0")),
    "checkpoint": ({"checkpoint": "sometimes"}, ValueError, ("checkpoint", '"recursive"', "'sometimes'")),
    "checkpoint 0": ({"checkpoint": 0}, ValueError, ("checkpoint", "positive integer", "0")),
    "no dexpinv": ({"action": OnlyMove(), "y0": jnp.zeros(3)}, TypeError, ("action", "dexpinv", "OnlyMove", "CF4")),
    "no bracket": (
        {"method": lgsim.MK4TwoCommutators, "action": OnlyMove(), "y0": jnp.zeros(3)},
        TypeError,
        ("action", "bracket", "OnlyMove"),
    ),
    "no dexpinv in a product": (
        {
            "action": Product(SPIN, OnlyMove()),
            "y0": (jnp.eye(3), jnp.zeros(3)),
            "field": lambda t, y, args: jnp.ones(6),
        },
        TypeError,
        ("action", "dexpinv", "Product"),
    ),
}


@pytest.mark.usefixtures("without_import_hook")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    change, kind, parts = BAD[case]
    arguments = GOOD | change
    positional = [arguments.pop(name) for name in ("method", "action", "field", "y0")]
    with pytest.raises(kind) as failure:
        lgsim.integrate(*positional, **arguments)
    for part in parts:
        assert part in str(failure.value), f"{part!r} is not in: {failure.value}"


def test_an_action_with_nothing_but_move_is_enough_for_commutator_free_methods():
    solution = lgsim.integrate(lgsim.CF4, OnlyMove(), constant, jnp.zeros(3), dt=0.5, steps=4)
    assert jnp.allclose(solution.ys[-1], 2.0)


def test_left_and_right_translation_agree_where_they_should():
    """A constant space velocity from the identity is a constant body velocity."""
    ends = [
        lgsim.integrate(lgsim.MK4, side(lgsim.SO3), constant, jnp.eye(3), dt=0.1, steps=10).ys[-1]
        for side in (LeftTranslation, RightTranslation)
    ]
    assert jnp.allclose(ends[0], ends[1], rtol=0, atol=1e-14)
