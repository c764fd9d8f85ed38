"""What the losses have in common: latent examples, what is known of them, and their votes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from latentmetric.estimators.assembled import LearnedLatents, disassembled
from latentmetric.torch.checks import check_batch, check_rows, counts_of, refuse_references
from latentmetric.torch.exchange import as_array, estimator_of
from latentmetric.torch.layer import MahalanobisLinear
from latentmetric.torch.processes import of_all
from latentmetric.torch.running import (
    Layout,
    State,
    class_logits,
    nearest_own,
    observed,
    refilled,
    squared_distances,
)
from latentmetric.validation.parameters import Integer, Number, OneOf

UPDATES = ("gradient", "mean")
"""How latent examples learn."""

FLOAT32_RANGE = (torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max)
"""What a temperature can be as a buffer."""

RARE = 1e-3
"""The count of a latent example that stands for no row, but has a vote."""

LATENT_RATE = 1e-2
"""The learning rate of latent examples, unless another one is given."""


class LatentLoss(nn.Module, ABC):
    """Latent examples of every class in the space of a network's embeddings.

    A subclass says what the loss of a batch is. In training mode, a batch first updates the state
    of the loss, as in batch normalisation: empty latent examples are put at rows, rows are counted
    and, with ``update="mean"``, latent examples move to the means of their rows. In evaluation mode
    nothing changes.
    """

    latents: Tensor
    counts: Tensor
    spreads: Tensor
    sizes: Tensor
    temperature: Tensor
    of_latents: Tensor
    members: Tensor
    exists: Tensor

    default_temperature: ClassVar[float] = 1.0

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        latents_per_class: int | Sequence[int] = 5,
        *,
        update: str = "gradient",
        temperature: float | None = None,
        memory: float = 20.0,
    ) -> None:
        super().__init__()
        self.n_classes = Integer(2).check("n_classes", n_classes)
        self.n_features = Integer(1).check("n_features", n_features)
        self.update = OneOf(UPDATES).check("update", update)
        self.memory = Number(1).check("memory", memory)
        if temperature is None:
            temperature = self.default_temperature
        degree = Number(*FLOAT32_RANGE).check("temperature", temperature)
        sizes = torch.tensor(counts_of(latents_per_class, self.n_classes))
        places = torch.randn(int(sizes.sum()), self.n_features) / sqrt(self.n_features)
        if self.update == "gradient":
            self.latents = nn.Parameter(places)
        else:
            self.register_buffer("latents", places)
        self.register_buffer("counts", torch.zeros(len(places)))
        self.register_buffer("spreads", torch.zeros(self.n_classes))
        self.register_buffer("temperature", torch.tensor(degree))
        self.register_buffer("sizes", sizes)
        for name, part in Layout.of(sizes)._asdict().items():
            self.register_buffer(name, part, persistent=False)
        hooked: Any = self
        hooked.register_load_state_dict_pre_hook(_check_sizes)
        hooked.register_load_state_dict_post_hook(_lay_out)

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return (
            f"n_classes={self.n_classes}, n_features={self.n_features}, "
            f"n_latents={len(self.latents)}, update={self.update!r}"
        )

    def param_groups(self, lr: float = LATENT_RATE) -> list[dict[str, Any]]:
        """The latent examples as a group of parameters for an optimizer.

        Parameters
        ----------
        lr : float, default=0.01
            Their learning rate. Latent examples are points, not weights: they have a rate of
            their own, and no weight decay.

        Returns
        -------
        list of dict
            Empty with ``update="mean"``, where no optimizer moves them.
        """
        rate = Number(0, open_low=True).check("lr", lr)
        if self.update == "mean":
            return []
        return [{"params": [self.latents], "lr": rate, "weight_decay": 0.0}]

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor,
        indices_tuple: Any = None,
        ref_emb: Tensor | None = None,
        ref_labels: Tensor | None = None,
    ) -> Tensor:
        """The loss of a batch, a scalar.

        Parameters
        ----------
        embeddings : Tensor of shape (n_rows, n_features)
            The output of the network for each row.
        labels : Tensor of shape (n_rows,)
            Codes from 0 to n_classes − 1.
        indices_tuple : tuple of Tensors, default=None
            The pairs or triplets of a miner. A row is weighted by how often it occurs in them.
        ref_emb, ref_labels : None
            For compatibility only: rows are compared with latent examples, not with other rows.

        Returns
        -------
        Tensor
            In float32, or in float64 if the loss is, after ``loss.double()``.
        """
        refuse_references(ref_emb, ref_labels)
        check_batch(embeddings, labels, self.n_classes, self.n_features)
        with torch.autocast(embeddings.device.type, enabled=False):
            rows, labels = self._as_numbers(embeddings), labels.long()
            weights = row_weights(indices_tuple, rows)
            state, own = self._seen(rows, labels)
            return self._loss(rows, labels, weights, state, own)

    @abstractmethod
    def _loss(
        self, rows: Tensor, labels: Tensor, weights: Tensor, state: State, own: Tensor
    ) -> Tensor:
        """The loss of rows, given the latent example of each."""

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """The logarithm of each class's votes: log Σ exp(−D²/T) over its latent examples.

        Parameters
        ----------
        embeddings : Tensor of shape (n_rows, n_features)
            The output of the network for each row.

        Returns
        -------
        Tensor of shape (n_rows, n_classes)
            Larger is better.
        """
        check_rows(embeddings, self.n_features)
        with torch.autocast(embeddings.device.type, enabled=False):
            squared = squared_distances(self._as_numbers(embeddings), self._state().latents)
            return class_logits(squared, self._state(), self._layout, self.temperature)

    def predict(self, embeddings: Tensor) -> Tensor:
        """The code of the class with the most votes.

        Parameters
        ----------
        embeddings : Tensor of shape (n_rows, n_features)
            The output of the network for each row.

        Returns
        -------
        Tensor of shape (n_rows,)
        """
        return self.get_logits(embeddings).argmax(dim=1)

    def predict_proba(self, embeddings: Tensor) -> Tensor:
        """Each class's share of the votes.

        Parameters
        ----------
        embeddings : Tensor of shape (n_rows, n_features)
            The output of the network for each row.

        Returns
        -------
        Tensor of shape (n_rows, n_classes)
        """
        return self.get_logits(embeddings).softmax(dim=1)

    def to_estimator(
        self,
        features: Any,
        labels: Any,
        *,
        classes: Sequence[Any] | None = None,
        metric: MahalanobisLinear | None = None,
    ) -> Any:
        """A fitted ``MaPML`` with these latent examples, for rows of the network's features.

        Parameters
        ----------
        features : array-like or Tensor of shape (n_rows, n_features)
            The outputs of the trained network for the training rows.
        labels : array-like or Tensor of shape (n_rows,)
            Codes from 0 to n_classes − 1.
        classes : sequence of n_classes labels, default=None
            The label of each code; None means the codes.
        metric : MahalanobisLinear, default=None
            The last layer of the network, if it is to be the metric of the estimator. Then
            ``features`` are what this layer receives.

        Returns
        -------
        MaPML
        """
        if not isinstance(metric, MahalanobisLinear | None):
            raise TypeError(f"metric must be a MahalanobisLinear, got {type(metric).__name__}")
        components = None if metric is None else metric.components()
        points, sizes = self._voters()
        learned = LearnedLatents(points, sizes, float(self.temperature), components)
        return estimator_of(learned, features, labels, classes)

    @classmethod
    def from_estimator(cls, model: Any, **parameters: Any) -> Self:
        """A loss that starts from the latent examples of a fitted ``MaPML``.

        Its latent examples are mapped by the metric of the model, so the layer before it must be
        ``MahalanobisLinear.from_estimator(model)``. The code of a class is its position in
        ``model.classes_``.

        Parameters
        ----------
        model : MaPML
            Fitted.
        **parameters
            Parameters of the loss, except for its sizes.

        Returns
        -------
        LatentLoss
        """
        known = disassembled(model)
        degree = {"temperature": known.temperature} if known.temperature > 0 else {}
        sizes = known.sizes.tolist()
        loss = cls(len(sizes), known.points.shape[1], sizes, **(degree | parameters))
        with torch.no_grad():
            loss.latents.copy_(torch.from_numpy(known.points))
            # One without rows votes in the model, too, and only in training takes a row's place.
            loss.counts.copy_(torch.from_numpy(known.counts).clamp(min=RARE))
            loss.spreads.copy_(torch.from_numpy(known.spreads))
        return loss

    def _voters(self) -> tuple[Any, Any]:
        """The latent examples that have a vote, and how many each class has."""
        known = as_array(self.counts) > 0
        known |= not known.any()
        sizes = np.bincount(as_array(self.of_latents)[known], minlength=self.n_classes)
        if not sizes.all():
            raise ValueError(
                f"class {sizes.argmin()} has no latent example yet, because the loss has not seen "
                "a row of it in training; train with rows of every class"
            )
        return as_array(self.latents)[known], sizes

    @property
    def _layout(self) -> Layout:
        return Layout(self.of_latents, self.members, self.exists)

    def _as_numbers(self, embeddings: Tensor) -> Tensor:
        """Embeddings in the dtype that is computed in, at least float32."""
        return embeddings.to(torch.promote_types(self.latents.dtype, torch.float32))

    def _state(self) -> State:
        return State(*map(self._as_numbers, (self.latents, self.counts, self.spreads)))

    def _seen(self, rows: Tensor, labels: Tensor) -> tuple[State, Tensor]:
        """The state after a batch in training mode, and the latent example of each row."""
        state, layout = self._state(), self._layout
        if not self.training:
            return state, nearest_own(rows, labels, state.latents, layout)
        everyone, codes, own_rows = of_all(rows, labels)
        filled = refilled(state, everyone, codes, layout)
        moves = self.update == "mean"
        state, own = observed(filled, everyone, codes, layout, self.memory, moves)
        with torch.no_grad():
            self.latents.copy_(state.latents)
            self.counts.copy_(state.counts)
            self.spreads.copy_(state.spreads)
        return state, own[own_rows]


def row_weights(indices_tuple: Any, rows: Tensor) -> Tensor:
    """How much each row counts: as often as a miner chose it, in units of the most frequent one."""
    if indices_tuple is None:
        return rows.new_ones(len(rows))
    chosen = torch.cat([numbers.reshape(-1) for numbers in indices_tuple])
    times = rows.new_zeros(len(rows)).index_add(0, chosen, rows.new_ones(len(chosen)))
    return times / times.max().clamp(min=1)


def _check_sizes(loss: LatentLoss, state: Mapping[str, Any], prefix: str, *others: Any) -> None:
    """Refuse the state of another number of latent examples before any of it is copied."""
    sizes = state.get(f"{prefix}sizes")
    if sizes is not None and int(sizes.sum()) != len(loss.latents):
        raise ValueError(
            f"the state is of {int(sizes.sum())} latent examples, but this loss has "
            f"{len(loss.latents)}; make it with latents_per_class={sizes.tolist()}"
        )


def _lay_out(loss: LatentLoss, keys: Any) -> None:
    """Follow the sizes of classes that a state dict brought."""
    for name, part in Layout.of(loss.sizes)._asdict().items():
        setattr(loss, name, part)
