"""Models and pages that the tests of the report share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from page_reader import HOSTILE, Page
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML
from latentmetric.viz import write_report


@pytest.fixture(scope="session")
def digits():
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = MaPML(max_iter=3, n_steps=2000, early_stopping=True, random_state=0)
    return model.fit(X_train, y_train), X_train, y_train, X_test, y_test


@pytest.fixture(scope="session")
def digits_page(digits, tmp_path_factory):
    model, X_train, y_train, X_test, y_test = digits
    path = tmp_path_factory.mktemp("digits") / "report.html"
    write_report(
        model, X_test, y_test, path, X_train=X_train, y_train=y_train, image_shape=(8, 8),
        title="Digits",
    )  # fmt: skip
    return Page.read(path)


@pytest.fixture(scope="session")
def hostile_page(tmp_path_factory):
    generator = np.random.default_rng(0)
    codes = np.arange(400) % len(HOSTILE)
    X = generator.standard_normal((400, len(HOSTILE)))
    X[np.arange(400), codes] += 2.5
    names = pd.Index([f"{text}{n}" for n, text in enumerate(HOSTILE)], dtype=object)
    frame = pd.DataFrame(X, columns=names)
    y = np.array(HOSTILE, dtype=object)[codes]
    model = MaPML(max_iter=1, n_steps=500, random_state=0).fit(frame, y)
    path = tmp_path_factory.mktemp("hostile") / "report <b>'\".html"
    write_report(
        model, frame, y, path, title=HOSTILE[0] + HOSTILE[5], source="/data/" + "".join(HOSTILE),
        row_names=[HOSTILE[n % len(HOSTILE)] for n in range(400)],
    )  # fmt: skip
    return Page.read(path)
