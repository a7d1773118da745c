# The public names and where they are: each is imported when it is used first.
from lgsim.reports.identification import fit_figures as fit_figures
from lgsim.reports.identification import report_fit as report_fit
from lgsim.reports.page import Page as Page
from lgsim.reports.posterior_plots import posterior_figure as posterior_figure
from lgsim.reports.study import report_study as report_study
from lgsim.reports.trajectory import report_trajectory as report_trajectory
