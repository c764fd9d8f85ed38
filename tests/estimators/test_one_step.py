"""An estimator is unfitted, as the last fit left it, or as the new one does: never in between."""

import copy
import pickle
import sys

import numpy as np
import pandas
import pytest
from helpers import make_blobs
from sklearn.exceptions import NotFittedError

from latentmetric import HRSGD, LMNN, OASIS, Euclidean, MaPML, save
from latentmetric.estimators import base
from latentmetric.estimators.progress import watched_by

X, Y = make_blobs(60)
NARROW = X[:, :3]

MODELS = [
    MaPML(n_steps=30, max_iter=1, refine=1, random_state=0),
    LMNN(max_iter=2),
    OASIS(psd=False, n_steps=30, random_state=0),
    HRSGD(n_steps=30, random_state=0),
]


def interrupted_at(number, work):
    """Do the work, with Ctrl-C before line ``number`` of base.py; False if it has fewer lines."""
    lines = iter(range(1, number + 1))

    def on_line(frame, event, argument):
        if event in ("line", "return") and next(lines, None) == number:
            raise KeyboardInterrupt
        return on_line

    def on_call(frame, event, argument):
        return on_line if frame.f_code.co_filename == base.__file__ else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def answers(model, rows):
    """What a model says about rows, or the kind of its error."""
    try:
        said = model.predict(rows)
    except ValueError as error:
        return type(error)
    if hasattr(model, "transform"):
        assert model.transform(rows).shape == (len(rows), len(model.components_))
    return said.tolist()


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize("named", [False, True], ids=["arrays", "frames"])
@pytest.mark.parametrize("again", [{"psd": False}, {"psd": True}], ids=str)
def test_an_interrupt_at_any_line_leaves_the_old_model_or_the_new_one(named, again):
    old = OASIS(n_steps=20, psd=True, random_state=0).fit(
        pandas.DataFrame(X).rename(columns=str) if named else X, Y
    )
    new = copy.deepcopy(old).set_params(**again).fit(NARROW, Y)
    expected = [vars(old).keys(), vars(new).keys()]
    seen = set()
    for number in range(1, 500):
        model = copy.deepcopy(old).set_params(**again)
        if not interrupted_at(number, lambda model=model: model.fit(NARROW, Y)):
            break
        wide = pandas.DataFrame(X).rename(columns=str) if named else X
        found = [answers(model, wide), answers(model, NARROW)]
        is_new = found[0] is ValueError
        seen.add(is_new)
        assert vars(model).keys() == expected[is_new]
        assert found[1 - is_new] is ValueError
        assert found[is_new] == answers(*((new, NARROW) if is_new else (old, wide)))
    assert seen == {False, True}


class Copying:
    """Takes copies of an estimator after each round of its fit."""

    def __init__(self, model):
        self.model, self.copies = model, []

    def has_read(self, done, total):
        pass

    def has_learned(self, history, n_rounds):
        self.copies += [copy.deepcopy(self.model), pickle.loads(pickle.dumps(self.model))]
        return False


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_copies_taken_during_a_first_fit_are_not_fitted(model, tmp_path):
    model = copy.deepcopy(model)
    watcher = Copying(model)
    with watched_by(watcher):
        model.fit(X, Y)
    assert watcher.copies
    for copied in watcher.copies:
        for name in ("predict", "predict_proba", "kneighbors", "score_samples", "transform"):
            if hasattr(copied, name):
                with pytest.raises(NotFittedError):
                    getattr(copied, name)(X)
        with pytest.raises(NotFittedError):
            save(copied, tmp_path / "m")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_copies_taken_during_a_second_fit_are_those_of_the_first(model):
    model = copy.deepcopy(model).fit(X, Y)
    expected, watcher = model.predict(X), Copying(model)
    with watched_by(watcher):
        model.fit(NARROW, Y)
    for copied in watcher.copies:
        np.testing.assert_array_equal(copied.predict(X), expected)
    assert model.predict(NARROW).shape == Y.shape


def test_names_of_features_go_with_the_model_that_had_them():
    frame = pandas.DataFrame(X).rename(columns=str)
    model = Euclidean().fit(frame, Y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    model.set_references(frame[:30], Y[:30])
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
