"""Run as ``python -m tests.optimize.exported_controller FOLDER``: steps of a controller that another process exported.

FOLDER has the exported step, the leaves of its plan, and measured states; the controls and the last plan are written.
"""

import sys
from pathlib import Path

import jax
import numpy as np
from jax import export

jax.config.update("jax_enable_x64", True)


def main(folder):
    import lgsim.optimize  # noqa: F401  it knows the class of plans

    step = export.deserialize((folder / "step").read_bytes())
    with np.load(folder / "plan.npz") as file:
        leaves = [file[f"arr_{i}"] for i in range(len(file.files))]
    (plan, _), _ = jax.tree.unflatten(step.in_tree, [*leaves, np.zeros(2)])
    us = []
    for y in np.load(folder / "measured.npy"):
        u, plan = step.call(plan, y)
        us.append(u)
    np.savez(folder / "found.npz", np.array(us), *jax.tree.leaves(plan))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
