"""What lgsim knows of JAX beyond its documented interface, all of it in this file.

Each function says with which versions of JAX it was seen; its test runs under the oldest, the locked and the newest
one. Where a version has another shape, ``UnknownJax`` says which, and what cannot be read
goes to XLA by ``lgsim._compile.xla.fallback``: an unknown JAX costs speed, never an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import jax
from jax.core import ShapedArray
from jax.extend.core import ClosedJaxpr as ClosedJaxpr
from jax.extend.core import Jaxpr as Jaxpr
from jax.extend.core import JaxprEqn as JaxprEqn
from jax.extend.core import Primitive as Primitive
from jax.extend.core import jaxpr_as_fun as jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from lgsim._compile.xla.partition import BatchAxes, divided
from lgsim._compile.xla.taylor_mode import register_taylor_rule

try:  # JAX 0.6.2 to 0.12.0; without it there are no hints
    from jax.experimental.xla_metadata import set_xla_metadata as set_xla_metadata
except ImportError:
    set_xla_metadata = None  # type: ignore[assignment]


class UnknownJax(Exception):
    """This version of JAX has another shape than the versions that lgsim was written for."""

    def __init__(self, primitive: str, what: str) -> None:
        self.primitive = primitive
        super().__init__(f"JAX {jax.__version__}: the primitive {primitive} has no {what}")


def parameter(equation: JaxprEqn, name: str) -> Any:
    """A parameter of an equation of one of JAX's own primitives.

    Names are those of JAX 0.6.2 to 0.12.0.

    Raises:
        UnknownJax: this version of JAX has no such parameter.
    """
    try:
        return equation.params[name]
    except KeyError:
        raise UnknownJax(equation.primitive.name, f"parameter {name}") from None


class _Parameters(dict[str, Any]):
    """Parameters by name; one that is missing says so in words."""

    def __init__(self, equation: JaxprEqn) -> None:
        super().__init__(equation.params)
        self._primitive = equation.primitive.name

    def __missing__(self, name: str) -> Any:
        raise UnknownJax(self._primitive, f"parameter {name}")


def parameters(equation: JaxprEqn) -> Mapping[str, Any]:
    """All parameters of an equation by their names; one that is asked for and missing raises ``UnknownJax``."""
    return _Parameters(equation)


_CALLED = {
    "jit": ("jaxpr",),
    "pjit": ("jaxpr",),
    "closed_call": ("call_jaxpr",),
    "core_call": ("call_jaxpr",),
    "remat": ("jaxpr",),
    "remat2": ("jaxpr",),
    "checkpoint": ("jaxpr",),
    "custom_jvp_call": ("call_jaxpr",),
    "custom_vjp_call": ("call_jaxpr", "fun_jaxpr"),
    "custom_vjp_call_jaxpr": ("fun_jaxpr", "call_jaxpr"),
    "eval_jaxpr": ("call_jaxpr",),
}
"""Primitives that call a program, and the names of the parameter that holds it, JAX 0.6.2 to 0.12.0."""


def calls_program(name: str) -> bool:
    """Whether a primitive of this name does no more than call a program."""
    return name in _CALLED


def called_program(equation: JaxprEqn) -> Any:
    """The program that an equation calls, a ``ClosedJaxpr`` or a jaxpr without constants (JAX 0.6.2 to 0.12.0).

    Raises:
        UnknownJax: it stands in no parameter that is known.
    """
    name = equation.primitive.name
    for key in _CALLED[name]:
        if key in equation.params:
            return equation.params[key]
    raise UnknownJax(name, f"parameter {' or '.join(_CALLED[name])}")


class LoopCounts(NamedTuple):
    """How the operands of a scan are divided: constants, then the carry, then what it runs over.

    Attributes:
        consts: The number of constants.
        carry: The number of arrays that are carried on; the first results are these.
    """

    consts: int
    carry: int


def loop_counts(equation: JaxprEqn) -> LoopCounts:
    """How the operands of an equation of the primitive ``scan`` are divided.

    JAX 0.6.2 to 0.10.2 gives two numbers, 0.11.0 to 0.12.0 a tree ``ft_in`` of three parts.

    Raises:
        UnknownJax: neither is there.
    """
    p = equation.params
    if "num_consts" in p and "num_carry" in p:
        return LoopCounts(p["num_consts"], p["num_carry"])
    try:
        consts, carry, entries = (len(list(part)) for part in p["ft_in"].unpack())
    except (KeyError, AttributeError, TypeError, ValueError):
        raise UnknownJax("scan", "numbers of constants and carry that lgsim can read") from None
    if consts + carry + entries != len(equation.invars):
        raise UnknownJax("scan", "numbers of constants and carry that belong to its operands")
    return LoopCounts(consts, carry)


def origin(called: Any) -> str:
    """The name of the function that a program was traced from, "" where it is not said (JAX 0.6.2 to 0.12.0)."""
    info = getattr(getattr(called, "jaxpr", called), "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "").partition(" at ")[0]


def is_symbolic_zero(change: Any) -> bool:
    """Whether a tangent or cotangent that a rule of a primitive is given is known to be zero (JAX 0.6.2 to 0.12.0)."""
    return isinstance(change, ad.Zero)


def symbolic_zero(x: Any) -> Any:
    """The tangent of a value that is known to be zero (JAX 0.6.2 to 0.12.0)."""
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def is_undefined(operand: Any) -> bool:
    """Whether an operand of a transpose rule is the one that it is linear in (JAX 0.6.2 to 0.12.0)."""
    return ad.is_undefined_primal(operand)


def instantiated(change: Any) -> Any:
    """A tangent or cotangent as an array (JAX 0.6.2 to 0.12.0)."""
    return ad.instantiate_zeros(change)


def _varying(aval: Any) -> frozenset:
    """The axes of a ``shard_map`` over which an array of this kind differs between devices."""
    axes = getattr(aval, "vma", None)  # JAX 0.6.2 to 0.9
    return getattr(getattr(aval, "manual_axis_type", None), "varying", frozenset()) if axes is None else axes


def in_shard_map() -> bool:
    """Whether what is traced now is the program of one device of a ``shard_map`` (JAX 0.6.2 to 0.12.0)."""
    try:
        return bool(jax.sharding.get_abstract_mesh().manual_axes)
    except AttributeError:
        return False


def varying_axes(x: Any) -> frozenset:
    """The axes of a ``shard_map`` over which an array differs between devices (JAX 0.6.2 to 0.12.0)."""
    return _varying(x if isinstance(x, ShapedArray) else jax.typeof(x))


def varies(*trees: Any) -> bool:
    """Whether an array in a pytree differs between the devices of a ``shard_map``."""
    return in_shard_map() and any(map(varying_axes, jax.tree.leaves(trees)))


def varying_over(x: Any, axes: frozenset) -> Any:
    """X as an array that differs over these axes, too (JAX 0.6.2 to 0.12.0); its transpose sums over them."""
    more = tuple(axes - varying_axes(x))
    if not more:
        return x
    cast = getattr(jax.lax, "pcast", None)
    return jax.lax.pvary(x, more) if cast is None else cast(x, more, to="varying")  # type: ignore[attr-defined]


def zeros_beside(length: int, *trees: Any) -> Any:
    """Zeros (length,) that differ over the axes of a ``shard_map`` over which arrays do, and of the first one's dtype.

    Where a function of coordinates about a point is differentiated in reverse at their zero: that of a constant, which
    is the same on all devices, would be the sum over them.
    """
    leaves = jax.tree.leaves(trees)
    zeros = jax.numpy.zeros(length, leaves[0].dtype)
    return varying_over(zeros, frozenset().union(*map(varying_axes, leaves))) if in_shard_map() else zeros


def _varying_alike(leaves: Sequence[Any]) -> list[Any]:
    """Arrays, all of which differ over the axes of a ``shard_map`` over which one of them does."""
    if not in_shard_map():
        return list(leaves)
    axes = frozenset().union(*map(varying_axes, leaves))
    return [varying_over(x, axes) for x in leaves]


def _alike(found: Any, operands: Sequence[Any]) -> Any:
    """The kind of a result, which differs over the axes of ``shard_map`` that the operands of a primitive do."""
    one = next(iter(operands), None)
    if one is None or not _varying(one):
        return found
    # of the operand's kind: what was traced elsewhere has another mesh
    return one.update(shape=found.shape, dtype=found.dtype, weak_type=found.weak_type)


class _Primitive(Primitive):
    """A primitive whose operands all differ over the same axes of a ``shard_map``, as JAX asks of its own.

    Attributes:
        batch_axes: See ``define_primitive``.
        computes: See there.
        lowering: That for platforms without one of their own.
    """

    batch_axes: Callable[..., BatchAxes] | None
    computes: bool
    lowering: Callable[..., Any]

    def bind(self, *operands: Any, **params: Any) -> Any:
        """As JAX's, with operands cast."""
        return super().bind(*_varying_alike(operands), **params)


