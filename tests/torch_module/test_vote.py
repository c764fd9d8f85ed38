"""LatentVoteLoss is the likelihood of the refinement."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric.core.likelihood import loss_of
from latentmetric.core.nearby import responsibilities
from latentmetric.core.refinement import Batch, gradient
from latentmetric.core.tuning import WRONG_LABELS_EXPONENT
from latentmetric.torch import LatentVoteLoss, MahalanobisLinear
from latentmetric.torch.latents import batch_logits

SIZES = [2, 3, 1]
OF_LATENTS = np.repeat(np.arange(3), SIZES)


def placed_loss(rng, **parameters):
    """A loss in float64 with latent examples that have seen rows."""
    loss = LatentVoteLoss(3, 4, SIZES, temperature=2.0, **parameters).double()
    with torch.no_grad():
        loss.latents.copy_(torch.tensor(rng.normal(size=(6, 4))))
        loss.counts.fill_(7.0)
    return loss


def batch(rng, n_rows=9):
    return rng.normal(size=(n_rows, 4)), rng.integers(0, 3, size=n_rows)


def likelihoods(rows, labels, latents, temperature):
    """P(y | x) by the functions of the core."""
    squared = ((rows[:, None] - latents) ** 2).sum(axis=2)
    same = labels[:, None] == OF_LATENTS
    return responsibilities(squared, same, temperature)[2]


@pytest.mark.parametrize("exponent", [0.0, WRONG_LABELS_EXPONENT])
def test_the_loss_and_its_gradients_are_those_of_the_refinement(rng, exponent):
    """Gradients in the factor of the metric and in the latent examples."""
    loss = placed_loss(rng, label_noise=exponent > 0).eval()
    rows, labels = rng.normal(size=(9, 5)), rng.integers(0, 3, size=9)
    layer = MahalanobisLinear(5, 4).double()
    value = loss(layer(torch.tensor(rows)), torch.tensor(labels))
    (9 * value).backward()
    right = likelihoods(rows[:, :4], labels, loss.latents.detach().numpy(), 2.0)
    assert value.item() == pytest.approx(loss_of(right, exponent).mean())
    every = np.tile(np.arange(6), (9, 1))
    points, components = loss.latents.detach().numpy(), layer.weight.detach().numpy()
    same = labels[:, None] == OF_LATENTS
    in_one_set = (part[:, None] for part in (every, same, np.ones(every.shape)))
    expected = gradient(rows, Batch(components, points, *in_one_set, 2.0, exponent))
    np.testing.assert_allclose(layer.weight.grad.numpy(), expected.components)
    np.testing.assert_allclose(loss.latents.grad.numpy(), expected.points)


@pytest.mark.parametrize(
    "parameters", [{}, {"label_noise": True, "smoothing": 0.3, "batch_votes": True}]
)
def test_gradcheck(rng, parameters):
    loss = placed_loss(rng, **parameters)
    rows, labels = batch(rng)
    rows, labels = torch.tensor(rows, requires_grad=True), torch.tensor(labels)

    def of_rows(embeddings):
        return copy.deepcopy(loss)(embeddings, labels)

    assert torch.autograd.gradcheck(of_rows, (rows,))


def test_logits_are_larger_for_better_classes(rng):
    loss = placed_loss(rng).eval()
    rows = torch.tensor(batch(rng)[0])
    squared = torch.cdist(rows, loss.latents.detach()).square()
    weights = torch.exp(-squared / 2.0)
    votes = torch.stack([part.sum(dim=1) for part in weights.split(SIZES, dim=1)], dim=1)
    assert torch.allclose(loss.get_logits(rows), votes.log())
    assert torch.allclose(loss.predict_proba(rows), votes / votes.sum(dim=1, keepdim=True))
    assert torch.equal(loss.predict(rows), votes.argmax(dim=1))


def test_miners_weigh_rows(rng):
    loss = placed_loss(rng).eval()
    rows, labels = (torch.tensor(part) for part in batch(rng, 4))
    each = torch.stack([loss(rows[[i]], labels[[i]]) for i in range(4)])
    triplets = torch.tensor([0, 0]), torch.tensor([1, 1]), torch.tensor([3, 0])
    expected = (each * torch.tensor([3, 2, 0, 1]) / 3).mean()
    assert torch.allclose(loss(rows, labels, triplets), expected)
    nothing = (torch.empty(0, dtype=torch.long),) * 3
    assert loss(rows, labels, nothing) == 0


def test_the_margin_grows_with_the_spread_of_a_class(rng):
    """As if the latent examples of the label were farther away in D²."""
    loss = placed_loss(rng, margin=0.5).eval()
    with torch.no_grad():
        loss.spreads.copy_(torch.tensor([1.0, 2.0, 3.0]))
    rows, labels = batch(rng)
    found = loss(torch.tensor(rows), torch.tensor(labels)).item()
    squared = ((rows[:, None] - loss.latents.detach().numpy()) ** 2).sum(axis=2)
    same = labels[:, None] == OF_LATENTS
    squared += np.where(same, 0.5 * np.array([1.0, 2.0, 3.0])[labels][:, None], 0)
    right = responsibilities(squared, same, 2.0)[2]
    assert found == pytest.approx(-np.log(right).mean())


def test_other_rows_of_the_batch_vote_in_training(rng):
    """As if each were a latent example of its own; no row votes for itself."""
    loss = placed_loss(rng, batch_votes=True)
    latents = loss.latents.detach().numpy().copy()
    rows, labels = batch(rng)
    found = loss(torch.tensor(rows), torch.tensor(labels)).item()
    references = np.concatenate([latents, rows])
    squared = ((rows[:, None] - references) ** 2).sum(axis=2)
    squared[np.arange(9), 6 + np.arange(9)] = np.inf
    same = labels[:, None] == np.concatenate([OF_LATENTS, labels])
    together = -np.log(responsibilities(squared, same, 2.0)[2]).mean()
    alone = -np.log(likelihoods(rows, labels, latents, 2.0)).mean()
    assert found == pytest.approx((together + alone) / 2)
    without = placed_loss(np.random.default_rng(0)).eval()
    without.load_state_dict(loss.state_dict())
    arguments = torch.tensor(rows), torch.tensor(labels)
    assert loss.eval()(*arguments) == without(*arguments), "only in training"


def test_votes_of_rows_far_away_keep_their_gradient(rng):
    """Sums of numbers that would all be 0."""
    loss = placed_loss(rng, batch_votes=True)
    rows = torch.tensor([[0.0], [1e3], [1.0], [0.0]]).expand(-1, 4).double().requires_grad_()
    value = loss(rows, torch.tensor([0, 0, 1, 1]))
    value.backward()
    assert value.item() > 100
    assert rows.grad.isfinite().all()
    assert rows.grad[1].abs().max() > 0.1


def test_a_batch_of_one_row_and_rows_that_are_not_finite_do_not_vote(rng):
    rows, labels = (torch.tensor(part) for part in batch(rng, 4))
    assert batch_logits(rows[:1], labels[:1], 3, torch.tensor(2.0)).eq(-torch.inf).all()
    spoilt = rows.clone()
    spoilt[3] = torch.nan
    expected = batch_logits(rows[:3], labels[:3], 3, torch.tensor(2.0))
    found = batch_logits(spoilt, labels, 3, torch.tensor(2.0))[:3]
    assert torch.allclose(found, expected)


def test_smoothed_labels_are_partly_those_of_all_classes_and_only_the_label_is_distrusted(rng):
    loss = placed_loss(rng).eval()
    rows, labels = batch(rng)

    def value(smoothing, label_noise):
        loss.smoothing, loss.label_noise = smoothing, label_noise
        return loss(torch.tensor(rows), torch.tensor(labels)).item()

    latents = loss.latents.detach().numpy()
    shares = [likelihoods(rows, np.full(9, code), latents, 2.0) for code in range(3)]
    assert value(1.0, False) == pytest.approx(-np.log(shares).mean())
    for label_noise in (False, True):
        expected = 0.75 * value(0.0, label_noise) + 0.25 * value(1.0, False)
        assert value(0.25, label_noise) == pytest.approx(expected)


def test_classes_without_a_row_yet_get_no_share_of_smoothed_labels(rng):
    """Their votes are 0, and the logarithm is not finite."""
    loss = LatentVoteLoss(4, 2, 1, smoothing=0.5).double()
    rows = torch.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    value = loss(rows, torch.tensor([0, 0, 1, 1]))
    value.backward()
    logits = -torch.cdist(rows, loss.latents[:2]).square()
    labels = torch.tensor([0, 0, 1, 1])
    expected = torch.nn.functional.cross_entropy(logits, labels, label_smoothing=0.5)
    assert torch.allclose(value, expected)
    assert rows.grad.isfinite().all()


def test_distorted_rows_are_moved_by_noise_of_their_classs_spread(rng):
    loss = placed_loss(rng, distortion=0.5)
    rows, labels = (torch.tensor(part) for part in batch(rng, 6))
    seen = copy.deepcopy(loss)
    seen(rows, labels)
    torch.manual_seed(3)
    found = loss(rows, labels)
    torch.manual_seed(3)
    noise = torch.randn_like(rows) * (0.5 * seen.spreads[labels] / 4).sqrt()[:, None]
    squared = torch.cdist(rows + noise, loss.latents.detach()).square()
    # What a row is compared with is chosen before it is moved.
    logits = [torch.logsumexp(-part / 2, dim=1) for part in squared.split(SIZES, dim=1)]
    expected = torch.nn.functional.cross_entropy(torch.stack(logits, dim=1), labels)
    assert torch.allclose(found, expected)
    assert torch.equal(loss.latents, seen.latents), "the noise is not learned"
    assert torch.equal(loss.spreads, seen.spreads)
    assert loss.eval()(rows, labels) == loss(rows, labels), "only in training"
