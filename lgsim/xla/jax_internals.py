"""What lgsim knows of JAX beyond its documented interface, all of it in this file.

Each function says with which versions of JAX it was seen; ``tests/xla/test_jax_internals.py`` runs under the oldest,
the locked and the newest one. Where a version has another shape, ``UnknownJax`` says which, and what cannot be read
goes to XLA by ``lgsim.xla.fallback``: an unknown JAX costs speed, never an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
from jax.extend.core import ClosedJaxpr as ClosedJaxpr
from jax.extend.core import Jaxpr as Jaxpr
from jax.extend.core import JaxprEqn as JaxprEqn
from jax.extend.core import Primitive as Primitive
from jax.extend.core import jaxpr_as_fun as jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

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


def is_undefined(operand: Any) -> bool:
    """Whether an operand of a transpose rule is the one that it is linear in (JAX 0.6.2 to 0.12.0)."""
    return ad.is_undefined_primal(operand)


def instantiated(change: Any) -> Any:
    """A tangent or cotangent as an array (JAX 0.6.2 to 0.12.0)."""
    return ad.instantiate_zeros(change)


def define_primitive(
    name: str,
    *,
    impl: Callable[..., Any],
    abstract_eval: Callable[..., Any],
    lowering: Callable[..., Any],
    batching_rule: Callable[..., Any],
    jvp_rule: Callable[..., Any] | None = None,
    transpose_rule: Callable[..., Any] | None = None,
    linear_transpose: Callable[..., Any] | None = None,
    dce_rule: Callable[[list[bool], JaxprEqn], tuple[list[bool], JaxprEqn | None]] | None = None,
    multiple_results: bool = True,
) -> Primitive:
    """A primitive with its rules, as JAX 0.6.2 to 0.12.0 takes them.

    Args:
        name: Its name.
        impl: Its values outside of any trace.
        abstract_eval: Shapes and dtypes of its results.
        lowering: A function of arrays that JAX traces, which stands for it on every platform, see
            ``register_lowering``.
        batching_rule: Of operands and their axes.
        jvp_rule: Of operands and tangents.
        transpose_rule: Of cotangents and operands.
        linear_transpose: In the place of both, for a primitive that is linear in all its operands.
        dce_rule: Of which results are used: which operands are, and what remains of the equation.
        multiple_results: Whether it returns a list.
    """
    primitive = Primitive(name)
    primitive.multiple_results = multiple_results
    primitive.def_impl(impl)
    primitive.def_abstract_eval(abstract_eval)
    register_lowering(primitive, lowering)
    batching.primitive_batchers[primitive] = batching_rule
    if linear_transpose is not None:
        ad.deflinear2(primitive, linear_transpose)
    if jvp_rule is not None:
        ad.primitive_jvps[primitive] = jvp_rule
    if transpose_rule is not None:
        ad.primitive_transposes[primitive] = transpose_rule
    if dce_rule is not None:
        _register_dce_rule(primitive, dce_rule)
    return primitive


def register_lowering(primitive: Primitive, run: Callable[..., Any], platform: str | None = None) -> None:
    """What a primitive is lowered to: the function of arrays ``run(*operands, **parameters)`` (JAX 0.6.2 to 0.12.0).

    Args:
        primitive: The primitive.
        run: The function.
        platform: The platform, None for all that have no lowering of their own.
    """
    rule = mlir.lower_fun(run, multiple_results=primitive.multiple_results)
    if platform is None:
        mlir.register_lowering(primitive, rule)
    else:
        mlir.register_lowering(primitive, rule, platform=platform)


def _register_dce_rule(primitive: Primitive, keep: Callable[..., Any]) -> None:
    """A rule for dead code is called with (used, equation) by JAX 0.6.2 to 0.11, with (used, live, equation) by 0.12.

    Without a rule, and where a later version calls it in another way, nothing of a primitive is taken away.
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
