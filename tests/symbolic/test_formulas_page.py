"""The examples of docs/formulas.md run in a fresh process with JAX's own settings."""

from tests.test_readme import ROOT, run


def test_the_page_of_formulas_runs(tmp_path):
    done = run(ROOT / "docs" / "formulas.md", tmp_path)
    assert done.returncode == 0, done.stderr
