"""Save a fitted estimator, or a pipeline that ends in one, to a model file, and load it again.

A loaded model predicts bit for bit as the saved one. A file is only data: its estimator and its
steps are looked up in tables, and what it holds is checked.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from latentmetric.persistence.model_file import (
    FORMAT_VERSION,
    Arrays,
    Contents,
    ModelFileError,
    one_line,
    read_model_file,
    require,
    write_model_file,
)
from latentmetric.persistence.steps import pack_step, restore_step
from latentmetric.validation.pipelines import split_pipeline


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator, or a pipeline that ends in one, to a file that ``load`` reads.

    The file is in the safetensors format and holds numbers and JSON, no code. It is written
    under a temporary name in the same folder and then renamed, so that ``path`` always holds
    either the old file or the new one. If ``path`` is a symbolic link, the file it points to is
    replaced. Callbacks are not stored, nor is a ``random_state`` that is not an integer: the
    loaded model has None instead.

    Parameters
    ----------
    model : estimator or Pipeline
        A fitted estimator of this package, or a fitted ``sklearn.pipeline.Pipeline`` that ends in
        one, after standard steps: scalers, PCA and others of ``validation.pipelines.STEPS``. Other
        steps are refused by name.
    path : str or path-like
        The file to write; an existing one is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from latentmetric import Euclidean, load, save
    >>> model = Euclidean(n_neighbors=1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "model.safetensors")
    ...     load(Path(folder) / "model.safetensors").predict([[4.0]]).tolist()
    ['b']
    """
    from latentmetric import __version__

    check_is_fitted(model)
    try:
        split_pipeline(model)
    except TypeError as error:
        raise TypeError(f"{error}; keep other pipelines with joblib or skops") from None
    arrays: Arrays = {}
    versions = {
        "latentmetric": __version__, "numpy": np.__version__, "scikit-learn": sklearn.__version__,
    }  # fmt: skip
    document = {
        "estimator": type(model).__name__,
        "format_version": FORMAT_VERSION,
        "versions": versions,
        "model": pack_step(model, "", arrays),
    }
    _restore(document, Contents(arrays))
    write_model_file(path, document, arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Load a fitted estimator or pipeline from a file that ``save`` wrote.

    No code runs, whatever the file holds, and its sizes are checked before memory is allocated.
    The model predicts bit for bit as the saved one, on the same machine with the same versions
    of NumPy and its BLAS.

    Parameters
    ----------
    path : str or path-like
        A file that ``save`` wrote.

    Returns
    -------
    estimator or Pipeline
        An estimator of the class that was saved, or a pipeline of scikit-learn that ends in one.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model file, or was written by a newer version.
    """
    document, contents = read_model_file(path)
    try:
        return _restore(document, contents)
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from error.__cause__


def versions_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The version of the format of a model file, and of the libraries that wrote it."""
    document, _ = read_model_file(path)
    return {name: document.get(name) for name in ("format_version", "versions")}


def _restore(document: dict[str, Any], contents: Contents) -> Any:
    """The model; raise ``ModelFileError`` unless all contents of the file are consistent."""
    try:
        with np.errstate(all="ignore"):
            model, _ = restore_step(document["model"], None, contents)
        is_named = document["estimator"] == type(model).__name__
        require(is_named, "the file holds another estimator than it says")
        last = split_pipeline(model).estimator
        require(hasattr(last, "classes_"), "the file holds no estimator of latentmetric")
        are_strings = all(isinstance(version, str) for version in document["versions"].values())
        require(are_strings, "versions are not strings")
        unknown = min(contents, default=None)
        require(unknown is None, f"the array {unknown!r} is not part of this model")
        return model
    except ModelFileError:
        raise
    except Exception as error:  # a file may hold anything, and so may go wrong anywhere
        raise ModelFileError(f"the model is not valid ({one_line(error)})") from error
