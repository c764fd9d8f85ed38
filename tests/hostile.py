"""Hostile fits: random data, labels and parameters, and what an estimator may do with them.

Hypothesis strategies for good and bad data, labels and parameters, and a check of the outcome: an
estimator either fits, and then all its results are sound, or refuses before any work is done.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML

SMALL = {
    MaPML: {"max_iter": 2, "n_steps": 30},
    LMNN: {"max_iter": 3},
    OASIS: {"n_steps": 60},
    HRSGD: {"n_steps": 60},
    Euclidean: {},
}
"""Parameters that make a fit fast."""

VALUES = [
    None, True, False, 0, -1, 1, 3, 1e-300, 0.1, 1 - 1e-16, 1.0, 1.5, 1e12, 1e300, float("nan"),
    float("inf"), "3", "other", {0: 1}, "random", "k-means++", "latent", "original", "uniform",
    "distance", "kernel", "damped", "unbiased", "auto", "best",
]  # fmt: skip
"""What a parameter is set to, most of it out of range: no number of steps that takes long."""


@dataclass
class Case:
    """One call of ``fit``."""

    model: Any
    X: Any
    y: Any

    def __repr__(self) -> str:
        X = self.X
        flags = f"{X.dtype} {X.shape} strides {X.strides} writeable {X.flags.writeable}"
        return f"{self.model!r} on {flags}, labels {self.y.dtype} of {len(set(self.y.tolist()))}"


@st.composite
def cases(draw):
    estimator = draw(st.sampled_from(list(SMALL)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = draw(class_codes(generator))
    X = draw(features(len(codes), generator))
    names = sorted({*estimator().get_params()} - {"verbose"})
    chosen = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    parameters = {name: draw(st.sampled_from(VALUES)) for name in chosen}
    labels = LABELS[draw(st.sampled_from(["int", *LABELS]))](codes)
    return Case(estimator(**SMALL[estimator] | parameters), X, labels)


@st.composite
def class_codes(draw, generator):
    """A few rows to 1,080; classes even, lopsided, of one row each, many, or only one."""
    kind = draw(st.sampled_from(["even", "even", "lopsided", "single rows", "many", "one class"]))
    n_rows = draw(st.sampled_from([2, 3, 7, 30, 80]))
    if kind == "one class":
        return np.zeros(n_rows, dtype=int)
    if kind == "many":
        n_classes = draw(st.sampled_from([50, 300, 1000]))
        return generator.permutation(np.arange(n_classes + n_rows) % n_classes)
    if kind == "single rows":
        return np.arange(n_rows)
    if kind == "lopsided":
        return (np.arange(n_rows) == n_rows // 2).astype(int)
    return np.arange(n_rows) % draw(st.integers(2, max(2, min(6, n_rows))))


DTYPES = ["f8", "f8", "f4", "f4", "f2", "i1", "u1", "i4", "i8", "u8", "?", "O", ">f8", "c16", "U5"]


@st.composite
def features(draw, n_rows, generator):
    n_features = draw(st.sampled_from([1, 2, 5, 20, 60]))
    X = generator.standard_normal((n_rows, n_features))
    X *= 10.0 ** draw(st.sampled_from([0, 0, 0, -300, -160, -20, 20, 160, 300]))
    with np.errstate(all="ignore"):
        X = SPOILED[draw(st.sampled_from(["not at all"] * 2 + sorted(SPOILED)))](X, generator)
        X = _as_dtype(X, draw(st.sampled_from(DTYPES)))
    return LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](X)


def _with_value(X, row, column, value):
    X[row, column] = value
    return X


def _read_only(X):
    X = np.ascontiguousarray(X)
    X.flags.writeable = False
    return X


SPOILED = {
    "not at all": lambda X, generator: X,
    "constant columns": lambda X, generator: np.where(np.arange(X.shape[1]) % 2, X, X[0, 0]),
    "duplicate columns": lambda X, generator: np.where(np.arange(X.shape[1]) % 2, X[:, :1], X),
    "duplicate rows": lambda X, generator: np.repeat(X[:1], len(X), axis=0),
    "columns of all sizes": lambda X, generator: (
        X * 10.0 ** generator.integers(-290, 290, X.shape[1]) / max(np.abs(X).max(), 1e-300)
    ),
    "far out": lambda X, generator: X + 1e6 * np.abs(X).max(),
    "denormals": lambda X, generator: X * (1e-310 / max(np.abs(X).max(), 1e-300)),
    "one huge value": lambda X, generator: _with_value(X, 0, 0, 1e308),
    "one bad value": lambda X, generator: _with_value(
        X, -1, -1, generator.choice([np.nan, np.inf, -np.inf])
    ),
    "collinear": lambda X, generator: X[:, :1] * generator.standard_normal(X.shape[1]),
}
LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": _read_only,
}


def _as_dtype(X, name):
    dtype = np.dtype(name)
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        unit = np.abs(X).max() or 1.0
        return (X / unit * (bounds.max // 2)).astype(dtype)
    if dtype.kind == "b":
        return np.median(X) < X
    return X.astype(dtype)


LABELS = {
    "int": lambda codes: codes,
    "str": lambda codes: np.array([f"class {code}" for code in codes]),
    "bool": lambda codes: codes % 2 == 0,
    "object": lambda codes: np.array([f"ü{code}" for code in codes], dtype=object),
    "huge": lambda codes: codes + np.int64(2**62),
    "float": lambda codes: codes.astype(float),
    "half": lambda codes: codes + 0.5,
    "mixed": lambda codes: np.array([c if c % 2 else str(c) for c in codes], dtype=object),
    "none": lambda codes: np.full(len(codes), None),
    "u1": lambda codes: codes.astype("u1"),
}


def outcome(case):
    """ "fitted" or "refused"; anything else fails."""
    model = case.model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn and NumPy warn before the refusal
        try:
            model.fit(case.X, case.y)
        except np.linalg.LinAlgError as error:  # a ValueError, but not a refusal
            raise AssertionError(f"failed during the fit: {error}") from error
        except (ValueError, TypeError):
            assert not hasattr(model, "classes_"), "refused, but half fitted"
            return "refused"
        assert_sound(model, case)
    return "fitted"


def assert_sound(model, case):
    if hasattr(model, "components_"):
        metric = model.get_mahalanobis_matrix()
        assert np.all(np.isfinite(metric)), "the metric is not finite"
        unit = np.abs(metric).max() or 1.0  # its norm would underflow where max_norm is tiny
        assert np.linalg.eigvalsh(metric / unit).min() >= -1e-4, "the metric is not PSD"
    if hasattr(model, "latent_examples_"):
        assert np.all(np.isfinite(model.latent_examples_)), "a latent example is not finite"
        assert np.all(np.isfinite(model.margins_)), "a margin is not finite"
    known = set(model.classes_.tolist())
    predicted = model.predict(case.X)
    assert len(predicted) == len(case.X)
    assert set(predicted.tolist()) <= known, "a prediction is not a class"
    shares = model.predict_proba(case.X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)
    distances, _ = model.kneighbors(case.X, 1)
    assert np.all(np.isfinite(distances)), "a distance is not finite"
    assert np.all(distances >= 0) or isinstance(model, OASIS), "a distance is negative"
    assert np.all(np.isfinite(model.score_samples(case.X))), "a score is not finite"
