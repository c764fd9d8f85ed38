"""Whole fits with the refinement: what they record and keep, and what must not matter.

With any start, neither one scale of all features nor their position, the order of the rows or the
names of the classes matter. With the Euclidean start, a rotation does not matter, either; with the
others, the units of single features do not.
"""

import copy
from itertools import pairwise

import numpy as np
import onnxruntime
import pytest
from helpers import make_blobs
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from latentmetric import MaPML, load, save
from latentmetric.core import learning, refinement
from latentmetric.core.alternation import reduced
from latentmetric.core.coordinates import Coordinates
from latentmetric.core.distances import References
from latentmetric.core.likelihood import judge
from latentmetric.core.population import positions_of
from latentmetric.core.refinement import preimages
from latentmetric.core.starts import STARTS
from latentmetric.core.tuning import (
    MAP_SHARE,
    REFINEMENT_SHARE,
    WRONG_LABELS_EXPONENT,
    WRONG_LABELS_SHARE,
)
from latentmetric.core.votes import temperature_from_references
from latentmetric.export import to_faiss, to_onnx, to_sklearn

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


def test_without_refinement_nothing_is_refined(blobs, monkeypatch):
    monkeypatch.setattr(learning, "refine", None)
    model = fit(*blobs, refine=0)
    assert [record["round"] for record in model.history_] == [0, 1, 2]
    assert not any("refinement" in record for record in model.history_)


@pytest.mark.parametrize("parameters", [{}, {"keep": "last"}, {"early_stopping": True}])
def test_passes_follow_the_rounds(blobs, parameters):
    model = fit(*blobs, refine=3, **parameters)
    assert [record["round"] for record in model.history_] == [0, 1, 2, 3, 4, 5]
    assert [record.get("refinement") for record in model.history_] == [None, None, None, 1, 2, 3]
    assert model.n_iter_ == 5
    for record in model.history_[3:]:
        assert 0 < record["active_share"] <= 1
        assert record["rank"] == 6
        assert "objective" not in record
    judged = ["loss" in record and "loo_error" in record for record in model.history_]
    assert judged == [not parameters] * 6


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("parameters", [{}, {"label_noise": True}, {"n_components": 2}])
def test_the_best_state_is_kept(seed, parameters):
    """Never one under which labels are less likely than before learning."""
    model = fit(*make_blobs(seed=seed), random_state=seed, **parameters)
    losses = [record["loss"] for record in model.history_]
    assert losses[model.best_iter_] == min(losses) < losses[0]
    assert fit(*make_blobs(seed=seed), keep="last", **parameters).best_iter_ == 5


def test_early_stopping_keeps_the_state_with_the_lowest_validation_error(blobs):
    model = fit(*blobs, early_stopping=True, validation_fraction=0.3)
    errors = [record["validation_error"] for record in model.history_]
    assert errors[model.best_iter_] == min(errors)


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


def test_every_pass_goes_on_from_the_one_before(blobs, monkeypatch):
    passes = recorded_calls(monkeypatch, "refine")
    fit(*blobs)
    for (_, before), (arguments, _) in pairwise(passes):
        _, _, components, latents, _, counts, temperature, moments, *_ = arguments
        np.testing.assert_array_equal(components, before.components)
        np.testing.assert_array_equal(latents, before.latents)
        assert moments is before.moments
        assert counts is before.counts
        assert temperature == passes[0][0][6]
    assert [arguments[8] for arguments, _ in passes] == [0, 1, 2]


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


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", range(2))
def test_scale_and_position_do_not_matter(start, seed):
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    expected = fit(X, y, start=start)
    for scale, shift in ((1e-7, 0.0), (1000.0, 3e5)):
        found = fit(scale * X + shift, y, start=start)
        moved = scale * queries + shift
        np.testing.assert_array_equal(found.predict(moved), expected.predict(queries))
        latents = scale * expected.latent_examples_ + shift
        np.testing.assert_allclose(found.latent_examples_, latents, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", range(2))
def test_order_of_rows_and_names_of_classes_do_not_matter(start, seed):
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    order = np.random.default_rng(seed).permutation(len(X))
    names = np.array(["zebra", "Apple", "mouse"])
    one, other = fit(X, y, start=start), fit(X[order], names[y[order]], start=start)
    np.testing.assert_array_equal(names[one.predict(queries)], other.predict(queries))
    sorted_names = np.argsort(names)
    shares = one.predict_proba(queries)[:, sorted_names]
    np.testing.assert_allclose(other.predict_proba(queries), shares, atol=1e-6)


@pytest.mark.parametrize("parameters", [{}, {"label_noise": True}, {"n_components": 2}])
@pytest.mark.parametrize("seed", range(2))
def test_a_rotation_does_not_matter_with_the_euclidean_start(seed, parameters):
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    turn = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))[0]
    one, other = fit(X, y, **parameters), fit(X @ turn, y, **parameters)
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries @ turn))
    turned = turn.T @ one.get_mahalanobis_matrix() @ turn
    np.testing.assert_allclose(other.get_mahalanobis_matrix(), turned, atol=1e-6)


