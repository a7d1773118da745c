"""What JAX does to a function, and by what it is measured: each row is (found, expected), two pytrees of arrays.

The expected values are those of the function by itself, one entry after another, or differences of them. Run as a
script it takes names of functions, then ``--only`` and names of transformations, and prints a line of JSON for each
pair. It needs four devices: ``XLA_FLAGS=--xla_force_host_platform_device_count=4``.
"""

import argparse
import json
import re
import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental import checkify
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import lgsim
from tests.transformations.functions import FUNCTIONS, Function

DEVICES = 4
BATCH = 8
S = 1.1


class Case:
    """A function with the numbers that it is tried on."""

    def __init__(self, function: Function) -> None:
        self.orders, self.size, self.explicit = function.orders, function.size, function.explicit
        self.x = jnp.asarray(0.5 * np.random.default_rng(0).normal(size=(BATCH, function.size)))
        self.dx = jnp.asarray(np.random.default_rng(1).normal(size=function.size))
        self.f = lambda s, x: jnp.concatenate([jnp.ravel(y) for y in jax.tree.leaves(function.f(s, x))])
        self.one = jax.jit(self.f)
        self.each = jnp.stack([self.one(S, x) for x in self.x])
        # mapped by itself, a batch is checked against this first
        self.batch = jax.vmap(self.f, (None, 0))

    def total(self, s: Any, x: Any) -> Any:
        """A number of the whole batch that depends on both."""
        return jnp.sum(self.batch(s, x) ** 2)

    def along(self, x: Any) -> Any:
        """The function of a number, through x in a direction."""
        return lambda t: self.f(S + t, x + t * self.dx)

    def slope(self, h: float = 1e-4) -> Any:
        """The derivative along the direction at the first entry, by differences of the fourth order."""
        g = jax.jit(self.along(self.x[0]))
        return (8 * (g(h) - g(-h)) - (g(2 * h) - g(-2 * h))) / (12 * h)


Rows = tuple[Any, Any]
TRANSFORMATIONS: dict[str, Callable[[Case], Rows | None]] = {}


def transformation(f: Callable[[Case], Rows | None]) -> Callable[[Case], Rows | None]:
    """Enter a transformation; it gives None where it does not apply."""
    TRANSFORMATIONS[f.__name__] = f
    return f


def needs(orders: int) -> Callable[[Any], Any]:
    """A transformation of functions that can be differentiated so often."""
    return lambda f: transformation(_named(f, lambda c: f(c) if c.orders >= orders else None))


def _named(f: Any, g: Any) -> Any:
    g.__name__ = f.__name__
    return g


# batches


@transformation
def vmap(c):
    return jax.jit(c.batch)(S, c.x), c.each


@transformation
def vmap_without_jit(c):
    return c.batch(S, c.x[:2]), c.each[:2]


@transformation
def vmap_over_the_last_axis(c):
    return jax.jit(jax.vmap(c.f, (None, 1), 1))(S, c.x.T).T, c.each


