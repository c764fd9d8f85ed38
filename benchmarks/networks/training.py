"""Train a network with a loss: the same network, epochs and batches for every loss."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch
from networks.methods import Candidate, Learner, Method, seeded
from networks.scores import recall_at_1
from networks.tasks import Rows
from torch import Tensor, nn

EPOCHS = 6
BATCH = 100
PER_CLASS = 4
"""Rows of each class in a batch of a loss that compares rows of a batch."""
EMBEDDING = 64
HIDDEN = 256
CURVE_ROWS = 2_000
"""Rows that the curve of an epoch is measured on."""


def network(images: bool, n_features: int) -> nn.Module:
    """Two convolutions and a linear layer, or two linear layers."""
    if not images:
        return nn.Sequential(nn.Linear(n_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, EMBEDDING))
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, EMBEDDING),
    )


class Trained:
    """A network after training, its loss, the curve over the epochs and the seconds it took."""

    def __init__(self, rows: Rows, method: Method, chosen: Candidate, images: bool, seed: int):
        generator = seeded(seed)
        self.net = network(images, rows.X.shape[-1])
        self.learner = method.make(rows.n_classes, EMBEDDING, chosen)
        X, y = torch.from_numpy(rows.X), torch.from_numpy(rows.y)
        groups = [{"params": self.net.parameters()}, *self.learner.groups()]
        optimizer = torch.optim.Adam(groups, lr=chosen["lr"])
        n_steps = EPOCHS * -(-len(X) // BATCH)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)
        self.curve: list[float] = []
        self.seconds = 0.0
        for _ in range(EPOCHS):
            start = time.process_time()
            for batch in batches(rows.y, method.pairs, generator):
                optimizer.zero_grad()
                self.learner(self.net(X[batch]), y[batch]).backward()
                optimizer.step()
                schedule.step()
            self.seconds += time.process_time() - start
            some = slice(None, None, -(-len(rows.X_scored) // CURVE_ROWS))
            embedded = self.embed(rows.X_scored[some])
            self.curve.append(recall_at_1(embedded, rows.y_scored[some]))

    def embed(self, X: np.ndarray) -> Tensor:
        """Embeddings, of length 1 if the loss compares them so."""
        self.net.eval()
        self.learner.eval()
        with torch.no_grad():
            parts = [self.net(part) for part in torch.from_numpy(X).split(1_000)]
        self.net.train()
        self.learner.train()
        found = torch.cat(parts)
        return nn.functional.normalize(found) if self.learner.normalises else found

    def own_answers(self, X: np.ndarray) -> Tensor | None:
        """The classes that the loss's own classifier finds."""
        self.learner.eval()
        with torch.no_grad():
            logits = [self.learner.logits(self.net(p)) for p in torch.from_numpy(X).split(1_000)]
        if logits[0] is None:
            return None
        return torch.cat(logits).argmax(dim=1)

    @property
    def loss(self) -> Learner:
        return self.learner


def batches(y: np.ndarray, pairs: bool, generator: np.random.Generator) -> Iterator[Tensor]:
    """An epoch of batches: rows in random order, or a few rows of each of some classes."""
    n_batches = -(-len(y) // BATCH)
    if not pairs:
        order = generator.permutation(len(y))
        yield from (torch.from_numpy(part) for part in np.array_split(order, n_batches))
        return
    members = [np.flatnonzero(y == code) for code in range(int(y.max()) + 1)]
    n_chosen = min(len(members), BATCH // PER_CLASS)
    each = BATCH // n_chosen
    for _ in range(n_batches):
        classes = generator.choice(len(members), size=n_chosen, replace=False)
        rows = [generator.choice(members[c], size=min(each, len(members[c]))) for c in classes]
        yield torch.from_numpy(np.concatenate(rows))
