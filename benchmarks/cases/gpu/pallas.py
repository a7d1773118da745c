"""A program of one state as one Pallas kernel: one state per lane, its components as vectors of a block."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

OPERATIONS = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
    "neg": lambda x: -x, "abs": jnp.abs, "sign": jnp.sign, "sqrt": jnp.sqrt, "floor": jnp.floor, "max": jnp.maximum,
    "min": jnp.minimum, "round": lambda x: jnp.floor(x + 0.5), "eq": lambda x, y: x == y, "ne": lambda x, y: x != y,
    "lt": lambda x, y: x < y, "le": lambda x, y: x <= y, "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "not": jnp.logical_not, "select": jnp.where,
    "convert": lambda x: x, "sin": jnp.sin, "cos": jnp.cos, "tan": jnp.tan, "atan2": jnp.arctan2, "exp": jnp.exp,
    "log": jnp.log, "pow": jnp.power,
}  # fmt: skip
"""Triton has no ``round``; a half may go either way, since it is for the quadrant of an angle."""


def kernel(program, batch, block, interpret):
    """The program as a function of arrays (*own, batch), with ``block`` states per block of threads.

    Raises:
        NotImplementedError: the program has an unsupported operation.
    """
    from jax.experimental.pallas import triton

    unknown = set(program.counts()) - set(OPERATIONS)
    if unknown:
        raise NotImplementedError(f"Pallas: the benchmark lacks {sorted(unknown)}")

    def body(*refs):
        here = pl.ds(pl.program_id(0) * block, block)
        values = [
            ref[(*map(int, place), here)]
            for ref, port in zip(refs, program.inputs, strict=False)
            for place in np.ndindex(*port.shape)
        ]

        def number(value):
            if value >= 0:
                return values[value]
            kind, given = program.constants[-1 - value]
            return np.dtype(kind).type(given)

        for op, kind, operands in program.statements:
            found = jnp.asarray(OPERATIONS[op](*map(number, operands)))
            values.append(found if found.dtype == kind else found.astype(kind))
        for ref, port in zip(refs[len(program.inputs) :], program.outputs, strict=True):
            for place, value in zip(np.ndindex(*port.shape), port.values, strict=True):
                ref[(*map(int, place), here)] = jnp.broadcast_to(jnp.asarray(number(value), port.kind), (block,))

    whole = pl.BlockSpec(memory_space=pl.ANY)
    return pl.pallas_call(
        body,
        grid=(batch // block,),
        out_shape=[jax.ShapeDtypeStruct((*port.shape, batch), port.kind) for port in program.outputs],
        in_specs=[whole] * len(program.inputs),
        out_specs=[whole] * len(program.outputs),
        compiler_params=None if interpret else triton.CompilerParams(num_warps=max(1, block // 32), num_stages=1),
        interpret=interpret,
    )
