"""What a loss knows of its rows: counts, spreads, empty latent examples."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric.torch.latents import (
    State,
    refill_empty,
    update_state,
)

FOREVER = 1e12
"""A memory so long that nothing is forgotten."""


def labels_of(*sizes):
    return torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))


def test_empty_latents_take_the_first_rows_of_their_class():
    latent_labels = labels_of(2, 2)
    state = State(torch.zeros(4, 1), torch.tensor([0.0, 3.0, 0.0, 0.4]), torch.zeros(2))
    rows = torch.tensor([[5.0], [torch.nan], [6.0], [7.0], [8.0]])
    labels = torch.tensor([0, 1, 1, 0, 1])
    filled = refill_empty(state, rows, labels, latent_labels)
    assert filled.latents[:, 0].tolist() == [5.0, 0.0, 6.0, 8.0]
    assert filled.counts.tolist() == [0.0, 3.0, 0.0, 0.0]


def test_spreads_are_mean_squared_distances(rng):
    latent_labels, latents = labels_of(1, 1), torch.tensor(rng.normal(size=(2, 3)))
    rows, labels = torch.tensor(rng.normal(size=(10, 3))), torch.arange(10) % 2
    state = State(latents, torch.zeros(2).double(), torch.zeros(2).double())
    state, _ = update_state(state, rows, labels, latent_labels, FOREVER)
    away = (rows - latents[labels]).square().sum(dim=1)
    expected = [away[labels == code].mean().item() for code in (0, 1)]
    assert state.spreads.tolist() == pytest.approx(expected)
    assert state.latents is latents


def test_a_class_forgets_only_as_its_own_rows_arrive():
    latent_labels = labels_of(2, 1)
    state = State(torch.zeros(3, 1), torch.tensor([50.0, 50.0, 50.0]), torch.zeros(2))
    rows, labels = torch.zeros(4, 1), torch.zeros(4, dtype=torch.long)
    for _ in range(200):
        state, _ = update_state(state, rows, labels, latent_labels, 10.0)
    assert state.counts[:2].sum().item() == pytest.approx(2 * 10 + 2, abs=0.2)
    assert state.counts[2] == 50.0


@pytest.mark.parametrize("number", [torch.inf, torch.finfo(torch.float32).max ** 0.5])
def test_a_row_whose_square_is_not_finite_changes_nothing(number):
    latent_labels = labels_of(1, 1)
    state = State(torch.ones(2, 1), torch.tensor([5.0, 5.0]), torch.ones(2))
    rows = torch.tensor([[number], [torch.nan]])
    after, _ = update_state(state, rows, torch.tensor([0, 1]), latent_labels, 10.0)
    for before, now in zip(state, after, strict=True):
        assert torch.equal(before, now)
