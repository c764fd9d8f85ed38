"""The estimators of the package, in one table: adding one means one entry here.

Modules are imported on first use: the command line's help must not wait for SciPy. Model files
store an estimator's name, and this table leads to its class.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latentmetric.estimators.euclidean import Euclidean as Euclidean
    from latentmetric.estimators.hrsgd import HRSGD as HRSGD
    from latentmetric.estimators.lmnn import LMNN as LMNN
    from latentmetric.estimators.mapml import MaPML as MaPML
    from latentmetric.estimators.oasis import OASIS as OASIS

ESTIMATORS = {
    "MaPML": "latentmetric.estimators.mapml",
    "LMNN": "latentmetric.estimators.lmnn",
    "OASIS": "latentmetric.estimators.oasis",
    "HRSGD": "latentmetric.estimators.hrsgd",
    "Euclidean": "latentmetric.estimators.euclidean",
}
"""The module that defines each class, by the name of the class."""


def estimator_class(name: str) -> type[Any]:
    """The class with this name, which must be in ``ESTIMATORS``."""
    found: type[Any] = getattr(import_module(ESTIMATORS[name]), name)
    return found
