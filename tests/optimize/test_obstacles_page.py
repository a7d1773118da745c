"""The scenario of docs/obstacles.md is read."""

from lgsim.scenarios import load_scenario
from tests.test_readme import ROOT

PAGE = ROOT / "docs" / "obstacles.md"


def test_the_page_s_scenario_is_read(tmp_path):
    """Its tables with a task and times, without what is of studies alone."""
    text = PAGE.read_text(encoding="utf-8").partition("```toml\n")[2].partition("```")[0]
    text = text.partition("[[outputs")[0] + (
        '[time]\ndt = 0.1\nhorizon = 3\n[[reach]]\nframe = "flange"\nposition = [0.4, 0.3, 0.4]\n'
    )
    (tmp_path / "page.toml").write_text(text)
    scenario = load_scenario(tmp_path / "page.toml")
    assert scenario.tasks[-1].name == "0.05 m clearance"
    assert set(scenario.tasks[-1].cost.solid_pairs[1]) == {"ball"}
