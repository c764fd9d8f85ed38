"""Fig. 5 of the paper: latent examples of MNIST, each beside five of its originals."""

from __future__ import annotations

from math import isqrt
from pathlib import Path

from latentmetric.estimators.mapml import MaPML
from latentmetric.viz import plot_latent_examples
from reproduction.figures import save_figure
from reproduction.plan import Setting
from reproduction.sources import Source

NAME = "fig5-latents"


def draw_gallery(setting: Setting, source: Source, out: Path) -> None:
    """Fit on the setting's rows and draw; an existing figure is kept."""
    if (out / f"{NAME}.svg").exists():
        return
    split = source.load(setting)
    model = MaPML.as_published(0.1, random_state=0).fit(split.X_train, split.y_train)
    side = isqrt(split.X_train.shape[1])
    figure = plot_latent_examples(model, split.X_train, split.y_train, (side, side))
    save_figure(figure, NAME, out)
