"""The driver: every estimator keeps its best step, stops, is interrupted and resumes alike."""

import numpy as np
import pytest
from helpers import interrupt_round, make_blobs
from sklearn.base import clone

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML
from latentmetric.estimators.driver import PATIENCE, Driver

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


def test_an_interrupt_may_keep_the_best_step_so_far(learner, monkeypatch):
    X, y = make_blobs()
    interrupt_round(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, y)
    assert not hasattr(learner, "model_")
    learner.fit(X, y, keep_on_interrupt=True)
    assert [record["round"] for record in learner.history_] == [0, 1, 2]


@pytest.mark.parametrize(
    ("errors", "last", "best"),
    [([0.5, 0.4, 0.3, 0.3, 0.3, 0.3, 0.1], 5, 2), ([0.1, 0.2, 0.2, 0.2, 0.0], PATIENCE, 0)],
)
def test_the_best_step_is_kept_and_patience_ends(learner, monkeypatch, errors, last, best):
    X, y = make_blobs()
    left, measure = iter(errors), Driver._measure
    monkeypatch.setattr(
        Driver,
        "_measure",
        lambda self, state: {**measure(self, state), "validation_error": next(left)},
    )
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


class TestReference:
    """``reference`` takes effect in ``fit``: a change after it must not be ignored."""

    def test_a_change_after_fit_raises_when_the_model_is_used(self, blobs, tmp_path):
        from latentmetric import save
        from latentmetric.export import to_sklearn

        X, y = blobs
        model = MaPML(max_iter=1, n_steps=50, random_state=0).fit(X, y)
        model.set_params(reference="original")
        for use in (
            model.predict, model.predict_proba, model.kneighbors, model.score_samples,
            lambda rows: save(model, tmp_path / "model"), lambda rows: to_sklearn(model),
        ):  # fmt: skip
            with pytest.raises(ValueError, match="reference='original' was set after fit"):
                use(X)
        assert not (tmp_path / "model").exists()
        assert len(model.fit(X, y).model_.references) == len(X)
        model.predict(X)

    def test_set_references_stay_whatever_the_parameter_says(self, blobs):
        X, y = blobs
        model = MaPML(max_iter=1, n_steps=50, random_state=0).fit(X, y)
        model.set_references(X[:50], y[:50])
        assert model.reference_ == "set"
        before = model.predict(X)
        np.testing.assert_array_equal(model.set_params(reference="original").predict(X), before)


class Tasks:
    """A callback that counts what begins and what ends."""

    def __init__(self, interrupt_end=None):
        self.begun, self.ended, self.interrupt_end = 0, 0, interrupt_end

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        self.begun += 1

    def on_fit_task_end(self, estimator, context):
        self.ended += 1
        if self.ended == self.interrupt_end:
            raise KeyboardInterrupt


@pytest.mark.parametrize("interrupted", [False, True])
def test_callbacks_see_an_end_for_each_beginning(learner, monkeypatch, interrupted):
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    tasks = Tasks()
    if interrupted:
        interrupt_round(monkeypatch, 2)
    learner.set_callbacks(tasks).fit(*make_blobs(), keep_on_interrupt=True)
    assert tasks.begun == tasks.ended == len(learner.history_) + 1


def test_an_interrupt_in_the_last_callback_keeps_the_model():
    pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks")
    X, y = make_blobs()
    model = Euclidean().set_callbacks(Tasks(interrupt_end=2))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    model = Euclidean().set_callbacks(Tasks(interrupt_end=2))
    assert model.fit(X, y, keep_on_interrupt=True).predict(X).shape == (240,)


def test_a_refused_fit_leaves_the_random_state_alone():
    X, y = make_blobs()
    state = np.random.RandomState(0)
    with pytest.raises(ValueError, match="240 rows, y has 3 labels"):
        MaPML(random_state=state).fit(X, y[:3])
    assert state.randint(1000) == np.random.RandomState(0).randint(1000)
