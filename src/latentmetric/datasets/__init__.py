"""Data sets for examples, tests and benchmarks."""

from latentmetric.datasets.image_like import IMAGENET, ImageLike, make_image_like
from latentmetric.datasets.requests import Requests, load_requests

__all__ = ["IMAGENET", "ImageLike", "Requests", "load_requests", "make_image_like"]
