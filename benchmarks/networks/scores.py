"""How good embeddings are: errors of votes, and of searches among the rows that are scored."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from latentmetric.evaluation import retrieval_scores

NEIGHBOURS = 3
PASSES = 10


def recall_at_1(embedded: Tensor, y: np.ndarray) -> float:
    """The share of rows whose nearest other row is of their class."""
    apart = torch.cdist(embedded, embedded).fill_diagonal_(torch.inf)
    return float((y[apart.argmin(dim=1).numpy()] == y).mean())


def three_nearest(embedded: Tensor, references: Tensor, labels: np.ndarray) -> np.ndarray:
    """The majority of three, or the nearest if all three differ or there are fewer."""
    k = min(NEIGHBOURS, len(references))
    found = [
        torch.cdist(part, references).topk(k, dim=1, largest=False).indices
        for part in embedded.split(1_000)
    ]
    voters = labels[torch.cat(found).numpy()]
    if k < NEIGHBOURS:
        return voters[:, 0]
    return np.where(voters[:, 1] == voters[:, 2], voters[:, 1], voters[:, 0])


def k_means_latents(embedded: Tensor, y: np.ndarray, each: int) -> tuple[Tensor, np.ndarray]:
    """A few means of each class, for losses that have no latent examples of their own."""
    points, labels = [], []
    for code in np.unique(y):
        rows = embedded[torch.from_numpy(y == code)]
        means = rows[: min(each, len(rows))].clone()
        for _ in range(PASSES):
            nearest = torch.cdist(rows, means).argmin(dim=1)
            for number in nearest.unique().tolist():
                means[number] = rows[nearest == number].mean(dim=0)
        points.append(means)
        labels += [code] * len(means)
    return torch.cat(points), np.array(labels)


def search_scores(embedded: Tensor, y: np.ndarray) -> dict[str, float]:
    """Each row searches the others."""
    found = retrieval_scores(embedded.numpy(), y, k=(1,))
    return {"recall@1": found["recall@1"], "map@r": found["map@r"]}
