"""Several hosts by ``jax.distributed``: two processes on this one, with what one process alone computes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lgsim import montecarlo as mc
from lgsim.montecarlo.store import Store
from tests.montecarlo import studies

ROOT = Path(__file__).parents[2]

HOST = """
import sys
import jax
jax.config.update("jax_enable_x64", True)
port, process, seed, store, samples = sys.argv[1:]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(process))
from lgsim import montecarlo as mc
from lgsim.montecarlo import multihost
from tests.montecarlo import studies
study = studies.plain(int(samples), seed=int(seed))
results = multihost.run(study, store, chunk=32, resume=True)
assert (results is None) == (process == "1")
"""


def free_port():
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        return here.getsockname()[1]


def both(store, seeds=(3, 3), samples=400):
    """(exit code, errors) of two hosts that run the study of a seed each."""
    port = str(free_port())
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", HOST, port, str(i), str(seed), str(store), str(samples)], cwd=ROOT, env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        ) for i, seed in enumerate(seeds)
    ]  # fmt: skip
    try:
        errors = [process.communicate(timeout=240)[1] for process in started]
        return [(process.returncode, said) for process, said in zip(started, errors, strict=True)]
    finally:
        for process in started:
            process.kill()


@pytest.mark.slow
def test_two_hosts_compute_what_one_does(tmp_path):
    """Files of chunks equal byte for byte; an extension goes on with what is there."""
    store, alone = tmp_path / "store", tmp_path / "alone"
    for samples in (200, 400):
        assert [(code, errors) for code, errors in both(store, samples=samples) if code] == []
    study = studies.plain(400)
    mc.run(study, alone, chunk=32)
    results = mc.Results.open(study, store)
    assert results.finished and results.samples == 400
    for one, other in zip(Store(store).files(), Store(alone).files(), strict=True):
        assert one.read_bytes() == other.read_bytes()
    np.testing.assert_array_equal(results.column("sum"), mc.Results.open(study, alone).column("sum"))


@pytest.mark.slow
def test_hosts_with_different_studies_are_refused(tmp_path):
    """Before anything is computed; both fingerprints are named by both."""
    found = both(tmp_path / "store", seeds=(3, 4))
    prints = sorted(mc.Engine(studies.plain(400, seed=seed)).fingerprint for seed in (3, 4))
    for code, errors in found:
        assert code and f"expected the same one on all hosts, got {', '.join(prints)}" in errors
    assert not (tmp_path / "store").exists()
