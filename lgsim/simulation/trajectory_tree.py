"""A trajectory as a pytree, so that it can be an argument of functions that JAX compiles and exports.

Arrays, the model and the integration errors are its children. All other fields are static, as JSON, in which NaN equals
NaN.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import jax

from lgsim._compile.xla import export_node
from lgsim.simulation.accuracy.trajectory_error import StepError
from lgsim.simulation.trajectory import Trajectory

_STATIC = {
    Trajectory: ("method", "dt", "result", "version", "remark"),
    StepError: ("order", "reason", "names", "units", "places", "claimed", "rate", "until"),
}


def _register(kind: type, name: str) -> None:
    static, every = _STATIC[kind], [field.name for field in fields(kind)]
    dynamic = [each for each in every if each not in static]

    def flatten(x: Any) -> tuple[list[Any], str]:
        return [getattr(x, each) for each in dynamic], json.dumps([getattr(x, each) for each in static], default=_plain)

    def flatten_with_keys(x: Any) -> tuple[list[Any], str]:
        children, text = flatten(x)
        return list(zip(map(jax.tree_util.GetAttrKey, dynamic), children, strict=True)), text

    def unflatten(text: str, children: Iterable[Any]) -> Any:
        # leaves may be arbitrary objects, which a constructor would reject
        made = object.__new__(kind)
        plain = [tuple(x) if isinstance(x, list) else x for x in json.loads(text)]
        for each, value in (*zip(static, plain, strict=True), *zip(dynamic, children, strict=True)):
            object.__setattr__(made, each, value)
        return made

    jax.tree_util.register_pytree_with_keys(kind, flatten_with_keys, unflatten, flatten)
    export_node(kind, name, str, str, lambda text, *children: unflatten(text, children))


def _plain(x: Any) -> Any:
    """A numpy scalar as a Python one."""
    return x.item()


_register(Trajectory, "lgsim.Trajectory")
_register(StepError, "lgsim.StepError")
