"""Random triplets: which rows they may hold, and how often."""

import numpy as np
import pytest

from latentmetric.core import triplets as triplets_module
from latentmetric.core.triplets import RandomTriplets, block_sizes, part_sizes


@pytest.mark.parametrize("codes", [[0, 1], [1, 0, 0, 1, 2, 0], [0] * 50 + [1], list(range(9))])
def test_targets_are_of_the_class_and_impostors_are_not(codes, rng):
    codes = np.array(codes)
    triplets = RandomTriplets(codes).draw(2000, rng)
    sizes = np.bincount(codes)[codes[triplets.anchors]]
    assert np.all(codes[triplets.targets] == codes[triplets.anchors])
    assert np.all(codes[triplets.impostors] != codes[triplets.anchors])
    assert np.all((triplets.targets != triplets.anchors) == (sizes > 1))
    assert np.all(triplets.margins == 1)


def test_every_triplet_is_equally_likely_given_its_anchor(rng):
    codes = np.array([2, 0, 1, 0, 2, 2, 0, 2])
    triplets = RandomTriplets(codes).draw(60_000, rng)
    drawn = np.zeros((8, 8, 8))
    np.add.at(drawn, (triplets.anchors, triplets.targets, triplets.impostors), 1)
    expected = np.zeros_like(drawn)
    for anchor in range(8):
        own = [i for i in range(8) if codes[i] == codes[anchor] and i != anchor] or [anchor]
        others = [i for i in range(8) if codes[i] != codes[anchor]]
        expected[np.ix_([anchor], own, others)] = 60_000 / 8 / len(own) / len(others)
    possible = expected > 0
    assert np.all(drawn[~possible] == 0)
    deviation = (drawn - expected)[possible] / np.sqrt(expected[possible])
    assert np.abs(deviation).max() < 5


def test_parts_are_whole_batches_and_add_up_to_all():
    assert part_sizes(25, 10) == [2, 3] * 5
    assert part_sizes(59, 2, batch_size=10) == [20, 30]


def test_blocks_are_whole_batches_that_fit_into_memory(monkeypatch):
    monkeypatch.setattr(triplets_module, "DRAWN_AT_ONCE", 100)
    assert list(block_sizes(100)) == [100]
    assert list(block_sizes(250)) == [100, 100, 50]
    assert list(block_sizes(210, batch_size=30)) == [90, 90, 30]
    assert list(block_sizes(600, batch_size=300)) == [300, 300]
    assert list(block_sizes(0)) == []
