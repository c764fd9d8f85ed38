"""Learn a distance and a few clean examples from labelled data; classify and search with them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "Euclidean": "estimators.euclidean",
    "HRSGD": "estimators.hrsgd",
    "LMNN": "estimators.lmnn",
    "MaPML": "estimators.mapml",
    "ModelFileError": "io.model_file",
    "OASIS": "estimators.oasis",
    "load": "estimators._saving",
}
_PARTS = (
    "comparison",
    "core",
    "datasets",
    "engines",
    "estimators",
    "evaluation",
    "export",
    "io",
    "viz",
)


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: the command line's help must not wait for SciPy."""
    if name in _PARTS:
        return import_module(f"latentmetric.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'latentmetric' has no attribute {name!r}")
    value = getattr(import_module(f"latentmetric.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PARTS})
