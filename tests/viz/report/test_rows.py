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


@pytest.mark.parametrize("name", [*list(OF_NUMBERS)[::4], *list(OF_GAPS)[::2], *OF_FRAMES])
def test_a_column_moves_with_the_given_column_it_comes_from_and_with_no_other(name, tmp_path):
    X, y = make_frame() if name in OF_FRAMES else make_numbers()
    X = X.fillna({"weight": 3}) if name in OF_FRAMES else with_gaps(X) if name in OF_GAPS else X
    steps = {**OF_NUMBERS, **OF_GAPS, **{key: [step] for key, step in OF_FRAMES.items()}}[name]
    pipeline = make_pipeline(*(clone(step, safe=False) for step in steps), model()).fit(X, y)
    latentmetric.save(pipeline, tmp_path / "model")
    columns = columns_of(latentmetric.load(tmp_path / "model"), X.shape[1])
    after = np.asarray(pipeline[:-1].transform(X), dtype=float)
    assert len(columns) == after.shape[1]
    if any(type(step).__name__ == "Normalizer" for _, step in pipeline.steps):
        return
    for index in range(X.shape[1]):
        changed = X.copy()
        cells = changed.to_numpy() if name in OF_FRAMES else changed
        if name in OF_FRAMES:
            changed[changed.columns[index]] = cells[::-1, index]
        else:
            changed[:, index] = cells[::-1, index].copy()
        moved = (np.asarray(pipeline[:-1].transform(changed), dtype=float) != after).any(axis=0)
        for column, has_moved in zip(columns, moved, strict=True):
            assert column.given is None or has_moved <= (column.given == index)


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
