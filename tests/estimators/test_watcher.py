"""A watcher observes a fit, with any version of scikit-learn, and can end it early."""

import numpy as np
from helpers import make_blobs

from latentmetric import LMNN, MaPML
from latentmetric.estimators.progress import watched_by
from latentmetric.io import open_rows


class Watcher:
    def __init__(self, stop_after=None):
        self.stop_after, self.seen, self.read = stop_after, [], []

    def has_read(self, done, total):
        self.read.append((done, total))

    def has_learned(self, history, n_rounds):
        self.seen.append((history[-1]["round"], n_rounds))
        return len(self.seen) == self.stop_after


def test_every_round_is_reported_and_nothing_changes():
    X, y = make_blobs()
    watcher = Watcher()
    with watched_by(watcher):
        watched = MaPML(max_iter=3, random_state=0).fit(X, y)
    alone = MaPML(max_iter=3, random_state=0).fit(X, y)
    assert watcher.seen == [(number, 4) for number in range(5)]
    np.testing.assert_array_equal(watched.components_, alone.components_)


def test_it_can_end_a_fit_early():
    X, y = make_blobs()
    watcher = Watcher(stop_after=2)
    with watched_by(watcher):
        model = LMNN().fit(X, y)
    assert len(watcher.seen) == len(model.history_) == 2
    assert model.predict(X).shape == y.shape


def test_it_is_notified_of_rows_read_only_inside_the_block(tmp_path):
    X, y = make_blobs()
    np.save(tmp_path / "rows.npy", X)
    watcher = Watcher()
    with watched_by(watcher):
        MaPML(max_iter=0, refine=0).fit(open_rows(tmp_path / "rows.npy"), y)
    assert watcher.read[-1] == (240, 240)
    MaPML(max_iter=0, refine=0).fit(X, y)
    assert len(watcher.seen) == 1
