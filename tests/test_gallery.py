"""The gallery: short scripts that are all on the page, replays that share a player, and sizes that are held."""

import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("viser", reason="the extra view is missing: pip install 'lgsim[view]'")
pytest.importorskip("matplotlib", reason="the extra plot is missing: pip install 'lgsim[plot]'")

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import replays  # noqa: E402

PAGE = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
QUICK = ("flipping_body",)


def test_twelve_short_scripts_are_on_the_page():
    names = [script.stem for script in replays.scripts()]
    assert len(names) >= 12
    assert sorted(re.findall(r"gallery/(\w+)\.py", PAGE)) == names == sorted(re.findall(r"replays/(\w+)\.html", PAGE))
    for script in replays.scripts():
        assert len(script.read_text(encoding="utf-8").splitlines()) < replays.LINES, script.name


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        each.stem if each.stem in QUICK else pytest.param(each.stem, marks=pytest.mark.exhaustive)
        for each in replays.scripts()
    ],
)
def test_a_script_makes_its_replay(name, tmp_path):
    replays.make(replays.SCRIPTS / f"{name}.py", tmp_path)
    page = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
    (player,) = tmp_path.glob("player-*.js")
    assert f'<script src="{player.name}"></script>' in page and "data-p=" not in page
    assert len(page) < 400_000 < player.stat().st_size and (tmp_path / f"{name}.svg").stat().st_size < 300_000


def test_a_replay_or_script_above_its_size_is_named(tmp_path, monkeypatch):
    script = tmp_path / "still.py"
    script.write_text("import sys\nfrom pathlib import Path\nmotion = Path(sys.argv[1]).write_text('x' * 2000)\n")
    monkeypatch.setattr(replays, "LARGEST", 1000)
    with pytest.raises(ValueError, match=r"still.py: its replay has 2000 bytes, expected at most 1000"):
        replays.make(script, tmp_path)
    monkeypatch.setattr(replays, "scripts", lambda: [script])
    monkeypatch.setattr(replays, "LINES", 3)
    with pytest.raises(ValueError, match=r"still.py: 3 lines, expected fewer than 3"):
        replays.build(tmp_path / "made")


def test_a_page_without_a_player_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected a page whose player"):
        replays.shared("<html></html>", tmp_path)
