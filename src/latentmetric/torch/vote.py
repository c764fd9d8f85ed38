"""The likelihood of labels under the kernel vote of latent examples, as a loss for networks."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from latentmetric.core.tuning import ALL_VOTE, WRONG_LABELS_EXPONENT
from latentmetric.estimators.exchange import LearnedLatents, from_estimator, to_estimator
from latentmetric.torch.checks import check_counts, check_labels, check_rows
from latentmetric.torch.latents import (
    LATENT_RATE,
    RARE,
    State,
    batch_logits,
    class_logits,
    distances_to,
    nearest_of_class,
    refill_empty,
    squared_distances,
    update_state,
)
from latentmetric.torch.layer import MahalanobisLinear
from latentmetric.torch.processes import gather_batches
from latentmetric.validation.labels import checked_labels
from latentmetric.validation.parameters import Boolean, Integer, Number

FLOAT32_RANGE = (torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max)
"""What a temperature can be as a buffer."""


class LatentVoteLoss(nn.Module):
    """Minus the logarithm of P(y | x) ∝ Σ exp(−D²(x, z)/T) over the latent examples z of class y.

    This is what the refinement of ``MaPML`` minimises, with the network in the place of the metric.

    In training mode, a batch first updates the state of the loss, as in batch normalisation: empty
    latent examples are put at rows, and rows are counted. In evaluation mode nothing changes.

    Parameters
    ----------
    n_classes : int
        Labels are 0 to ``n_classes`` − 1.
    n_features : int
        The length of an embedding.
    latents_per_class : int or sequence of int, default=5
        Latent examples of each class: parameters, to be passed to an optimizer by
        ``param_groups``. One that has had no rows near it for long moves to a row of its class.
    temperature : float, default=1.0
        T, in squared units of the embeddings.
    margin : float, default=0.0
        The latent examples of a row's class vote as if they were farther away, in D², by this many
        times the spread E[D²(x, z)] of the class: the paper's margin, which depends on the data. 0
        is the plain likelihood.
    label_noise : bool, default=False
        Whether some labels may be wrong. Rows with unlikely labels then count less. With many
        classes, do not combine it with a margin: at first, all labels would be unlikely.
    batch_votes : bool, default=False
        Whether in training the other rows of the batch also vote, each like a latent example of its
        own. The loss is the mean of the losses with and without these votes, so that latent
        examples keep learning when the votes of the rows are already certain. Classes need several
        rows in a batch for that. With several processes, only the rows of the same process vote.
    smoothing : float, default=0.0
        Label smoothing, from 0 to 1: the share of each label that is spread evenly over all
        classes. Rows then stop moving once their label is likely enough, which helps if a network
        memorises its training rows.
    distortion : float, default=0.0
        In training, Gaussian noise is added to the embeddings, drawn anew for each batch. Its mean
        squared length is this many times the spread E[D²(x, z)] of the class: the paper's
        distortion of latent examples.

    Attributes
    ----------
    latents : Parameter of shape (n_latents, n_features)
        The latent examples, sorted by class. They are initialised with the first training rows.
    counts : Tensor of shape (n_latents,)
        The number of rows that each latent example stands for.
    latent_labels : Tensor of shape (n_latents,)
        The class of each latent example.
    spreads : Tensor of shape (n_classes,)
        E[D²(x, z)] of each class.
    log_scales, log_weights : Tensor of shape (n_latents,)
        t and b of each latent example, which votes with the weight exp(b − e^t D²/T). They are 0,
        or those of the model that ``from_estimator`` was given, and training does not change them.

    Examples
    --------
    >>> import torch
    >>> from latentmetric.torch import LatentVoteLoss
    >>> net = torch.nn.Linear(8, 4)
    >>> loss = LatentVoteLoss(n_classes=3, n_features=4, latents_per_class=2)
    >>> groups = [{"params": net.parameters()}, *loss.param_groups(lr=1e-2)]
    >>> optimizer = torch.optim.Adam(groups, lr=1e-3)
    >>> rows, labels = torch.randn(32, 8), torch.arange(32) % 3
    >>> loss(net(rows), labels).backward()
    >>> optimizer.step()
    >>> loss.predict_proba(net(rows)).shape
    torch.Size([32, 3])
    """

    latents: Tensor
    counts: Tensor
    spreads: Tensor
    temperature: Tensor
    latent_labels: Tensor
    log_scales: Tensor
    log_weights: Tensor

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        latents_per_class: int | Sequence[int] = 5,
        *,
        temperature: float = 1.0,
        margin: float = 0.0,
        label_noise: bool = False,
        batch_votes: bool = False,
        smoothing: float = 0.0,
        distortion: float = 0.0,
    ) -> None:
        super().__init__()
        self.n_classes = Integer(2).check("n_classes", n_classes)
        self.n_features = Integer(1).check("n_features", n_features)
        self.margin = Number(0).check("margin", margin)
        self.label_noise = Boolean().check("label_noise", label_noise)
        self.batch_votes = Boolean().check("batch_votes", batch_votes)
        self.smoothing = Number(0, 1).check("smoothing", smoothing)
        self.distortion = Number(0).check("distortion", distortion)
        temperature = Number(*FLOAT32_RANGE).check("temperature", temperature)
        sizes = torch.tensor(check_counts(latents_per_class, self.n_classes))
        self.register_buffer("latent_labels", torch.arange(self.n_classes).repeat_interleave(sizes))
        start = torch.randn(len(self.latent_labels), self.n_features) / sqrt(self.n_features)
        self.latents = nn.Parameter(start)
        self.register_buffer("counts", torch.zeros(len(start)))
        self.register_buffer("spreads", torch.zeros(self.n_classes))
        self.register_buffer("temperature", torch.tensor(temperature))
        self.register_buffer("log_scales", torch.zeros(len(start)))
        self.register_buffer("log_weights", torch.zeros(len(start)))

    def extra_repr(self) -> str:
        """What ``print`` shows."""
        return (
            f"n_classes={self.n_classes}, n_features={self.n_features}, "
            f"n_latents={len(self.latents)}"
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
        """
        rate = Number(0, open_low=True).check("lr", lr)
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
        if ref_emb is not None or ref_labels is not None:
            raise ValueError(
                "ref_emb and ref_labels were passed, but this loss compares rows with its latent "
                "examples only; leave them out, and pass all rows that count as embeddings"
            )
        check_rows(embeddings, self.n_features)
        check_labels(labels, len(embeddings), self.n_classes)
        with torch.autocast(embeddings.device.type, enabled=False):
            rows, labels = self._as_floats(embeddings), labels.long()
            weights = row_weights(indices_tuple, rows)
            state, own = self._update_state(rows, labels)
            return (weights * self._row_losses(rows, labels, state, own)).mean()

    def _row_losses(self, rows: Tensor, labels: Tensor, state: State, own: Tensor) -> Tensor:
        """The loss of each row, given its latent example."""
        spreads = state.spreads.detach()[labels]
        if self.training and self.distortion > 0:
            rows = add_noise(rows, self.distortion * spreads)
        # That of a row and its own latent example is exact.
        to_own = distances_to(rows, state.latents[own])[:, None]
        squared = squared_distances(rows, state.latents).scatter(1, own[:, None], to_own)
        logits = class_logits(self._log_votes(squared), state, self.latent_labels)
        added = self.margin * spreads / self.temperature
        losses = self._losses(logits, labels, added)
        if self.training and self.batch_votes:
            of_rows = batch_logits(rows, labels, self.n_classes, self.temperature)
            together = torch.logsumexp(torch.stack((logits, of_rows)), dim=0)
            losses = (losses + self._losses(together, labels, added)) / 2
        return losses

    def _losses(self, logits: Tensor, labels: Tensor, added: Tensor) -> Tensor:
        """Of each row, if the latent examples of its label are farther away by what is added."""
        if self.margin > 0:
            logits = logits.scatter_add(1, labels[:, None], -added[:, None])
        log_shares = torch.log_softmax(logits, dim=1)
        of_label = log_shares.gather(1, labels[:, None])[:, 0]
        losses = -of_label
        if self.label_noise:
            losses = -torch.expm1(WRONG_LABELS_EXPONENT * of_label) / WRONG_LABELS_EXPONENT
        if self.smoothing == 0:
            return losses
        return (1 - self.smoothing) * losses - self.smoothing * finite_mean(log_shares)

    def _log_votes(self, squared: Tensor) -> Tensor:
        """b − e^t D²/T of rows and latent examples, (B, m)."""
        scales = self._as_floats(self.log_scales).exp() / self.temperature
        return self._as_floats(self.log_weights) - squared * scales

    def get_logits(self, embeddings: Tensor) -> Tensor:
        """The logarithm of each class's votes: log Σ exp(b − e^t D²/T) over its latent examples.

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
            state = self._state()
            squared = squared_distances(self._as_floats(embeddings), state.latents)
            return class_logits(self._log_votes(squared), state, self.latent_labels)

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
        codes = torch.as_tensor(np.asarray(as_array(labels)))
        check_labels(codes, len(features), self.n_classes)
        names = np.arange(self.n_classes) if classes is None else checked_labels(classes, "classes")
        n_different = len(np.unique(names))
        if not len(names) == n_different == self.n_classes:
            raise ValueError(
                f"classes has {len(names)} labels, {n_different} of them different, but this loss "
                f"was made for {self.n_classes} classes; pass one label for each code"
            )
        learned = self._learned(components)
        positions = np.unique(names, return_inverse=True)[1]
        return to_estimator(learned.reordered(positions), as_array(features), names[codes.numpy()])

    @classmethod
    def from_estimator(cls, model: Any, **parameters: Any) -> Self:
        """A loss that starts from the latent examples of a fitted ``MaPML``.

        Its latent examples are mapped by the metric of the model, so the layer before it must be
        ``MahalanobisLinear.from_estimator(model)``. Like this layer, it is in float64 if the model
        is: ``.float()`` makes it faster, but rows must not be far from 0 then. The code of a class
        is its position in ``model.classes_``. Its probabilities are those of the model, but all
        latent examples vote; of more than 1,024, only the nearest vote in the model.

        Parameters
        ----------
        model : MaPML
            Fitted.
        **parameters
            Parameters of the loss, except for its sizes.

        Returns
        -------
        LatentVoteLoss
        """
        known = from_estimator(model)
        degree = {"temperature": known.temperature} if known.temperature > 0 else {}
        sizes = known.sizes.tolist()
        loss = cls(len(sizes), known.points.shape[1], sizes, **(degree | parameters))
        loss.to(torch.from_numpy(known.points).dtype)
        with torch.no_grad():
            for name in ("log_scales", "log_weights"):
                if (votes := getattr(known, name)) is not None:
                    getattr(loss, name).copy_(torch.from_numpy(votes))
            loss.latents.copy_(torch.from_numpy(known.points))
            # One without rows votes in the model, too, and only in training takes a row's place.
            loss.counts.copy_(torch.from_numpy(known.counts).clamp(min=RARE))
            loss.spreads.copy_(torch.from_numpy(known.spreads))
        return loss

    def _learned(self, components: Any) -> LearnedLatents:
        """The latent examples that have a vote, under this metric."""
        known = as_array(self.counts) > 0
        known |= not known.any()
        sizes = np.bincount(as_array(self.latent_labels)[known], minlength=self.n_classes)
        if not sizes.all():
            raise ValueError(
                f"class {sizes.argmin()} has no latent example yet, because the loss has not seen "
                "a row of it in training; train with rows of every class"
            )
        latents, log_scales, log_weights = (
            as_array(each)[known] for each in (self.latents, self.log_scales, self.log_weights)
        )
        if len(latents) > ALL_VOTE and not log_scales.any() and not log_weights.any():
            log_scales = log_weights = None  # the nearest of so many are enough
        return LearnedLatents(
            latents, sizes, float(self.temperature), components,
            log_scales=log_scales, log_weights=log_weights,
        )  # fmt: skip

    def _as_floats(self, embeddings: Tensor) -> Tensor:
        """Embeddings in the dtype that is computed in, at least float32."""
        return embeddings.to(torch.promote_types(self.latents.dtype, torch.float32))

    def _state(self) -> State:
        return State(*map(self._as_floats, (self.latents, self.counts, self.spreads)))

    def _update_state(self, rows: Tensor, labels: Tensor) -> tuple[State, Tensor]:
        """The state after a batch in training mode, and the latent example of each row."""
        state, of_latents = self._state(), self.latent_labels
        if not self.training:
            return state, nearest_of_class(rows, labels, state.latents, of_latents)
        everyone, codes, own_rows = gather_batches(rows, labels)
        filled = refill_empty(state, everyone, codes, of_latents)
        state, own = update_state(filled, everyone, codes, of_latents)
        with torch.no_grad():
            self.latents.copy_(state.latents)
            self.counts.copy_(state.counts)
            self.spreads.copy_(state.spreads)
        return state, own[own_rows]


def add_noise(rows: Tensor, squared_lengths: Tensor) -> Tensor:
    """Rows plus Gaussian noise with these mean squared lengths."""
    deviations = (squared_lengths / rows.shape[1]).sqrt()
    return rows + deviations[:, None] * torch.randn_like(rows)


def finite_mean(log_shares: Tensor) -> Tensor:
    """The mean of each row over the classes that have a vote; the others' logarithm is −inf."""
    votes = log_shares > -torch.inf
    return torch.where(votes, log_shares, 0).sum(dim=1) / votes.sum(dim=1)


def as_array(values: Any) -> Any:
    """A tensor as an array, wherever it is; anything else as it is."""
    if not isinstance(values, Tensor):
        return values
    values = values.detach().cpu()
    is_half = values.is_floating_point() and values.itemsize < 4
    return (values.float() if is_half else values).numpy()


def row_weights(indices_tuple: Any, rows: Tensor) -> Tensor:
    """How much each row counts: as often as a miner chose it, in units of the most frequent one."""
    if indices_tuple is None:
        return rows.new_ones(len(rows))
    chosen = torch.cat([numbers.reshape(-1) for numbers in indices_tuple])
    times = rows.new_zeros(len(rows)).index_add(0, chosen, rows.new_ones(len(chosen)))
    return times / times.max().clamp(min=1)
