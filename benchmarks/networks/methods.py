"""The losses of deep.py, and the parameters that each may choose from: eight candidates each.

Those of pytorch-metric-learning are as the library has them, with the loss's own scale or margin
and the rate of its proxies among the candidates. Every candidate names the learning rate of the
network first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Candidate = dict[str, Any]

NET_RATES = (1e-3, 5e-3)
LATENTS = 5


class Learner(nn.Module):
    """A loss, the rate of its own parameters, and how it answers by itself."""

    def __init__(self, loss: nn.Module, rate: float = 0.0) -> None:
        super().__init__()
        self.loss, self.rate = loss, rate

    normalises = True
    """Whether rows are compared after they are brought to length 1."""

    def groups(self) -> list[dict[str, Any]]:
        own = list(self.loss.parameters())
        return [{"params": own, "lr": self.rate}] if own else []

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = self.loss(embeddings, labels)
        return value

    def logits(self, embeddings: Tensor) -> Tensor | None:
        """Of the loss's own classifier, if it has one."""
        return None

    def latents(self) -> tuple[Tensor, Tensor] | None:
        """Points that stand for the classes, and their classes."""
        return None


class CrossEntropy(Learner):
    """A linear classifier on the embeddings."""

    def __init__(self, n_classes: int, n_features: int, smoothing: float) -> None:
        super().__init__(nn.Linear(n_features, n_classes))
        self.smoothing = smoothing

    def groups(self) -> list[dict[str, Any]]:
        return [{"params": list(self.loss.parameters())}]

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        logits = self.loss(embeddings)
        return nn.functional.cross_entropy(logits, labels, label_smoothing=self.smoothing)

    def logits(self, embeddings: Tensor) -> Tensor | None:
        found: Tensor = self.loss(embeddings)
        return found


class Proxies(Learner):
    """A loss of pytorch-metric-learning whose proxies have the shape (classes, features)."""

    def latents(self) -> tuple[Tensor, Tensor] | None:
        points = nn.functional.normalize(self.loss.proxies.detach())
        return points, torch.arange(len(points))

    def logits(self, embeddings: Tensor) -> Tensor | None:
        points, _ = self.latents()
        return nn.functional.normalize(embeddings) @ points.T


class SoftTriple(Learner):
    """Its centres are columns, class by class."""

    def __init__(self, loss: nn.Module, rate: float, n_classes: int) -> None:
        super().__init__(loss, rate)
        self.n_classes = n_classes

    def latents(self) -> tuple[Tensor, Tensor] | None:
        points = nn.functional.normalize(self.loss.fc.detach(), dim=0).T
        each = len(points) // self.n_classes
        return points, torch.arange(self.n_classes).repeat_interleave(each)

    def logits(self, embeddings: Tensor) -> Tensor | None:
        points, _ = self.latents()
        similar = nn.functional.normalize(embeddings) @ points.T
        by_class = similar.reshape(len(embeddings), self.n_classes, -1)
        weights = torch.softmax(by_class * self.loss.gamma, dim=2)
        return (weights * by_class).sum(dim=2)


class Latent(Learner):
    """A loss of ours; with ``normalised``, the network ends with rows of length 1."""

    def __init__(self, loss: Any, rate: float, normalised: bool) -> None:
        super().__init__(loss, rate)
        self.normalises = normalised

    def groups(self) -> list[dict[str, Any]]:
        return self.loss.param_groups(lr=self.rate)

    def mapped(self, embeddings: Tensor) -> Tensor:
        return nn.functional.normalize(embeddings) if self.normalises else embeddings

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        return self.loss(self.mapped(embeddings), labels)

    def logits(self, embeddings: Tensor) -> Tensor | None:
        return self.loss.get_logits(self.mapped(embeddings))

    def latents(self) -> tuple[Tensor, Tensor] | None:
        return self.loss.latents.detach(), self.loss.latent_labels


@dataclass(frozen=True)
class Method:
    """How to make the loss of a candidate for so many classes and features."""

    make: Callable[[int, int, Candidate], Learner]
    settings: tuple[Candidate, ...]
    pairs: bool = False
    """Whether the loss compares rows of a batch, which then has several of each class."""

    def candidates(self) -> list[Candidate]:
        return [{"lr": rate, **setting} for rate, setting in product(NET_RATES, self.settings)]


def settings(**values: tuple[Any, ...]) -> tuple[Candidate, ...]:
    """All combinations of these values."""
    return tuple(dict(zip(values, chosen, strict=True)) for chosen in product(*values.values()))


