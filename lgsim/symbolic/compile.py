"""Code generation: functions of a model as code in another language."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.typing import DTypeLike

from lgsim._compile.programs.program import Program, TooLong, UnsupportedProgramError
from lgsim._compile.programs.read import SINE_AND_COSINE, read
from lgsim._compile.programs.targets import C, Described, Interface
from lgsim.multibody.model import Model
from lgsim.support.packages import own_version
from lgsim.symbolic.descriptions import PARAMETERS, function_results, parameters

LIMIT = 100_000
"""Default of the maximum number of operations in ``compile``."""


def compile(
    f: Callable[..., Any],
    model: Model | None,
    target: Callable[[Interface], Any] | None = None,
    *,
    name: str | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    results: Sequence[str] | None = None,
    about: str | None = None,
    numbers_as_argument: bool = False,
    right_angles: bool = True,
    dtype: DTypeLike | None = None,
    limit: int = LIMIT,
) -> Any:
    """Generate straight-line code of ``f(model, ...)``, without loops, heap memory or calls other than math functions.

    The code computes the result of ``f`` in the model's precision, to rounding. The parameters of the model are
    constants of the code: expressions of constants are computed in advance, and zero terms are left out.

    Args:
        f: A function of a model and arrays of one state that JAX can trace, from lgsim or your own, such as
            ``lgsim.inverse_dynamics`` or ``lgsim.forward_dynamics_derivatives``.
        model: The model; None for a function ``f(...)`` of arrays alone, such as a step of a filter.
        target: An object of ``lgsim.symbolic.targets``: by default ``targets.C()``.
        name: The name of the function in the code, by default that of ``f``.
        shapes: Shapes of arguments by name; those of q, v, a, tau, dt and t are known. Arguments of ``f`` with defaults
            keep them unless their shape is given here.
        results: Names of the results, one for each array that ``f`` returns, if ``f`` does not name them itself.
        about: A comment line that describes the function, by default the first sentence of the docstring of ``f``.
        numbers_as_argument: Make the model parameters an argument ``numbers`` of the code instead of constants. It is
            the first argument, one array in the order of the header, see ``model_numbers(model)``.
        right_angles: Replace rotation entries of the model's placements and frames that are zero up to rounding (15
            digits in float64) by zero: the cosine of pi/2 is 6e-17 in a file with angles. This saves up to a third of
            the code of an arm with such angles. Parameters that are an argument are unchanged.
        dtype: The precision of the code, float32 or float64, by default that of the model, or JAX's own.
        limit: The maximum number of operations.

    Returns:
        The output of the target: ``Code`` with text, or a ``casadi.Function``.

    Raises:
        ValueError: there are more operations than the limit, a loop or a branch depends on the state, an argument has
            no known shape, or a name is invalid.
        NotImplementedError: the target does not support an operation.
        ModuleNotFoundError: the target needs a package that is missing.
    """
    target = C() if target is None else target
    name = getattr(f, "__name__", None) if name is None else name
    if name is None or not name.isidentifier():
        raise ValueError(f"name: expected a name for the function in the code, got {name!r}; give name=")
    kind = jnp.dtype(dtype or (jnp.result_type(float) if model is None else model.dtype))
    if dtype is not None:
        model = jax.tree.map(lambda x: jnp.asarray(x, dtype), model)
    if model is not None and right_angles and not numbers_as_argument:
        model = model.replace(placements=_rounded(model.placements), frames=_rounded(model.frames))
    # shapes and descriptions of the arguments
    given = _arguments(f, model, dict(shapes or {}))
    kinds = [jax.ShapeDtypeStruct(shape, kind) for shape in given.values()]
    described = [Described(each, () if model is None else _lines(each, model)) for each in given]

    def called(model: Model | None, arrays: Sequence[Any]) -> Any:
        named = dict(zip(given, arrays, strict=True))
        return f(**named) if model is None else f(model, **named)

    # the program, with the model parameters as constants or as one leading argument
    if model is not None and numbers_as_argument:
        flat, unflatten = ravel_pytree(model)
        described.insert(0, Described("numbers", _number_lines(model)))
        program = _read(lambda x, *arrays: called(unflatten(x), arrays), [flat, *kinds], name, limit)
    else:
        program = _read(lambda *arrays: called(model, arrays), kinds, name, limit)
    # names of the results; one that equals an argument gets the suffix _new
    shape = jax.eval_shape(lambda *arrays: called(model, arrays), *kinds)
    made = function_results(f, model, shape) if results is None else tuple(map(Described, results))
    if len(made) != len(program.outputs):
        raise ValueError(f"results: expected {len(program.outputs)} names, one for each array, got {len(made)}")
    taken = {each.name for each in described}
    made = tuple(x._replace(name=f"{x.name}_new") if x.name in taken else x for x in made)
    text = _first_sentence(f) if about is None else about
    interface = Interface(name, program, tuple(described), made, (*_about(name, text, model, numbers_as_argument),))
    return target(interface)


def model_numbers(model: Model) -> np.ndarray:
    """The parameters of a model in the order of the argument ``numbers`` of generated code, see ``compile``."""
    return np.asarray(ravel_pytree(model)[0])


def _rounded(poses: Any) -> Any:
    """Poses (n, 4, 4) with rotation entries that are zero up to rounding replaced by zero."""
    poses = np.array(poses)
    rotations = poses[:, :3, :3]
    rotations[np.round(rotations, np.finfo(poses.dtype).precision) == 0] = 0
    return jnp.asarray(poses)


def _lines(name: str, model: Model) -> tuple[str, ...]:
    return PARAMETERS[name].about(model) if name in PARAMETERS else ()


def _arguments(
    f: Callable[..., Any], model: Model | None, shapes: dict[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for each in [*parameters(f, after=0 if model is None else 1), *(x for x in shapes)]:
        if each in found:
            continue
        if each in shapes:
            found[each] = tuple(shapes[each])
        elif model is not None and each in PARAMETERS:
            found[each] = PARAMETERS[each].shape(model)
        else:
            known = ", ".join(PARAMETERS) if model is not None else "no other"
            raise ValueError(
                f"shapes: expected the shape of the argument {each!r} (only those of {known} are known);"
                f" give shapes={{{each!r}: (...)}}"
            )
    return found


def _read(f: Callable[..., Any], kinds: list[Any], name: str, limit: int) -> Program:
    try:
        return read(f, *kinds, limit=limit, calls=SINE_AND_COSINE)
    except TooLong as error:
        raise ValueError(f"{name}: expected at most {limit} operations, got more; give a larger limit") from error
    except UnsupportedProgramError as error:
        raise ValueError(
            f"{name}: no straight-line code: {error}; no loop, index or branch of the code may depend on the state"
        ) from error


def _first_sentence(f: Callable[..., Any]) -> str:
    first = " ".join((f.__doc__ or "").partition("\n\n")[0].split()).replace("``", "")
    return first


def _about(name: str, text: str, model: Model | None, numbers_as_argument: bool) -> list[str]:
    lines = [f"{name}: {text}" if text else name, ""]
    if model is not None:
        lines.append(f"Model: {model.topology.bodies} moving bodies, nq = {model.nq}, nv = {model.nv}.")
        lines += [] if numbers_as_argument else ["Its parameters are constants of this code."]
        gravity = ", ".join(f"{float(x):g}" for x in np.asarray(model.gravity))
        lines += [] if numbers_as_argument else [f"Gravity ({gravity}) m/s^2 in world axes, z up."]
        lines += [
            "SI units; twists (v, w) and wrenches (f, n), linear part first, in the body's frame;",
            "quaternions (w, x, y, z) of norm one. Nothing is checked or normalized.",
        ]
    lines += [
        "Arguments and results must not overlap in memory.",
        "",
        f"Generated by lgsim {own_version()}; do not edit.",
    ]
    return lines


def _number_lines(model: Model) -> tuple[str, ...]:
    lines, start = ["parameters of the model, consecutive arrays in row-major order:"], 0
    for path, leaf in jax.tree_util.tree_flatten_with_path(model)[0]:
        size = int(np.size(leaf))
        field = jax.tree_util.keystr(path).lstrip(".")
        if size:
            lines.append(f"numbers[{start}..{start + size - 1}]  {field} {np.shape(leaf)}")
        start += size
    return tuple(lines)
