"""Synthetic data sets for examples, tests and benchmarks."""

from latentmetric.datasets.image_like import IMAGENET, ImageLike, make_image_like

__all__ = ["IMAGENET", "ImageLike", "make_image_like"]
