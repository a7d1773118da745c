# The public names and where they are: each is imported when it is used first.
from lgsim.view.reports.identification import fit_figures as fit_figures
from lgsim.view.reports.identification import report_fit as report_fit
from lgsim.view.reports.page import Page as Page
from lgsim.view.reports.posterior_plots import posterior_figure as posterior_figure
from lgsim.view.reports.study import report_study as report_study
from lgsim.view.reports.trajectory import report_trajectory as report_trajectory
