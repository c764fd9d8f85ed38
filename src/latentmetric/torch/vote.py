"""The likelihood of labels under the kernel vote of latent examples, as a loss for networks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from latentmetric.core.tuning import WRONG_LABELS_EXPONENT
from latentmetric.torch.latents import LatentLoss
from latentmetric.torch.running import (
    State,
    batch_logits,
    class_logits,
    distances_to,
    squared_distances,
    stretches,
)
from latentmetric.validation.parameters import Boolean, Number


class LatentVoteLoss(LatentLoss):
    """Minus the logarithm of P(y | x) ∝ Σ exp(−D²(x, z)/T) over the latent examples z of class y.

    This is what the refinement of ``MaPML`` minimises, with the network in the place of the metric.
    Where latent examples are running means, each row is left out of its own one, because a mean
    that contains the row would be too near.

    Parameters
    ----------
    n_classes : int
        Labels are 0 to ``n_classes`` − 1.
    n_features : int
        The length of an embedding.
    latents_per_class : int or sequence of int, default=5
        Latent examples of each class.
    update : {"gradient", "mean"}, default="gradient"
        Whether latent examples are parameters, to be passed to an optimizer by ``param_groups``, or
        running means of the rows nearest to them.
    temperature : float, default=1.0
        T, in squared units of the embeddings.
    memory : float, default=20.0
        The average number of rows that a latent example stands for, as a running mean. A latent
        example that has had no rows near it for long moves to a row of its class.
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
    latents : Tensor of shape (n_latents, n_features)
        The latent examples, sorted by class. They are initialised with the first training rows.
    counts : Tensor of shape (n_latents,)
        The number of rows that each latent example stands for.
    spreads : Tensor of shape (n_classes,)
        E[D²(x, z)] of each class.

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

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        latents_per_class: int | Sequence[int] = 5,
        *,
        update: str = "gradient",
        temperature: float | None = None,
        memory: float = 20.0,
        margin: float = 0.0,
        label_noise: bool = False,
        batch_votes: bool = False,
        smoothing: float = 0.0,
        distortion: float = 0.0,
    ) -> None:
        super().__init__(
            n_classes, n_features, latents_per_class,
            update=update, temperature=temperature, memory=memory,
        )  # fmt: skip
        self.margin = Number(0).check("margin", margin)
        self.label_noise = Boolean().check("label_noise", label_noise)
        self.batch_votes = Boolean().check("batch_votes", batch_votes)
        self.smoothing = Number(0, 1).check("smoothing", smoothing)
        self.distortion = Number(0).check("distortion", distortion)

    def _loss(
        self, rows: Tensor, labels: Tensor, weights: Tensor, state: State, own: Tensor
    ) -> Tensor:
        spreads = state.spreads.detach()[labels]
        if self.training and self.distortion > 0:
            rows = distorted(rows, self.distortion * spreads)
        squared = self._left_out(rows, state, own)
        logits = class_logits(squared, state, self._layout, self.temperature)
        added = self.margin * spreads / self.temperature
        losses = self._losses(logits, labels, added)
        if self.training and self.batch_votes:
            of_rows = batch_logits(rows, labels, self.n_classes, self.temperature)
            together = torch.logsumexp(torch.stack((logits, of_rows)), dim=0)
            losses = (losses + self._losses(together, labels, added)) / 2
        return (weights * losses).mean()

    def _losses(self, logits: Tensor, labels: Tensor, added: Tensor) -> Tensor:
        """Of each row, if the latent examples of its label are farther away by what is added."""
        if self.margin > 0:
            logits = logits.scatter_add(1, labels[:, None], -added[:, None])
        log_shares = torch.log_softmax(logits, dim=1)
        losses = self._distrusted(log_shares.gather(1, labels[:, None])[:, 0])
        if self.smoothing == 0:
            return losses
        return (1 - self.smoothing) * losses - self.smoothing * finite_mean(log_shares)

    def _distrusted(self, of_label: Tensor) -> Tensor:
        """The losses of rows with these logarithms of P(y | x)."""
        if not self.label_noise:
            return -of_label
        unsure: Tensor = -torch.expm1(WRONG_LABELS_EXPONENT * of_label) / WRONG_LABELS_EXPONENT
        return unsure

    def _left_out(self, rows: Tensor, state: State, own: Tensor) -> Tensor:
        """D² of rows and latent examples, (B, m), with each row left out of its own one."""
        squared = squared_distances(rows, state.latents)
        to_own = distances_to(rows, state.latents[own])
        if self.training and self.update == "mean":
            to_own = to_own * stretches(state.counts)[own]
        return squared.scatter(1, own[:, None], to_own[:, None])


def distorted(rows: Tensor, squared_lengths: Tensor) -> Tensor:
    """Rows plus Gaussian noise with these mean squared lengths."""
    deviations = (squared_lengths / rows.shape[1]).sqrt()
    return rows + deviations[:, None] * torch.randn_like(rows)


def finite_mean(log_shares: Tensor) -> Tensor:
    """The mean of each row over the classes that have a vote; the others' logarithm is −inf."""
    votes = log_shares > -torch.inf
    return torch.where(votes, log_shares, 0).sum(dim=1) / votes.sum(dim=1)
