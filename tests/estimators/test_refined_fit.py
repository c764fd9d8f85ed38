"""Whole fits with the refinement: what they record, what they keep, and what interrupts leave."""

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric import MaPML
from latentmetric.core import learning

QUICK = {"n_latents": 0.15, "n_steps": 300, "max_iter": 2, "random_state": 0, "start": "euclidean"}


def fit(X, y, **parameters):
    return MaPML(**QUICK | parameters).fit(X, y)


@pytest.mark.parametrize(
    ("seed", "parameters", "last"),
    [
        (0, {}, 3), (0, {}, 5), (1, {"label_noise": True}, 5),  # wrong labels: always in batches
        (2, {"n_components": 2}, 3), (2, {"n_components": 2}, 5),
    ],
)  # fmt: skip
def test_the_best_state_is_kept(request, seed, parameters, last):
    """Never one under which labels are less likely than before learning."""
    if last == 5 and not parameters.get("label_noise"):
        request.getfixturevalue("in_batches")
    model = fit(*make_blobs(seed=seed), random_state=seed, **parameters)
    losses = [record["loss"] for record in model.history_]
    assert losses[model.best_iter_] == min(losses) < losses[0]
    assert fit(*make_blobs(seed=seed), keep="last", **parameters).best_iter_ == last


@pytest.mark.parametrize("no", [False, np.False_])
def test_false_is_no_refinement(blobs, no):
    one, other = fit(*blobs, refine=0), fit(*blobs, refine=no)
    np.testing.assert_array_equal(one.components_, other.components_)


@pytest.mark.parametrize(("n_components", "keep"), [(1, "last"), (3, "best"), (5, "last")])
def test_a_refined_metric_has_at_most_the_rank_it_is_given(blobs, n_components, keep):
    X, y = blobs
    model = fit(X, y, n_components=n_components, keep=keep)
    assert model.components_.shape == (n_components, 6)
    assert model.transform(X).shape == (240, n_components)
    assert model.history_[-1]["rank"] == n_components
    mapped = model.latent_examples_ - model.model_.coordinates.centre
    mapped = mapped / model.model_.coordinates.scale @ model.components_.T
    np.testing.assert_allclose(model.model_.references.rows, mapped, atol=1e-9)


@pytest.mark.usefixtures("in_batches")
def test_refinement_in_batches_lowers_the_error_on_new_rows():
    queries, truth = make_blobs(2000, seed=1)
    gains = []
    for seed in (2, 3, 4):
        X, y = make_blobs(600, seed=seed)
        refined, plain = (fit(X, y, refine=refine).score(queries, truth) for refine in (3, 0))
        gains.append(refined - plain)
    assert np.mean(gains) > 0.01


@pytest.mark.parametrize("n_latents", [1, "auto"])
def test_refinement_at_once_lowers_the_error_on_new_rows(n_latents):
    X, y = make_blobs(600)
    queries, truth = make_blobs(2000, seed=1)
    refined, plain = (
        fit(X, y, refine=refine, n_latents=n_latents, max_iter="auto").score(queries, truth)
        for refine in (3, 0)
    )
    assert refined > plain + 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_wrong_label_far_from_its_class_does_no_harm(dtype):
    """It is so unlikely that its probability underflows."""
    generator = np.random.default_rng(0)
    y = np.arange(150) % 3
    X = 300 * generator.standard_normal((3, 5))[y] + generator.standard_normal((150, 5))
    labels = y.copy()
    labels[0] = 1
    for keep in ("last", "best"):
        model = fit(X.astype(dtype), labels, keep=keep)
        assert np.isfinite(model.components_).all()
        assert np.isfinite(model.latent_examples_).all()
    assert np.mean(model.predict(X.astype(dtype)) == y) > 0.98


@pytest.mark.usefixtures("in_batches")
@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_refinement_starts_from_the_best_round(blobs, monkeypatch, best):
    following, refine = learning.next_state, learning.refine
    losses = iter(sorted([0.1, 0.2], reverse=best == 2) if best else [9.0, 9.0])
    states, refined = [], []

    def judged(state, *arguments):
        states[:] = states or [state]
        states.append(following(state, *arguments))
        states[-1].record["loss"] = next(losses)
        return states[-1]

    def recorded(*arguments):
        refined.append((arguments[2:4], refine(*arguments)))
        return refined[-1][1]

    monkeypatch.setattr(learning, "next_state", judged)
    monkeypatch.setattr(learning, "refine", recorded)
    fit(*blobs, max_iter=2)
    (components, latents), first = refined[0]
    np.testing.assert_array_equal(components, states[best].components)
    np.testing.assert_array_equal(latents, states[best].latents)
    np.testing.assert_array_equal(refined[1][0][0], first.components)
