"""Learn a distance and a few clean examples from labelled data; classify and search with them."""

from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML

__version__ = "0.1.0"

__all__ = ["LMNN", "Euclidean", "MaPML", "__version__"]
