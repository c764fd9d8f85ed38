"""A report on a fitted model as one self-contained HTML page; each file makes one part of it."""

from latentmetric.viz.report.page import write_report

__all__ = ["write_report"]
