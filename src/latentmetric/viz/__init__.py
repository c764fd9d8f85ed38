"""Pictures of a fitted model: plots for notebooks, and a report page."""

from latentmetric.viz.plots import (
    plot_convergence,
    plot_errors_by_class,
    plot_latent_examples,
    plot_latents,
    plot_spectrum,
)
from latentmetric.viz.report import write_report

__all__ = [
    "plot_convergence",
    "plot_errors_by_class",
    "plot_latent_examples",
    "plot_latents",
    "plot_spectrum",
    "write_report",
]
