"""All uses of JAX beyond its documented interface, in one file.

Each function names the versions of JAX for which it was verified; its test runs with the oldest, the locked and the
newest one. For a version with other internals, ``UnknownJax`` names the difference, and unreadable programs fall back
to XLA by ``lgsim._compile.xla.fallback``: an unknown JAX costs speed, not correctness.
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
from jax.sharding import NamedSharding, PartitionSpec

from lgsim._compile.xla.partition import BatchAxes, divided
from lgsim._compile.xla.taylor_mode import register_taylor_rule

try:  # JAX 0.6.2 to 0.12.0; without it there are no hints
    from jax.experimental.xla_metadata import set_xla_metadata as set_xla_metadata
except ImportError:
    set_xla_metadata = None  # type: ignore[assignment]


class UnknownJax(Exception):
    """This version of JAX has other internals than the versions that lgsim supports."""

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
    """Parameters by name; a missing one raises ``UnknownJax``."""

    def __init__(self, equation: JaxprEqn) -> None:
        super().__init__(equation.params)
        self._primitive = equation.primitive.name

    def __missing__(self, name: str) -> Any:
        raise UnknownJax(self._primitive, f"parameter {name}")


def parameters(equation: JaxprEqn) -> Mapping[str, Any]:
    """All parameters of an equation by name; access to a missing one raises ``UnknownJax``."""
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
"""Primitives that call a program, and the possible names of its parameter, JAX 0.6.2 to 0.12.0."""


def calls_program(name: str) -> bool:
    """True if a primitive of this name only calls a program."""
    return name in _CALLED


def called_program(equation: JaxprEqn) -> Any:
    """The program that an equation calls, a ``ClosedJaxpr`` or a jaxpr without constants (JAX 0.6.2 to 0.12.0).

    Raises:
        UnknownJax: no known parameter has it.
    """
    name = equation.primitive.name
    for key in _CALLED[name]:
        if key in equation.params:
            return equation.params[key]
    raise UnknownJax(name, f"parameter {' or '.join(_CALLED[name])}")


class LoopCounts(NamedTuple):
    """The division of the operands of a scan: constants, then the carry, then the scanned arrays.

    Attributes:
        consts: The number of constants.
        carry: The number of arrays in the carry, which are also the first results.
    """

    consts: int
    carry: int


def loop_counts(equation: JaxprEqn) -> LoopCounts:
    """The division of the operands of a ``scan`` equation.

    JAX 0.6.2 to 0.10.2 has two numbers, 0.11.0 to 0.12.0 a tree ``ft_in`` of three parts.

    Raises:
        UnknownJax: it has neither.
    """
    p = equation.params
    if "num_consts" in p and "num_carry" in p:
        return LoopCounts(p["num_consts"], p["num_carry"])
    try:
        consts, carry, entries = (len(list(part)) for part in p["ft_in"].unpack())
    except (KeyError, AttributeError, TypeError, ValueError):
        raise UnknownJax("scan", "numbers of constants and carry that lgsim can read") from None
    if consts + carry + entries != len(equation.invars):
        raise UnknownJax("scan", "numbers of constants and carry that match its operands")
    return LoopCounts(consts, carry)


def origin(called: Any) -> str:
    """The name of the function that a program was traced from, "" if unknown (JAX 0.6.2 to 0.12.0)."""
    info = getattr(getattr(called, "jaxpr", called), "debug_info", None)
    return str(getattr(info, "func_src_info", None) or "").partition(" at ")[0]


def is_symbolic_zero(change: Any) -> bool:
    """True if a tangent or cotangent passed to a rule of a primitive is known to be zero (JAX 0.6.2 to 0.12.0)."""
    return isinstance(change, ad.Zero)


def symbolic_zero(x: Any) -> Any:
    """The symbolic zero tangent of a value (JAX 0.6.2 to 0.12.0)."""
    return ad.Zero(jax.typeof(x).to_tangent_aval())


def is_undefined(operand: Any) -> bool:
    """True if an operand of a transpose rule is the linear one (JAX 0.6.2 to 0.12.0)."""
    return ad.is_undefined_primal(operand)


def instantiated(change: Any) -> Any:
    """A tangent or cotangent as an array (JAX 0.6.2 to 0.12.0)."""
    return ad.instantiate_zeros(change)


def _varying(aval: Any) -> frozenset:
    """The axes of a ``shard_map`` over which an array of this type differs between devices."""
    axes = getattr(aval, "vma", None)  # JAX 0.6.2 to 0.9
    return getattr(getattr(aval, "manual_axis_type", None), "varying", frozenset()) if axes is None else axes


def in_shard_map() -> bool:
    """True while the program of one device of a ``shard_map`` is traced (JAX 0.6.2 to 0.12.0)."""
    try:
        return bool(jax.sharding.get_abstract_mesh().manual_axes)
    except AttributeError:
        return False


def varying_axes(x: Any) -> frozenset:
    """The axes of a ``shard_map`` over which an array differs between devices (JAX 0.6.2 to 0.12.0)."""
    return _varying(x if isinstance(x, ShapedArray) else jax.typeof(x))


def varies(*trees: Any) -> bool:
    """True if an array in a pytree differs between the devices of a ``shard_map``."""
    return in_shard_map() and any(map(varying_axes, jax.tree.leaves(trees)))


def varying_over(x: Any, axes: frozenset) -> Any:
    """X as an array that also differs over these axes (JAX 0.6.2 to 0.12.0); its transpose sums over them."""
    more = tuple(axes - varying_axes(x))
    if not more:
        return x
    cast = getattr(jax.lax, "pcast", None)
    return jax.lax.pvary(x, more) if cast is None else cast(x, more, to="varying")  # type: ignore[attr-defined]


def zeros_beside(length: int, *trees: Any) -> Any:
    """Zeros (length,) that differ over the same axes of a ``shard_map`` as the arrays, in the dtype of the first one.

    Used for reverse-mode derivatives at the zero of local coordinates: for a constant, which is the same on all
    devices, they would be summed over the devices.
    """
    leaves = jax.tree.leaves(trees)
    zeros = jax.numpy.zeros(length, leaves[0].dtype)
    return varying_over(zeros, frozenset().union(*map(varying_axes, leaves))) if in_shard_map() else zeros


def _varying_alike(leaves: Sequence[Any]) -> list[Any]:
    """Arrays that all differ over each axis of a ``shard_map`` over which one of them does."""
    if not in_shard_map():
        return list(leaves)
    axes = frozenset().union(*map(varying_axes, leaves))
    return [varying_over(x, axes) for x in leaves]


def _alike(found: Any, operands: Sequence[Any]) -> Any:
    """The type of a result, which differs over the axes of ``shard_map`` over which the operands do."""
    one = next(iter(operands), None)
    if one is None or not _varying(one):
        return found
    # from the operand's type: a trace from elsewhere has another mesh
    return one.update(shape=found.shape, dtype=found.dtype, weak_type=found.weak_type)


def _explicit_mesh(aval: Any) -> Any:
    """The mesh with explicit axes that the type of an array names, None for none (JAX 0.6.2 to 0.12.0)."""
    mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
    return mesh if getattr(mesh, "explicit_axes", ()) else None


def _parts(mesh: Any, axes: BatchAxes, operands: Sequence[Any]) -> list[NamedSharding]:
    """The division of results over the explicit axes of a mesh, that of the first operand which divides a batch."""
    names: dict[Any, Any] = {None: None}
    for x, each in zip(operands, axes.operands, strict=True):
        spec = x.sharding.spec if _explicit_mesh(x) is not None else ()
        names.update({k: name for k, name in zip(each, spec, strict=False) if name is not None and k not in names})
    return [NamedSharding(mesh, PartitionSpec(*map(names.get, each))) for each in axes.results]


class _Primitive(Primitive):
    """A primitive whose operands all differ over the same axes of a ``shard_map``, as JAX requires.

    Explicit axes of a mesh are automatic inside: its rules are then not required to say how each operation is divided.

    Attributes:
        batch_axes: See ``define_primitive``.
        computes: See ``define_primitive``.
        lowering: The lowering for platforms without one of their own.
        kinds: Types of the results.
    """

    batch_axes: Callable[..., BatchAxes] | None
    computes: bool
    lowering: Callable[..., Any]
    kinds: Callable[..., Any]

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Bind as JAX does, with operands cast to the same axes."""
        bind = partial(super().bind, **params)
        given = [*map(jax.typeof, operands)]
        mesh = next(filter(None, map(_explicit_mesh, given)), None)
        auto_axes = getattr(jax.sharding, "auto_axes", None)
        if mesh is None or auto_axes is None:
            return bind(*_varying_alike(operands))
        found = self.kinds(*(ShapedArray(x.shape, x.dtype, x.weak_type) for x in given), **params)
        results = found if self.multiple_results else [found]
        if self.batch_axes is None:  # one entry after another, apart from a last axis
            axes = BatchAxes(*([tuple(range(x.ndim)) for x in each] for each in (given, results)))
        else:
            axes = self.batch_axes(given, results, **params)
        parts = _parts(mesh, axes, given)
        made = auto_axes(bind, axes=mesh.explicit_axes, out_sharding=parts if self.multiple_results else parts[0])
        return made(*operands)


