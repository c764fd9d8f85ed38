"""Rows after the steps of a pipeline, back in the units they were given in."""

import numpy as np
import pytest
from pipelines import OF_FRAMES, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

from latentmetric.estimators.inverse import NotInvertibleError, to_input_units
from latentmetric.validation.pipelines import split_pipeline


def there_and_back(steps, X, y):
    piped = split_pipeline(make_pipeline(*map(clone, steps), model()).fit(X, y))
    return to_input_units(piped, np.asarray(piped.prepared(X)))


@pytest.mark.parametrize(
    "steps",
    [
        *[OF_NUMBERS[name] for name in ("standard", "neither", "robust", "columns of columns")],
        [MinMaxScaler((-1, 2))],
        [SimpleImputer(), StandardScaler(), PCA(whiten=True)],
        [ColumnTransformer([("codes", OneHotEncoder(), [6, 7])], remainder=StandardScaler(),
                           transformer_weights={"codes": 0.5}, sparse_threshold=0)],
    ],
)  # fmt: skip
def test_numbers_come_back(steps):
    X, y = make_numbers()
    undone = there_and_back(steps, X, y)
    if steps is OF_NUMBERS["columns of columns"]:
        assert np.isfinite(undone).all()
    np.testing.assert_allclose(undone, X, atol=1e-8)


def test_words_come_back_among_numbers():
    frame, y = make_frame()
    undone = there_and_back([OF_FRAMES["named"]], frame, y)
    assert undone[:, 3].tolist() == frame["color"].tolist()
    np.testing.assert_allclose(undone[:, 0].astype(float), frame["size"])
    assert np.isnan(undone[:, 2].astype(float)).all(), "the column that was left out"


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Normalizer(), "'normalizer', a Normalizer, cannot be undone"),
        (SimpleImputer(add_indicator=True), "'simpleimputer' adds or leaves out columns"),
        (ColumnTransformer([("codes", OneHotEncoder(drop="first"), [6])], sparse_threshold=0),
         "'columntransformer/codes' drops or groups categories"),
    ],
)  # fmt: skip
def test_steps_that_lose_something_are_named(step, message):
    X, y = make_numbers()
    X = with_gaps(X) if isinstance(step, SimpleImputer) else X
    with pytest.raises(NotInvertibleError, match=message):
        there_and_back([step], X, y)