@pytest.mark.parametrize("start", ["standardized", "within"])
@pytest.mark.parametrize("seed", range(2))
def test_units_of_single_features_do_not_matter_with_other_starts(start, seed, monkeypatch):
    """Apart from the order that draws refer to: that of the distances from the centre."""
    X, y = make_blobs(seed=seed)
    queries, _ = make_blobs(seed=seed + 1)
    units = 10.0 ** np.array([3, -4, 0, 2, -1, 1])
    measure, radii = Coordinates.with_radii, Coordinates.with_radii(X)[1]
    monkeypatch.setattr(Coordinates, "with_radii", lambda rows, *_: (measure(rows)[0], radii))
    one, other = fit(X, y, start=start), fit(X * units, y, start=start)
    assert one.best_iter_ == other.best_iter_ > 2
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries * units))
    latents = one.latent_examples_ * units
    np.testing.assert_allclose(other.latent_examples_ / units, latents / units, atol=1e-6)
    assert timeless(one)[-1]["loss"] == pytest.approx(timeless(other)[-1]["loss"], rel=1e-6)
    euclid, scaled = fit(X, y), fit(X * units, y)
    assert np.mean(euclid.predict(queries) != scaled.predict(queries * units)) > 0.1


@pytest.mark.parametrize("start", ["standardized", "within"])
def test_latents_reach_their_points_whatever_the_units(start, monkeypatch):
    """The points that the last pass learned are those of the model."""
    X, y = make_blobs()
    found = []
    monkeypatch.setattr(
        refinement, "preimages", lambda *args: found.append(args) or preimages(*args)
    )
    model = fit(X * 10.0 ** np.array([3, -4, 0, 2, -1, 1]), y, start=start, keep="last")
    latents, components, points = found[-1]
    moved = np.linalg.norm(points - latents @ components.T)
    by_class = model.model_.references.rows
    nearest = np.square(points[:, None] - by_class[None]).sum(axis=2).min(axis=1)
    assert np.sqrt(nearest.sum()) < 0.01 * moved


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_a_refined_metric_has_at_most_the_rank_it_is_given(blobs, n_components, keep):
    X, y = blobs
    model = fit(X, y, n_components=n_components, keep=keep)
    assert model.components_.shape == (n_components, 6)
    assert model.transform(X).shape == (240, n_components)
    assert model.history_[-1]["rank"] == n_components
    mapped = model.latent_examples_ - model.model_.coordinates.centre
    mapped = mapped / model.model_.coordinates.scale @ model.components_.T
    np.testing.assert_allclose(model.model_.references.rows, mapped, atol=1e-9)


def test_a_map_tells_classes_apart():
    X, y = make_blobs(600)
    queries, truth = make_blobs(600, seed=1)
    assert fit(X, y, n_components=2).score(queries, truth) > 0.8
    assert fit(X, y, n_components=2, refine=0).score(queries, truth) < 0.8


def test_refinement_lowers_the_error_on_new_rows():
    X, y = make_blobs(600)
    queries, truth = make_blobs(2000, seed=1)
    refined, plain = (fit(X, y, refine=refine).score(queries, truth) for refine in (3, 0))
    assert refined > plain + 0.01


