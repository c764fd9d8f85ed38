"""In training loops: optimizers, half precision, state dicts, compilers, the trainer of a peer."""

import copy
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra torch)")

from latentmetric.torch import LatentVoteLoss


def rows_of(n_rows=96, n_features=8, n_classes=3):
    """Classes of two groups each, which no linear map separates."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(n_rows) % n_classes
    group = torch.arange(n_rows) % (2 * n_classes)
    centres = 2 * torch.randn(2 * n_classes, n_features, generator=generator)
    return centres[group] + torch.randn(n_rows, n_features, generator=generator), labels


def a_net(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def train(net, loss, steps=60, autocast=False):
    rows, labels = rows_of()
    groups = [{"params": net.parameters()}, *loss.param_groups(lr=1e-2)]
    optimizer = torch.optim.Adam(groups, lr=1e-2)
    values = []
    for _ in range(steps):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            value = loss(net(rows), labels)
        value.backward()
        optimizer.step()
        values.append(value.item())
    return values


def test_a_network_learns():
    net, loss = a_net(), LatentVoteLoss(3, 4, 2)
    before = train(net, loss, 1)[0]
    after = train(net, loss)[-1]
    rows, labels = rows_of()
    assert (loss.eval().predict(net(rows)) == labels).float().mean() > 0.95
    assert after < 0.1 * before


def test_half_precision_is_finite():
    net, loss = a_net(), LatentVoteLoss(3, 4, 2)
    values = train(net, loss, 20, autocast=True)
    assert torch.tensor(values).isfinite().all()
    assert all(tensor.isfinite().all() for tensor in net.state_dict().values())
    assert all(tensor.isfinite().all() for tensor in loss.state_dict().values())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert loss(net(rows_of()[0]), rows_of()[1]).dtype == torch.float32
    value = loss.bfloat16()(a_net()(rows_of()[0]).bfloat16(), rows_of()[1])
    assert value.dtype == torch.float32
    assert value.isfinite()


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e15])
def test_equal_rows_and_extreme_distances_are_finite(scale):
    loss = LatentVoteLoss(3, 8, 2)
    rows, labels = rows_of()
    rows = (scale * rows).requires_grad_()
    value = loss(rows, labels)
    value.backward()
    assert value.isfinite()
    assert rows.grad.isfinite().all()
    assert loss.predict_proba(rows).isfinite().all()


def test_the_state_dict_carries_all():
    loss = LatentVoteLoss(3, 4, [1, 2, 3], temperature=0.7)
    rows = a_net()(rows_of()[0]).detach()
    loss(rows, rows_of()[1])
    other = LatentVoteLoss(3, 4, [3, 2, 1])
    other.load_state_dict(copy.deepcopy(loss.state_dict()))
    assert torch.equal(loss.predict_proba(rows), other.predict_proba(rows))
    with pytest.raises(RuntimeError, match="size mismatch for latents"):
        loss.load_state_dict(LatentVoteLoss(3, 4, 3).state_dict())


def test_evaluation_changes_nothing():
    loss = LatentVoteLoss(3, 8, 2)
    rows, labels = rows_of()
    loss(rows, labels)
    before = copy.deepcopy(loss.eval().state_dict())
    loss(rows + 1, labels)
    loss.predict(rows)
    assert all(torch.equal(before[name], now) for name, now in loss.state_dict().items())


def test_latents_have_a_learning_rate_of_their_own():
    loss = LatentVoteLoss(3, 4, 2)
    (group,) = loss.param_groups(lr=0.5)
    assert (group["lr"], group["weight_decay"]) == (0.5, 0.0)
    assert group["params"][0] is loss.latents
    with pytest.raises(ValueError, match="lr must be"):
        loss.param_groups(lr=0)


@pytest.mark.slow
def test_compiled_it_is_the_same():
    """One graph, with gradients and changes of state."""
    loss = LatentVoteLoss(3, 8, 2)
    rows, labels = rows_of()
    loss(rows, labels)
    plain = copy.deepcopy(loss)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for step in range(3):
        first, second = ((rows + step).requires_grad_() for _ in range(2))
        expected, found = plain(first, labels), compiled(second, labels)
        expected.backward()
        found.backward()
        assert torch.allclose(found, expected, rtol=1e-4)
        assert torch.allclose(second.grad, first.grad, atol=1e-5)
    for name, value in plain.state_dict().items():
        assert torch.allclose(value, loss.state_dict()[name], rtol=1e-4, atol=1e-5), name


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_it_stands_in_the_trainer_of_pytorch_metric_learning():
    reason = "pytorch-metric-learning is not installed"
    trainers = pytest.importorskip("pytorch_metric_learning.trainers", reason=reason)
    miners = pytest.importorskip("pytorch_metric_learning.miners", reason=reason)
    net, loss = a_net(), LatentVoteLoss(3, 4, 2)
    trainer = trainers.MetricLossOnly(
        models={"trunk": net},
        optimizers={
            "trunk_optimizer": torch.optim.Adam(net.parameters(), lr=1e-2),
            "metric_loss_optimizer": torch.optim.Adam(loss.param_groups(lr=1e-2)),
        },
        batch_size=32,
        loss_funcs={"metric_loss": loss},
        mining_funcs={"tuple_miner": miners.MultiSimilarityMiner()},
        dataset=torch.utils.data.TensorDataset(*rows_of()),
        dataloader_num_workers=0,
    )
    trainer.train(num_epochs=8)
    rows, labels = rows_of()
    assert (loss.eval().predict(net(rows)) == labels).float().mean() > 0.8


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"n_classes": 1}, ValueError, "n_classes must be at least 2, got 1"),
        ({"latents_per_class": [1, 2]}, ValueError, "has 2 numbers, but there are 3 classes"),
        ({"latents_per_class": [1, 2, 0]}, ValueError, "of class 2 must be at least 1, got 0"),
        ({"temperature": 1e-46}, ValueError, "temperature must be"),
        ({"smoothing": True}, TypeError, "smoothing must be a number"),
    ],
)
def test_wrong_parameters_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        LatentVoteLoss(**({"n_classes": 3, "n_features": 4} | arguments))


@pytest.mark.parametrize(
    ("rows", "labels", "kind", "message"),
    [
        ((5, 3), [0] * 5, ValueError, r"have shape \(5, 3\), but this loss was made for 4"),
        ((5, 4), [0] * 4, ValueError, r"labels have shape \(4,\), but there are 5 embeddings"),
        ((2, 4), [0, 3], ValueError, "labels are from 0 to 3, but this loss was made for 3"),
        ((2, 4), [0.0, 1.0], TypeError, r"integer codes of classes, got torch\.float32"),
    ],
)
def test_wrong_batches_are_refused(rows, labels, kind, message):
    with pytest.raises(kind, match=message):
        LatentVoteLoss(3, 4, 2)(torch.zeros(rows), torch.tensor(labels))


def test_arguments_of_another_kind_are_named():
    loss, (rows, labels) = LatentVoteLoss(3, 8, np.array([1, 2, 3])), rows_of()
    with pytest.raises(ValueError, match="the batch is empty"):
        loss(rows[:0], labels[:0])
    with pytest.raises(TypeError, match="tensor of floating point numbers, got ndarray"):
        loss.predict(rows.numpy())
    with pytest.raises(ValueError, match="compares rows with its latent examples only"):
        loss(rows, labels, None, rows, labels)


@pytest.mark.slow
def test_only_its_own_part_imports_pytorch_and_says_what_to_install():
    code = (
        "import sys, latentmetric.viz, latentmetric.export, latentmetric.evaluation\n"
        "latentmetric.MaPML\n"
        "print('torch' in sys.modules)\n"
        "sys.modules['torch'] = None\n"
        "import latentmetric.torch"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "latentmetric.torch needs torch: pip install torch" in done.stderr
    assert done.stdout == "False\n"
