"""The start that shortens noisy directions, against a plain version and on made noise."""

import numpy as np
import pytest

from latentmetric.core.starts import (
    GROUP_PASSES,
    GROUP_ROWS,
    MIN_SIGNAL,
    denoising_matrix,
    group_rows,
)


def noisy_rows(n_rows=600, n_features=12, noise=1.0, seed=0):
    """Rows near few centres in the first two directions; noise in all of them."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(3, size=n_rows)
    centres = np.zeros((3, n_features))
    centres[:, :2] = [[0, 6], [5, -3], [-5, -3]]
    inside = np.zeros((n_rows, n_features))
    inside[:, :2] = 2 * generator.standard_normal((n_rows, 2))
    return centres[labels] + inside + noise * generator.standard_normal(inside.shape), labels


def plain_groups(rows, labels):
    """k-means of each class from evenly spaced rows, one row at a time."""
    groups = {}
    for label in sorted(set(labels)):
        members = [i for i, other in enumerate(labels) if other == label]
        n_groups = max(len(members) // GROUP_ROWS, 1)
        means = [rows[members[k * len(members) // n_groups]] for k in range(n_groups)]
        for _ in range(GROUP_PASSES):
            nearest = [int(np.argmin([np.sum((rows[i] - m) ** 2) for m in means])) for i in members]
            for k in range(n_groups):
                mine = [rows[i] for i, own in zip(members, nearest, strict=True) if own == k]
                means[k] = np.mean(mine, axis=0) if mine else means[k]
        for i, own in zip(members, nearest, strict=True):
            groups[i] = (label, own)
    return [groups[i] for i in range(len(rows))]


def test_groups_are_those_of_a_plain_k_means():
    rows, labels = noisy_rows(200)
    found, expected = group_rows(rows, labels), plain_groups(rows, labels)
    pairs = set(zip(found.tolist(), expected, strict=True))
    assert len(pairs) == len(set(found)) == len(set(expected))


def test_directions_keep_the_root_of_their_share_of_signal():
    rows, labels = noisy_rows()
    turn, least = denoising_matrix(rows, labels)
    groups = plain_groups(rows, labels)
    away = np.array([
        row - np.mean([rows[j] for j, other in enumerate(groups) if other == group], axis=0)
        for row, group in zip(rows, groups, strict=True)
    ])  # fmt: skip
    variances, directions = np.linalg.eigh(np.cov(rows.T, ddof=0))
    noise = ((away @ directions) ** 2).sum(axis=0) / (len(rows) - len(set(groups)))
    share = np.clip(1 - noise / variances, MIN_SIGNAL, 1)
    share *= variances.sum() / (share * variances).sum()
    np.testing.assert_allclose(turn @ turn, directions @ np.diag(share) @ directions.T, atol=1e-9)
    assert least == pytest.approx(share.min())


@pytest.mark.parametrize(
    "rows", [np.ones((8, 3)), np.eye(4), np.zeros((1, 2))], ids=["equal", "alone", "one"]
)
def test_rows_that_show_no_noise_stay_as_they_are(rows):
    labels = np.arange(len(rows)) if len(rows) == 4 else np.zeros(len(rows), dtype=int)
    turn, outside = denoising_matrix(rows, labels)
    np.testing.assert_array_equal(turn, np.eye(rows.shape[1]))
    assert outside == 1
