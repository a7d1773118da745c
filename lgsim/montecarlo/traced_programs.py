"""The programs of a study, as JAX traces them, and its fingerprint."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import PyTree, Shaped

from lgsim._compile.xla import cuda_kernels, llvm_lowering, with_arrays
from lgsim._compile.xla.expansion import ClosedJaxpr, program_texts
from lgsim.montecarlo.study import Study

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_ABSENT = re.compile(r"(?<=\[\*, \*, \*, \*, \*, \*, \*)(?:, None)+(?=\])")
"""Text of structures for fields that a model does not have: texts are the same as before these fields existed."""
# of a batch_last program only the class name enters the text, as in stores from before the class was moved
_PROGRAM = re.compile(r"<[\w.]+\.BatchProgram object")

TracedProgram = tuple[Callable[..., PyTree], PyTree, ClosedJaxpr]
"""A function of (leaves, tile), the tile's shapes, and the function that is traced."""


def array_leaves(study: Study) -> list[Array]:
    """The arrays of a study."""
    return jax.tree.leaves(eqx.filter(study, eqx.is_array))


def traced_programs(study: Study) -> list[TracedProgram]:
    """The functions that draw the samples of a tile, and that evaluate them."""
    arrays, static = eqx.partition(study, eqx.is_array)
    # only the leaves: programs do not depend on the number of samples
    leaves, structure = jax.tree.flatten(arrays)

    def combined(leaves: list[Array]) -> Study:
        return eqx.combine(jax.tree.unflatten(structure, leaves), static)

    def draw(leaves: list[Array], indices: Array) -> PyTree:
        return jax.vmap(combined(leaves).sampler.draw)(indices)

    def evaluate(leaves: list[Array], samples: PyTree) -> PyTree:
        return jax.vmap(combined(leaves).evaluate)(samples)

    indices = jax.ShapeDtypeStruct((study.tile,), jnp.uint32)
    drawn, samples = jax.make_jaxpr(draw, return_shape=True)(leaves, indices)
    return [(draw, indices, drawn), (evaluate, samples, jax.make_jaxpr(evaluate)(leaves, samples))]


def fingerprint(study: Study, programs: list[ClosedJaxpr]) -> str:
    """Sixteen hexadecimal digits that identify a study by its program, numbers, seed and tile.

    They are the same in every process. The number of samples enters only for a Latin hypercube, the rule to stop never.
    """
    digest = hashlib.sha256(f"tile {study.tile} bound {study.bound!r}".encode())
    for program in programs:
        text = _ABSENT.sub("", _ADDRESS.sub("", "\n".join(program_texts(program))))
        digest.update(_PROGRAM.sub("<_Program object", text).encode())
        for const in program.consts:
            digest.update(_bytes(const))
    parts = study.sampler, study.rollout, study.outputs, study.failures
    names = study.sampler.names, [(name, kind.shape, str(kind.dtype)) for name, kind in study.columns().items()]
    digest.update(repr(names).encode())
    for leaf in jax.tree.leaves(eqx.filter(parts, eqx.is_array)):
        digest.update(_bytes(leaf))
    return digest.hexdigest()[:16]


def program_key(program: ClosedJaxpr) -> str:
    """A digest of a traced program in this process: equal for programs that can share one compilation."""
    digest = hashlib.sha256(str(program.jaxpr).encode())
    for const in program.consts:
        digest.update(_bytes(const))
    return digest.hexdigest()


def _bytes(x: Shaped[Array, " ..."] | Shaped[np.ndarray, " ..."]) -> bytes:
    array = np.ascontiguousarray(x)
    return f"{array.dtype.str} {array.shape}".encode() + array.tobytes()


def study_fingerprint(study: Study) -> str:
    """The ``fingerprint`` of a study; it traces the study."""
    study = with_arrays(study)
    # a store does not depend on the compiler
    with llvm_lowering(False), cuda_kernels(0):
        return fingerprint(study, [program for *_, program in traced_programs(study)])
