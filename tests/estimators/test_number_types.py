"""A parameter means its value: numbers of any type give the model of Python's own numbers."""

from fractions import Fraction

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, load, save
from latentmetric.datasets import make_image_like
from latentmetric.evaluation import retrieval_scores
from latentmetric.validation.parameters import plain

SMALL = MaPML(n_steps=100, max_iter=1, refine=1, random_state=0)

OTHER_TYPES = [
    (LMNN(max_iter=20), {"push": np.float16(0.5)}, {"push": 0.5}),
    (LMNN(max_iter=5), {"push": Fraction(1, 2)}, {"push": 0.5}),
    (LMNN(max_iter=5), {"push": np.float64(0.3)}, {"push": 0.3}),
    (LMNN(max_iter=5), {"tol": np.float32(0.25)}, {"tol": 0.25}),
    (LMNN(), {"max_iter": np.int8(127)}, {"max_iter": 127}),
    (LMNN(max_iter=5), {"max_impostors": np.uint8(100)}, {"max_impostors": 100}),
    (LMNN(max_iter=5), {"target_neighbors": np.uint8(20)}, {"target_neighbors": 20}),
    (HRSGD(n_steps=500, random_state=0), {"batch_size": np.int16(50)}, {"batch_size": 50}),
    (HRSGD(n_steps=500, random_state=0), {"learning_rate": Fraction(1)}, {"learning_rate": 1.0}),
    (HRSGD(random_state=0), {"n_steps": np.uint16(500)}, {"n_steps": 500}),
    (OASIS(psd=False, random_state=0), {"n_steps": np.int16(900)}, {"n_steps": 900}),
    (
        OASIS(psd=False, n_steps=99, random_state=0, early_stopping=True),
        {"aggressiveness": np.float16(0.5), "validation_fraction": Fraction(1, 4)},
        {"aggressiveness": 0.5, "validation_fraction": 0.25},
    ),
    (SMALL, {"metric_reg": np.float16(1.5)}, {"metric_reg": 1.5}),
    (SMALL, {"latent_reg": np.longdouble(0.5)}, {"latent_reg": 0.5}),
    (SMALL, {"max_norm": np.float32(2)}, {"max_norm": 2.0}),
    (SMALL, {"n_latents": np.uint8(30)}, {"n_latents": 30}),
    (SMALL, {"n_latents": Fraction(1, 4)}, {"n_latents": 0.25}),
    (
        SMALL,
        {"n_latents": {0: np.int8(9), 1: np.uint8(5), 2: 1}},
        {"n_latents": {0: 9, 1: 5, 2: 1}},
    ),
    (SMALL, {"n_steps": np.int8(127)}, {"n_steps": 127}),
    (SMALL, {"impostors": np.uint8(40)}, {"impostors": 40}),
    (SMALL, {"refine": np.uint8(0), "keep": np.str_("last")}, {"refine": 0, "keep": "last"}),
    (SMALL, {"n_components": np.int8(2), "n_jobs": np.int8(1)}, {"n_components": 2, "n_jobs": 1}),
    (SMALL, {"label_noise": np.True_, "verbose": np.False_}, {"label_noise": True}),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("model", "other", "own"), OTHER_TYPES, ids=lambda value: str(value)[:40])
def test_a_fit_depends_on_values_and_not_on_their_types(model, other, own, dtype, tmp_path):
    X, y = make_blobs(300)
    X = X.astype(dtype)
    expected = clone(model).set_params(**own).fit(X, y)
    found = clone(model).set_params(**other).fit(X, y)
    np.testing.assert_array_equal(found.model_.references.rows, expected.model_.references.rows)
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))
    assert found.n_iter_ == expected.n_iter_
    for name, value in other.items():
        assert found.get_params()[name] is value
        assert type(clone(found).get_params()[name]) is type(value)
    save(found, tmp_path / "m")
    loaded = load(tmp_path / "m").get_params()
    assert all(loaded[name] == value for name, value in own.items())


@pytest.mark.parametrize("k", [np.uint8(255), np.int8(127), np.int16(200), np.uint64(7)])
def test_the_number_of_neighbours_may_have_any_type(k):
    X, y = make_blobs(300)
    own, other = Euclidean(int(k)).fit(X, y), Euclidean(k).fit(X, y)
    np.testing.assert_array_equal(own.predict(X), other.predict(X))
    for given in (k, None):
        for one, another in zip(own.kneighbors(X), other.kneighbors(X, given), strict=True):
            np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("k", [np.int8(99), np.uint8(250)])
def test_exports_take_any_type(k):
    pytest.importorskip("faiss")
    from latentmetric.export import to_faiss, to_sklearn

    X, y = make_blobs(300)
    model = Euclidean(k).fit(X, y)
    np.testing.assert_array_equal(to_faiss(model).search(X, k)[1], model.kneighbors(X)[1])
    np.testing.assert_array_equal(to_sklearn(model).predict(X[:9]), model.predict(X[:9]))


def test_a_threshold_may_be_a_fraction():
    X, y = make_blobs(300)
    model = Euclidean().fit(X, y)
    asked = X + 0.1
    for below in (Fraction(-1, 2), np.float16(-0.5), np.float64(-0.5)):
        found = model.predict(asked, reject_below=below, reject_label=-1)
        expected = model.predict(asked, reject_below=-0.5, reject_label=-1)
        np.testing.assert_array_equal(found, expected)


def test_scores_and_made_rows_take_any_type():
    X, y = make_blobs(300)
    assert retrieval_scores(X, y, k=np.uint8(255)) == retrieval_scores(X, y, k=255)
    sizes = np.array([200, 20, 20, 15], dtype=np.uint8)
    own, other = make_image_like(*sizes.tolist()), make_image_like(*sizes, spread=np.float64(0.4))
    np.testing.assert_array_equal(own.X, other.X)
    np.testing.assert_array_equal(own.y, other.y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"push": Fraction(3, 2)}, r"push must be at least 0 and at most 1, got Fraction\(3, 2\)"),
        ({"push": np.longdouble("1e400")}, "push must be finite"),
        ({"tol": np.float16("inf")}, "tol must be finite"),
        ({"n_neighbors": np.int8(-3)}, r"n_neighbors must be at least 1, got .*-3"),
    ],
    ids=str,
)
def test_values_out_of_range_are_refused_in_any_type(parameters, message):
    X, y = make_blobs()
    with pytest.raises(ValueError, match=message):
        LMNN(**parameters).fit(X, y)


def test_a_copy_to_compute_with_leaves_the_estimator_as_it_is():
    model = LMNN(push=np.float16(0.5), n_jobs=np.int8(2), early_stopping=np.False_)
    copied = plain(model)
    assert [type(value) for value in (copied.push, copied.n_jobs, copied.early_stopping)] == [
        float, int, bool,
    ]  # fmt: skip
    assert isinstance(model.push, np.float16)
    assert isinstance(plain(model, ["n_jobs"]).push, np.float16)
