"""ModernNCA (Ye, Yin, Zhan and Chao, ICLR 2025), written from the paper; PyTorch and scikit-learn.

Standardised rows, periodic embeddings of each column, one linear layer; the vote of all training
rows with weights exp(-distance). Parameters are the defaults of its authors' library (TALENT), but
numbers have 32 bits. A step costs O(share·n·(d·34·128 + batch·128)).
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

DIMENSIONS = 128
FREQUENCIES = 77
FREQUENCY_SCALE = 0.0443
COLUMN_DIMENSIONS = 34
CANDIDATE_SHARE = 0.5
RATE = 0.01
WEIGHT_DECAY = 2e-4
BATCH = 1_024
MAX_EPOCHS = 200
PATIENCE = 20
VALIDATION_SHARE = 0.2
TINY = 1e-7


class Embedding(torch.nn.Module):
    """Each column to sines and cosines of learned frequencies, a layer that all columns share,
    ReLU; then one layer for the row."""

    def __init__(self, n_columns: int) -> None:
        super().__init__()
        drawn = FREQUENCY_SCALE * torch.randn(n_columns, FREQUENCIES)
        self.frequencies = torch.nn.Parameter(drawn)
        self.column = torch.nn.Linear(2 * FREQUENCIES, COLUMN_DIMENSIONS)
        self.row = torch.nn.Linear(n_columns * COLUMN_DIMENSIONS, DIMENSIONS)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        angles = 2 * torch.pi * self.frequencies * rows[:, :, None]
        columns = torch.relu(self.column(torch.cat([angles.cos(), angles.sin()], dim=-1)))
        return self.row(columns.flatten(1))


def log_vote(
    queries: torch.Tensor, candidates: torch.Tensor, labels: torch.Tensor, own: bool
) -> torch.Tensor:
    """Log-share of each class; with ``own``, the first candidates are the queries themselves,
    and none votes for itself."""
    distances = torch.cdist(queries, candidates)
    if own:
        mine = torch.eye(len(queries), len(candidates), dtype=torch.bool)
        distances = distances.masked_fill(mine, torch.inf)
    return torch.log(torch.softmax(-distances, dim=1) @ labels + TINY)


class ModernNCA:
    """Early stopping by the error on a fifth of the rows; those are no candidates.

    After ``seconds`` of the processor, training ends with the best epoch so far.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def fit(self, X: np.ndarray, y: np.ndarray) -> ModernNCA:
        start = time.process_time()
        torch.manual_seed(0)
        self._scaler = StandardScaler().fit(X)
        rows = self._tensor(X)
        kept, held = train_test_split(
            np.arange(len(y)), test_size=VALIDATION_SHARE, stratify=y, random_state=0
        )
        self._candidates, self._codes = rows[kept], torch.from_numpy(y[kept])
        self._labels = torch.nn.functional.one_hot(self._codes).float()
        self._model = Embedding(X.shape[1])
        optimizer = torch.optim.AdamW(self._model.parameters(), lr=RATE, weight_decay=WEIGHT_DECAY)
        best, best_epoch, best_state = np.inf, 0, {}
        for epoch in range(MAX_EPOCHS):
            self._epoch(optimizer)
            error = np.mean(self._log_shares(rows[held]).argmax(1).numpy() != y[held])
            if error <= best:
                best, best_epoch = error, epoch
                best_state = {k: v.clone() for k, v in self._model.state_dict().items()}
            if epoch - best_epoch > PATIENCE or time.process_time() - start > self.seconds:
                break
        self._model.load_state_dict(best_state)
        self.notes_ = f"best of {epoch + 1} epochs: number {best_epoch + 1}"
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self._log_shares(self._tensor(X)).exp().numpy()

    def _tensor(self, X: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self._scaler.transform(X).astype(np.float32))

    def _epoch(self, optimizer: Any) -> None:
        n = len(self._candidates)
        for batch in torch.randperm(n).split(BATCH):
            others = torch.ones(n, dtype=torch.bool)
            others[batch] = False
            (pool,) = torch.where(others)
            drawn = pool[torch.randperm(len(pool))[: int(CANDIDATE_SHARE * len(pool))]]
            voters = torch.cat([batch, drawn])
            embedded = self._model(self._candidates[voters])
            shares = log_vote(embedded[: len(batch)], embedded, self._labels[voters], own=True)
            optimizer.zero_grad()
            torch.nn.functional.nll_loss(shares, self._codes[batch]).backward()
            optimizer.step()

    @torch.no_grad()
    def _log_shares(self, rows: torch.Tensor) -> torch.Tensor:
        candidates = torch.cat([self._model(part) for part in self._candidates.split(BATCH)])
        return torch.cat(
            [
                log_vote(self._model(part), candidates, self._labels, own=False)
                for part in rows.split(BATCH)
            ]
        )