@transformation
def vmap_of_vmap(c):
    two = jax.vmap(c.batch, (None, 0))
    return jax.jit(two)(S, c.x.reshape(2, BATCH // 2, -1)).reshape(BATCH, -1), c.each


@transformation
def vmap_over_the_shared_number(c):
    s = jnp.array([S, 0.9])
    found = jax.jit(jax.vmap(c.f, (0, None)))(s, c.x[0])
    return found, jnp.stack([c.one(each, c.x[0]) for each in s])


@transformation
def vmap_of_all_pairs(c):
    s = jnp.array([S, 0.9])
    found = jax.jit(jax.vmap(c.batch, (0, None)))(s, c.x[:2])
    return found, jnp.stack([jnp.stack([c.one(each, x) for x in c.x[:2]]) for each in s])


@transformation
def vmap_of_jit(c):
    return jax.vmap(jax.jit(c.f), (None, 0))(S, c.x[:2]), c.each[:2]


@transformation
def batch_of_one(c):
    return jax.jit(c.batch)(S, c.x[:1]), c.each[:1]


@transformation
def empty_batch(c):
    found = jax.jit(c.batch)(S, c.x[:0])
    return found, c.each[:0]


@needs(1)
def derivative_of_an_empty_batch(c):
    none = c.x[:0]
    found = jax.jit(jax.grad(c.total))(S, none), jax.jit(lambda s: jax.jvp(lambda s: c.total(s, none), (s,), (1.0,)))(S)
    return found, (0.0, (0.0, 0.0))


@transformation
def nan_in_one_entry(c):
    found = jax.jit(c.batch)(S, c.x.at[1].set(jnp.nan))
    keep = np.arange(BATCH) != 1
    return found[keep], c.each[keep]


# control flow around it


@transformation
def scan(c):
    return jax.jit(lambda x: jax.lax.scan(lambda s, x: (s, c.f(s, x)), S, x)[1])(c.x[:3]), c.each[:3]


@transformation
def while_loop(c):
    def step(state):
        i, out = state
        return i + 1, out.at[i].set(c.f(S, c.x[i]))

    out = jnp.zeros_like(c.each[:3])
    return jax.jit(lambda out: jax.lax.while_loop(lambda state: state[0] < 3, step, (0, out))[1])(out), c.each[:3]


@transformation
def cond(c):
    def of(x, yes):
        return jax.lax.cond(yes, lambda x: c.f(S, x), lambda x: jnp.zeros_like(c.each[0]), x)

    yes = jnp.arange(2) == 0
    return jax.jit(jax.vmap(of))(c.x[:2], yes), jnp.where(yes[:, None], c.each[:2], 0)


@transformation
def lax_map(c):
    return jax.jit(lambda x: jax.lax.map(lambda x: c.f(S, x), x, batch_size=2))(c.x[:4]), c.each[:4]


# derivatives


@needs(1)
def jvp(c):
    return jax.jit(lambda t: jax.jvp(c.along(c.x[0]), (t,), (1.0,))[1])(0.0), c.slope()


@needs(1)
def vjp(c):
    weights = jnp.asarray(np.random.default_rng(3).normal(size=c.each.shape[1]))
    return jax.jit(jax.grad(lambda t: weights @ c.along(c.x[0])(t)))(0.0), weights @ c.slope()


@needs(1)
def linearize(c):
    return jax.jit(lambda: jax.linearize(c.along(c.x[0]), 0.0)[1](1.0))(), c.slope()


@needs(1)
def jacobians(c):
    f = partial(c.f, S)
    forward, reverse = jax.jit(jax.jacfwd(f)), jax.jit(jax.jacrev(f))
    return reverse(c.x[0]), forward(c.x[0])


@needs(1)
def gradient_of_a_batch(c):
    found = jax.jit(jax.grad(c.total, (0, 1)))(S, c.x[:2])
    single = jax.jit(jax.grad(lambda s, x: jnp.sum(c.f(s, x) ** 2), (0, 1)))
    each = [single(S, x) for x in c.x[:2]]
    return found, (sum(s for s, _ in each), jnp.stack([x for _, x in each]))


@needs(1)
def checkpoint(c):
    f = lambda t: jnp.sum(c.along(c.x[0])(t) ** 2)  # noqa: E731
    return jax.jit(jax.grad(jax.checkpoint(f)))(0.0), jax.jit(jax.grad(f))(0.0)


@needs(1)
def custom_vjp(c):
    @jax.custom_vjp
    def f(s, x):
        return c.f(s, x)

    f.defvjp(lambda s, x: jax.vjp(c.f, s, x), lambda back, y: back(y))
    found = jax.jit(jax.vmap(jax.grad(lambda s, x: jnp.sum(f(s, x) ** 2)), (None, 0)))(S, c.x[:2])
    return found, jax.jit(jax.vmap(jax.grad(lambda s, x: jnp.sum(c.f(s, x) ** 2)), (None, 0)))(S, c.x[:2])


@needs(2)
def second_derivatives(c):
    def g(t):
        return jnp.sum(c.along(c.x[0])(t) ** 2)

    h = 1e-4
    first = jax.jit(jax.grad(g))
    expected = (8 * (first(h) - first(-h)) - (first(2 * h) - first(-2 * h))) / (12 * h)
    modes = [jax.jacfwd, jax.jacrev]
    return [jax.jit(a(b(g)))(0.0) for a in modes for b in modes], [expected] * 4


# several devices


def _mesh():
    return Mesh(np.array(jax.devices()[:DEVICES]), ("b",))


def _several(c, llvm):
    own = NamedSharding(_mesh(), PartitionSpec("b"))
    with lgsim.llvm_lowering(llvm):
        made = jax.jit(c.batch).lower(S, jax.device_put(c.x, own)).compile()
        text = made.as_text()
        found = made(S, jax.device_put(c.x, own))
    assert found.sharding.is_equivalent_to(own, found.ndim), f"the result is on {found.sharding}"
    for word in ("all-gather", "all-to-all", "collective-permute"):
        assert word not in text, f"{word} in the compiled program"
    return found, c.each


@transformation
def sharded_jit(c):
    return _several(c, True)


@transformation
def sharded_jit_without_llvm(c):
    return _several(c, False)


@transformation
def share_of_each_device(c):
    """No device has an array as long as the whole batch, in values and in gradients; nothing is run."""
    own = jax.ShapeDtypeStruct((13 * DEVICES, c.size), jnp.float64, sharding=NamedSharding(_mesh(), PartitionSpec("b")))
    lengths = []
    for llvm in (True, False):
        with lgsim.llvm_lowering(llvm):
            for f in (c.batch, jax.grad(c.total, (0, 1))):
                text = jax.jit(f).lower(S, own).compile().as_text()
                axes = {int(n) for shape in re.findall(r"\w\d+\[([\d,]+)\]", text) for n in shape.split(",")}
                lengths.append([13 * DEVICES in axes, 13 in axes])
    return jnp.array(lengths, float), jnp.array([[0.0, 1.0]] * 4)


@needs(1)
def sharded_gradient(c):
    own = NamedSharding(_mesh(), PartitionSpec("b"))
    f = jax.jit(jax.value_and_grad(c.total))
    text = f.lower(S, jax.device_put(c.x, own)).compile().as_text()
    assert "all-gather" not in text, "all-gather in the compiled program"
    return f(S, jax.device_put(c.x, own)), f(S, c.x)


def _shard_map(c, check):
    own, one = PartitionSpec("b"), PartitionSpec()

    def of_device(s, x):
        return jax.lax.psum(c.total(s, x), "b")

    return jax.shard_map(of_device, mesh=_mesh(), in_specs=(one, own), out_specs=one, check_vma=check)


@transformation
def shard_map(c):
    own, one = PartitionSpec("b"), PartitionSpec()
    f = jax.shard_map(c.batch, mesh=_mesh(), in_specs=(one, own), out_specs=own)
    return jax.jit(f)(S, c.x), c.each


@needs(1)
def gradient_under_shard_map(c):
    f = _shard_map(c, True)
    return jax.jit(jax.value_and_grad(f))(S, c.x), jax.jit(jax.value_and_grad(c.total))(S, c.x)


@needs(1)
def gradient_under_shard_map_without_check(c):
    f = _shard_map(c, False)
    return jax.jit(jax.value_and_grad(f))(S, c.x), jax.jit(jax.value_and_grad(c.total))(S, c.x)


@needs(1)
def gradient_inside_of_shard_map(c):
    own, one = PartitionSpec("b"), PartitionSpec()

    def of_device(s, x):
        return jax.grad(lambda s: jax.lax.psum(c.total(s, x), "b"))(s)

    f = jax.shard_map(of_device, mesh=_mesh(), in_specs=(one, own), out_specs=one)
    return jax.jit(f)(S, c.x), jax.jit(jax.grad(c.total))(S, c.x)


def _over_one_axis(f, out, check):
    """The batch divided by hand over one axis of a mesh, and by XLA over the other."""
    mesh = Mesh(np.array(jax.devices()[:DEVICES]).reshape(2, -1), ("a", "b"))
    specs = PartitionSpec(), PartitionSpec("b")
    g = jax.shard_map(f, mesh=mesh, in_specs=specs, out_specs=out, axis_names={"b"}, check_vma=check)
    return lambda s, x: jax.jit(g)(s, jax.device_put(x, NamedSharding(mesh, PartitionSpec(("b", "a")))))


@transformation
def shard_map_over_one_axis(c):
    own = PartitionSpec("b")
    found = [_over_one_axis(c.batch, own, check)(S, c.x) for check in (True, False)]
    # JAX 0.6 gathers the results of its own operations too
    plain = _over_one_axis(lambda s, x: s * x, own, False)(S, c.x).sharding
    for y in found:
        assert y.sharding.is_equivalent_to(plain, y.ndim), f"the result is on {y.sharding}"
    return found, [c.each] * 2


@needs(1)
def gradient_under_shard_map_over_one_axis(c):
    def of_device(s, x):
        return jax.lax.psum(c.total(s, x), "b")

    of_both = [jax.grad(_over_one_axis(of_device, PartitionSpec(), check), (0, 1)) for check in (True, False)]
    return [f(S, c.x) for f in of_both], [jax.jit(jax.grad(c.total, (0, 1)))(S, c.x)] * 2


def _on_explicit_axes(f, c):
    """``f`` with the batch on a mesh whose axes are part of the types of arrays, as ``jax.make_mesh`` makes it."""
    mesh = jax.make_mesh((DEVICES,), ("b",), axis_types=(jax.sharding.AxisType.Explicit,))
    own = NamedSharding(mesh, PartitionSpec("b"))
    with jax.set_mesh(mesh):
        return jax.jit(f)(S, jax.device_put(c.x, own)), own


@transformation
def explicit_axes(c):
    if not (c.explicit and hasattr(jax, "set_mesh")):  # JAX 0.6 has no such axes yet
        return None
    found, own = _on_explicit_axes(c.batch, c)
    assert found.sharding.is_equivalent_to(own, found.ndim), f"the result is on {found.sharding}"
    return found, c.each


@needs(1)
def gradient_on_explicit_axes(c):
    if not (c.explicit and hasattr(jax, "set_mesh")):
        return None
    return _on_explicit_axes(jax.grad(c.total, (0, 1)), c)[0], jax.jit(jax.grad(c.total, (0, 1)))(S, c.x)


@transformation
def pmap(c):
    x = c.x.reshape(DEVICES, BATCH // DEVICES, -1)
    return jax.pmap(c.batch, in_axes=(None, 0))(S, x).reshape(BATCH, -1), c.each


# programs that leave


@transformation
def ahead_of_time(c):
    return jax.jit(c.batch).lower(S, c.x).compile()(S, c.x), c.each


@transformation
def exported(c):
    with lgsim.llvm_lowering(False):
        made = export.export(jax.jit(c.f))(jax.ShapeDtypeStruct((), jnp.float64), c.x[0])
    return made.call(S, c.x[0]), c.each[0]


@transformation
def exported_for_any_batch(c):
    (b,) = export.symbolic_shape("b")
    with lgsim.llvm_lowering(False):
        made = export.export(jax.jit(c.batch))(
            jax.ShapeDtypeStruct((), jnp.float64), jax.ShapeDtypeStruct((b, c.size), jnp.float64)
        )
    return [made.call(S, c.x[:n]) for n in (1, 3)], [c.each[:n] for n in (1, 3)]


# what looks at numbers


@transformation
def checked(c):
    f = jax.jit(checkify.checkify(c.f, errors=checkify.float_checks))
    error, found = f(S, c.x[0])
    assert error.get() is None, error.get()
    return found, c.each[0]


@transformation
def debug_nans(c):
    jax.config.update("jax_debug_nans", True)
    try:
        return jax.jit(c.f)(S, c.x[0]), c.each[0]
    finally:
        jax.config.update("jax_debug_nans", False)


@transformation
def without_jit(c):
    with jax.disable_jit():
        return c.f(S, c.x[0]), c.each[0]


@transformation
def equinox(c):
    return eqx.filter_jit(eqx.filter_vmap(c.f, in_axes=(None, 0)))(S, c.x), c.each


@needs(1)
def equinox_gradient(c):
    return eqx.filter_jit(eqx.filter_grad(c.total))(jnp.asarray(S), c.x), jax.jit(jax.grad(c.total))(S, c.x)


SMALL = ("vmap", "empty_batch", "nan_in_one_entry", "sharded_jit", "gradient_under_shard_map", "exported_for_any_batch")
"""Those that stand for all."""
COMPILED_ONLY = ("share_of_each_device",)
"""Those that compile a function four times and run nothing, for a few functions."""
DIFFERENCES = ("jvp", "vjp", "linearize", "second_derivatives")
"""Those that are measured by differences."""


def row(case: Case, name: str) -> dict[str, Any]:
    """How far what is found is from what is expected, relative to the largest number of each array."""
    try:
        rows = TRANSFORMATIONS[name](case)
        if rows is None:
            return {"error": None, "off": 0.0}
        both = [list(map(np.asarray, jax.tree.leaves(part))) for part in rows]
        found, expected = ([x.shape for x in arrays] for arrays in both)
        assert found == expected, f"shapes {found}, expected {expected}"
        off = [np.max(abs(a - b), initial=0) / max(np.max(abs(b), initial=0), 1e-3) for a, b in zip(*both, strict=True)]
        return {"error": None, "off": float(np.max(off, initial=0))}
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = " ".join(str(error).split())[:300]
        return {"error": f"{type(error).__name__}: {text} ({where.filename}:{where.lineno})", "off": None}


def main() -> None:
    """Print the rows that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("functions", nargs="*", default=list(FUNCTIONS))
    parser.add_argument("--only", nargs="*", default=list(TRANSFORMATIONS))
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for name in asked.functions or FUNCTIONS:
        case = Case(FUNCTIONS[name]())
        for each in asked.only:
            print(json.dumps({"function": name, "transformation": each, **row(case, each)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
