"""Latent examples for networks: a loss whose latent examples and margins learn with a network.

The only part of the package that needs PyTorch (extra ``torch``); no other part imports it.
"""

from latentmetric.extras import pip_install as _pip_install

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"latentmetric.torch needs PyTorch: {_pip_install('torch')}; without a GPU, PyTorch's CPU "
        "build is smaller"
    ) from error

from latentmetric.torch.layer import MahalanobisLinear
from latentmetric.torch.vote import LatentVoteLoss

__all__ = ["LatentVoteLoss", "MahalanobisLinear"]