PRIMITIVES: list[_Primitive] = []
"""All that are defined."""


def define_primitive(
    name: str,
    *,
    impl: Callable[..., Any],
    abstract_eval: Callable[..., Any],
    lowering: Callable[..., Any],
    batching_rule: Callable[..., Any],
    batch_axes: Callable[..., BatchAxes] | None,
    computes: bool,
    jvp_rule: Callable[..., Any] | None = None,
    transpose_rule: Callable[..., Any] | None = None,
    multiple_results: bool = True,
) -> Primitive:
    """A primitive with its rules, as JAX 0.6.2 to 0.12.0 takes them.

    Args:
        impl: Its values outside of any trace.
        abstract_eval: Shapes and dtypes of its results; that they differ between the devices of a ``shard_map`` where
            operands do is said here.
        lowering: A function of arrays that JAX traces, which stands for it on every platform, see
            ``register_lowering``.
        batching_rule: Of operands and their axes.
        batch_axes: Of the kinds of operands and results, and its parameters: where the batches are that several
            devices may divide under ``jit``. None for operations that XLA knows how to divide.
        computes: Whether its results can be NaN where no operand is: ``jax.experimental.checkify`` then says so.
        jvp_rule: Of operands and tangents.
        transpose_rule: Of cotangents and operands; alone it says that a primitive is linear in all its operands.
        multiple_results: Whether it returns a list.
    """

    def kinds(*operands: Any, **params: Any) -> Any:
        found = abstract_eval(*operands, **params)
        return [_alike(x, operands) for x in found] if multiple_results else _alike(found, operands)

    primitive = _Primitive(name)
    primitive.multiple_results = multiple_results
    primitive.batch_axes, primitive.computes, primitive.lowering = batch_axes, computes, lowering
    PRIMITIVES.append(primitive)
    if batch_axes is not None:
        _needs_devices(primitive)
    primitive.def_impl(impl)
    primitive.def_abstract_eval(kinds)
    register_lowering(primitive, lowering)
    batching.primitive_batchers[primitive] = batching_rule
    if computes:
        _check_nan(primitive)
    if jvp_rule is not None:
        ad.primitive_jvps[primitive] = jvp_rule
    if transpose_rule is not None:
        if jvp_rule is None:
            ad.deflinear2(primitive, transpose_rule)
        else:
            ad.primitive_transposes[primitive] = transpose_rule
    register_taylor_rule(primitive)
    return primitive


