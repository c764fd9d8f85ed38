"""A fitted model as one page to look at: a self-contained HTML file, one idea a file here."""

from latentmetric.viz.report.page import write_report

__all__ = ["write_report"]
