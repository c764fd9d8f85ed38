"""Word of a fit's progress: to scikit-learn's callbacks where it has them, and to the log."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

logger = logging.getLogger("latentmetric")


def log_round(name: str, record: Mapping[str, Any], n_rounds: int, verbose: int) -> None:
    """One line a round, at level INFO if ``verbose`` and DEBUG otherwise.

    Where nobody has set up logging, ``verbose`` sends the lines to standard error.
    """
    if verbose:
        _let_it_be_seen()
    measured = [
        f"{key.replace('_', ' ')} {value:.4g}"
        for key, value in record.items()
        if key not in ("round", "seconds")
    ]
    logger.log(
        logging.INFO if verbose else logging.DEBUG,
        "%s round %d/%d: %s, %.1f s",
        name,
        record["round"],
        n_rounds,
        ", ".join(measured),
        sum(record["seconds"].values()),
    )


def _let_it_be_seen() -> None:
    """Lines to standard error for as long as nobody else handles them."""
    if _FALLBACK not in logger.handlers:
        logger.addHandler(_FALLBACK)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


_FALLBACK = logging.StreamHandler()
_FALLBACK.addFilter(lambda record: not logging.getLogger().handlers)


class RoundReporter:
    """Tells the estimator's callbacks of every round, and whether one of them asks to stop."""

    def __init__(self, estimator: Any, n_rounds: int) -> None:
        self._estimator = estimator
        start = getattr(estimator, "_init_callback_context", None)
        self._fit = start(max_subtasks=n_rounds) if start is not None else None
        self._round: Any = None

    def fit_begins(self, X: Any, y: Any) -> None:
        if self._fit is not None:
            self._fit.call_on_fit_task_begin(estimator=self._estimator, X=X, y=y)

    def round_begins(self, X: Any, y: Any) -> None:
        if self._fit is not None:
            self._round = self._fit.subcontext(task_name="round")
            self._round.call_on_fit_task_begin(estimator=self._estimator, X=X, y=y)

    def round_ends(self, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]) -> bool:
        """True where a callback asks to stop. ``attributes`` is called only if one wants them."""
        return self._round is not None and self._ends(self._round, X, y, attributes)

    def fit_ends(self, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]) -> None:
        if self._fit is not None:
            self._ends(self._fit, X, y, attributes)

    def _ends(self, task: Any, X: Any, y: Any, attributes: Callable[[], dict[str, Any]]) -> bool:
        stop: bool = task.call_on_fit_task_end(
            estimator=self._estimator, X=X, y=y, reconstruction_attributes=attributes
        )
        return stop