def register_lowering(
    primitive: Any, run: Callable[..., Any], platform: str | None = None, alone: bool = False
) -> None:
    """What a primitive is lowered to: the function of arrays ``run(*operands, **parameters)`` (JAX 0.6.2 to 0.12.0).

    Where one program is lowered for several devices, each runs it for its part of the batches; a primitive without
    batch axes is lowered to what it is on all platforms then.

    Args:
        platform: The platform, None for all that have no lowering of their own.
        alone: Whether ``run`` is traced as the program of one device, which knows of no ``shard_map`` around it.
    """

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        if alone and any(map(_varying, ctx.avals_in)):
            ctx = ctx.replace(avals_in=[ShapedArray(x.shape, x.dtype, x.weak_type) for x in ctx.avals_in])
        traced = run
        if _several_devices(ctx):
            # an exported program can ask nothing when it is divided
            if primitive.batch_axes is None or ctx.module_context.lowering_parameters.for_export:
                traced = primitive.lowering
            else:
                axes = primitive.batch_axes(ctx.avals_in, ctx.avals_out, **params)
                return lower(divided(partial(run, **params), axes))(ctx, *operands)
        return lower(traced)(ctx, *operands, **params)

    lower = partial(mlir.lower_fun, multiple_results=primitive.multiple_results)
    if platform is None:
        mlir.register_lowering(primitive, rule)
    else:
        mlir.register_lowering(primitive, rule, platform=platform)


