"""Data sets for examples, tests and benchmarks."""

from latentmetric.datasets.benchmark import BENCHMARK_SETS, Split, load_benchmark

__all__ = ["BENCHMARK_SETS", "Split", "load_benchmark"]
