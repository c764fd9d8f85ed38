"""The columns after the steps: their names, and the given columns that they come from."""

import numpy as np
import pytest
from pipelines import OF_FRAMES, OF_GAPS, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import latentmetric
from latentmetric.validation.pipelines import split_pipeline
from latentmetric.viz.report.rows import Column, columns_after


def columns_of(pipeline, n_given):
    piped = split_pipeline(pipeline)
    return columns_after(piped, piped.feature_names, n_given)


@pytest.mark.parametrize("name", [*list(OF_NUMBERS)[::4], *list(OF_GAPS)[::2]])
def test_every_column_after_the_steps_is_traced(name):
    X, y = make_numbers()
    X = with_gaps(X) if name in OF_GAPS else X
    steps = {**OF_NUMBERS, **OF_GAPS}[name]
    pipeline = make_pipeline(*(clone(step, safe=False) for step in steps), model()).fit(X, y)
    assert_traced(pipeline, X)


@pytest.mark.parametrize("name", OF_FRAMES)
def test_every_column_of_a_frame_is_traced(name, tmp_path):
    frame, y = make_frame()
    pipeline = make_pipeline(clone(OF_FRAMES[name]), model()).fit(frame.fillna({"weight": 3}), y)
    found = assert_traced(pipeline, frame.fillna({"weight": 3}))
    latentmetric.save(pipeline, tmp_path / "model")
    assert columns_of(latentmetric.load(tmp_path / "model"), frame.shape[1]) == found


def assert_traced(pipeline, X):
    """A column after the steps moves with the given column it comes from, and with no other."""
    columns = columns_of(pipeline, X.shape[1])
    after = np.asarray(pipeline[:-1].transform(X), dtype=float)
    assert len(columns) == after.shape[1]
    if any(type(step).__name__ == "Normalizer" for _, step in pipeline.steps):
        return columns
    for index in range(X.shape[1]):
        changed = X.copy()
        values = np.asarray(X)[:, index]
        if hasattr(changed, "columns"):
            changed[changed.columns[index]] = values[::-1]
        else:
            changed[:, index] = values[::-1]
        moved = (np.asarray(pipeline[:-1].transform(changed), dtype=float) != after).any(axis=0)
        for column, has_moved in zip(columns, moved, strict=True):
            assert column.given is None or has_moved <= (column.given == index)
    return columns


def test_categories_and_gaps_are_named():
    frame, y = make_frame()
    pipeline = make_pipeline(clone(OF_FRAMES["named"]), model()).fit(frame, y)
    assert columns_of(pipeline, 4) == [
        Column("size", 0), Column("weight", 1),
        Column("color = blue", 3), Column("color = green", 3), Column("color = red", 3),
    ]  # fmt: skip
    X, y = make_numbers()
    X = with_gaps(X)
    pipeline = make_pipeline(clone(OF_GAPS["indicated"][0]), model()).fit(X, y)
    assert columns_of(pipeline, 8)[-1] == Column("feature 3 is missing", 3)