PRIMITIVES: list[_Primitive] = []
"""All defined primitives."""


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
    """A primitive with its rules, for JAX 0.6.2 to 0.12.0.

    Args:
        impl: The values outside of any trace.
        abstract_eval: Shapes and dtypes of the results; axes over which they differ between the devices of a
            ``shard_map`` are added.
        lowering: A function of arrays that JAX traces, the lowering on every platform, see ``register_lowering``.
        batching_rule: A function of operands and their axes.
        batch_axes: A function of the types of operands and results and of the parameters, which returns the batches
            that several devices may divide under ``jit``. None for operations that XLA divides itself.
        computes: True if its results can be NaN without a NaN operand; ``jax.experimental.checkify`` then reports it.
        jvp_rule: A function of operands and tangents.
        transpose_rule: A function of cotangents and operands; without ``jvp_rule``, the primitive is linear in all
            operands.
        multiple_results: True if it returns a list.
    """

    def kinds(*operands: Any, **params: Any) -> Any:
        found = abstract_eval(*operands, **params)
        return [_alike(x, operands) for x in found] if multiple_results else _alike(found, operands)

    primitive = _Primitive(name)
    primitive.multiple_results = multiple_results
    primitive.kinds, primitive.batch_axes = kinds, batch_axes
    primitive.computes, primitive.lowering = computes, lowering
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
    """Register a lowering: the function of arrays ``run(*operands, **parameters)`` (JAX 0.6.2 to 0.12.0).

    In a program for several devices, each device runs it on its part of the batches. A primitive without batch axes is
    then lowered by its platform-independent lowering.

    Args:
        platform: The platform, None for all without a lowering of their own.
        alone: Trace ``run`` as the program of one device, without a surrounding ``shard_map``.
    """

    def rule(ctx: Any, *operands: Any, **params: Any) -> Any:
        if alone and any(map(_varying, ctx.avals_in)):
            ctx = ctx.replace(avals_in=[ShapedArray(x.shape, x.dtype, x.weak_type) for x in ctx.avals_in])
        traced = run
        if _several_devices(ctx):
            # an exported program cannot call back when it is divided
            exported = ctx.module_context.lowering_parameters.for_export
            if primitive.batch_axes is None or exported or not _divides_calls(ctx):
                traced = primitive.lowering
            else:
                axes = primitive.batch_axes(ctx.avals_in, ctx.avals_out, **params)
                return lower(divided(partial(run, **params), axes, _slices))(ctx, *operands)
        return lower(traced)(ctx, *operands, **params)

    lower = partial(mlir.lower_fun, multiple_results=primitive.multiple_results)
    if platform is None:
        mlir.register_lowering(primitive, rule)
    else:
        mlir.register_lowering(primitive, rule, platform=platform)


