"""A real browser, without a network, plays the file of a motion and complains of nothing."""

import io
import tempfile
import time

import numpy as np
import pytest

from lgsim.data import arm7
from lgsim.view import to_html
from tests.view import browser, motions

pytest.importorskip("viser")
pytestmark = pytest.mark.skipif(
    browser.find() is None, reason=f"none of the browsers {', '.join(browser.NAMES)} is installed"
)

CLOCK = "parseFloat([...document.querySelectorAll('input')].map(i => i.value)[0])"
READY = "document.querySelector('canvas') !== null && document.querySelectorAll('input').length > 0"
CLOSE = "document.querySelectorAll('.mantine-Notification-root button').forEach(button => button.click())"


def pixels(tab):
    from PIL import Image

    picture = np.asarray(Image.open(io.BytesIO(tab.screenshot())).convert("RGB"), int)
    # without the bar of the player
    return picture[:-60]


def settled(tab):
    """The picture once it stands still."""
    before = pixels(tab)
    for _ in range(20):
        time.sleep(0.3)
        after = pixels(tab)
        if np.abs(after - before).max() < 8:
            return after
        before = after
    raise TimeoutError("the picture does not settle")


def moved(before, after):
    """How many pixels differ clearly."""
    return int(np.sum(np.abs(before - after).max(axis=-1) > 40))


@pytest.mark.slow
def test_file_plays_scrubs_and_turns(tmp_path):
    pytest.importorskip("PIL")
    file = tmp_path / "arm.html"
    to_html(motions.of_the_arm(101, 10.0), file, arm7())
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        browser.page(file, folder, size=(640, 560)) as tab,
    ):
        tab.until(READY)
        tab.until(f"{CLOCK} > 0.2")
        # plays: its clock runs
        first = tab.evaluate(CLOCK)
        tab.until(f"{CLOCK} > {first} + 0.3 || {CLOCK} < {first}")
        tab.evaluate(CLOSE)
        # the space bar stops it
        tab.press(" ", "Space")
        time.sleep(0.5)
        still = settled(tab)
        held = tab.evaluate(CLOCK)
        time.sleep(0.5)
        assert tab.evaluate(CLOCK) == held
        # something dark is drawn on the light ground: the arm's joints
        assert np.sum(still.max(axis=-1) < 90) > 200
        # another time by the slider: the arm moves, the ground does not
        slider = tab.evaluate(
            "(() => { const r = document.querySelector('.mantine-Slider-root').getBoundingClientRect();"
            " return [r.left, r.top + r.height / 2, r.width]; })()"
        )
        share = 0.25 if held > 5 else 0.75
        place = (slider[0] + share * slider[2], slider[1])
        tab.drag(place, place)
        tab.until(f"Math.abs({CLOCK} - {10 * share}) < 0.3")
        other = settled(tab)
        assert 200 < moved(still, other) < 0.3 * still.shape[0] * still.shape[1]
        # the mouse turns the view: the ground moves as well
        tab.drag((150, 330), (300, 320))
        turned = settled(tab)
        assert moved(other, turned) > 500
        assert tab.errors == []
        assert [address for address in tab.requests if not address.startswith(("file:", "data:", "blob:"))] == []
