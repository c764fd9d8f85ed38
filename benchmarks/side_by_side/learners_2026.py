"""How each method of peers_2026.py is built: a function that makes something with fit and
predict_proba.

This file runs in the environment of its method, so it imports only NumPy, and the libraries inside
the functions. Random numbers start from 0. A method by its plain name has its library's defaults;
"tuned" is the search that its library offers (pytabkit's spaces "tabarena", or its default where
there is none) or, for scikit-learn, a grid, as far as it gets in ``SEARCH_SECONDS``; what is chosen
is best on a fifth of the training rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

PROBABILITIES = True
SEARCH_SECONDS = 420.0
"""Of the processor, of the ten minutes that a method has for search, fit and queries."""
TRAIN_SECONDS = 540.0
VALIDATION_SHARE = 0.2

PROBE_C = (1, 3, 10, 30, 100, 300)
FOREST_GRID = {"max_features": ("sqrt", 0.3, 0.6, 1.0), "min_samples_leaf": (1, 2, 4)}
XRFM_BATCH = 1_000
"""Rows at once for the gradients; only memory depends on it. By default, letter passes 12 GB."""
BOOSTING_GRID = {"learning_rate": (0.1, 0.05, 0.2), "max_leaf_nodes": (31, 15, 63)}

Parameters = dict[str, Any]


class Searched:
    """The candidate with the fewest errors on a fifth of the rows, fitted again to all.

    A candidate is not tried if one as slow as the slowest so far would pass ``seconds``.
    """

    def __init__(
        self,
        build: Callable[..., Any],
        candidates: Sequence[Parameters],
        seconds: float = SEARCH_SECONDS,
    ) -> None:
        self.build, self.candidates, self.seconds = build, candidates, seconds

    def fit(self, X: np.ndarray, y: np.ndarray) -> Searched:
        from sklearn.model_selection import train_test_split

        split = train_test_split(X, y, test_size=VALIDATION_SHARE, stratify=y, random_state=0)
        start, slowest, scores = time.process_time(), 0.0, []
        for candidate in self.candidates:
            before = time.process_time()
            if scores and before - start + slowest > self.seconds:
                break
            model = self.build(**candidate).fit(split[0], split[2])
            scores.append(model.score(split[1], split[3]))
            slowest = max(slowest, time.process_time() - before)
        best = self.candidates[int(np.argmax(scores))]
        self.notes_ = f"{best}, best of {len(scores)} of {len(self.candidates)}"
        self._model = self.build(**best).fit(X, y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._model.predict_proba(X)


def grid(values: dict[str, Sequence[Any]]) -> list[Parameters]:
    """All combinations; the first has the first value of each."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


def mapml() -> Any:
    from latentmetric import MaPML

    return MaPML(random_state=0, n_jobs=1)


def linear_probe() -> Any:
    from sklearn.linear_model import LogisticRegression

    return Searched(
        lambda C: LogisticRegression(C=C, max_iter=1_000), [{"C": value} for value in PROBE_C]
    )


def forest(**parameters: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(random_state=0, **parameters)


def boosting(**parameters: Any) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(random_state=0, **parameters)


def catboost() -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        thread_count=1, allow_writing_files=False, verbose=False, random_seed=0
    )


def pytabkit(name: str, **parameters: Any) -> Callable[[], Any]:
    def build() -> Any:
        import pytabkit

        return getattr(pytabkit, name)(
            device="cpu", n_threads=1, random_state=0, verbosity=0, **parameters
        )

    return build


def pytabkit_search(name: str, **parameters: Any) -> Callable[[], Any]:
    """Its limit is in seconds by the clock; it gets the processor's."""

    def build() -> Any:
        from pytabkit.models.alg_interfaces import ensemble_interfaces

        ensemble_interfaces.time = SimpleNamespace(time=time.process_time)
        return pytabkit(name, time_limit_s=SEARCH_SECONDS, **parameters)()

    return build


def modern_nca() -> Any:
    import torch
    from modern_nca import ModernNCA

    torch.set_num_threads(1)
    return ModernNCA(TRAIN_SECONDS)


LEARNERS: dict[str, Callable[[], Any]] = {
    "MaPML": mapml,
    "linear probe": linear_probe,
    "random forest": forest,
    "HistGradientBoosting": boosting,
    "RealMLP": pytabkit("RealMLP_TD_Classifier"),
    "CatBoost": catboost,
    "xRFM": pytabkit("XRFM_D_Classifier", M_batch_size=XRFM_BATCH),
    "ModernNCA": modern_nca,
    "TabM": pytabkit("TabM_D_Classifier"),
    "random forest tuned": lambda: Searched(forest, grid(FOREST_GRID)),
    "HistGradientBoosting tuned": lambda: Searched(boosting, grid(BOOSTING_GRID)),
    "RealMLP tuned": pytabkit_search("RealMLP_HPO_Classifier", hpo_space_name="tabarena"),
    "CatBoost tuned": pytabkit_search("CatBoost_HPO_Classifier", hpo_space_name="tabarena"),
    "xRFM tuned": pytabkit_search("XRFM_HPO_Classifier", M_batch_size=XRFM_BATCH),
    "TabM tuned": pytabkit_search("TabM_HPO_Classifier", hpo_space_name="tabarena"),
}
"""The methods by name, in the order of the run: defaults first, and the cheap ones first."""