def _several_devices(ctx: Any) -> bool:
    """True if XLA will divide the lowered program among several devices (JAX 0.6.2 to 0.12.0)."""
    context = ctx.module_context.axis_context
    mesh = getattr(context, "mesh", None)
    if mesh is not None:  # inside of a shard_map
        return mesh.size > 1 and set(context.manual_axes) != set(mesh.axis_names)
    return getattr(context, "num_devices", 1) > 1


def _divides_calls(ctx: Any) -> bool:
    """False if XLA's partitioner ends with an error at a call that has a rule for its division (JAX 0.6.2 to 0.12.0).

    GSPMD, the default up to JAX 0.6, does so in a ``shard_map`` over some axes of its mesh.
    """
    shardy = getattr(jax.config, "jax_use_shardy_partitioner", True)
    return shardy or not getattr(ctx.module_context.axis_context, "manual_axes", ())


def _slices(sharding: Any, shape: tuple[int, ...]) -> Mapping[Any, tuple[slice, ...]]:
    """The part of an array on each device, in the order of the program (JAX 0.6.2 to 0.12.0).

    In a ``shard_map`` over some axes of its mesh, XLA divides among the devices of a group with equal places on these
    axes. For each group the first devices of the program stand.
    """
    tiles = getattr(sharding, "_hlo_sharding", None)
    count = tiles.num_devices() if tiles is not None and tiles.is_tiled() else len(sharding.device_set)
    if count < len(sharding.device_set):
        sharding = type(sharding)(sharding._device_assignment[:count], tiles)
    return sharding.devices_indices_map(shape)


