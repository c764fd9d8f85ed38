"""Learn a distance and a few clean examples from labelled data; classify and search with them."""

from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.hrsgd import HRSGD
from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML
from latentmetric.estimators.oasis import OASIS

__version__ = "0.1.0"

__all__ = ["HRSGD", "LMNN", "OASIS", "Euclidean", "MaPML", "__version__"]
