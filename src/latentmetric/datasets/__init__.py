"""Data to try things on."""

from latentmetric.datasets.requests import Requests, load_requests

__all__ = ["Requests", "load_requests"]
