"""Pictures of a fitted model."""

from latentmetric.viz.gallery import plot_latent_examples

__all__ = ["plot_latent_examples"]
