"""Plots of a fitted model on matplotlib axes, for notebooks; the report draws the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latentmetric.core.types import Floats, Ints
from latentmetric.engines.dispatch import labelled_queries
from latentmetric.estimators.fitted import check_latents, fitted_model
from latentmetric.extras import import_optional
from latentmetric.validation.labels import known_codes
from latentmetric.validation.parameters import Integer
from latentmetric.viz.summaries import (
    busiest_clusters,
    check_image_shape,
    class_errors,
    curve,
    last_before_refinement,
    latent_codes,
    spectrum,
    widest_plane,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a5a2b")
"""Colours that colour-blind people can distinguish; markers change when they repeat."""

MARKERS = "os^DPvX*"

MAX_POINTS = 5000
"""At most this many rows are drawn behind the latent examples, evenly spaced among all rows."""


ERRORS = {"validation_error": "validation error", "loo_error": "leave-one-out error"}
"""Errors that a history may have; a fit measures at most one of them."""


def plot_convergence(model: Any, ax: Axes | None = None, quantity: str = "objective") -> Axes:
    """Draw the objective over the rounds, and the validation or leave-one-out error if measured.

    A dashed line shows where MaPML's refinement begins; it has no objective.

    Parameters
    ----------
    model : estimator of this package
        Fitted.
    ax : matplotlib Axes, default=None
        None makes a new figure.
    quantity : str, default="objective"
        Another number in the records of ``history_`` to draw instead, such as "loss", the
        leave-one-out loss of MaPML.

    Returns
    -------
    matplotlib Axes
    """
    fitted_model(model)
    history = model.history_
    measured = curve(history, quantity)
    if not measured.rounds:
        raise ValueError(
            f"{type(model).__name__} records no {quantity}, so there is no curve to draw"
        )
    ax = _axes(ax)
    ax.plot(measured.rounds, measured.values, "o-", color=COLOURS[0], label=quantity)
    ax.set(xlabel=measured.unit, ylabel=quantity, ylim=(0, None))
    rounds = measured.rounds
    for name, text in ERRORS.items():
        errors = curve(history, name)
        if errors.rounds:
            right = ax.twinx()
            right.plot(errors.rounds, 100 * np.array(errors.values), "s--", color=COLOURS[1])
            right.set(ylabel=f"{text}, %", ylim=(0, None))
            ax.plot([], [], "s--", color=COLOURS[1], label=text)
            rounds = sorted({*rounds, *errors.rounds})
    if len(rounds) > 1:
        ax.axvline(model.best_iter_, color="0.6", linestyle=":", label="kept", zorder=0)
    before = last_before_refinement(history)
    if before is not None:
        ax.axvline(before + 0.5, color="0.6", linestyle="--", label="refinement begins", zorder=0)
    ax.set_xticks(rounds[:: max(1, len(rounds) // 10)])
    ax.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax


def plot_spectrum(model: Any, ax: Axes | None = None) -> Axes:
    """Draw the eigenvalues of the metric, largest first, beside the Euclidean 1.

    Parameters
    ----------
    model : estimator of this package
        Fitted.
    ax : matplotlib Axes, default=None
        None makes a new figure.

    Returns
    -------
    matplotlib Axes
    """
    fitted_model(model)
    if not model.model_.is_metric:
        raise ValueError(
            f"this {type(model).__name__} learned a similarity, not a metric, so it has no "
            "spectrum; fit it with psd=True"
        )
    found = spectrum(model.components_)
    ax = _axes(ax)
    ax.semilogy(np.arange(1, found.rank + 1), found.values[: found.rank], color=COLOURS[0])
    ax.axhline(1, color="0.6", linestyle=":", zorder=0)
    ax.set(
        xlabel="direction, strongest first",
        ylabel="eigenvalue",
        title=f"rank {found.rank} of {len(found.values)}, "
        f"effective rank {found.effective_rank:.0f}",
    )
    return ax


def plot_errors_by_class(
    model: Any, X: Any, y: Any, ax: Axes | None = None, n_classes: int = 20
) -> Axes:
    """Draw the error of the classes that are hardest to predict.

    Parameters
    ----------
    model : estimator of this package
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Rows to classify, ideally rows that the model has not seen.
    y : array-like of shape (n_samples,)
        Their labels; the model must know all of them.
    ax : matplotlib Axes, default=None
        None makes a new figure.
    n_classes : int, default=20
        Draw at most this many classes.

    Returns
    -------
    matplotlib Axes
    """
    fitted_model(model)
    n_classes = Integer(1).check("n_classes", n_classes)
    classes = model.classes_
    rows, labels = labelled_queries(X, y, model, "plot_errors_by_class")
    true = known_codes(labels, classes)
    predicted = np.searchsorted(classes, model.predict(rows))
    errors = class_errors(true, predicted, len(classes))
    hardest = [code for code in errors.hardest if errors.rows[code]][:n_classes][::-1]
    ax = _axes(ax)
    names = [str(classes[code]) for code in hardest]
    bars = ax.barh(range(len(hardest)), 100 * errors.shares[hardest], color=COLOURS[0])
    counts = [f"{errors.wrong[code]} of {errors.rows[code]}" for code in hardest]
    ax.bar_label(bars, counts, padding=3, fontsize="small")
    ax.set_yticks(range(len(hardest)), names, parse_math=False)
    ax.set(xlabel="error, %", ylabel="class")
    ax.margins(x=0.15)
    return ax


def plot_latents(
    model: Any, X: Any = None, y: Any = None, ax: Axes | None = None, max_legend: int = 20
) -> Axes:
    """Draw the latent examples on the plane that separates the classes most.

    The plane is a linear projection of the space under the metric: points far apart on it are far
    apart in that space.

    Parameters
    ----------
    model : MaPML
        Fitted.
    X : array-like of shape (n_samples, n_features), default=None
        Rows to draw behind the latent examples, as small points.
    y : array-like of shape (n_samples,), default=None
        Their labels.
    ax : matplotlib Axes, default=None
        None makes a new figure.
    max_legend : int, default=20
        Draw a legend for at most this many classes.

    Returns
    -------
    matplotlib Axes
    """
    check_latents(model)
    if (X is None) != (y is None):
        raise ValueError("X and y belong together; give both or neither")
    codes = latent_codes(model)
    latents = model.model_.points(model.latent_examples_)
    plane = widest_plane(latents, codes)
    ax = _axes(ax)

    def draw(points: Floats, labels: Any, **style: Any) -> None:
        flat = plane.project(points)
        for code, label in enumerate(model.classes_):
            own = flat[labels == label]
            marker = MARKERS[(code + code // len(COLOURS)) % len(MARKERS)]
            look: Any = {"color": COLOURS[code % len(COLOURS)], "marker": marker}
            ax.scatter(own[:, 0], own[:, 1], label=str(code), **look, **style)

    if X is not None:
        rows, labels = labelled_queries(X, y, model, "plot_latents")
        which = _spread(np.arange(len(rows)), MAX_POINTS)
        draw(model.model_.points(rows[which]), labels[which], s=5, alpha=0.35, linewidths=0)
    draw(latents, model.latent_labels_, s=36, linewidths=0.6, edgecolors="white")
    if len(model.classes_) <= max_legend:
        handles = ax.collections[-len(model.classes_) :]
        beside: Any = {"fontsize": "small", "loc": "center left", "bbox_to_anchor": (1, 0.5)}
        legend = ax.legend(handles=handles, frameon=False, **beside)
        # Set here, because a legend skips names that begin with an underscore.
        for text, label in zip(legend.get_texts(), model.classes_, strict=True):
            text.set(text=str(label), parse_math=False)
    ax.set(xticks=[], yticks=[], aspect="equal")
    return ax


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

    This is Fig. 5 of the paper.

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
    check_latents(model)
    X, y = labelled_queries(X, y, model, "plot_latent_examples")
    check_image_shape(image_shape, X.shape[1])
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
    figure: Figure = import_optional("matplotlib.figure", "plot", "a plot").Figure(
        figsize=(0.8 * width, 0.8 * lines), layout="compressed"
    )
    axes = figure.subplots(lines, width, squeeze=False)
    for axis in axes.flat:
        axis.set_axis_off()
    for index, (latent, originals) in enumerate(strips):
        first = (index // lines) * (n_originals + 2)
        line = axes[index % lines, first : first + n_originals + 1]
        for axis, image in zip(line, [latent, *originals], strict=False):
            shown = np.reshape((image - lowest) / ((highest - lowest) or 1), image_shape)
            axis.imshow(shown, vmin=0, vmax=1, cmap="gray_r", interpolation="none")
        line[0].set_axis_on()
        line[0].set(xticks=[], yticks=[])
        for edge in line[0].spines.values():
            edge.set(color="tab:red", linewidth=2)
    return figure


def _spread(indices: Ints, n_shown: int) -> Ints:
    """At most ``n_shown`` of the indices, evenly spaced from the first to the last."""
    return indices[np.linspace(0, len(indices) - 1, min(n_shown, len(indices))).astype(np.intp)]


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    made: Axes = import_optional("matplotlib.pyplot", "plot", "a plot").subplots(
        layout="constrained"
    )[1]
    return made