def test_wrong_labels_are_trusted_less():
    """Of 30 % of the rows, the label is replaced by a random one."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X.astype("f4"), y, test_size=600, random_state=0)
    generator = np.random.default_rng(0)
    wrong = generator.random(len(y)) < 0.3
    y[wrong] = generator.integers(10, size=wrong.sum())
    parameters = {"n_latents": 0.1, "n_steps": 1000, "refine": 2}
    errors = [
        1 - fit(X, y, label_noise=label_noise, **parameters).score(X_test, y_test)
        for label_noise in (True, False)
    ]
    assert errors[0] < 0.05
    assert errors[1] > errors[0] + 0.02


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


@pytest.mark.parametrize("start", STARTS)
def test_a_huge_latent_reg_keeps_latents_where_the_rounds_left_them(blobs, start):
    X, y = blobs
    moves = []
    for latent_reg in (0.0, 1e6):
        parameters = {"start": start, "keep": "last", "latent_reg": latent_reg}
        before, after = (
            fit(X, y, refine=refine, **parameters).model_.references.rows for refine in (0, 3)
        )
        moves.append(np.abs(after - before).max())
    free, held = moves
    assert free > 0.1
    assert held < 0.02


@pytest.mark.parametrize("start", STARTS)
def test_float32_and_float64_agree(start):
    X, y = make_blobs(300, seed=1)
    queries, _ = make_blobs(500, seed=2)
    wide, narrow = fit(X, y, start=start), fit(X.astype("f4"), y, start=start)
    assert narrow.components_.dtype == narrow.latent_examples_.dtype == np.float32
    assert np.mean(wide.predict(queries) == narrow.predict(queries.astype("f4"))) > 0.995
    metrics = [model.get_mahalanobis_matrix() for model in (wide, narrow)]
    np.testing.assert_allclose(metrics[1], metrics[0], atol=1e-4)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_threads_does_not_matter(blobs, n_jobs):
    X, y = blobs
    one, other = fit(X, y, n_jobs=1), fit(X, y, n_jobs=n_jobs)
    np.testing.assert_allclose(other.components_, one.components_, atol=1e-9)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def interrupt_pass(monkeypatch, number):
    """Raise KeyboardInterrupt in this pass of the refinement."""
    refine, calls = learning.refine, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == number:
            raise KeyboardInterrupt
        return refine(*arguments)

    monkeypatch.setattr(learning, "refine", interrupted)


@pytest.mark.parametrize("number", [1, 2])
def test_an_interrupted_refinement_leaves_the_estimator_unchanged(blobs, monkeypatch, number):
    X, y = blobs
    model = fit(X, y)
    before = copy.deepcopy(model)
    interrupt_pass(monkeypatch, number)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:120], y[:120])
    assert_identical(model, before)
    np.testing.assert_array_equal(model.predict(X), before.predict(X))
    new = MaPML(**QUICK)
    interrupt_pass(monkeypatch, number)
    with pytest.raises(KeyboardInterrupt):
        new.fit(X, y)
    assert not hasattr(new, "components_")


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("keep", ["best", "last"])
def test_an_interrupted_refinement_may_keep_the_best_so_far(blobs, monkeypatch, number, keep):
    X, y = blobs
    with monkeypatch.context() as patched:
        rounds = recorded_calls(patched, "next_state")
        passes = recorded_calls(patched, "refine")
        whole = fit(X, y, keep=keep)
    factors = [rounds[0][0][0].components]
    factors += [state.components for _, state in rounds]
    factors += [refined.components for _, refined in passes]
    interrupt_pass(monkeypatch, number)
    model = MaPML(**QUICK, keep=keep).fit(X, y, keep_on_interrupt=True)
    assert timeless(model) == timeless(whole)[: 2 + number]
    losses = [record.get("loss") for record in model.history_]
    best = int(np.argmin(losses)) if keep == "best" else len(losses) - 1
    assert model.best_iter_ == best
    np.testing.assert_array_equal(model.components_, factors[best])


@pytest.mark.parametrize(
    ("number", "parameters"),
    [
        (1, {}), (2, {}), (3, {}), (2, {"keep": "last"}), (2, {"start": "auto"}),
        (3, {"start": "within", "label_noise": True}), (1, {"n_components": 2}),
        (2, {"n_components": 2}), (2, {"early_stopping": True}), (3, {"latent_reg": 1.0}),
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


@pytest.mark.parametrize("parameters", [{}, {"start": "auto"}, {"n_components": 2}], ids=str)
def test_a_saved_model_is_the_same_when_loaded(blobs, tmp_path, parameters):
    X, y = blobs
    model = fit(X, y, **parameters)
    save(model, tmp_path / "model.safetensors")
    loaded = load(tmp_path / "model.safetensors")
    assert_identical(loaded, model)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_warm_start_goes_on_with_a_refined_model(blobs):
    X, y = blobs
    model = fit(X, y, warm_start=True)
    metric, latents = model.get_mahalanobis_matrix(), model.latent_examples_
    model.set_params(max_iter=0, refine=0, latent_reg=1e9).fit(X, y)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), metric, atol=1e-9)
    np.testing.assert_allclose(model.latent_examples_, latents, atol=1e-3)


@pytest.mark.parametrize("reference", ["latent", "original"])
@pytest.mark.parametrize(("dtype", "precise"), [(np.float32, 1e-4), (np.float64, 1e-10)])
def test_exports_agree_with_a_refined_model(tmp_path, reference, dtype, precise):
    X, y = make_blobs()
    X = X.astype(dtype)
    queries = make_blobs(seed=1)[0].astype(dtype)
    model = fit(X, y, start="within", reference=reference)
    assert model.best_iter_ > 2, "the model that is exported must be a refined one"
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    labels, shares = session.run(["label", "probabilities"], {"features": queries})
    np.testing.assert_array_equal(labels, model.predict(queries))
    np.testing.assert_allclose(shares, model.predict_proba(queries), atol=precise)
    distances, indices = to_faiss(model).search(queries, 4)
    expected_distances, expected_indices = model.kneighbors(queries, 4)
    assert np.mean(indices != expected_indices) < 1e-2
    np.testing.assert_allclose(distances, expected_distances, rtol=1e-4)
    for weights in ("uniform", "distance"):
        model.set_params(weights=weights)
        exported = to_sklearn(model)
        np.testing.assert_array_equal(exported.predict(queries), model.predict(queries))
        np.testing.assert_allclose(
            exported.predict_proba(queries), model.predict_proba(queries), atol=1e-4
        )
