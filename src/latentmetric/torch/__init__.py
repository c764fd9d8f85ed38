"""Latent examples for networks: a loss whose latent examples and margins learn with a network.

The only part of the package that needs PyTorch (extra ``torch``); no other part imports it.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        'latentmetric.torch needs PyTorch: pip install "latentmetric[torch]"; without a GPU, '
        "install PyTorch's CPU build first, which is smaller"
    ) from error

from latentmetric.torch.layer import MahalanobisLinear
from latentmetric.torch.vote import LatentVoteLoss

__all__ = ["LatentVoteLoss", "MahalanobisLinear"]
