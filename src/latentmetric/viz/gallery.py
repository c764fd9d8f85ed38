"""Latent examples beside rows that they represent: Fig. 5 of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.types import Ints
from latentmetric.engines.admission import labelled_queries
from latentmetric.estimators.fitted import check_latents
from latentmetric.viz.clusters import busiest_clusters

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_latent_examples(
    model: Any,
    X: Any,
    y: Any,
    image_shape: tuple[int, ...],
    *,
    n_originals: int = 5,
    latents_per_class: int = 1,
    columns: int = 2,
) -> Figure:
    """Draw the latent examples that represent the most rows, each beside some of them, as images.

    Parameters
    ----------
    model : MaPML
        Fitted on rows that are flattened images.
    X : array-like of shape (n_samples, n_features)
        Rows to choose the originals from.
    y : array-like of shape (n_samples,)
        The label of each row.
    image_shape : tuple of int
        Height and width, and channels if there are any.
    n_originals : int, default=5
        Originals beside each latent example, from the nearest to the farthest of its rows.
    latents_per_class : int, default=1
        Latent examples drawn for each class.
    columns : int, default=2
        Latent examples side by side.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'latentmetric[plot]'") from error
    check_latents(model)
    X, y = labelled_queries(X, y, model, "plot_latent_examples")
    if X.shape[1] != int(np.prod(image_shape)):
        raise ValueError(
            f"image_shape {image_shape} has {int(np.prod(image_shape))} pixels, "
            f"but X has {X.shape[1]} features"
        )
    strips = [
        (model.latent_examples_[cluster.latent], X[_spread(cluster.rows, n_originals)])
        for label in model.classes_
        if len(members := np.flatnonzero(y == label))
        for cluster in busiest_clusters(
            model, np.flatnonzero(model.latent_labels_ == label), X, members, latents_per_class
        )
    ]
    lowest, highest = float(X.min()), float(X.max())
    lines = -(-len(strips) // columns)
    width = columns * (n_originals + 2) - 1
    figure = Figure(figsize=(0.8 * width, 0.8 * lines), layout="compressed")
    axes = figure.subplots(lines, width, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for place, (latent, originals) in enumerate(strips):
        first = (place // lines) * (n_originals + 2)
        line = axes[place % lines, first : first + n_originals + 1]
        for axis, image in zip(line, [latent, *originals], strict=False):
            shown = np.reshape((image - lowest) / ((highest - lowest) or 1), image_shape)
            axis.imshow(shown, vmin=0, vmax=1, cmap="gray_r", interpolation="none")
        line[0].set_axis_on()
        line[0].set(xticks=[], yticks=[])
        for edge in line[0].spines.values():
            edge.set(color="tab:red", linewidth=2)
    return figure


def _spread(rows: Ints, n_rows: int) -> Ints:
    """At most ``n_rows`` of the rows, evenly spaced from the first to the last."""
    return rows[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(np.intp)]
