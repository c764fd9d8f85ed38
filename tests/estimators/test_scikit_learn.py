"""MaPML as scikit-learn, pandas and polars users expect it to behave."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from helpers import make_blobs
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML

QUICK = {"n_steps": 300, "max_iter": 3, "random_state": 0}


def expected_failures(model):
    """The checks that cannot pass, and why; docs/weights.md says it to users."""
    if not isinstance(model, MaPML):
        return {}
    failures = {
        "check_sample_weight_equivalence_on_dense_data": (
            "random draws differ, and a row is left out with all its weight"
        )
    }
    if model.reference == "original":
        failures["check_class_weight_classifiers"] = (
            "weights decide what is learned; rows count once in the vote"
        )
    return failures


@parametrize_with_checks(
    [
        MaPML(n_steps=50, max_iter=1, refine=1),
        MaPML(n_steps=50, max_iter=1, refine=0, reference="original", weights="distance"),
        Euclidean(),
        LMNN(max_iter=10),
        OASIS(n_steps=500),
        HRSGD(n_steps=500),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check, short_passes):
    name = check.func.__name__
    if name == "check_class_weight_classifiers":  # it makes 1,000 rounds
        if name in expected_failures(estimator):
            pytest.xfail(expected_failures(estimator)[name])
        estimator.set_params(n_steps=20)
    check(estimator)


def test_pipeline_grid_search_and_cross_validation(blobs):
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), MaPML(**QUICK))
    search = GridSearchCV(pipeline, {"mapml__n_latents": [0.05, 0.2]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.7
    assert cross_val_score(pipeline, X, y, cv=3).shape == (3,)


def test_clone_and_pickle(blobs):
    X, y = blobs
    model = MaPML(n_latents={0: 3, 1: 4, 2: 5}, **QUICK).fit(X, y)
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "components_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_in_and_out(blobs, library):
    X, y = blobs
    names = [f"feature {i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names) if library == "pandas" else pl.DataFrame(X, schema=names)
    model = MaPML(n_components=2, **QUICK).set_output(transform=library).fit(frame, y)
    assert model.feature_names_in_.tolist() == names
    transformed = model.transform(frame)
    assert type(transformed) is type(frame)
    assert list(transformed.columns) == ["mapml0", "mapml1"]
    assert model.get_feature_names_out().tolist() == ["mapml0", "mapml1"]
    np.testing.assert_array_equal(
        model.predict(frame), MaPML(n_components=2, **QUICK).fit(X, y).predict(X)
    )


@pytest.mark.parametrize(
    "rename",
    [
        pytest.param(lambda y: np.array(["cat", "dog", "emu"], dtype=object)[y], id="object"),
        pytest.param(lambda y: y + 2**62, id="huge int"),
        pytest.param(lambda y: y > 0, id="bool"),
        pytest.param(lambda y: pd.Series(pd.Categorical.from_codes(y, list("abc"))), id="category"),
        pytest.param(lambda y: np.array(["x", "y", "z"])[y].tolist(), id="list"),
    ],
)
def test_labels_of_any_kind(blobs, rename):
    X, y = blobs
    labels = rename(y)
    model = MaPML(**QUICK).fit(X, labels)
    assert set(model.predict(X)) <= set(np.asarray(labels).tolist())
    assert model.latent_labels_.shape == (len(model.latent_examples_),)
    assert model.score(X, labels) > 0.7


class Recorder:
    """A callback that records its calls and can stop the fit."""

    def __init__(self, stop_after=None):
        self.stop_after, self.scores, self.events = stop_after, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        self.given = X
        self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and context.task_id + 1 >= self.stop_after


def test_callbacks_follow_every_round_and_can_stop_the_fit():
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = make_blobs()
    recorder = Recorder()
    model = MaPML(**QUICK).set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", "begin fit"]
    assert recorder.events.count("end round") == model.n_iter_ + 1 == 7
    assert recorder.events[-2:] == ["end fit", "teardown"]
    assert recorder.scores[-1] == model.score(X, y)
    assert recorder.given is X
    first = MaPML(**{**QUICK, "max_iter": 0}, refine=0)
    plain = MaPML(**QUICK, refine=0).set_callbacks(recorder := Recorder()).fit(X, y)
    assert recorder.scores[0] == first.fit(X, y).score(X, y)
    assert recorder.scores[-1] == plain.score(X, y)
    stopped = MaPML(**QUICK).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert stopped.n_iter_ == 1
