"""Pictures of a fitted model."""

from latentmetric.viz.gallery import plot_latent_examples
from latentmetric.viz.report import write_report

__all__ = ["plot_latent_examples", "write_report"]
