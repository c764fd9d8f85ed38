"""Draw pictures for the documents.

    LATENTMETRIC_DATA=folder python benchmarks/picture.py [noise] [latent_examples] [router]

``noise``, for the README. Left: training images with noise, and the latent example that stands for
them, of a model with default parameters; shades beyond black and white are shown as these. Right:
the test errors of quality.py and baselines.py, as stored in benchmarks/results/, none typed in.

``latent_examples``: latent examples of MNIST without noise beside images of their clusters.

``router``: the answers of examples/route_intents.py.
"""

from __future__ import annotations

import argparse
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
from baselines import NOISY
from common import RESULTS
from data import load_benchmark, load_noisy_mnist

from latentmetric import MaPML
from latentmetric.viz import plot_latent_examples
from latentmetric.viz.summaries import busiest_clusters

IMAGES = Path(__file__).parent.parent / "docs" / "images"

RIVALS = {
    "3-NN": "3-NN, all 60,000 images",
    "RBF-SVM": "RBF-SVM",
    "logistic regression": "logistic regression",
    "tuned k-NN": "k-NN, parameters chosen",
}
"""Rivals of baselines.py, and how the picture calls them."""

DIGITS = (0, 2, 3, 5, 8)
"""The digits that are shown."""

N_ORIGINALS = 4


def errors(name: str, rival_set: str) -> dict[str, float]:
    """Test errors in percent, the rivals' and MaPML's, from the stored results."""
    rivals = json.loads((RESULTS / "baselines.json").read_text())["cells"][rival_set]
    own = json.loads((RESULTS / "quality.json").read_text())["cells"][name]
    found = {label: rivals[rival]["error"] for rival, label in RIVALS.items()}
    return found | {"MaPML": float(np.mean(own["error"]))}


def strips(model: MaPML, X: Any, y: Any) -> list[tuple[Any, Any]]:
    """For each digit, the latent example that stands for the most images, and some of these."""
    found = []
    for digit in DIGITS:
        latents = np.flatnonzero(model.latent_labels_ == digit)
        cluster = busiest_clusters(model, latents, X, np.flatnonzero(y == digit), 1)[0]
        found.append((model.latent_examples_[cluster.latent], X[cluster.rows[:N_ORIGINALS]]))
    return found


def draw(shown: list[tuple[Any, Any]], noisy: dict[str, float], clean: dict[str, float]) -> Any:
    """The figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(1, 1.25))
    _draw_images(left, shown)
    _draw_bars(right.subplots(), noisy, clean)
    return figure


def _draw_images(figure: Any, shown: list[tuple[Any, Any]]) -> None:
    axes = figure.subplots(len(shown), N_ORIGINALS + 1)
    for line, (latent, originals) in zip(axes, shown, strict=True):
        for axis, image in zip(line, [*originals, latent], strict=True):
            axis.imshow(image.reshape(28, 28), cmap="gray_r", interpolation="none", vmin=0, vmax=1)
            axis.set(xticks=[], yticks=[])
            for edge in axis.spines.values():
                edge.set(color="tab:red" if image is latent else "none", linewidth=2)
    axes[0, 1].set_title("training images", loc="left", fontsize=10)
    axes[0, -1].set_title("learned", color="tab:red", fontsize=10)


def _draw_bars(axis: Any, noisy: dict[str, float], clean: dict[str, float]) -> None:
    places = np.arange(len(noisy))
    colours = ["tab:red" if name.startswith("MaPML") else "0.45" for name in noisy]
    bars = axis.barh(places - 0.2, list(noisy.values()), 0.4, color=colours)
    axis.bar_label(bars, [f"{value:.1f} %" for value in noisy.values()], padding=3)
    bars = axis.barh(places + 0.2, list(clean.values()), 0.4, color=colours, alpha=0.35)
    axis.bar_label(
        bars, [f"{value:.1f} % without noise" for value in clean.values()], padding=3, fontsize=8,
        color="0.35",
    )  # fmt: skip
    axis.set(
        yticks=places, yticklabels=list(noisy), xticks=[], xlim=(0, 1.25 * max(noisy.values()))
    )
    axis.invert_yaxis()
    axis.spines[["top", "right", "bottom"]].set_visible(False)
    axis.set_title("error on clean test images of MNIST", loc="left", fontsize=10)


def fitted(split: Any) -> MaPML:
    print("fit on 60,000 images: about a minute with two cores", flush=True)
    model = MaPML(random_state=0, verbose=1).fit(split.X_train, split.y_train)
    print(f"error of this fit: {100 * (1 - model.score(split.X_test, split.y_test)):.2f} %")
    return model


def noise() -> Any:
    split = load_noisy_mnist()
    shown = strips(fitted(split), split.X_train, split.y_train)
    return draw(shown, errors("MNIST, noise 250/255", NOISY), errors("MNIST", "mnist"))


def latent_examples() -> Any:
    split = load_benchmark("mnist")
    return plot_latent_examples(fitted(split), split.X_train, split.y_train, (28, 28))


def router() -> Any:
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    example = str(IMAGES.parent.parent / "examples" / "route_intents.py")
    ran = runpy.run_path(example)
    asked, answers, threshold = ran["asked"], ran["answers"], ran["threshold"]
    figure = plt.figure(figsize=(9.6, 3.2))
    ax = figure.add_axes((0.31, 0.1, 0.15, 0.8))
    colours = np.where(ran["scores"] < threshold, "tab:red", "tab:green")
    ax.scatter(ran["scores"], asked, c=colours)
    ax.axvline(threshold, color="0.7", linestyle="--")
    ax.set(xticks=[threshold], xticklabels=["threshold"], ylim=(len(asked) - 0.5, -0.5))
    ax.set_title("score")
    ax.spines[:].set_visible(False)
    ax.set_title("answer, and an example behind it", loc="left", x=1.15)
    ax.set_title("request", loc="right", x=-0.08)
    for line, (answer, text) in enumerate(zip(answers, ran["behind"], strict=True)):
        place = {"xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(answer, (1.15, line), color=colours[line], weight="bold", **place)
        if answer in ran["router"].classes_:
            ax.annotate(text, (2.05, line), color="0.4", **place)
    return figure


PICTURES = {"noise": noise, "latent_examples": latent_examples, "router": router}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(PICTURES), help=f"of {list(PICTURES)}")
    for name in parser.parse_args().names:
        path = IMAGES / f"{name}.png"
        PICTURES[name]().savefig(path, dpi=120)
        print(path)


if __name__ == "__main__":
    main()
