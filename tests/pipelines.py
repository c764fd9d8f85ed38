"""Pipelines and rows that several tests share."""

import numpy as np
import pandas
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from latentmetric import MaPML

COLORS = np.array(["red", "green", "blue"])


def model():
    """A quick estimator."""
    return MaPML(max_iter=1, n_steps=200, refine=0, random_state=0)


def make_numbers(n_rows=120, seed=0):
    """Rows of 8 numbers, the last two of them categories, and their labels."""
    generator = np.random.default_rng(seed)
    y = np.arange(n_rows) % 3
    X = generator.standard_normal((n_rows, 6)) * [1, 5, 0.1, 1, 1, 1] + 3
    X[:, 0] += 2 * y
    grades = generator.choice([1.0, 2.0, 5.0, 9.0], n_rows, p=[0.45, 0.45, 0.05, 0.05])
    return np.column_stack((X, grades, generator.integers(0, 2, n_rows))), y


def make_frame(n_rows=120, seed=0):
    """Named columns of numbers, of which some are missing, and of words."""
    X, y = make_numbers(n_rows, seed)
    frame = pandas.DataFrame(X[:, [0, 1, 6]], columns=["size", "weight", "grade"])
    frame.loc[::9, "weight"] = np.nan
    frame["grade"] = frame["grade"].astype(int)
    frame["color"] = COLORS[(y + (np.arange(n_rows) % 5 == 0)) % 3]
    frame["color"] = frame["color"].astype(object)
    return frame, y


def with_gaps(X):
    """The same rows, some of whose numbers are missing."""
    gaps = X.copy()
    gaps[::7, 3] = np.nan
    return gaps


OF_NUMBERS = {
    "standard": [StandardScaler()],
    "centred": [StandardScaler(with_std=False)],
    "scaled": [StandardScaler(with_mean=False)],
    "neither": [StandardScaler(with_mean=False, with_std=False)],
    "min max": [MinMaxScaler((-1, 2), clip=True)],
    "robust": [RobustScaler(quantile_range=(10, 90), unit_variance=True)],
    "robust, scaled": [RobustScaler(with_centering=False)],
    "l2": [Normalizer()],
    "l1": [Normalizer("l1")],
    "max": [MinMaxScaler(), Normalizer("max")],
    "pca": [PCA(3, random_state=0)],
    "whitened": [StandardScaler(), PCA(0.9, whiten=True)],
    "svd": [TruncatedSVD(3, random_state=0)],
    "arpack": [TruncatedSVD(2, algorithm="arpack", random_state=0)],
    "passthrough": ["passthrough", StandardScaler()],
    "one hot, svd": [OneHotEncoder(handle_unknown="ignore"), TruncatedSVD(4, random_state=0)],
    "columns": [
        ColumnTransformer(
            [
                ("scaled", StandardScaler(), [0, -8, 1]),
                ("nested", make_pipeline(SimpleImputer(), PCA(2)), slice(2, 5)),
                ("masked", "passthrough", [False] * 5 + [True] + [False] * 2),
                ("none", StandardScaler(), []),
                ("codes", OneHotEncoder(drop="if_binary", min_frequency=20), [6, 7]),
            ],
            transformer_weights={"codes": 0.5},
        ),
    ],
    "columns of columns": [
        ColumnTransformer(
            [("inner", ColumnTransformer([("one", RobustScaler(), [1])], remainder="passthrough"),
              [0, 3])],
            remainder=StandardScaler(),
        )
    ],
}  # fmt: skip
"""Steps that take rows of ``make_numbers``, by name."""

OF_GAPS = {
    strategy: [SimpleImputer(strategy=strategy)] for strategy in ("mean", "median", "most_frequent")
} | {
    "constant": [SimpleImputer(strategy="constant", fill_value=-1.5)],
    "indicated": [SimpleImputer(add_indicator=True)],
}
"""Steps that take rows some of whose numbers are missing."""

OF_FRAMES = {
    "named": ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
             ["size", "weight"]),
            ("words", OneHotEncoder(handle_unknown="ignore"), ["color"]),
        ],
        sparse_threshold=0,
    ),
    "chosen by type": ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="constant", fill_value=0),
             make_column_selector(dtype_include=float)),
            ("words", make_pipeline(
                SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first")), ["color"]),
        ],
        remainder=OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist"),
    ),
    "slices of names": ColumnTransformer(
        [("dropped", "drop", ["grade"]), ("filled", SimpleImputer(), slice("size", "weight"))],
    ),
    "a slice of names beside a number": ColumnTransformer(
        [("filled", SimpleImputer(), slice("size", "weight")),
         ("words", OneHotEncoder(handle_unknown="ignore"), [3])],
        sparse_threshold=0,
    ),
    "frames inside": ColumnTransformer(
        [("filled", SimpleImputer(), ["weight", "size"]),
         ("words", OneHotEncoder(sparse_output=False, categories=[["red", "blue", "green"]]),
          ["color"])],
        remainder="passthrough", verbose_feature_names_out=False,
    ).set_output(transform="pandas"),
}  # fmt: skip
"""Steps that take frames of ``make_frame``, by name."""