def cross_entropy(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    return CrossEntropy(n_classes, n_features, chosen["smoothing"])


def proxy_nca(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    from pytorch_metric_learning import losses

    scale = chosen["scale"]
    loss = losses.ProxyNCALoss(n_classes, n_features, softmax_scale=scale)
    return Proxies(loss, chosen["proxy_lr"])


def proxy_anchor(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    from pytorch_metric_learning import losses

    loss = losses.ProxyAnchorLoss(n_classes, n_features, margin=0.1, alpha=chosen["scale"])
    return Proxies(loss, chosen["proxy_lr"])


def soft_triple(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    from pytorch_metric_learning import losses

    loss = losses.SoftTripleLoss(
        n_classes, n_features, centers_per_class=LATENTS, la=chosen["scale"], margin=0.01
    )
    return SoftTriple(loss, chosen["proxy_lr"], n_classes)


def multi_similarity(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    from pytorch_metric_learning import losses, miners

    loss = losses.MultiSimilarityLoss(alpha=2, beta=chosen["scale"], base=0.5)
    return Mined(loss, miners.MultiSimilarityMiner(epsilon=0.1))


def lifted_structure(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    """The generalised one: the first one compares all pairs of pairs, minutes for an epoch."""
    from pytorch_metric_learning import losses

    return Learner(losses.GeneralizedLiftedStructureLoss(neg_margin=chosen["margin"], pos_margin=0))


def triplet(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    from pytorch_metric_learning import losses, miners

    margin = chosen["margin"]
    miner = miners.TripletMarginMiner(margin=margin, type_of_triplets="semihard")
    return Mined(losses.TripletMarginLoss(margin=margin), miner)


class Mined(Learner):
    """With a miner of pairs or triplets."""

    def __init__(self, loss: nn.Module, miner: nn.Module) -> None:
        super().__init__(loss)
        self.miner = miner

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = self.loss(embeddings, labels, self.miner(embeddings, labels))
        return value


def latent_vote(n_classes: int, n_features: int, chosen: Candidate) -> Learner:
    """Embeddings as they are, or of length 1, where distances are shorter and so is T."""
    from latentmetric.torch import LatentVoteLoss

    normalised = chosen["normalised"]
    loss = LatentVoteLoss(
        n_classes,
        n_features,
        latents_per_class=1,
        temperature=0.2 if normalised else 1.0,
        margin=chosen.get("margin", 0.0),
        label_noise=chosen.get("label_noise", False),
        batch_votes=chosen.get("batch_votes", False),
        smoothing=chosen.get("smoothing", 0.0),
        distortion=chosen["distortion"],
    )
    return Latent(loss, rate=1e-2, normalised=normalised)


METHODS: dict[str, Method] = {
    "LatentVote (ours)": Method(
        latent_vote,
        (
            {"normalised": False, "batch_votes": True, "smoothing": 0.1, "distortion": 0.5},
            {"normalised": True, "batch_votes": True, "smoothing": 0.5, "distortion": 0.0},
            {"normalised": True, "margin": 0.5, "smoothing": 0.5, "distortion": 1.0},
            {"normalised": True, "batch_votes": True, "label_noise": True, "distortion": 1.0},
        ),
    ),
    "cross-entropy": Method(cross_entropy, settings(smoothing=(0.0, 0.1, 0.3, 0.5))),
    "ProxyNCA": Method(proxy_nca, settings(proxy_lr=(1e-2, 1e-1), scale=(8, 16))),
    "SoftTriple": Method(soft_triple, settings(proxy_lr=(1e-2, 1e-1), scale=(10, 20))),
    "ProxyAnchor": Method(proxy_anchor, settings(proxy_lr=(1e-2, 1e-1), scale=(16, 32))),
    "MultiSimilarity": Method(multi_similarity, settings(scale=(10, 20, 40, 50)), pairs=True),
    "lifted structure": Method(lifted_structure, settings(margin=(0.5, 1.0, 1.5, 2.0)), pairs=True),
    "semi-hard triplet": Method(triplet, settings(margin=(0.05, 0.1, 0.2, 0.4)), pairs=True),
}
"""The losses by name."""


def seeded(seed: int) -> np.random.Generator:
    """The same seed gives every method the same network and, among its kind, the same batches."""
    torch.manual_seed(seed)
    return np.random.default_rng(seed)
