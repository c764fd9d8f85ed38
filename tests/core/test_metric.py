"""Alg. 2 in blocks against Alg. 2 as the paper writes it."""

import numpy as np
import pytest

from latentmetric.core.metric import learn_metric
from latentmetric.core.psd import project_psd
from latentmetric.core.triplets import Triplets


def plain_alg_2(latents, start, triplets, metric_reg, max_norm):
    """One triplet and one matrix per step; the average of the second half, and what happened."""
    metric, n_steps = start.copy(), len(triplets)
    total, active, clipped = np.zeros_like(start), 0, 0
    for step in range(1, n_steps + 1):
        anchor = latents[triplets.anchors[step - 1]]
        to_impostor = latents[triplets.impostors[step - 1]] - anchor
        to_target = latents[triplets.targets[step - 1]] - anchor
        gap = to_impostor @ metric @ to_impostor - to_target @ metric @ to_target
        gradient = metric_reg * (metric - start)
        if triplets.margins[step - 1] - gap > 0:
            gradient -= np.outer(to_impostor, to_impostor) - np.outer(to_target, to_target)
            active += 1
        metric = metric - gradient / (metric_reg * step)
        norm = np.linalg.norm(metric)
        if norm > max_norm:
            metric = metric * (max_norm / norm)
            clipped += 1
        if step > n_steps // 2:
            total += metric
    return total / (n_steps - n_steps // 2), active, clipped


def problem(n_steps, n_features, rank, seed=0):
    generator = np.random.default_rng(seed)
    latents = generator.standard_normal((40, n_features))
    components = generator.standard_normal((rank, n_features)) / 2
    anchors, targets, impostors = generator.integers(0, 40, (3, n_steps))
    return (
        latents,
        components,
        Triplets(anchors, targets, impostors, 10 * generator.random(n_steps)),
    )


def gaps_of(triplets, latents, components):
    """D²(o, q) − D²(o, p) under the metric that has this factor."""
    far, near = triplets.differences(latents @ components.T)
    return np.square(far).sum(axis=1) - np.square(near).sum(axis=1)


CASES = [
    pytest.param(500, 12, 12, 3.0, np.inf, "never", id="clip inactive"),
    pytest.param(500, 12, 12, 3.0, 3.0, "always", id="clip always active"),
    pytest.param(500, 12, 9, 0.5, 9.0, "sometimes", id="clip sometimes active"),
    pytest.param(301, 5, 4, 20.0, np.inf, "never", id="odd number of steps"),
    pytest.param(257, 30, 30, 3.0, 1e-3, "always", id="tiny ball"),
    pytest.param(1, 4, 4, 1.0, np.inf, "never", id="one step"),
    pytest.param(2, 4, 4, 1.0, np.inf, "never", id="two steps"),
    pytest.param(40, 1, 1, 1.0, 2.0, None, id="one feature"),
]


@pytest.mark.parametrize(("n_steps", "n_features", "rank", "metric_reg", "max_norm", "clip"), CASES)
@pytest.mark.parametrize(
    ("steps_per_block", "dtype", "tolerance"), [(7, np.float64, 1e-10), (256, np.float32, 1e-4)]
)
def test_blocks_take_the_same_steps_as_the_plain_algorithm(
    n_steps, n_features, rank, metric_reg, max_norm, clip, steps_per_block, dtype, tolerance
):
    latents, components, triplets = problem(n_steps, n_features, rank)
    expected, active, clipped = plain_alg_2(
        latents, components.T @ components, triplets, metric_reg, max_norm
    )
    if n_steps > 200 and max_norm > 1:
        assert 0 < active < n_steps
    if clip is not None:
        assert clip == ("never" if not clipped else "always" if clipped == n_steps else "sometimes")
    learned = learn_metric(
        latents.astype(dtype), components.astype(dtype), triplets,
        gaps_of(triplets, latents, components), np.arange(n_steps), metric_reg, max_norm,
        steps_per_block,
    )  # fmt: skip
    assert learned.dtype == dtype
    assert np.linalg.norm(learned - expected) <= tolerance * np.linalg.norm(expected)
    assert np.linalg.norm(learned) <= max_norm * (1 + 1e-6)


def test_projection_is_the_nearest_psd_matrix(rng):
    symmetric = rng.standard_normal((6, 6))
    symmetric += symmetric.T
    values, directions = project_psd(symmetric)
    assert np.all(values > 0)
    assert np.all(np.diff(values) <= 0)
    projected = (directions.T * values) @ directions
    distance = np.linalg.norm(symmetric - projected)
    # The squared distance to the cone is that of the negative eigenvalues.
    negative = np.minimum(np.linalg.eigvalsh(symmetric), 0)
    assert distance == pytest.approx(np.linalg.norm(negative))
    for _ in range(200):
        factor = rng.standard_normal((6, 6))
        assert np.linalg.norm(symmetric - factor.T @ factor) >= distance - 1e-12
