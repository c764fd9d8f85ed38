"""What the page says one would use instead."""

import numpy as np
from helpers import make_blobs

from latentmetric.evaluation.rivals import fit_rival
from latentmetric.viz.report.baselines import RIVALS, fitted_baselines


def test_every_rival_is_announced_and_answers_as_it_was_fitted():
    X, y = make_blobs()
    said = []
    found = fitted_baselines(X[:160], y[:160], X[160:], 1, said.append)
    assert said == [baseline.name for baseline in found] == list(RIVALS)
    for baseline in found:
        rival = fit_rival(RIVALS[baseline.name], X[:160], y[:160])
        np.testing.assert_array_equal(baseline.predicted, rival.pipeline.predict(X[160:]))
        assert (baseline.n_rows, baseline.chosen) == (160, rival.chosen)


def test_codes_may_have_gaps():
    X, y = make_blobs()
    for baseline in fitted_baselines(X, 2 * y + 1, X, 1, lambda name: None):
        assert set(baseline.predicted) <= {1, 3, 5}
