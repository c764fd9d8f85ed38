"""An estimator is unfitted, as the last fit left it, or as the new one does: never in between."""

import copy
import sys

import pandas
import pytest
from helpers import make_blobs

from latentmetric import OASIS, Euclidean
from latentmetric.estimators import base

X, Y = make_blobs(60)
NARROW = X[:, :3]


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
@pytest.mark.parametrize(("named", "again"), [(False, {"psd": False}), (True, {"psd": True})])
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


def test_names_of_features_go_with_the_model_that_had_them():
    frame = pandas.DataFrame(X).rename(columns=str)
    model = Euclidean().fit(frame, Y)
    assert model.feature_names_in_.tolist() == list(frame.columns)
    model.set_references(frame[:30], Y[:30])
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert not hasattr(model.fit(X, Y), "feature_names_in_")
