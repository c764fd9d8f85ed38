"""What the tables of the demo show, each in one sentence of plain words."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from latentmetric.demo.contenders import EUCLID, LOGISTIC, MAPML, SUPPORT, TUNED, Measured
from latentmetric.demo.tasks import Task
from latentmetric.evaluation.significance import paired

Results = Mapping[str, Measured]


def percent(share: float, digits: int = 0) -> str:
    """A share as text."""
    return f"{100 * share:.{digits}f} %"


def about_clean(results: Results) -> str:
    """Errors as counts, because they are few."""
    euclid, ours = results[EUCLID], results[MAPML]
    return (
        f"Of {ours.rows} test images, MaPML gets {ours.wrong} wrong with {ours.references} "
        f"references; 3-NN gets {euclid.wrong} wrong with all {euclid.references:,} images, tuned "
        f"k-NN {results[TUNED].wrong}, logistic regression {results[LOGISTIC].wrong} and tuned SVC "
        f"{results[SUPPORT].wrong}. A difference of a few images is chance: on clean rows like "
        "these, MaPML saves references rather than errors."
    )


def about_noise(results: Results) -> str:
    """Errors in percent."""
    return (
        f"After learning from images full of noise, {_errors(results, 0)} of the clean test images "
        "wrong: latent examples start as averages, in which noise cancels out."
    )


def about_wrong_labels(results: Results, clean: Task, wrong: Task) -> str:
    """How many labels were wrong, and what came of it."""
    share = percent(float(np.mean(clean.y_train != wrong.y_train)))
    return (
        f"With {share} of the labels wrong, {_errors(results, 1)} of the test images wrong. "
        f"{_beside_support_vectors(results)}"
    )


def _beside_support_vectors(results: Results) -> str:
    """MaPML and SVC, the strongest of the others as a rule, judged as ``compare`` judges."""
    ours = paired(results[MAPML].right, results[SUPPORT].right)
    if not ours.beyond_chance:
        return "MaPML is about as good as tuned SVC: chance explains the difference."
    better = "better" if ours.fewer > 0 else "worse"
    return f"MaPML is {better} than tuned SVC, by more than chance explains."


def _errors(results: Results, digits: int) -> str:
    """Which share each method gets, for a sentence that ends with "wrong"."""
    euclid, tuned, logistic, support, ours = (
        percent(results[name].error, digits) for name in (EUCLID, TUNED, LOGISTIC, SUPPORT, MAPML)
    )
    return (
        f"3-NN gets {euclid}, tuned k-NN {tuned}, logistic regression {logistic}, tuned SVC "
        f"{support} and MaPML {ours}"
    )
