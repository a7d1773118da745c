"""Reports as HTML pages of one file, for fits, studies and trajectories; they need no network and no installation.

- ``report_fit(fit)``: identified parameters, identifiability, residuals;
- ``report_study(store)``: distributions, failures and worst samples of a Monte Carlo study;
- ``report_trajectory(trajectory)``: use of limits, joints, energy, 3D replay.

Each returns a ``Page``: ``.save("report.html")`` writes it, ``.html()`` is its text. Reports need the extra ``plot``,
replays the extra ``view``. ``Page`` also builds user-defined reports. ``posterior_figure(draws)`` plots the marginal
and pairwise distributions of a posterior; ``fit_figures(fit)`` returns the plots of a fit.
"""

from lgsim.support.public_names import public_names

__getattr__, __dir__ = public_names(__name__, __file__)  # listed in __init__.pyi
