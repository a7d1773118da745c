# The public names and where they are: each is imported when it is used first.
from lgsim.reports.identification import fit_figures, report_fit
from lgsim.reports.page import Page
from lgsim.reports.posterior_plots import posterior_figure
from lgsim.reports.study import report_study
from lgsim.reports.trajectory import report_trajectory

__all__ = ["Page", "fit_figures", "posterior_figure", "report_fit", "report_study", "report_trajectory"]
