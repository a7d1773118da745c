"""Reports as one HTML page, which needs neither a network nor an installation: fits, studies, trajectories.

- ``report_fit(fit)``: the numbers that ``identify.fit`` found, what the records show of them, the residuals;
- ``report_study(store)``: distributions, failures and the worst samples of a Monte Carlo study;
- ``report_trajectory(trajectory)``: limits used, joints, energy, the motion in three dimensions.

Each returns a ``Page``: ``.save("report.html")`` writes it, ``.html()`` is its text. They need the extra ``plot``, and
``view`` for motions that play; a page of one's own is built from ``Page``.
"""

from lgsim.reports.identification import fit_figures, report_fit
from lgsim.reports.page import Page
from lgsim.reports.study import report_study
from lgsim.reports.trajectory import report_trajectory

__all__ = ["Page", "fit_figures", "report_fit", "report_study", "report_trajectory"]
