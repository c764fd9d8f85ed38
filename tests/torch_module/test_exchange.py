"""From losses to estimators, and back."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric import LMNN, MaPML, load, save
from latentmetric.export import to_faiss, to_onnx
from latentmetric.torch import LatentVoteLoss, MahalanobisLinear
from latentmetric.viz import write_report

QUICK = {"max_iter": 2, "n_steps": 500, "random_state": 0}


def trained(blobs, n_features=6, metric=None):
    """A loss after some steps on blobs, which stand for the outputs of a network."""
    torch.manual_seed(0)
    X, y = torch.tensor(blobs[0], dtype=torch.float32), torch.tensor(blobs[1])
    loss = LatentVoteLoss(3, n_features, 4)
    groups = loss.param_groups() + ([{"params": metric.parameters()}] if metric else [])
    optimizer = torch.optim.Adam(groups, lr=1e-2)
    for _ in range(20):
        batch = torch.randperm(len(X))[:64]
        value = loss(metric(X[batch]) if metric else X[batch], y[batch])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
    return loss.eval(), X, y


def test_the_estimator_votes_as_the_loss_does(blobs):
    loss, X, y = trained(blobs)
    model = loss.to_estimator(X, y)
    assert isinstance(model, MaPML)
    assert np.array_equal(model.predict(X), loss.predict(X).numpy())
    expected = loss.predict_proba(X).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)
    assert model.latent_counts_.sum() == len(X)
    spread = (X - loss.latents[model.apply(X)]).square().sum(dim=1).mean().item()
    assert 0.5 * spread < (model.margins_ - model.model_.coordinates.unit).mean() < 2 * spread


def test_what_acts_on_models_acts_on_it(blobs, tmp_path):
    loss, X, y = trained(blobs)
    named = loss.to_estimator(X, y, classes=["b", "a", "c"])
    save(named, tmp_path / "model")
    names = np.array(["b", "a", "c"])[loss.predict(X).numpy()]
    assert np.array_equal(load(tmp_path / "model").predict(X.numpy()), names)
    X, y = X.numpy(), y.numpy()
    model = loss.to_estimator(X, y)
    to_onnx(model, tmp_path / "model.onnx")
    assert to_faiss(model).search(X, 3)[1].tolist() == model.kneighbors(X, 3)[1].tolist()
    write_report(model, X, y, tmp_path / "report.html")
    rejected = model.predict(X, reject_below=model.reject_threshold(0.1), reject_label=-1)
    assert 0.01 < (rejected == -1).mean() < 0.3
    assert model.label_scores(X, y).shape == (len(X),)
    model.partial_fit(X[:5], y[:5]).add_classes(X[:8] + 50, np.full(8, 9))
    assert model.predict(X[:8] + 50).tolist() == [9] * 8


def test_the_last_layer_may_become_the_metric(blobs):
    metric = MahalanobisLinear(6, 3)
    loss, X, y = trained(blobs, n_features=3, metric=metric)
    model = loss.to_estimator(X, y, metric=metric)
    assert np.array_equal(model.components_, metric.components())
    assert model.latent_examples_.shape == (12, 6)
    np.testing.assert_allclose(
        model.latent_examples_ @ model.components_.T, loss.latents.detach(), atol=2e-2
    )
    agreeing = model.predict(X) == loss.predict(metric(X)).numpy()
    assert agreeing.mean() > 0.98


def test_there_and_back(blobs):
    loss, X, y = trained(blobs)
    model = loss.to_estimator(X, y)
    back = LatentVoteLoss.from_estimator(model)
    assert torch.equal(back.latents, loss.latents)
    assert back.temperature.item() == pytest.approx(loss.temperature.item())
    assert back.counts.sum() == len(X)
    np.testing.assert_allclose(back.predict_proba(X).detach(), loss.predict_proba(X).detach())


def test_bandwidths_and_weights_go_there_and_back(blobs):
    X, y = blobs
    model = MaPML(5, bandwidth="latent", ridge=0.1, random_state=0).fit(X, y)
    assert np.abs(model.model_.log_scales).max() > 0.1
    head, loss = MahalanobisLinear.from_estimator(model), LatentVoteLoss.from_estimator(model)
    rows = torch.tensor(X)
    shares = loss.predict_proba(head(rows)).detach()
    np.testing.assert_allclose(shares, model.predict_proba(X), rtol=1e-6, atol=1e-6)
    loss(head(rows), torch.tensor(y)).backward()
    copied = LatentVoteLoss(3, len(head.weight), 5).double()
    copied.load_state_dict(loss.state_dict())
    back = copied.to_estimator(rows, y, metric=head, classes=[2, 0, 1])
    for name in ("log_scales", "log_weights"):
        of_classes = getattr(model.model_, name).reshape(3, 5)
        np.testing.assert_allclose(getattr(back.model_, name), of_classes[[1, 2, 0]].ravel())
    found = back.predict_proba(X)[:, [2, 0, 1]]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-3)


def test_rows_far_from_0_keep_their_predictions(blobs):
    X, y = blobs[0] + 1e8, blobs[1]
    model = MaPML(5, **QUICK).fit(X, y)
    points = MahalanobisLinear.from_estimator(model)(torch.tensor(X)).detach()
    loss = LatentVoteLoss.from_estimator(model)
    np.testing.assert_array_equal(loss.predict(points), model.predict(X))


def test_classes_may_have_different_numbers_of_latents(blobs):
    X, y = blobs
    model = MaPML(n_latents={0: 2, 1: 5, 2: 1}, **QUICK).fit(X, y)
    loss = LatentVoteLoss.from_estimator(model)
    assert loss.latent_labels.bincount().tolist() == [2, 5, 1]
    spreads = model.margins_ - model.model_.coordinates.unit
    np.testing.assert_allclose(loss.spreads, spreads, rtol=1e-5)
    points = MahalanobisLinear.from_estimator(model).double()(torch.tensor(X)).detach()
    assert np.mean(loss.double().predict(points).numpy() == model.predict(X)) > 0.99
    again = loss.to_estimator(points, y)
    assert again.n_latents == {0: 2, 1: 5, 2: 1}
    again.fit(X, y)


def test_wrong_rows_and_labels_are_refused(blobs):
    loss, X, y = trained(blobs)
    with pytest.raises(ValueError, match=r"of 3 classes were learned .* y has 2 classes"):
        loss.to_estimator(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="labels are from 0 to 3, but this loss was made for 3"):
        loss.to_estimator(X, torch.arange(len(X)) % 4)
    with pytest.raises(ValueError, match="classes has 3 labels, 2 of them different"):
        loss.to_estimator(X, y, classes=["a", "a", "b"])
    with pytest.raises(TypeError, match="integer codes of classes, got"):
        loss.to_estimator(X, y.double())
    with pytest.raises(ValueError, match=r"learned with 6 features, but .* X has 5 features"):
        loss.to_estimator(X[:, :5], y)
    with pytest.raises(TypeError, match="LMNN has no latent examples; fit MaPML"):
        LatentVoteLoss.from_estimator(LMNN(max_iter=1).fit(*blobs))
    model = MaPML(**QUICK).partial_fit(*blobs, classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="1 of 4 classes have no latent examples, such as 3"):
        LatentVoteLoss.from_estimator(model)


def test_only_latents_that_stood_for_a_row_become_references():
    """A class of two rows leaves three of its five latent examples at their random start."""
    y = torch.tensor([0] * 40 + [1] * 2)
    torch.manual_seed(0)
    X = torch.tensor([[10.0, 0.0], [0.0, 10.0]])[y] + torch.randn(42, 2)
    loss = LatentVoteLoss(2, 2, 5)
    for _ in range(3):
        loss(X, y)
    model = loss.eval().to_estimator(X, y)
    assert len(model.latent_examples_) == int((loss.counts > 0).sum()) < 10
    query = torch.tensor([[4.0, 0.5]])
    found = model.predict_proba(query.numpy())
    np.testing.assert_allclose(found, loss.predict_proba(query).detach(), atol=1e-6)


def test_a_class_that_was_never_seen_is_named():
    loss = LatentVoteLoss(3, 2, 2)
    X, y = torch.randn(20, 2), torch.arange(20) % 3
    loss(X[y < 2], y[y < 2])
    with pytest.raises(ValueError, match="class 2 has no latent example yet"):
        loss.to_estimator(X, y)
    with pytest.raises(TypeError, match="must be a MahalanobisLinear, got Linear"):
        loss.to_estimator(X, y, metric=torch.nn.Linear(2, 2))


def test_latents_without_rows_vote_as_in_the_model(rng):
    y = np.arange(90) % 3
    X = rng.normal(size=(90, 6)) + 3 * np.eye(6)[y]
    model = MaPML(n_latents=20, **QUICK).fit(X, y)
    model.latent_counts_[::4] = 0
    loss = LatentVoteLoss.from_estimator(model).eval().double()
    head = MahalanobisLinear.from_estimator(model).double()
    squared = torch.cdist(head(torch.tensor(X)), loss.latents).square()
    assert torch.allclose(
        loss.get_logits(head(torch.tensor(X)))[:, 0],
        torch.logsumexp(-squared[:, loss.latent_labels == 0] / loss.temperature, dim=1),
    )
