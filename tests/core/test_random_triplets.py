"""Random triplets: which rows they may hold, and how often."""

import numpy as np
import pytest

from latentmetric.core import oasis, random_triplets
from latentmetric.core.coordinates import Coordinates, InnerRows
from latentmetric.core.random_triplets import RandomTriplets, steps_of


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


def test_parts_and_blocks_are_whole_batches(monkeypatch, rng):
    monkeypatch.setattr(random_triplets, "DRAWN_AT_ONCE", 100)
    drawn = []

    def learn(state, rows, triplets, generator):
        drawn.append(len(triplets))
        return np.zeros(len(triplets) // 30), 0

    rows = InnerRows(rng.standard_normal((9, 2)), Coordinates(np.zeros(2), 1.0))
    start = oasis.State(np.eye(2))
    steps = steps_of(
        learn, start, lambda state: state.similarity, rows, np.arange(9) % 2, 419, 2, 30
    )
    found = [start]
    while len(found) <= steps.limit:
        found.append(steps.next(found[-1], rng))
    assert [state.record["iterations"] for state in found] == [0, 6, 13]
    assert drawn == [90, 90, 90, 90, 30]
