"""Rows without labels join the latent examples of the classes that they vote for."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML
from latentmetric.estimators import unlabelled
from latentmetric.io import open_rows


def quick(**parameters):
    return MaPML(**({"n_steps": 500, "max_iter": 2, "random_state": 0} | parameters))


@pytest.fixture
def partly():
    """Rows of three classes, a fifth of which have labels."""
    X, y = make_blobs(n_rows=300)
    marked = np.arange(300) % 5 > 0
    return X, np.where(marked, -1, y), y, marked


def test_they_lower_the_error_where_labels_are_few():
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    without, with_them = [], []
    for seed in range(3):
        some = np.random.default_rng(seed).permutation(len(y))[:40]
        few = np.full(len(y), -1)
        few[some] = y[some]
        without.append(MaPML(random_state=0).fit(X[some], y[some]).score(X_test, y_test))
        with_them.append(MaPML(unlabelled=-1, random_state=0).fit(X, few).score(X_test, y_test))
    assert np.mean(with_them) > np.mean(without) + 0.03


def test_neither_metric_nor_margins_change(partly):
    X, few, _, marked = partly
    labelled = quick(n_latents=4).fit(X[~marked], few[~marked])
    model = quick(n_latents=4, unlabelled=-1).fit(X, few)
    np.testing.assert_allclose(model.components_, labelled.components_, atol=1e-6)
    np.testing.assert_allclose(model.margins_, labelled.margins_, rtol=1e-6)
    np.testing.assert_array_equal(model.classes_, labelled.classes_)
    assert np.abs(model.latent_examples_ - labelled.latent_examples_).max() > 0.01


def test_each_counts_as_its_probability(partly, monkeypatch):
    X, few, _, marked = partly
    labelled = quick(n_latents=4).fit(X[~marked], few[~marked])
    for times in (1, 2):
        monkeypatch.setattr(unlabelled, "N_VOTES", times)
        model = quick(n_latents=4, unlabelled=-1).fit(X, few)
        probabilities = labelled.predict_proba(X[marked])
        of_class = np.bincount(probabilities.argmax(axis=1), probabilities.max(axis=1))
        counted = np.bincount(model.latent_labels_, model.latent_counts_)
        np.testing.assert_allclose(counted, np.bincount(few[~marked]) + of_class, rtol=1e-4)
        labelled = model  # the second time, the rows vote among the latent examples they moved


def test_rows_in_a_file(partly, tmp_path):
    X, few, _, _ = partly
    X = X.astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    weights = np.where(np.arange(300) % 7, 1.0, 2.0)
    here = quick(unlabelled=-1).fit(X, few, weights)
    there = quick(unlabelled=-1).fit(open_rows(tmp_path / "rows.npy"), few, weights)
    np.testing.assert_allclose(here.latent_examples_, there.latent_examples_, atol=1e-3)


@pytest.mark.parametrize(
    ("mark", "labels"), [("-1", int), (-1, str), (True, int), (-1, bool), ("?", bool)]
)
def test_a_mark_of_another_kind_is_refused(partly, mark, labels):
    X, few, _, _ = partly
    with pytest.raises(TypeError, match="must be of the same kind as the labels"):
        quick(unlabelled=mark).fit(X, few.astype(labels))


def test_only_a_fit_takes_them(partly):
    X, few, _, marked = partly
    message = "240 of 300 labels are -1, which marks rows without a label"
    with pytest.raises(ValueError, match=message):
        quick(unlabelled=-1).partial_fit(X, few, [0, 1, 2])
    model = quick(unlabelled=-1, max_iter=0, refine=0).fit(X[~marked], few[~marked])
    for method in ("partial_fit", "add_classes", "set_references", "label_scores"):
        with pytest.raises(ValueError, match=rf"{message}.*{method} takes labelled rows only"):
            getattr(model, method)(X, few)


def test_what_cannot_work_is_refused(partly):
    X, few, _, marked = partly
    with pytest.raises(ValueError, match="all 240 labels are -1"):
        quick(unlabelled=-1).fit(X[marked], few[marked])
    with pytest.raises(ValueError, match="at least 2 classes"):
        quick(unlabelled=-1).fit(X, np.where(marked, -1, 0))
    with pytest.raises(ValueError, match='set reference="latent"'):
        quick(unlabelled=-1, reference="original").fit(X, few)
    with pytest.raises(TypeError, match="unlabelled must be None or a label"):
        quick(unlabelled=[-1]).fit(X, few)
    da = pytest.importorskip("dask.array")
    with pytest.raises(ValueError, match="unlabelled=-1 would gather"):
        quick(unlabelled=-1).fit(da.from_array(X), da.from_array(few))
    with pytest.raises(TypeError, match="unlabelled=-1 needs y in the memory"):
        quick(unlabelled=-1).fit(X, da.from_array(few))
