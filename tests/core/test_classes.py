import numpy as np
import pytest

from latentmetric.core import classes as classes_module
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.metric import Metric
from latentmetric.core.population import LocalPopulation


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inner_rows_have_mean_zero_and_unit_mean_variance(rng, dtype):
    rows = (50 + 7 * rng.standard_normal((300, 4))).astype(dtype)
    coordinates = Coordinates.of(rows)
    inside = coordinates.transform(rows)
    assert inside.dtype == dtype
    np.testing.assert_allclose(inside.mean(axis=0), 0, atol=1e-5)
    assert np.square(inside).mean() == pytest.approx(1, rel=1e-5)
    back = coordinates.inverse_transform(inside)
    assert back.dtype == dtype
    np.testing.assert_allclose(back, rows, rtol=1e-5)


@pytest.mark.parametrize("kept", [True, False])
def test_classes_are_gathered_whole(rng, kept, monkeypatch):
    monkeypatch.setattr(classes_module, "KEPT_SCATTER_BYTES", 4 * 6 * 8 - (not kept))
    rows, codes = rng.standard_normal((60, 3)), rng.integers(0, 4, 60)
    by_class = LocalPopulation.of(rows, codes)
    assert sorted(by_class.codes) == [0, 1, 2, 3]
    for position, code in enumerate(by_class.codes):
        assert sorted(by_class.members[position]) == np.flatnonzero(codes == code).tolist()
        expected = by_class.coordinates.transform(rows[by_class.members[position]])
        of_class = by_class.classes[position]
        assert len(of_class) == len(expected)
        np.testing.assert_allclose(of_class.mean, expected.mean(axis=0), atol=1e-12)
        from_mean = expected - expected.mean(axis=0)
        np.testing.assert_allclose(of_class[slice(0, None)], from_mean, atol=1e-12)
        with of_class.cached():
            np.testing.assert_allclose(of_class[slice(3, 9)], from_mean[3:9], atol=1e-12)
        metric = Metric(rng.standard_normal((2, 3)))
        lengths = np.square(from_mean @ metric.components.T).sum()
        assert of_class.scatter_under(metric) == pytest.approx(lengths)
        assert (of_class._kept_scatter is not None) == kept


def test_holding_out_takes_its_share_of_every_class_and_never_all_of_one(rng):
    codes = np.repeat([0, 1, 2], [50, 20, 1])
    rows = rng.standard_normal((71, 2))
    kept, held_out = LocalPopulation.of(rows, codes).hold_out(0.1, rng)
    assert np.bincount(codes[held_out], minlength=3).tolist() == [5, 2, 0]
    assert sorted([*np.concatenate(kept.members), *held_out]) == list(range(71))
