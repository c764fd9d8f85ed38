"""LatentMarginLoss is the paper's hinge, compared with a version that reads like the paper."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric.core.triplets import mine
from latentmetric.torch import LatentMarginLoss

SIZES = [3, 4, 1]
OF_LATENTS = np.repeat(np.arange(3), SIZES)
MEMORY = 10.0


def placed_loss(rng, spread=0.5, **parameters):
    loss = LatentMarginLoss(3, 4, SIZES, memory=MEMORY, **parameters).double()
    with torch.no_grad():
        loss.latents.copy_(torch.tensor(rng.normal(size=(8, 4))))
        loss.counts.fill_(7.0)
        loss.spreads.fill_(spread)
    return loss


def batch(rng, n_rows=12):
    return rng.normal(size=(n_rows, 4)), rng.integers(0, 3, size=n_rows)


def squared(a, b):
    return ((a - b) ** 2).sum(axis=-1)


def as_in_the_paper(rows, labels, latents, margins, n_targets, n_impostors):
    """The mean of [margin − (D²(o, q) − D²(o, p))]₊ over the active triplets of all rows."""
    active = []
    for row, label in zip(rows, labels, strict=True):
        members = np.flatnonzero(label == OF_LATENTS)
        anchor = members[squared(latents[members], row).argmin()]
        o = latents[anchor]
        mates = [latent for latent in members if latent != anchor] or [anchor]
        targets = sorted(mates, key=lambda p: squared(o, latents[p]))[:n_targets]
        others = np.flatnonzero(label != OF_LATENTS)
        impostors = sorted(others, key=lambda q: squared(o, latents[q]))[:n_impostors]
        for p in targets:
            for q in impostors:
                hinge = margins[label] - (squared(o, latents[q]) - squared(o, latents[p]))
                active += [hinge] if hinge > 0 else []
    return np.mean(active)


@pytest.mark.parametrize(("n_targets", "n_impostors"), [(1, 1), (3, 5), (9, 9)])
def test_the_loss_is_that_of_the_paper(rng, n_targets, n_impostors):
    loss = placed_loss(rng, target_neighbors=n_targets, impostors=n_impostors).eval()
    rows, labels = batch(rng)
    latents, margins = loss.latents.detach().numpy(), 1 + loss.spreads.numpy()
    expected = as_in_the_paper(rows, labels, latents, margins, n_targets, n_impostors)
    assert loss(torch.tensor(rows), torch.tensor(labels)).item() == pytest.approx(expected)


def test_margins_are_running_means_per_class(rng):
    loss = placed_loss(rng)
    rows, labels = batch(rng)
    latents = loss.latents.detach().numpy().copy()
    loss(torch.tensor(rows), torch.tensor(labels))
    for label in range(3):
        members, own = np.flatnonzero(label == OF_LATENTS), rows[labels == label]
        nearest = squared(own[:, None], latents[members]).min(axis=1)
        before = 7.0 * len(members) * np.exp(-len(own) / (MEMORY * len(members)))
        expected = (before * 0.5 + nearest.sum()) / (before + len(own))
        assert loss.spreads[label].item() == pytest.approx(expected)


def test_triplets_are_mined_as_in_the_core(rng):
    loss = placed_loss(rng).eval()
    state = loss._state()
    own = torch.arange(8)
    targets, impostors = loss._mined(torch.tensor(OF_LATENTS), state, own)
    starts, margins = np.array([0, 3, 7, 8]), np.full(8, 1.5)
    found = mine(state.latents.detach().numpy(), starts, margins, 3, 5)
    real = np.isfinite(found.hinges)
    assert np.array_equal(targets.found.numpy(), real.any(axis=2))
    at = targets.found.numpy()
    assert np.array_equal(targets.numbers.numpy()[at], found.targets[at])
    at = impostors.found.numpy()
    assert np.array_equal(impostors.numbers.numpy()[at], found.impostors[at])


@pytest.mark.parametrize("update", ["gradient", "mean"])
def test_gradcheck(rng, update):
    loss = placed_loss(rng, update=update)
    rows, labels = batch(rng)
    rows, labels = torch.tensor(rows, requires_grad=True), torch.tensor(labels)

    def of_rows(embeddings):
        return copy.deepcopy(loss)(embeddings, labels)

    assert torch.autograd.gradcheck(of_rows, (rows,))
    of_rows(rows).backward()
    assert rows.grad.abs().sum() > 0
    if update == "gradient":
        latents = loss.latents.detach().clone().requires_grad_()

        def of_latents(places):
            frozen = copy.deepcopy(loss).eval()
            return torch.func.functional_call(frozen, {"latents": places}, (rows, labels))

        assert torch.autograd.gradcheck(of_latents, (latents,))


def test_without_active_triplets_the_loss_is_zero():
    loss = LatentMarginLoss(2, 1, 1).eval()
    with torch.no_grad():
        loss.latents.copy_(torch.tensor([[0.0], [100.0]]))
        loss.counts.fill_(1.0)
    rows = torch.tensor([[0.0], [100.0]], requires_grad=True)
    value = loss(rows, torch.tensor([0, 1]))
    assert value == 0


def test_a_network_that_diverged_is_not_hidden():
    loss = LatentMarginLoss(3, 4)
    labels = torch.arange(12) % 3
    loss(torch.randn(12, 4), labels)
    rows = torch.full((12, 4), torch.nan, requires_grad=True)
    value = loss(rows, labels)
    value.backward()
    assert value.isnan()
    assert loss.latents.isfinite().all(), "what is known of the rows stays clean"
