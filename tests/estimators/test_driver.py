"""The driver: every estimator keeps its best step, stops, is interrupted and resumes alike."""

import numpy as np
import pandas
import pytest
from helpers import interrupt_round, make_blobs
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML
from latentmetric.estimators import driver
from latentmetric.estimators.driver import PATIENCE
from latentmetric.export import to_sklearn

LEARNERS = {
    "MaPML": MaPML(max_iter=6, n_steps=200, random_state=0),
    "LMNN": LMNN(max_iter=60, tol=0, random_state=0),
    "OASIS": OASIS(psd=False, n_steps=500, aggressiveness=0.02, random_state=0),
    "OASIS, a metric": OASIS(n_steps=500, aggressiveness=0.02, psd=True, random_state=0),
    "HRSGD": HRSGD(n_steps=500, learning_rate=0.3, random_state=0),
}


@pytest.fixture(params=LEARNERS)
def learner(request):
    return clone(LEARNERS[request.param])


def matrix_of(model):
    return model.components_ if model.model_.is_metric else model.similarity_


def assert_same(one, other):
    np.testing.assert_array_equal(matrix_of(one), matrix_of(other))
    np.testing.assert_array_equal(one.model_.references.rows, other.model_.references.rows)
    assert (one.n_iter_, one.best_iter_) == (other.n_iter_, other.best_iter_)
    measured = [
        [{name: value for name, value in record.items() if name != "seconds"} for record in history]
        for history in (one.history_, other.history_)
    ]
    assert measured[0] == measured[1]


@pytest.mark.parametrize(("number", "early_stopping"), [(0, False), (1, True), (2, False)])
def test_an_interrupted_fit_is_resumed_to_the_same_model(
    learner, tmp_path, monkeypatch, number, early_stopping
):
    X, y = make_blobs()
    learner.set_params(early_stopping=early_stopping)
    whole = clone(learner).fit(X, y)
    with monkeypatch.context() as patched:
        interrupt_round(patched, number + 1)
        with pytest.raises(KeyboardInterrupt):
            clone(learner).fit(X, y, checkpoint=tmp_path)
    assert_same(clone(learner).fit(X, y, checkpoint=tmp_path, resume=True), whole)
    assert_same(clone(learner).fit(X, y, checkpoint=tmp_path, resume=True), whole)


@pytest.mark.parametrize(
    ("errors", "last", "best"),
    [([0.5, 0.4, 0.3, 0.3, 0.3, 0.3, 0.1], 5, 2), ([0.1, 0.2, 0.2, 0.2, 0.0], PATIENCE, 0)],
)
def test_the_best_step_is_kept_and_patience_ends(learner, monkeypatch, errors, last, best):
    X, y = make_blobs()
    left, measure = iter(errors), driver.held_out_model

    def measured(*of):
        return measure(*of)[0], {"validation_error": next(left)}

    monkeypatch.setattr(driver, "held_out_model", measured)
    if isinstance(learner, MaPML):
        learner.set_params(start="euclidean", refine=0)
    learner.set_params(early_stopping=True).fit(X, y)
    rounds = {record.get("iterations", record["round"]): record for record in learner.history_}
    assert rounds[learner.n_iter_]["round"] == last
    assert rounds[learner.best_iter_]["round"] == best
    if best == 0 and learner.model_.is_metric:
        metric = learner.get_mahalanobis_matrix()
        np.testing.assert_allclose(metric / metric[0, 0], np.eye(6), atol=1e-6)


def test_a_checkpoint_of_another_estimator_is_refused(tmp_path, monkeypatch):
    X, y = make_blobs()
    interrupt_round(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        clone(LEARNERS["HRSGD"]).fit(X, y, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r'estimator is "OASIS" now and was "HRSGD"$'):
        clone(LEARNERS["OASIS"]).fit(X, y, checkpoint=tmp_path, resume=True)


def test_the_temperature_of_the_kernel_is_chosen_on_held_out_rows():
    X, y = make_blobs(600)
    plain = LMNN(max_iter=5, weights="kernel").fit(X, y)
    held_out = LMNN(max_iter=5, weights="kernel", early_stopping=True, random_state=0).fit(X, y)
    assert 0 < held_out.model_.temperature != plain.model_.temperature


def test_an_interrupt_leaves_the_old_model_or_keeps_the_best_step(learner, monkeypatch):
    X, y = make_blobs()
    learner.fit(X, y)
    before = dict(vars(learner))
    interrupt_round(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X[:, :3], y)
    assert vars(learner) == before
    learner.fit(X[:, :3], y, keep_on_interrupt=True)
    assert [record["round"] for record in learner.history_] == [0, 1, 2]
    assert learner.n_features_in_ == 3


def test_a_fit_forgets_what_only_the_last_one_had():
    X, y = make_blobs()
    model = OASIS(n_steps=20, random_state=0).fit(pandas.DataFrame(X).rename(columns=str), y)
    assert model.feature_names_in_.tolist() == list("012345")
    model.set_params(psd=False).fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert not hasattr(model, "components_")


def test_a_change_of_the_reference_after_fit_raises_when_the_model_is_used(blobs):
    X, y = blobs
    model = MaPML(max_iter=1, n_steps=50, random_state=0).fit(X, y).set_params(reference="original")
    for use in (model.predict, model.kneighbors, lambda rows: to_sklearn(model)):
        with pytest.raises(ValueError, match="reference='original' was set after fit"):
            use(X)
    assert len(model.fit(X, y).model_.references) == len(X)
    before = model.set_references(X[:50], y[:50]).predict(X)
    assert model.reference_ == "set"
    np.testing.assert_array_equal(model.set_params(reference="latent").predict(X), before)


class Recorder:
    """A callback that records its calls and can stop or interrupt the fit."""

    def __init__(self, stop_after=None, interrupt=None):
        self.stop_after, self.interrupt, self.scores, self.events = stop_after, interrupt, [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(f"end {context.task_name}")
        if self.events[-1] == self.interrupt:
            raise KeyboardInterrupt
        self.scores.append(fitted_estimator.score(X, y))
        return self.stop_after is not None and context.task_id + 1 >= self.stop_after


@pytest.mark.skipif(
    not hasattr(Euclidean, "set_callbacks"), reason="this scikit-learn has no callbacks"
)
class TestCallbacks:
    @pytest.mark.parametrize("interrupted", [False, True])
    def test_they_see_every_round_and_an_end_for_each_beginning(
        self, learner, monkeypatch, interrupted
    ):
        X, y = make_blobs()
        recorder = Recorder()
        if interrupted:
            interrupt_round(monkeypatch, 2)
        learner.set_callbacks(recorder).fit(X, y, keep_on_interrupt=True)
        assert recorder.events[:3] == ["setup", "begin fit", "begin round"]
        assert recorder.events[-2:] == ["end fit", "teardown"]
        for task, times in (("round", len(learner.history_)), ("fit", 1)):
            assert recorder.events.count(f"begin {task}") == times
            assert recorder.events.count(f"end {task}") == times
        assert recorder.scores[-1] == learner.score(X, y)

    def test_they_can_stop_the_fit(self, learner):
        learner.set_callbacks(Recorder(stop_after=2)).fit(*make_blobs())
        assert [record["round"] for record in learner.history_] == [0, 1]

    def test_an_interrupt_in_the_last_one_keeps_the_model(self):
        X, y = make_blobs()
        model = Euclidean().set_callbacks(Recorder(interrupt="end fit"))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        assert model.fit(X, y, keep_on_interrupt=True).predict(X).shape == (240,)
