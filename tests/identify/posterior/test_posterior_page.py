"""The examples with numpyro and blackjax of docs/posterior.md run in a fresh process with JAX's own settings."""

import pytest

from tests.test_readme import ROOT, run

for name in ("numpyro", "blackjax"):
    pytest.importorskip(name, reason=f"the package {name} is missing: pip install 'lgsim[posterior]'")
pytest.importorskip("matplotlib")


@pytest.mark.slow
def test_page_runs(tmp_path):
    done = run(ROOT / "docs" / "posterior.md", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "within their 90 % intervals" in done.stdout and (tmp_path / "posterior.png").stat().st_size > 10_000
