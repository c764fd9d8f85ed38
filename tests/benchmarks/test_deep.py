"""The comparison of losses for networks: choices, fairness, and its report."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")
reason = "pytorch-metric-learning is not installed"
pytest.importorskip("pytorch_metric_learning", reason=reason)

import deep
from networks.methods import METHODS
from networks.scores import k_means_latents, recall_at_1, three_nearest
from networks.tasks import Rows
from networks.training import BATCH, Trained, batches


def small_rows(zero_shot=False):
    generator = np.random.default_rng(0)
    y = np.arange(240) % 4
    X = (3 * np.eye(6)[y] + 0.3 * generator.normal(size=(240, 6))).astype(np.float32)
    return Rows(X[:160], y[:160], X[160:], y[160:], zero_shot)


def test_every_loss_has_as_many_candidates():
    assert {len(method.candidates()) for method in METHODS.values()} == {8}


@pytest.mark.parametrize("name", ["LatentVote (ours)", "ProxyNCA", "semi-hard triplet"])
def test_every_loss_learns_and_answers(name):
    method, rows = METHODS[name], small_rows()
    trained = Trained(rows, method, method.candidates()[-1], False, 0)
    errors = deep.answers(trained, rows)
    assert errors["3-NN"] < 0.1
    assert errors["latents"] < 0.2
    assert len(trained.curve) == deep.EPOCHS


def test_pairs_have_partners_in_their_batch():
    y = np.arange(1000) % 50
    for batch in batches(y, True, np.random.default_rng(0)):
        assert len(batch) == BATCH
        assert np.bincount(y[batch]).max() == 4
    once = torch.cat(list(batches(y, False, np.random.default_rng(0))))
    assert sorted(once.tolist()) == list(range(1000))


def test_votes_and_searches():
    points = torch.tensor([[0.0], [1.0], [1.2], [5.0]])
    labels = np.array([0, 1, 1, 2])
    assert three_nearest(torch.tensor([[0.3]]), points, labels).tolist() == [1]
    assert three_nearest(torch.tensor([[0.3]]), points[:2], labels).tolist() == [0]
    assert recall_at_1(points, np.array([0, 1, 1, 1])) == pytest.approx(0.75)
    means, of = k_means_latents(points, np.array([0, 0, 0, 1]), 1)
    assert (of.tolist(), means[1].item()) == ([0, 1], 5.0)
