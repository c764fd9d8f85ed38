"""A Mahalanobis metric as a layer of a network."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from torch import nn

from latentmetric.core.types import Floats
from latentmetric.estimators.fitted import fitted_model
from latentmetric.validation.parameters import Integer


class MahalanobisLinear(nn.Linear):
    """x → L x without a shift: Euclidean distances after it are distances under M = LᵀL.

    Its weight is what ``components_`` is in an estimator. It starts as the Euclidean metric of
    the first ``n_components`` features.

    Parameters
    ----------
    n_features : int
        The length of a row.
    n_components : int, default=None
        The rank of the metric. None means ``n_features``.

    Attributes
    ----------
    weight : Parameter of shape (n_components, n_features)

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import load_iris
    >>> from latentmetric import MaPML
    >>> from latentmetric.torch import MahalanobisLinear
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaPML(random_state=0).fit(X, y)
    >>> layer = MahalanobisLinear.from_estimator(model)
    >>> rows = torch.from_numpy(X)
    >>> mapped, expected = layer(rows).detach().numpy(), model.transform(X)
    >>> bool(abs((mapped - mapped[0]) - (expected - expected[0])).max() < 1e-6)
    True
    """

    def __init__(self, n_features: int, n_components: int | None = None) -> None:
        n_features = Integer(1).check("n_features", n_features)
        rank = n_features if n_components is None else n_components
        super().__init__(n_features, Integer(1, n_features).check("n_components", rank), bias=False)
        nn.init.eye_(self.weight)

    def components(self) -> Floats:
        """The factor of the metric as an array, like ``components_`` of an estimator."""
        weight: Floats = self.weight.detach().cpu().double().numpy()
        return weight.astype(np.float64 if self.weight.dtype == torch.float64 else np.float32)

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """The layer of a fitted estimator's metric.

        Parameters
        ----------
        model : estimator of this package
            Fitted, with ``components_``.

        Returns
        -------
        MahalanobisLinear
            Its outputs are those of ``model.transform``, up to a shift.
        """
        components = fitted_model(model).components
        if components is None:
            raise TypeError(
                f"{type(model).__name__} has no metric, only a similarity; fit it with psd=True"
            )
        rank, n_features = components.shape
        layer = cls(n_features, rank)
        layer.weight = nn.Parameter(torch.from_numpy(components.copy()))
        return layer
