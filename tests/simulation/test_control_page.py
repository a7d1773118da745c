"""The examples of docs/control.md run in a fresh process with JAX's own settings."""

import pytest

from tests.test_readme import ROOT, run


@pytest.mark.slow
def test_page_runs(tmp_path):
    done = run(ROOT / "docs" / "control.md", tmp_path)
    assert done.returncode == 0, done.stderr
