"""Reports with motions that play in them."""

from __future__ import annotations

from html import escape

from lgsim.view.page import POLICY, Page

PLAYING = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline' data:; font-src data:; media-src data: blob:;"
    " script-src 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' data: blob:; worker-src data: blob:;"
    " child-src data: blob:; frame-src data: blob:; connect-src data: blob:"
)
"""The same promise for a page whose players are scripts: all that runs is in the file, nothing is loaded."""


class Replays(Page):
    """A page that plays motions too, each in a frame of its own."""

    _plays = False

    def add_replay(self, scene: str, caption: str, height: int = 420) -> None:
        """A motion in three dimensions.

        Args:
            scene: The text of the file that ``lgsim.view.to_html`` makes.
            caption: Below it.
            height: In pixels.
        """
        self._plays = True
        self._add(
            f'<figure><iframe srcdoc="{escape(scene)}" title="{escape(caption)}" loading="lazy"'
            f' style="width:100%;height:{height}px;border:1px solid var(--line);border-radius:6px"></iframe>'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def html(self) -> str:
        """The page."""
        page = super().html()
        return page.replace(escape(POLICY, quote=False), PLAYING, 1) if self._plays else page
