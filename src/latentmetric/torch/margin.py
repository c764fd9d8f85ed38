"""The paper's hinge over triplets of latent examples, as a loss for networks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from latentmetric.torch.latents import LatentLoss
from latentmetric.torch.processes import mean_over_processes
from latentmetric.torch.running import Mined, State, distances_to, squared_distances
from latentmetric.validation.parameters import Integer, Number


class LatentMarginLoss(LatentLoss):
    """[1 + E[D²(x, z)] − (D²(o, q) − D²(o, p))]₊ over triplets (o, p, q) of latent examples.

    The anchors o are the latent examples of the rows of a batch. p are the nearest ones of the same
    class and q the nearest ones of other classes, as in ``MaPML``. The expectation is a running
    mean over the rows of the class of o. Through it, the rows of the batch are pulled towards their
    latent examples while a triplet of their class is active. The loss is the mean over the active
    triplets.

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
        running means of the rows nearest to them. Through these means, triplets pull and push the
        rows of the batch.
    margin : float, default=1.0
        The 1 of the formula, in squared units of the embeddings.
    target_neighbors : int, default=3
        How many nearest latent examples of its class an anchor is combined with, as p.
    impostors : int, default=5
        How many nearest latent examples of other classes an anchor is combined with, as q.
    temperature : float, default=1.0
        T of the votes of ``predict_proba``, in squared units of the embeddings; the loss does not
        depend on it.
    memory : float, default=20.0
        The average number of rows that a latent example stands for, as a running mean. A latent
        example that has had no rows near it for long moves to a row of its class.

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
    >>> from latentmetric.torch import LatentMarginLoss
    >>> loss = LatentMarginLoss(n_classes=3, n_features=4, latents_per_class=2, update="mean")
    >>> embeddings = torch.randn(32, 4, requires_grad=True)
    >>> loss(embeddings, torch.arange(32) % 3).backward()
    >>> bool(embeddings.grad.isfinite().all())
    True
    """

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        latents_per_class: int | Sequence[int] = 5,
        *,
        update: str = "gradient",
        margin: float = 1.0,
        target_neighbors: int = 3,
        impostors: int = 5,
        temperature: float | None = None,
        memory: float = 20.0,
    ) -> None:
        super().__init__(
            n_classes, n_features, latents_per_class,
            update=update, temperature=temperature, memory=memory,
        )  # fmt: skip
        self.margin = Number(0, open_low=True).check("margin", margin)
        self.target_neighbors = Integer(1).check("target_neighbors", target_neighbors)
        self.impostors = Integer(1).check("impostors", impostors)

    def _loss(
        self, rows: Tensor, labels: Tensor, weights: Tensor, state: State, own: Tensor
    ) -> Tensor:
        targets, impostors = self._mined(labels, state, own)
        anchors = state.latents[own][:, None]
        to_targets = distances_to(anchors, state.latents[targets.numbers])
        to_impostors = distances_to(anchors, state.latents[impostors.numbers])
        margins = self.margin + state.spreads[labels]
        hinges = margins[:, None, None] + to_targets[:, :, None] - to_impostors[:, None, :]
        active = (hinges > 0) & targets.found[:, :, None] & impostors.found[:, None, :]
        losses = torch.where(active, hinges, 0).sum(dim=(1, 2))
        n_active = mean_over_processes(active.sum().to(losses.dtype))
        # Triplets are of latent examples, which leave out rows that are not finite. The loss must
        # not: a network that diverged would go unnoticed.
        diverged = (0 * rows).sum()
        return (weights * losses).sum() / n_active.clamp(min=1) + diverged

    def _mined(self, labels: Tensor, state: State, own: Tensor) -> tuple[Mined, Mined]:
        """The nearest latent examples of the same class and of others, for each anchor."""
        latents = state.latents.detach()
        squared = squared_distances(latents[own], latents)
        known = state.counts > 0
        same = (self.of_latents == labels[:, None]) & known
        itself = torch.arange(len(latents), device=own.device) == own[:, None]
        alone = (same & ~itself).sum(dim=1, keepdim=True) == 0
        targets = (same & ~itself) | (itself & alone)
        impostors = (self.of_latents != labels[:, None]) & known
        return (
            Mined.of(squared, targets, self.target_neighbors),
            Mined.of(squared, impostors, self.impostors),
        )
