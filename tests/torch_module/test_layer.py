"""MahalanobisLinear is the metric of an estimator."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric import OASIS, MaPML
from latentmetric.torch import MahalanobisLinear


def test_it_starts_as_the_euclidean_metric():
    rows = torch.randn(4, 6)
    assert torch.equal(MahalanobisLinear(6)(rows), rows)
    assert torch.equal(MahalanobisLinear(6, 2)(rows), rows[:, :2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_is_the_metric_of_an_estimator_in_both_directions(blobs, dtype):
    X, y = blobs
    X = X.astype(dtype)
    model = MaPML(max_iter=2, n_steps=500, random_state=0, n_components=3).fit(X, y)
    layer = MahalanobisLinear.from_estimator(model)
    assert np.array_equal(layer.components(), model.components_)
    assert layer.components().dtype == dtype
    mapped, expected = layer(torch.from_numpy(X)).detach().numpy(), model.transform(X)
    np.testing.assert_allclose(mapped - mapped[0], expected - expected[0], atol=1e-4)
    with torch.no_grad():
        layer.weight.zero_()
    assert model.components_.any(), "memory is not shared"


def test_what_has_no_metric_is_refused(blobs):
    with pytest.raises(TypeError, match="no metric, only a similarity; fit it with psd=True"):
        MahalanobisLinear.from_estimator(OASIS(psd=False, random_state=0).fit(*blobs))
    with pytest.raises(TypeError, match="a fitted model of latentmetric is needed"):
        MahalanobisLinear.from_estimator(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="n_components must be at least 1 and at most 3, got 4"):
        MahalanobisLinear(3, 4)
