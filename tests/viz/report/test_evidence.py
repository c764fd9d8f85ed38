import numpy as np
import pytest

from latentmetric import Euclidean, MaPML
from latentmetric.evaluation.rivals import TUNED, fit_rival
from latentmetric.io import open_rows
from latentmetric.viz.report.evidence import gather


@pytest.fixture(scope="module")
def fitted():
    generator = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = generator.standard_normal((300, 4)) + 2 * np.eye(3, 4)[y]
    return MaPML(max_iter=1, n_steps=200, random_state=0).fit(X[:200], y[:200]), X, y


def gathered(model, X, y, **options):
    options = {"max_queries": 1000, "quick": True} | options
    return gather(model, X, y, generator=np.random.default_rng(0), **options)


@pytest.mark.parametrize("weights", ["uniform", "kernel"])
def test_votes_agree_with_predict(fitted, weights):
    model, X, y = fitted
    model = MaPML(max_iter=1, n_steps=200, weights=weights, random_state=0).fit(X[:200], y[:200])
    before = dict(vars(model))
    evidence = gathered(model, X[200:], y[200:], X_train=X[:200], y_train=y[:200])
    assert vars(model) == before
    votes = {vote.name: vote for vote in (evidence.verdict, *evidence.others)}
    assert evidence.verdict is votes["MaPML"]
    np.testing.assert_array_equal(votes["MaPML"].predicted, model.predict(X[200:]))
    shares = model.predict_proba(X[200:])
    np.testing.assert_allclose(evidence.verdict.confidence, shares.max(axis=1))
    euclid = Euclidean(weights=weights).fit(X[:200], y[:200])
    np.testing.assert_array_equal(votes["Euclid"].predicted, euclid.predict(X[200:]))
    model.set_references(X[:200], y[:200])
    np.testing.assert_array_equal(votes["MaPML-O"].predicted, model.predict(X[200:]))
    distances, indices = model.kneighbors(X[200:], 3)
    np.testing.assert_array_equal(votes["MaPML-O"].neighbors[:, :3], indices)
    np.testing.assert_allclose(votes["MaPML-O"].distances[:, :3], distances)
    evidence = gathered(model, X[200:], y[200:], X_train=X[:200], y_train=y[:200])
    assert evidence.verdict.name == "MaPML-O", "references set by the user vote"


def test_rows_in_a_file_are_read_and_a_dask_array_is_refused(fitted, tmp_path):
    dask = pytest.importorskip("dask.array")
    model, X, y = fitted
    np.save(tmp_path / "rows.npy", X)
    evidence = gathered(model, open_rows(tmp_path / "rows.npy"), y, max_queries=30)
    np.testing.assert_array_equal(evidence.given.rows, X)
    assert np.bincount(evidence.true).tolist() == [10, 10, 10]
    with pytest.raises(TypeError, match=r"dask Array.*compute\(\)"):
        gathered(model, dask.from_array(X), y)


def test_rivals_are_announced_and_fitted_to_training_rows_only(fitted):
    model, X, y = fitted
    steps = []
    rows = {"X_train": X[:200], "y_train": 2 * (y[:200] > 0)}  # a class without rows
    evidence = gathered(model, X[200:], y[200:], **rows, quick=False, on_start=steps.append)
    assert steps == ["votes", *TUNED, "doubtful labels"]
    rivals = [method for method in evidence.others if method.n_rows is not None]
    names = [rival.name.replace("\N{NON-BREAKING HYPHEN}", "-") for rival in rivals]
    assert names == list(TUNED)
    for name, found in zip(names, rivals, strict=True):
        rival = fit_rival(name, rows["X_train"], rows["y_train"])
        np.testing.assert_array_equal(found.predicted, rival.pipeline.predict(X[200:]))
        assert (found.n_rows, found.about) == (200, rival.chosen)
    assert gathered(model, X, y, quick=False).others == []
