"""Latent examples for networks: a loss whose latent examples and margins learn with a network.

The only part of the package that needs PyTorch (extra ``torch``); no other part imports it.
"""

from latentmetric.extras import import_optional as _import_optional

_import_optional("torch", "torch", "latentmetric.torch")

from latentmetric.torch.layer import MahalanobisLinear  # noqa: E402
from latentmetric.torch.vote import LatentVoteLoss  # noqa: E402

__all__ = ["LatentVoteLoss", "MahalanobisLinear"]
