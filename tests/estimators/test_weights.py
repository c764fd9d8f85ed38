"""sample_weight and class_weight, from the user's side."""

import numpy as np
import pytest
from helpers import make_blobs
from sklearn.base import clone

from latentmetric import MaPML


def quick(**parameters):
    return MaPML(**({"n_steps": 500, "max_iter": 2, "random_state": 0} | parameters))


@pytest.mark.parametrize("weight", [0.25, 3000])
def test_equal_weights_change_no_bit_of_what_votes(blobs, weight):
    X, y = blobs
    plain, weighted = quick().fit(X, y), quick().fit(X, y, np.full(len(X), weight))
    for name in ("components_", "latent_examples_", "margins_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(weighted, name))


def test_counts_are_in_the_callers_units(blobs):
    X, y = blobs
    weights = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = quick(class_weight={0: 5.0}).fit(X, y, weights)
    for label in model.classes_:
        of_class = model.latent_counts_[model.latent_labels_ == label]
        assert of_class.sum() == pytest.approx(weights[y == label].sum())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("dtype", "tiny"), [(np.float32, 1e-60), (np.float64, 1e-310)])
def test_tiny_weights_are_no_zeros(blobs, dtype, tiny):
    X, y = blobs[0].astype(dtype), blobs[1]
    for heavy in (y == 0, np.arange(len(y)) % 2):  # a class, or half of the rows of each
        model = quick(n_latents=2).fit(X, y, np.where(heavy, 1, tiny))
        assert np.isfinite(model.latent_examples_).all()
        assert model.classes_.tolist() == [0, 1, 2]
    one = quick(n_latents=2).partial_fit(X[y < 2], y[y < 2], [0, 1, 2])
    other = clone(one).partial_fit(X[y < 2], y[y < 2], [0, 1, 2])
    one.partial_fit(X[y == 2], y[y == 2])
    other.partial_fit(X[y == 2], y[y == 2], sample_weight=np.full((y == 2).sum(), tiny))
    np.testing.assert_allclose(one.latent_examples_, other.latent_examples_, atol=1e-4)


@pytest.mark.parametrize("init", ["random", "spaced"])
def test_rows_of_weight_0_are_left_out(blobs, init):
    X, y = blobs
    weights = np.ones(len(X))
    weights[::4] = 0
    X_wild = X.copy()
    X_wild[::4] += 3
    one = quick(init=init).fit(X, y, weights)
    wild = quick(init=init).fit(X_wild, y, weights)
    np.testing.assert_allclose(one.latent_examples_, wild.latent_examples_, atol=1e-8)
    left_out = quick(init=init).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_allclose(one.latent_examples_, left_out.latent_examples_, atol=1e-6)
    original = quick(init=init, reference="original").fit(X, y, weights)
    assert len(original.model_.references) == np.count_nonzero(weights)


def test_a_class_weight_is_a_weight_of_its_rows(blobs):
    X, y = blobs
    one = quick(class_weight={0: 3.0, 2: 0.5}).fit(X, y)
    other = quick().fit(X, y, np.array([3.0, 1.0, 0.5])[y])
    np.testing.assert_array_equal(one.latent_examples_, other.latent_examples_)
    np.testing.assert_array_equal(one.components_, other.components_)


def test_balanced_classes_get_equal_numbers_of_latent_examples():
    X, y = make_blobs(n_rows=400)
    kept = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:60], np.flatnonzero(y == 2)[:40]]
    model = quick(n_latents=0.1, class_weight="balanced").fit(X[kept], y[kept])
    counts = np.bincount(model.latent_labels_)
    assert counts.max() - counts.min() <= 1
    plain = np.bincount(quick(n_latents=0.1).fit(X[kept], y[kept]).latent_labels_)
    assert plain.max() > 2 * plain.min()


def test_partial_fit_takes_weights(blobs):
    X, y = blobs
    model = quick(n_latents=4).fit(X[:120], y[:120])
    repeated, weighted = clone(model).fit(X[:120], y[:120]), model
    times = np.random.default_rng(0).integers(0, 4, 120)
    weighted.partial_fit(X[120:], y[120:], sample_weight=times)
    repeated.partial_fit(np.repeat(X[120:], times, axis=0), np.repeat(y[120:], times))
    np.testing.assert_allclose(weighted.latent_examples_, repeated.latent_examples_, atol=1e-6)
    np.testing.assert_allclose(weighted.latent_counts_, repeated.latent_counts_)
    first = quick().partial_fit(X, y, [0, 1, 2], np.where(y == 0, 2.0, 1.0))
    same = quick().fit(X, y, np.where(y == 0, 2.0, 1.0))
    np.testing.assert_array_equal(first.latent_examples_, same.latent_examples_)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(239), r"sample_weight.shape == \(239,\), expected \(240,\)"),
        (np.r_[np.ones(239), -1], "at least 0 .* but it is -1 for row 239"),
        (np.r_[np.ones(3), np.nan, np.ones(236)], "sample_weight contains NaN"),
        (["a"] * 240, "could not convert string to float"),
        (np.ones(240, complex), "Complex data not supported"),
        (np.r_[np.ones(239), 1e16], r"at most 1e\+15, but it is 1e\+16 for row 239"),
        (np.arange(240) % 3, "zero for all rows of 1 of 3 classes, such as class 0"),
    ],
)
def test_bad_weights_are_refused(blobs, weights, message):
    X, y = blobs
    model = quick()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, weights)
    assert not hasattr(model, "components_")


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("even", "None, 'balanced' or a dict"),
        ({0: 0.0}, "class_weight of class 0 must be above 0"),
        ({0: 1e300}, "class_weight of class 0 must be above 0 and at most 10"),
        ({7: 2.0}, r"1 labels that y does not have, such as 7; y has 3 classes, from 0 to 2"),
    ],
)
def test_bad_class_weights_are_refused(blobs, class_weight, message):
    with pytest.raises(ValueError, match=message):
        quick(class_weight=class_weight).fit(*blobs)


def test_weights_stay_off_clusters(blobs):
    da = pytest.importorskip("dask.array")
    X, y = (da.from_array(part, chunks=100) for part in blobs)
    with pytest.raises(TypeError, match="sample_weight needs X in the memory"):
        quick().fit(X, y, np.ones(240))
    with pytest.raises(ValueError, match="class_weight='balanced' would gather"):
        quick(class_weight="balanced").fit(X, y)
    with pytest.raises(TypeError, match="sample_weight needs sample_weight"):
        quick().fit(*blobs, da.ones(240))
    with pytest.raises(TypeError, match="partial_fit needs sample_weight in the memory"):
        quick().fit(*blobs).partial_fit(*blobs, sample_weight=da.ones(240))