def _needs_devices(primitive: Primitive) -> None:
    """Let JAX pass the devices when it lowers a program with this primitive (JAX 0.6.2 to 0.12.0)."""
    try:
        from jax._src.dispatch import prim_requires_devices_during_lowering
    except ImportError:
        return
    prim_requires_devices_during_lowering.add(primitive)


def register_dce_rule(
    primitive: Primitive, keep: Callable[[list[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]]
) -> None:
    """Register a rule for dead code, called with (used, equation) by JAX 0.6.2 to 0.11, (used, live, equation) by 0.12.

    Without a rule, or if a later version calls it in another way, no part of the primitive is removed.

    Args:
        keep: A function of the used results and the equation: the used operands, and the reduced equation.
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
    """Let ``checkify`` report a primitive that produces a NaN (JAX 0.6.2 to 0.12.0); else it checks only JAX's own."""
    try:
        from jax._src.checkify import error_checks, nan_error_check
    except ImportError:
        return
    error_checks[primitive] = partial(nan_error_check, primitive)


class Setting:
    """A value per thread on which compiled programs depend, with ``setting.changed(value)``.

    JAX 0.8 and later recompile for another value; before, each change clears the compiled programs.

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
        """The current value."""
        return getattr(self._local, "value", self._default) if self._context is None else self._context.value

    @contextmanager
    def changed(self, value: Any) -> Iterator[None]:
        """Set another value for everything traced inside."""
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
    """True if JAX runs operations one by one (``jax.disable_jit``, JAX 0.6.2 to 0.12.0)."""
    return bool(getattr(jax.config, "jax_disable_jit", False))


def one_by_one() -> bool:
    """True if a primitive outside of a program must run its operations one by one (JAX 0.6.2 to 0.12.0).

    Under ``jax_debug_nans`` JAX reruns a program with a NaN in this way, and a compiled call would fail there again.
    """
    return without_jit() or any(getattr(jax.config, f"jax_debug_{kind}", False) for kind in ("nans", "infs"))
