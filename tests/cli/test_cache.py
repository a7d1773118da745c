"""The cache of what JAX compiles for the command: a folder of the user's alone, or none."""

import os

import jax
import pytest

from lgsim.cli import files


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs", "jax_enable_compilation_cache")
    before = {name: getattr(jax.config, name) for name in names}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setattr(files, "CACHES", (0,))
    yield tmp_path / "lgsim" / "jax"
    for name, value in before.items():
        jax.config.update(name, value)


def test_it_is_of_the_user_alone(place):
    files.keep_compiled()
    assert jax.config.jax_compilation_cache_dir == str(place) and place.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes of files are POSIX's")
def test_one_that_others_may_write_is_not_used(place):
    place.mkdir(parents=True)
    place.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="others have write access.*XDG_CACHE_HOME"):
        files.keep_compiled()
    assert jax.config.jax_compilation_cache_dir is None
