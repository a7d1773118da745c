"""Studies on a Ray cluster of two nodes that the test starts: the local results, whatever dies on the way."""

import os
import signal
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from lgsim import montecarlo as mc
from lgsim.montecarlo.store import Store
from tests.montecarlo import studies
from tests.montecarlo.ray_turns import alone

ray = pytest.importorskip("ray", reason="the package ray is missing: pip install 'lgsim[ray]'")
from ray.cluster_utils import Cluster  # noqa: E402

from lgsim.montecarlo import ray_cluster  # noqa: E402

# nodes and workers are processes that import JAX; Ray forks to start them, and each becomes another program at once
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")]


def study(samples=960, **more):
    """A pendulum whose start and inertia are dispersed: nothing that a worker could not import."""
    model = studies.pendulum()
    distributions = {"q0": mc.Normal(jnp.zeros(1), 0.1), "model.inertias": mc.InertiaDispersion(model.inertias, 0.1)}
    rollout = mc.Rollout(model, dt=0.01, steps=20, save_every=20)
    return mc.Study(distributions, rollout, [mc.outputs.final_q], samples=samples, tile=16, **more)


@pytest.fixture(scope="module")
def nodes():
    """A cluster with a head that computes nothing and two nodes of one CPU, and the second of these."""
    with alone():
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
        made.add_node(num_cpus=1)
        second = made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False)
        yield made, second
        ray.shutdown()
        made.shutdown()


def killed_once(start, marker):
    """The task of the cluster, whose first worker at a chunk is killed by the system in the middle."""

    def run(shared, first, stop):
        from lgsim.montecarlo.ray_cluster import _chunk

        found = _chunk(shared, first, stop)
        if first == start and not os.path.exists(marker):
            with open(marker, "x", encoding="ascii") as file:
                file.write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    return run


def test_a_killed_worker_and_a_lost_node_lose_nothing(nodes, tmp_path, monkeypatch):
    """SIGKILL of a worker while it holds a chunk, then a node with what runs on it: all chunks, the local bits."""
    made, second = nodes
    wanted = study()
    engine, local = mc.Engine(wanted), mc.run(wanted)
    marker = tmp_path / "killed"
    monkeypatch.setattr(ray_cluster, "_chunk", killed_once(3 * 32, str(marker)))
    seen = []

    def progress(running):
        seen.append(running.samples)
        if len(seen) == 8:
            made.remove_node(second, allow_graceful=False)

    with mc.open_store(engine, tmp_path / "store", chunk=32) as store:
        results = ray_cluster.fill(engine, store, progress=progress)
        assert store.missing() == []
    assert int(marker.read_text()) != os.getpid()
    assert seen == list(range(32, 961, 32))
    assert results.finished and results.samples == 960
    for name in ("final_q", "diverged"):
        np.testing.assert_array_equal(results.column(name), local.column(name))
    for one in ("mean", "squared_deviations", "low", "high"):
        np.testing.assert_array_equal(getattr(results.moments("final_q"), one), getattr(local.moments("final_q"), one))
    mc.run(wanted, tmp_path / "local", chunk=32)
    for one, other in zip(store.files(), Store(tmp_path / "local").files(), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_it_goes_on_and_stops_where_the_local_engine_stops(nodes, tmp_path):
    """An interrupted study is resumed on the cluster; with a rule to stop it ends at the same sample."""
    rule = mc.StopAtConfidence("final_q", 0.004, min_samples=64)
    wanted = study(4096, stop=rule)
    engine, local = mc.Engine(wanted), mc.run(wanted)
    assert 200 < local.samples < 3000

    def interrupt(running):
        raise KeyboardInterrupt

    path = tmp_path / "store"
    with mc.open_store(engine, path, chunk=32) as store:
        part = ray_cluster.fill(engine, store, progress=interrupt)
    assert not part.finished and part.samples >= 32
    with mc.open_store(engine, path, resume=True) as store:
        results = ray_cluster.fill(engine, store)
    assert results.finished and results.samples == local.samples
    np.testing.assert_array_equal(results.column("final_q"), local.column("final_q"))


def test_a_worker_with_another_study_is_refused(nodes, tmp_path, monkeypatch):
    """What a worker computes must be what was asked for: the difference is named, and nothing is written."""
    engine, other = mc.Engine(study()), mc.Engine(study(seed=1))
    metadata = ray_cluster.store_metadata
    monkeypatch.setattr(ray_cluster, "store_metadata", lambda given, chunk: metadata(other, chunk))
    with (
        mc.open_store(engine, tmp_path / "store", chunk=32) as store,
        pytest.raises(RuntimeError, match=r"the worker has another study: seed \(1 in the study, 0 here\)"),
    ):  # fmt: skip
        ray_cluster.fill(engine, store)
    assert len(store.missing()) == store.chunks


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    """One line with the command that installs it; the store is left for another engine."""
    monkeypatch.setitem(sys.modules, "ray", None)
    engine = mc.Engine(study(32))
    with mc.open_store(engine, tmp_path / "store") as store:
        with pytest.raises(ImportError, match=r"pip install 'lgsim\[ray\]'"):
            ray_cluster.fill(engine, store)
    assert store.missing() == [0]
