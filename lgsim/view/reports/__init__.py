"""Reports as one HTML page, which needs neither a network nor an installation: fits, studies, trajectories.

- ``report_fit(fit)``: the numbers that ``identify.fit`` found, what the records show of them, the residuals;
- ``report_study(store)``: distributions, failures and the worst samples of a Monte Carlo study;
- ``report_trajectory(trajectory)``: limits used, joints, energy, the motion in three dimensions.

Each returns a ``Page``: ``.save("report.html")`` writes it, ``.html()`` is its text. They need the extra ``plot``, and
``view`` for motions that play; a page of one's own is built from ``Page``. ``posterior_figure(draws)`` plots draws of a
posterior, number by number and pair by pair, with prior and truth; ``fit_figures(fit)`` are the plots of a fit.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # as listed in __init__.pyi
