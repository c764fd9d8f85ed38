"""What the tables of the demo show, each in one sentence of plain words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from latentmetric.demo.contenders import EUCLID, LOGISTIC, MAPML, Measured
from latentmetric.demo.tasks import Task

Results = Mapping[str, Measured]


def percent(share: float, digits: int = 0) -> str:
    """A share as text."""
    return f"{100 * share:.{digits}f} %"


def about_clean(results: Results) -> str:
    """Errors as counts, because they are few."""
    euclid, ours, logistic = results[EUCLID], results[MAPML], results[LOGISTIC]
    return (
        f"Of {ours.rows} test images, MaPML gets {ours.wrong} wrong with {ours.references} "
        f"references; 3-NN gets {euclid.wrong} wrong with all {euclid.references:,} images, and "
        f"logistic regression {logistic.wrong}."
    )


def about_noise(results: Results) -> str:
    """Errors in percent."""
    euclid, logistic, ours = (percent(results[name].error) for name in (EUCLID, LOGISTIC, MAPML))
    return (
        f"After learning from images full of noise, 3-NN gets {euclid} of the clean test images "
        f"wrong, logistic regression {logistic}, and MaPML {ours}: its latent examples are "
        "averages, in which noise cancels out."
    )


def about_wrong_labels(results: Results, clean: Task, wrong: Task) -> str:
    """How many labels were wrong, and what came of it."""
    share = float(np.mean(clean.y_train != wrong.y_train))
    euclid, logistic, ours = (percent(results[name].error, 1) for name in (EUCLID, LOGISTIC, MAPML))
    return (
        f"With {percent(share)} of the labels wrong, 3-NN gets {euclid} of the test images wrong, "
        f"logistic regression {logistic}, and MaPML(label_noise=True) {ours}."
    )