def _several_devices(ctx: Any) -> bool:
    """Whether XLA is going to divide what is lowered among several devices (JAX 0.6.2 to 0.12.0)."""
    context = ctx.module_context.axis_context
    mesh = getattr(context, "mesh", None)
    if mesh is not None:  # inside of a shard_map
        return mesh.size > 1 and set(context.manual_axes) != set(mesh.axis_names)
    return getattr(context, "num_devices", 1) > 1


def _needs_devices(primitive: Primitive) -> None:
    """Let JAX name the devices when it lowers a program with this primitive (JAX 0.6.2 to 0.12.0)."""
    try:
        from jax._src.dispatch import prim_requires_devices_during_lowering
    except ImportError:
        return
    prim_requires_devices_during_lowering.add(primitive)


def register_dce_rule(
    primitive: Primitive, keep: Callable[[list[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]]
) -> None:
    """A rule for dead code, called with (used, equation) by JAX 0.6.2 to 0.11, with (used, live, equation) by 0.12.

    Without a rule, and where a later version calls it in another way, nothing of a primitive is taken away.

    Args:
        keep: Of which results are used: which operands are, and what remains of the equation.
    """
    try:
        from jax.interpreters.partial_eval import dce_rules
    except ImportError:
        return

    def rule(used: Sequence[bool], *rest: Any) -> tuple[list[bool], Any]:
        equation = rest[-1]
        try:
            return keep(list(used), equation)
        except (AttributeError, TypeError, ValueError):
            return [True] * len(equation.invars), equation

    dce_rules[primitive] = rule


def _check_nan(primitive: Primitive) -> None:
    """Let ``checkify`` name a primitive that makes a NaN (JAX 0.6.2 to 0.12.0); else it looks at JAX's own only."""
    try:
        from jax._src.checkify import error_checks, nan_error_check
    except ImportError:
        return
    error_checks[primitive] = partial(nan_error_check, primitive)


class Setting:
    """A value of this thread on which compiled programs depend, with ``setting.changed(value)``.

    JAX 0.8 and later compile anew for another value; before, what is compiled is forgotten at each change.

    Args:
        default: The value outside of ``changed``.
    """

    def __init__(self, default: Any) -> None:
        make = getattr(jax, "make_user_context", None)
        self._context: Any = None if make is None else make(default)
        self._local = threading.local()
        self._default = default

    @property
    def value(self) -> Any:
        """The value now."""
        return getattr(self._local, "value", self._default) if self._context is None else self._context.value

    @contextmanager
    def changed(self, value: Any) -> Iterator[None]:
        """Another value for what is traced inside."""
        if self._context is not None:
            with self._context(value):
                yield
            return
        before, self._local.value = self.value, value
        jax.clear_caches()
        try:
            yield
        finally:
            self._local.value = before
            jax.clear_caches()


def without_jit() -> bool:
    """Whether JAX runs every operation by itself (``jax.disable_jit``, JAX 0.6.2 to 0.12.0)."""
    return bool(getattr(jax.config, "jax_disable_jit", False))


def one_by_one() -> bool:
    """Whether a primitive outside of a program is to run its operations one by one (JAX 0.6.2 to 0.12.0).

    Under ``jax_debug_nans`` JAX runs a program with a NaN again like that, and what is compiled again would end there.
    """
    return without_jit() or any(getattr(jax.config, f"jax_debug_{kind}", False) for kind in ("nans", "infs"))
