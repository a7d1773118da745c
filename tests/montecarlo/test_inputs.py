"""Random numbers of the samples in results and stores: their names, values, checksum; stores without them."""

import json

import jax.numpy as jnp
import numpy as np
import pyarrow as arrow
import pyarrow.parquet
import pytest

from lgsim import montecarlo as mc
from lgsim.montecarlo.store import Store
from lgsim.montecarlo.study import Sampler
from tests.montecarlo import studies


def numbers(distributions):
    return list(Sampler(distributions, 0, 1).random_numbers())


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A study with diverged samples, with its store."""
    path, study = tmp_path_factory.mktemp("inputs") / "store", studies.plain(100)
    mc.run(study, path, chunk=16)
    return study, path


def test_inputs_are_the_values_of_the_samples(stored):
    """From memory and from a store, bitwise, diverged samples too."""
    study, path = stored
    kept, memory = mc.Results.open(study, path).inputs, mc.run(study).inputs
    assert list(kept) == list(memory) == ["s", "x[0]", "x[1]"]
    for i in (0, 17, 99):
        values = study.sample(i).values
        for found in (kept, memory):
            assert found["s"][i] == values["s"] and found["x[1]"][i] == values["x"][1]
    assert all(x.shape == (100,) and x.dtype == np.float64 for x in kept.values())


def test_only_what_is_random():
    """Constants, proportional numbers and paths are left out; rare values and entries of containers are not."""
    x = jnp.array([1.0, 2.0, 3.0])
    assert numbers({"v0": mc.Normal(x, jnp.array([0.1, 0.0, 1e-9]))}) == ["v0[0]", "v0[2]"]
    assert numbers({"a": mc.Uniform(1.0, 1.0), "b": mc.LogNormal(2.0, 0.1)}) == ["b"]
    bodies = studies.tumbling().inertias
    masses = mc.MassDispersion(bodies, mc.LogNormal(bodies[:, 0], 0.1))
    assert numbers({"model.inertias": masses}) == ["model.inertias[0,0]", "model.inertias[1,0]"]
    assert len(numbers({"model.inertias": mc.InertiaDispersion(bodies[:1], 0.1)})) == 10
    assert numbers({"gusts": mc.OrnsteinUhlenbeck(1.0, 1.0, 0.1, 5)}) == []
    rare = mc.FunctionDistribution(lambda z: {"fault": z[0] > 5.0, "pair": z}, 2)
    assert numbers({"wheel": rare}) == ["wheel.fault", "wheel.pair[0]", "wheel.pair[1]"]


def test_proportional_numbers_with_a_mean_are_kept():
    """A mean that is large against the deviation does not make numbers proportional."""
    assert len(numbers({"x": mc.Normal(jnp.array([1e4, 1e4]), 1e-3)})) == 2


def test_inputs_are_under_the_checksum(stored, tmp_path):
    """One changed number in a chunk is noticed."""
    study, path = stored
    file = Store(path).file(2)
    content, table = file.read_bytes(), pyarrow.parquet.read_table(file)
    x = table["input.s"].to_numpy().copy()
    x[3] += 1e-9
    changed = table.set_column(table.column_names.index("input.s"), "input.s", arrow.array(x))
    try:
        pyarrow.parquet.write_table(changed, file, compression="none", use_dictionary=False)
        with pytest.raises(ValueError, match="checksum does not match"):
            mc.Results.open(study, path).moments("sum")
    finally:
        file.write_bytes(content)


def test_a_store_without_inputs(tmp_path, monkeypatch):
    """An older one opens and resumes in its own form; its inputs are drawn again."""
    path = tmp_path / "store"
    with monkeypatch.context() as patched:
        patched.setattr(Sampler, "random_numbers", lambda self: {})
        mc.run(studies.plain(64), path, chunk=16)
    assert not any(name.startswith("input.") for name in json.loads((path / "study.json").read_text())["columns"])
    assert mc.Results.open(studies.plain(64), path).samples == 64
    longer = mc.run(studies.plain(100), path, resume=True)
    names = pyarrow.parquet.read_table(Store(path).file(6)).column_names
    assert not any(name.startswith("input.") for name in names)
    expected = mc.run(studies.plain(100)).inputs
    for name, x in longer.inputs.items():
        np.testing.assert_array_equal(x, expected[name])


def test_an_output_with_the_name_of_an_input_is_refused():
    with pytest.raises(ValueError, match=r"outputs: expected other names .* got \['input.x'\]"):
        mc.Study({"x": mc.Normal(0.0, 1.0)}, lambda values: {"input.x": values["x"]}, samples=2)
