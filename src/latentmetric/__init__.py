"""Learn a distance and a few clean examples from labelled data; classify and search with them."""

from latentmetric.estimators._saving import load
from latentmetric.estimators.euclidean import Euclidean
from latentmetric.estimators.hrsgd import HRSGD
from latentmetric.estimators.lmnn import LMNN
from latentmetric.estimators.mapml import MaPML
from latentmetric.estimators.oasis import OASIS
from latentmetric.io.model_file import ModelFileError

__version__ = "0.1.0"

__all__ = [
    "HRSGD",
    "LMNN",
    "OASIS",
    "Euclidean",
    "MaPML",
    "ModelFileError",
    "__version__",
    "load",
]
