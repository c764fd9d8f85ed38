import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from latentmetric.viz.seriation import blocks_first
from latentmetric.viz.summaries import ConfusedPair

PAIRS = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 50)).filter(
        lambda pair: pair[0] != pair[1]
    ),
    max_size=30,
)


@given(PAIRS)
def test_every_class_has_one_place(pairs):
    order = blocks_first([ConfusedPair(*pair) for pair in pairs], 10)
    assert sorted(order) == list(range(10))


def test_classes_that_are_never_confused_keep_their_order():
    assert blocks_first([], 5) == [0, 1, 2, 3, 4]
    assert blocks_first([ConfusedPair(4, 1, 3)], 5) == [0, 1, 4, 2, 3]


def test_groups_become_blocks(rng):
    shuffled = rng.permutation(12)
    groups = [shuffled[:4], shuffled[4:8], shuffled[8:]]
    pairs = [
        ConfusedPair(int(true), int(predicted), int(rng.integers(5, 20)))
        for group in groups
        for true in group
        for predicted in group
        if true != predicted
    ]
    pairs.append(ConfusedPair(int(groups[0][0]), int(groups[1][0]), 1))
    place = np.argsort(blocks_first(pairs, 12))
    for group in groups:
        assert np.ptp(place[group]) == 3
