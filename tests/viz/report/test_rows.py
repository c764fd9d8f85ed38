"""The columns after the steps: their names, and the given columns that they come from."""

import numpy as np
import pytest
from pipelines import OF_FRAMES, OF_GAPS, OF_NUMBERS, make_frame, make_numbers, model, with_gaps
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import latentmetric
from latentmetric.validation.pipelines import split_pipeline
from latentmetric.viz.report.rows import columns_after


def columns_of(pipeline, n_given):
    piped = split_pipeline(pipeline)
    names = piped.feature_names or [f"feature {index}" for index in range(n_given)]
    return columns_after(piped, names)


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
