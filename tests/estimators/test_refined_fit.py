"""Whole fits with the refinement: what they record, what they keep, and what interrupts leave."""

import numpy as np
import pytest
from helpers import make_blobs

from latentmetric import MaPML
from latentmetric.core import learning
from latentmetric.core.alternation import reduced
from latentmetric.core.distances import References
from latentmetric.core.likelihood import judge
from latentmetric.core.population import positions_of
from latentmetric.core.tuning import (
    MAP_SHARE,
    REFINEMENT_SHARE,
    WRONG_LABELS_EXPONENT,
    WRONG_LABELS_SHARE,
)
from latentmetric.core.votes import temperature_from_references

QUICK = {"n_latents": 0.15, "n_steps": 300, "max_iter": 2, "random_state": 0, "start": "euclidean"}


def fit(X, y, **parameters):
    return MaPML(**QUICK | parameters).fit(X, y)


def timeless(model):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in model.history_]


def assert_identical(one, other):
    for name in ("components_", "latent_examples_", "latent_labels_", "margins_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.model_.temperature == other.model_.temperature
    assert timeless(one) == timeless(other)
    assert (one.best_iter_, one.n_iter_) == (other.best_iter_, other.n_iter_)


@pytest.mark.parametrize(
    ("seed", "parameters"), [(0, {}), (1, {"label_noise": True}), (2, {"n_components": 2})]
)
def test_the_best_state_is_kept(seed, parameters):
    """Never one under which labels are less likely than before learning."""
    model = fit(*make_blobs(seed=seed), random_state=seed, **parameters)
    losses = [record["loss"] for record in model.history_]
    assert losses[model.best_iter_] == min(losses) < losses[0]
    assert fit(*make_blobs(seed=seed), keep="last", **parameters).best_iter_ == 5


def recorded_calls(monkeypatch, name):
    """The arguments and the results of all calls of a function of ``learning``."""
    function, calls = getattr(learning, name), []

    def recorded(*arguments):
        calls.append((arguments, function(*arguments)))
        return calls[-1][1]

    monkeypatch.setattr(learning, name, recorded)
    return calls


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_refinement_starts_from_the_best_round(blobs, monkeypatch, best):
    following = learning.next_state
    losses = iter(sorted([0.1, 0.2], reverse=best == 2) if best else [9.0, 9.0])

    def judged(*arguments):
        state = following(*arguments)
        state.record["loss"] = next(losses)
        return state

    monkeypatch.setattr(learning, "next_state", judged)
    rounds, passes = (
        recorded_calls(monkeypatch, "next_state"),
        recorded_calls(monkeypatch, "refine"),
    )
    fit(*blobs, max_iter=2)
    states = [rounds[0][0][0], rounds[0][1], rounds[1][1]]
    _, _, components, latents, *_ = passes[0][0]
    np.testing.assert_array_equal(components, states[best].components)
    np.testing.assert_array_equal(latents, states[best].latents)
    np.testing.assert_array_equal(passes[1][0][2], passes[0][1].components)


@pytest.mark.parametrize(
    ("parameters", "share", "exponent"),
    [
        ({}, REFINEMENT_SHARE, 0),
        ({"label_noise": True}, WRONG_LABELS_SHARE, WRONG_LABELS_EXPONENT),
        ({"n_components": 2}, MAP_SHARE, 0),
        ({"n_components": 5}, REFINEMENT_SHARE, 0),
    ],
)
def test_the_model_votes_with_the_temperature_of_the_refinement(
    blobs, monkeypatch, parameters, share, exponent
):
    passes = recorded_calls(monkeypatch, "refine")
    model = fit(*blobs, keep="last", **parameters)
    _, start, components, latents, _, _, temperature, _, _, plan, _ = passes[0][0]
    references = References.of(start.into(latents) @ components.T)
    assert temperature == pytest.approx(temperature_from_references(references, share))
    assert model.model_.temperature == temperature
    assert plan.exponent == exponent


@pytest.mark.parametrize(
    ("parameters", "exponent"),
    [({"start": "within"}, 0), ({"label_noise": True}, WRONG_LABELS_EXPONENT),
     ({"n_components": 2}, 0)],
)  # fmt: skip
def test_every_state_is_judged_by_the_likelihood_of_all_rows(
    blobs, monkeypatch, parameters, exponent
):
    """Each row left out of its own latent example; for a map, under the metric of its rank."""
    rounds = recorded_calls(monkeypatch, "next_state")
    passes = recorded_calls(monkeypatch, "refine")
    model = fit(*blobs, **parameters)
    states = [rounds[0][0][0], *(state for _, state in rounds)]
    results = [
        (reduced(state, parameters.get("n_components")), state.latents, state.counts,
         state.temperature) for state in states
    ]  # fmt: skip
    results += [
        (refined.components, refined.latents, refined.counts, arguments[6])
        for arguments, refined in passes
    ]
    rows, start, class_starts = passes[0][0][0], states[0].start, states[0].class_starts
    everyone = np.arange(240)
    inside, positions = start.into(rows.sample(everyone)), positions_of(rows, everyone)
    for record, (components, latents, counts, temperature) in zip(
        model.history_, results, strict=True
    ):
        expected = judge(
            inside @ components.T, positions, start.into(latents) @ components.T, class_starts,
            counts, temperature, exponent,
        )  # fmt: skip
        assert record["loss"] == pytest.approx(expected.loss, rel=1e-6)
        assert record["loo_error"] == pytest.approx(expected.error)


def test_the_published_algorithm_has_none_of_this():
    published = MaPML.as_published(n_latents=0.05, random_state=3)
    changed = {"n_latents": 0.05, "random_state": 3, "weights": "uniform", "start": "euclidean"}
    changed |= {"max_iter": 10, "max_passes": 100, "refine": 0, "keep": "last"}
    assert published.get_params() == MaPML().get_params() | changed
    assert MaPML.as_published(refine=2, weights="kernel").get_params()["refine"] == 2
    model = MaPML.as_published(**QUICK).fit(*make_blobs())
    assert model.best_iter_ == 2
    assert not any(record.keys() & {"loss", "refinement"} for record in model.history_)


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


def test_refinement_lowers_the_error_on_new_rows():
    X, y = make_blobs(600)
    queries, truth = make_blobs(2000, seed=1)
    refined, plain = (fit(X, y, refine=refine).score(queries, truth) for refine in (3, 0))
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


def interrupt_pass(monkeypatch, number):
    """Raise KeyboardInterrupt in this pass of the refinement."""
    refine, calls = learning.refine, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == number:
            raise KeyboardInterrupt
        return refine(*arguments)

    monkeypatch.setattr(learning, "refine", interrupted)


@pytest.mark.parametrize(
    ("number", "parameters"),
    [
        (1, {"n_components": 2}), (2, {"early_stopping": True}),
        (3, {"start": "within", "label_noise": True, "keep": "last"}),
    ],
    ids=str,
)  # fmt: skip
def test_a_fit_interrupted_in_a_pass_is_resumed_to_the_same_model(
    blobs, tmp_path, monkeypatch, number, parameters
):
    X, y = blobs
    X = X.astype(np.float32 if number == 2 else np.float64)
    whole = fit(X, y, **parameters)
    model = MaPML(**QUICK | parameters)
    with monkeypatch.context() as patched:
        interrupt_pass(patched, number)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y, checkpoint=tmp_path)
    refined = recorded_calls(monkeypatch, "refine")
    rounds = recorded_calls(monkeypatch, "next_state")
    assert_identical(model.fit(X, y, checkpoint=tmp_path, resume=True), whole)
    assert len(refined) == 4 - number
    assert not rounds, "rounds that were done before the interrupt were done again"


def test_a_warm_start_goes_on_with_a_refined_model(blobs):
    X, y = blobs
    model = fit(X, y, warm_start=True)
    metric, latents = model.get_mahalanobis_matrix(), model.latent_examples_
    model.set_params(max_iter=0, refine=0, latent_reg=1e9).fit(X, y)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), metric, atol=1e-9)
    np.testing.assert_allclose(model.latent_examples_, latents, atol=1e-3)
