"""Learn a distance and a few clean examples from labelled data; classify and search with them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from latentmetric.registry import ESTIMATORS

if TYPE_CHECKING:
    from latentmetric.estimators.explaining import Explanation as Explanation
    from latentmetric.persistence.model_file import ModelFileError as ModelFileError
    from latentmetric.persistence.models import load as load
    from latentmetric.persistence.models import save as save
    from latentmetric.registry import *  # noqa: F403 the estimators

__version__ = "0.1.0"

_HOMES = {
    **ESTIMATORS,
    "Explanation": "latentmetric.estimators.explaining",
    "ModelFileError": "latentmetric.persistence.model_file",
    "load": "latentmetric.persistence.models",
    "save": "latentmetric.persistence.models",
}
_PARTS = ("datasets", "evaluation", "export", "io", "viz")

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    """Import names on first use: the command line's help must not wait for SciPy."""
    if name in _PARTS:
        return import_module(f"latentmetric.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'latentmetric' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted((*__all__, *_PARTS))
