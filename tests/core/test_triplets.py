import numpy as np
import pytest
from scipy.spatial.distance import cdist

from latentmetric.core import distances
from latentmetric.core.triplets import mine


def brute_force(points, classes, margins, target_neighbors, impostors):
    """All (o, p, q) by the definition, with their hinges."""
    squared = cdist(points, points, "sqeuclidean")
    found = {}
    for o in range(len(points)):
        own = [i for i in range(len(points)) if classes[i] == classes[o] and i != o] or [o]
        others = [i for i in range(len(points)) if classes[i] != classes[o]]
        own = sorted(own, key=lambda i: squared[o, i])[:target_neighbors]
        others = sorted(others, key=lambda i: squared[o, i])[:impostors]
        for p in own:
            for q in others:
                found[o, p, q] = margins[o] - (squared[o, q] - squared[o, p])
    return found


@pytest.mark.parametrize("sizes", [[1, 1], [1, 5, 2], [10, 3, 7, 1], [40, 30]])
@pytest.mark.parametrize(
    ("target_neighbors", "impostors", "n_threads", "share"),
    [(1, 1, 3, 0.3), (3, 2, 1, 1.0), (50, 60, 1, 0.3)],
)
def test_mining_finds_what_brute_force_finds(
    rng, monkeypatch, sizes, target_neighbors, impostors, n_threads, share
):
    monkeypatch.setattr(distances, "TILE_ROWS", 4)
    monkeypatch.setattr(distances, "BLOCK_BYTES", 4 * 3 * 8)
    classes = np.repeat(np.arange(len(sizes)), sizes)
    points, margins = rng.standard_normal((len(classes), 3)), rng.random(len(classes))
    starts = np.concatenate(([0], np.cumsum(sizes)))
    anchors = np.flatnonzero(rng.random(len(points)) < share)
    anchors = anchors if len(anchors) else np.array([1])
    requested = None if share == 1 else anchors
    candidates = mine(points, starts, margins, target_neighbors, impostors, n_threads, requested)
    expected = brute_force(points, classes, margins, target_neighbors, impostors)
    expected = {key: hinge for key, hinge in expected.items() if key[0] in anchors}
    triplets = candidates.take(np.flatnonzero(candidates.hinges > -np.inf))
    keys = list(zip(triplets.anchors, triplets.targets, triplets.impostors, strict=True))
    assert sorted(keys) == sorted(expected)
    hinges = candidates.hinges[candidates.hinges > -np.inf]
    np.testing.assert_allclose(hinges, [expected[key] for key in keys], rtol=1e-9, atol=1e-9)
    active = candidates.take(np.flatnonzero(candidates.hinges > 0))
    assert len(active) == sum(hinge > 0 for hinge in expected.values())
    np.testing.assert_array_equal(active.margins, margins[active.anchors])


def test_a_latent_alone_in_its_class_is_its_own_target():
    points = np.array([[0.0], [1.0], [1.5]])
    candidates = mine(points, np.array([0, 1, 3]), np.full(3, 10.0), 3, 1)
    alone = candidates.take(np.flatnonzero(candidates.hinges > -np.inf))[:1]
    assert (alone.anchors[0], alone.targets[0], alone.impostors[0]) == (0, 0, 1)
    impostor, target = alone.differences(points)
    assert impostor.tolist() == [[1.0]]
    assert target.tolist() == [[0.0]]


def test_compact_candidates_are_the_same_among_the_rows_that_occur(rng):
    points, margins = rng.standard_normal((60, 4)), rng.random(60)
    whole = mine(points, np.array([0, 20, 60]), margins, 2, 3, anchors=np.array([4, 12, 50]))
    rows, compact = whole.compact()
    occurring = {*whole.anchors, *whole.targets.flat, *whole.impostors.flat}
    assert rows.tolist() == sorted(occurring)
    for numbers in ("anchors", "targets", "impostors"):
        np.testing.assert_array_equal(rows[getattr(compact, numbers)], getattr(whole, numbers))
    np.testing.assert_array_equal(compact.hinges, whole.hinges)
