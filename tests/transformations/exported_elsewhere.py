"""Run as ``python -m tests.transformations.exported_elsewhere FOLDER PROGRAMS``: what another process wrote is called.

FOLDER has the inputs and what was written, PROGRAMS is a folder of programs or ``cache`` for the user's own.
"""

import json
import pickle
import sys
from pathlib import Path

import jax
import numpy as np
from jax import export
from jax.experimental.serialize_executable import deserialize_and_load

jax.config.update("jax_enable_x64", True)


def results(folder):
    q = np.load(folder / "q.npy")
    compiled = deserialize_and_load(*pickle.loads((folder / "compiled.pickle").read_bytes()))
    found = {"compiled": compiled(q).tolist()}
    found["exported"] = export.deserialize((folder / "exported").read_bytes()).call(q).tolist()
    return found


def main(folder, programs):
    call = export.deserialize((folder / "portable").read_bytes()).call
    shown = {"portable": call(np.load(folder / "q.npy")).tolist()}
    assert not any(name.startswith("lgsim") for name in sys.modules)
    try:
        results(folder)
    except Exception as error:
        shown["error"] = str(error)
    import lgsim

    shown["programs"] = lgsim.load_programs(None if programs == "cache" else programs)
    print(json.dumps({**shown, **results(folder)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
