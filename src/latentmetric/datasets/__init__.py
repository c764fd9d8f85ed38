"""Data sets for examples, tests and benchmarks."""

from latentmetric.datasets.benchmark import BENCHMARK_SETS, Split, load_benchmark, load_split
from latentmetric.datasets.image_like import IMAGENET, ImageLike, make_image_like

__all__ = [
    "BENCHMARK_SETS",
    "IMAGENET",
    "ImageLike",
    "Split",
    "load_benchmark",
    "load_split",
    "make_image_like",
]
