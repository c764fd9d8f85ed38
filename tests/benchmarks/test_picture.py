"""The picture of the README, drawn from results and images of the test."""

import json

import numpy as np
import picture
import pytest
from helpers import make_blobs

from latentmetric import MaPML


@pytest.fixture
def stored(tmp_path, monkeypatch):
    monkeypatch.setattr(picture, "RESULTS", tmp_path)
    rivals = {name: {"error": 10.0 + index} for index, name in enumerate(picture.RIVALS)}
    (tmp_path / "baselines.json").write_text(json.dumps({"cells": {"a set": rivals}}))
    own = {"cells": {"a row": {"error": [1.0, 2.0]}}}
    (tmp_path / "quality.json").write_text(json.dumps(own))


@pytest.mark.usefixtures("stored")
def test_bars_are_stored_errors():
    found = picture.errors("a row", "a set")
    assert list(found.values()) == [10.0, 11.0, 12.0, 13.0, 1.5]
    assert list(found)[-1].startswith("MaPML")


def test_a_latent_example_is_shown_with_rows_that_it_stands_for(monkeypatch):
    X, y = make_blobs()
    monkeypatch.setattr(picture, "DIGITS", (0, 2))
    model = MaPML(n_latents=2, max_iter=1, n_steps=100, random_state=0).fit(X, y)
    for digit, (latent, originals) in zip((0, 2), picture.strips(model, X, y), strict=True):
        index = np.flatnonzero((model.latent_examples_ == latent).all(axis=1))
        assert model.latent_labels_[index].tolist() == [digit]
        assert originals.shape == (picture.N_ORIGINALS, 6)
        nearest = model.kneighbors(originals, 1, return_distance=False)
        assert (model.latent_labels_[nearest] == digit).mean() > 0.5
