"""The cheap projection to the PSD cone against a full eigendecomposition."""

import numpy as np
import pytest

from latentmetric.core import psd
from latentmetric.core.psd import PSDMatrix, negative_part


def projected(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def psd_matrix(generator, n_features, rank, low=1.0, high=1.0):
    directions = np.linalg.qr(generator.standard_normal((n_features, n_features)))[0][:, :rank]
    return (directions * np.geomspace(low, high, rank)) @ directions.T


def cheap(matrix, removed):
    values, vectors = negative_part(matrix, removed)
    assert np.all(values <= 0)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(len(values)), atol=1e-10)
    return matrix - (vectors.T * values) @ vectors


SPECTRA = {
    "identity": (1.0, 1.0, 1.0),
    "singular": (0.6, 0.1, 3.0),
    "nearly singular": (1.0, 1e-6, 10.0),
    "of rank 3": (0.02, 1.0, 1.0),
    "from tiny to huge": (1.0, 1e-9, 1e4),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
@pytest.mark.parametrize(("length", "n_features"), [(1e-3, 60), (0.1, 1), (1.0, 150), (30.0, 4)])
def test_the_cheap_projection_equals_the_full_one(spectrum, length, n_features, rng):
    share, low, high = SPECTRA[spectrum]
    matrix = psd_matrix(rng, n_features, max(1, round(share * n_features)), low, high)
    removed = length * rng.standard_normal((10, n_features)) / np.sqrt(n_features)
    added = length * rng.standard_normal((10, n_features)) / np.sqrt(n_features)
    after = matrix + added.T @ added - removed.T @ removed
    difference = cheap(after, removed) - projected(after)
    assert np.linalg.norm(difference) <= 1e-6 * np.linalg.norm(after)


def test_the_krylov_space_finds_them_and_eigh_is_the_fallback(rng, monkeypatch):
    removed = rng.standard_normal((10, 150)) / 20
    matrix = projected(
        np.eye(150) + psd_matrix(rng, 150, 20, 0.1, 10.0) - 2 * psd_matrix(rng, 150, 5)
    )
    after = matrix - removed.T @ removed
    norm = np.linalg.norm(after)
    found = psd._few_negative(after, removed, norm)
    assert found is not None
    assert len(found[0]) == np.count_nonzero(np.linalg.eigvalsh(after) < 0) > 1
    monkeypatch.setattr(psd, "MOST_BLOCKS", 2)
    assert psd._few_negative(after, removed, norm) is None
    np.testing.assert_allclose(cheap(after, removed), projected(after), atol=1e-6)
    # If the matrix was not PSD before, the count is not valid and must not be trusted.
    after -= 5 * np.outer(np.eye(150)[0], np.eye(150)[0])
    assert psd._few_negative(after, removed, norm) is None
    np.testing.assert_allclose(cheap(after, removed), projected(after), atol=1e-6)


@pytest.mark.parametrize("n_features", [3, 120])
@pytest.mark.parametrize("length", [0.02, 0.3, 2.0])
def test_a_matrix_stays_psd_and_near_the_exact_sequence(n_features, length, rng):
    matrix, exact, left_the_cone = PSDMatrix(np.eye(n_features), 1.0), np.eye(n_features), 0
    for _ in range(60):
        added, removed = length * rng.standard_normal((2, 10, n_features)) / np.sqrt(n_features)
        removed[:, 0] *= 3
        matrix.update(added, removed)
        moved = exact + added.T @ added - removed.T @ removed
        exact = projected(moved)
        left_the_cone += not np.allclose(moved, exact)
        values = np.linalg.eigvalsh(matrix.matrix)
        assert values[0] >= -1e-9 * values[-1]
    assert left_the_cone >= 10 * (length > 0.1)
    assert np.linalg.norm(matrix.matrix - exact) <= 1e-5 * np.linalg.norm(exact)
